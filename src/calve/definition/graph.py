"""The graph of a workflow's steps: what is wrong with it, drawn."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping

from calve.definition.document import Node
from calve.definition.drawing import draw_cycle, draw_dead_end, draw_unreached
from calve.definition.problems import Problems, did_you_mean
from calve.definition.walking import entries, entry, items, steps_of, text

Edges = Mapping[str, Mapping[str, str]]
"""For each step its successors, each with its condition."""


def check_graph(holder: Node | None, problems: Problems) -> None:
    """Check the steps of a workflow, and those of each loop in it."""
    steps = {step_id: step for _, step in steps_of(holder) if (step_id := text(entry(step, "id")))}
    edges = {step_id: _successors(step) for step_id, step in steps.items()}
    _check_targets(steps, edges, problems)
    _check_predecessors(steps, edges, problems)
    cycles = find_cycles(edges)
    for cycle in cycles:
        way = " -> ".join([*cycle, cycle[0]])
        problems.add(steps[cycle[0]], "cycle", f"DAG contains cycle: {way}", drawing=draw_cycle(cycle))
    _check_reached(steps, edges, {step_id for cycle in cycles for step_id in cycle}, problems)
    for step in steps.values():
        check_graph(step, problems)


def find_cycles(edges: Edges) -> list[tuple[str, ...]]:
    """Return one shortest cycle through the first step of each knot of the graph."""
    order = {step_id: position for position, step_id in enumerate(edges)}
    cycles = []
    for knot in _knots(edges):
        first = min(knot, key=order.__getitem__)
        inside = {step_id: [target for target in edges[step_id] if target in knot] for step_id in knot}
        cycles.append(_way_back(inside, first))
    return sorted((cycle for cycle in cycles if cycle), key=lambda cycle: order[cycle[0]])


def _knots(edges: Edges) -> Iterator[set[str]]:
    """Yield the sets of steps that all lead to each other (Tarjan's algorithm, without recursion)."""
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
                    knot = set()
                    while step_id not in knot:
                        knot.add(stack.pop())
                    held -= knot
                    yield knot


def _successors(step: Node) -> dict[str, str]:
    successors = entries(entry(step, "transition", "successors"))
    return {target: text(condition) or "" for target, condition in successors.items()}


def _check_targets(steps: Mapping[str, Node], edges: Edges, problems: Problems) -> None:
    for step_id, step in steps.items():
        successors = entries(entry(step, "transition", "successors"))
        for target in edges[step_id]:
            if target not in steps:
                problems.add(
                    successors[target],
                    "unknown_step",
                    f"{step_id} leads to {target}, and there is no such step here",
                    hint=did_you_mean(target, steps),
                    drawing=draw_dead_end(step_id, target, steps),
                    at_key=True,
                )


def _check_predecessors(steps: Mapping[str, Node], edges: Edges, problems: Problems) -> None:
    """Compare the predecessors that Maestro's JSON may name with those that the successors give."""
    for step_id, step in steps.items():
        named = entry(step, "transition", "predecessors")
        before = {text(item) for item in items(named)}
        found = {source for source, successors in edges.items() if step_id in successors}
        if named is not None and before and before != found:
            problems.add(
                named,
                "predecessors_differ",
                f"the successors say that {_listed(found)} leads to {step_id}",
                hint="leave predecessors out: they follow from the successors",
            )


def _check_reached(steps: Mapping[str, Node], edges: Edges, cyclic: set[str], problems: Problems) -> None:
    """Find steps that no run can ever come to."""
    into: dict[str, list[tuple[str, str]]] = {step_id: [] for step_id in steps}
    for source, successors in edges.items():
        for target, condition in successors.items():
            if target in into:
                into[target].append((source, condition))
    starts = [step_id for step_id, sources in into.items() if not sources]
    reached = _reached(edges, starts)
    for step_id in steps:
        if step_id not in reached and step_id not in cyclic:
            sources = [source for source, _ in into[step_id]]
            message = f"no run comes to {step_id}: {_listed(sources)} before it is never reached"
            if all(condition.strip(" ;") == "false" for _, condition in into[step_id]):
                message = f"no run comes to {step_id}: every way to it has the condition false"
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


def _way_back(edges: Mapping[str, Iterable[str]], start: str) -> tuple[str, ...]:
    """Return the shortest way from a step to itself, by breadth; none if there is none."""
    came_from: dict[str, str] = {}
    waiting = deque([start])
    while waiting:
        here = waiting.popleft()
        for target in edges[here]:
            if target == start:
                way = [here]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return tuple(reversed(way))
            if target not in came_from:
                came_from[target] = here
                waiting.append(target)
    return ()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no step"
