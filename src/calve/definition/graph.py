"""The graph of a workflow's steps: checks for unknown, cyclic and unreachable steps, with drawings in text."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from calve.definition.document import Node, entry, items, steps_of, successors, text
from calve.definition.problems import Problems, did_you_mean

_ARROW = " ──▶ "
_ROW = 6
"""How many steps of a longer row are drawn."""


def draw_cycle(steps: Sequence[str]) -> str:
    """Draw the steps in a row, with an arrow from the last back to the first."""
    shown = list(steps)
    if len(shown) > _ROW:
        shown[_ROW // 2 : -_ROW // 2] = [f"({len(steps) - _ROW} more)"]
    row = _ARROW.join(shown)
    left, right = len(shown[0]) // 2, len(row) - (len(shown[-1]) + 1) // 2
    if len(shown) == 1:
        row, right = f"{row} ─┐", len(row) + 2
    gap = right - left - 1
    return f"{row}\n{' ' * left}▲{' ' * gap}│\n{' ' * left}└{'─' * gap}┘"


def draw_dead_end(source: str, target: str, known: Collection[str]) -> str:
    """Draw an edge, and cross out the step that does not exist."""
    return _ARROW.join(step if step in known else f"{step} ✗" for step in (source, target))


def draw_unreached(step: str, before: Sequence[tuple[str, str]]) -> str:
    """Draw the edges to a step, each with its condition and crossed out."""
    width = max((len(source) for source, _ in before), default=0)
    rows = []
    for source, condition in before:
        label = "" if condition == "true" else f"[{condition}] "
        rows.append(f"{source:<{width}} ──{label}✗─▶ {step}")
    return "\n".join(rows)


def draw_paths(paths: Sequence[Sequence[str]], edges: Mapping[str, Mapping[str, str]], crossed: str) -> str:
    """Draw paths through a graph, one in each line, with the conditions of their edges; one step is crossed out."""
    return "\n".join(_row(path, edges, crossed) for path in paths)


def _row(path: Sequence[str], edges: Mapping[str, Mapping[str, str]], crossed: str) -> str:
    hidden = len(path) - _ROW
    row = ""
    for position, step in enumerate(path):
        if hidden > 0 and _ROW // 2 <= position < _ROW // 2 + hidden:
            row += f"{_ARROW}({hidden} more)" if position == _ROW // 2 else ""
            continue
        condition = edges[path[position - 1]][step] if position else ""
        arrow = _ARROW if condition in {"", "true"} else f" ──[{condition}]─▶ "
        row += f"{arrow if position else ''}{step}{' ✗' if step == crossed else ''}"
    return row


Edges = Mapping[str, Mapping[str, str]]
"""For each step its successors, each with its condition."""
_Place = TypeVar("_Place")


def check_graph(holder: Node | None, problems: Problems) -> None:
    """Check the steps of a workflow, and those of each loop in it."""
    steps = {step_id: step for _, step in steps_of(holder) if (step_id := text(entry(step, "id")))}
    edges = {step_id: conditions_of(step) for step_id, step in steps.items()}
    _check_targets(steps, edges, problems)
    _check_predecessors(steps, edges, problems)
    cycles = find_cycles(edges)
    for cycle in cycles:
        path = " -> ".join([*cycle, cycle[0]])
        problems.add(steps[cycle[0]], "cycle", f"DAG contains cycle: {path}", drawing=draw_cycle(cycle))
    _check_reached(steps, edges, {step_id for cycle in cycles for step_id in cycle}, problems)
    for step in steps.values():
        check_graph(step, problems)


def conditions_of(step: Node) -> dict[str, str]:
    """Return the steps that a step leads to, each with the text of its condition."""
    return {target: text(condition) or "" for target, condition in successors(step).items()}


def shortest_path(
    starts: Iterable[_Place], following: Callable[[_Place], Iterable[_Place]], goal: _Place
) -> tuple[_Place, ...] | None:
    """Return the shortest path from one of some starts to a goal, both included; None if there is none."""
    came_from: dict[_Place, _Place | None] = dict.fromkeys(starts)
    waiting = deque(came_from)
    while waiting:
        here = waiting.popleft()
        if here == goal:
            path: list[_Place] = []
            back: _Place | None = here
            while back is not None:
                path.append(back)
                back = came_from[back]
            return tuple(reversed(path))
        for there in following(here):
            if there not in came_from:
                came_from[there] = here
                waiting.append(there)
    return None


def find_cycles(edges: Edges) -> list[tuple[str, ...]]:
    """Return the shortest cycle through the first step of each strongly connected component."""
    order = {step_id: position for position, step_id in enumerate(edges)}
    cycles = []
    for component in _components(edges):
        first = min(component, key=order.__getitem__)
        inside = {step_id: [target for target in edges[step_id] if target in component] for step_id in component}
        back = shortest_path(inside[first], inside.__getitem__, first)
        if back:
            cycles.append((first, *back[:-1]))
    return sorted(cycles, key=lambda cycle: order[cycle[0]])


def _components(edges: Edges) -> Iterator[set[str]]:
    """Yield the strongly connected components (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    held: set[str] = set()
    for root in edges:
        work = [(root, iter(edges[root]))] if root not in index else []
        while work:
            step_id, targets = work[-1]
            if step_id not in index:
                index[step_id] = low[step_id] = len(index)
                stack.append(step_id)
                held.add(step_id)
            for target in targets:
                if target in edges and target not in index:
                    work.append((target, iter(edges[target])))
                    break
                if target in held:
                    low[step_id] = min(low[step_id], low[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[step_id])
                if low[step_id] == index[step_id]:
                    component = set()
                    while step_id not in component:
                        component.add(stack.pop())
                    held -= component
                    yield component


def _check_targets(steps: Mapping[str, Node], edges: Edges, problems: Problems) -> None:
    for step_id, step in steps.items():
        conditions = successors(step)
        for target in edges[step_id]:
            if target not in steps:
                problems.add(
                    conditions[target],
                    "unknown_step",
                    f"{step_id} leads to {target}, but there is no such step here",
                    hint=did_you_mean(target, steps),
                    drawing=draw_dead_end(step_id, target, steps),
                    at_key=True,
                )


def _check_predecessors(steps: Mapping[str, Node], edges: Edges, problems: Problems) -> None:
    """Compare the predecessors that Maestro's JSON may list with those that follow from the successors."""
    for step_id, step in steps.items():
        named = entry(step, "transition", "predecessors")
        before = {text(item) for item in items(named)}
        found = {source for source, targets in edges.items() if step_id in targets}
        if named is not None and before and before != found:
            problems.add(
                named,
                "predecessors_differ",
                f"the successors say that {_listed(found)} leads to {step_id}",
                hint="leave predecessors out: they follow from the successors",
            )


def _check_reached(steps: Mapping[str, Node], edges: Edges, cyclic: set[str], problems: Problems) -> None:
    """Report steps that no run can reach."""
    into: dict[str, list[tuple[str, str]]] = {step_id: [] for step_id in steps}
    for source, targets in edges.items():
        for target, condition in targets.items():
            if target in into:
                into[target].append((source, condition))
    starts = [step_id for step_id, sources in into.items() if not sources]
    reached = _reached(edges, starts)
    for step_id in steps:
        if step_id not in reached and step_id not in cyclic:
            sources = [source for source, _ in into[step_id]]
            message = f"{step_id} can never run: {_listed(sources)} before it is never reached"
            if all(condition.strip(" ;") == "false" for _, condition in into[step_id]):
                message = f"{step_id} can never run: the condition of every edge to it is false"
            problems.add(steps[step_id], "unreachable_step", message, drawing=draw_unreached(step_id, into[step_id]))


def _reached(edges: Edges, starts: Iterable[str]) -> set[str]:
    reached = set(starts)
    waiting = deque(reached)
    while waiting:
        for target, condition in edges.get(waiting.popleft(), {}).items():
            if target not in reached and condition.strip(" ;") != "false":
                reached.add(target)
                waiting.append(target)
    return reached


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no step"
