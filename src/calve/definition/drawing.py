"""Small pictures of what is wrong with a graph, in text."""

from collections.abc import Collection, Mapping, Sequence

_ARROW = " ──▶ "
_ROW = 6
"""More steps than these are not drawn one by one."""


def draw_cycle(steps: Sequence[str]) -> str:
    """Draw the steps in a row, and the way back from the last to the first."""
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
    """Draw an edge, and cross out what is not there."""
    return _ARROW.join(step if step in known else f"{step} ✗" for step in (source, target))


def draw_unreached(step: str, before: Sequence[tuple[str, str]]) -> str:
    """Draw the ways to a step, each with its condition, and that none is ever gone."""
    width = max((len(source) for source, _ in before), default=0)
    rows = []
    for source, condition in before:
        label = "" if condition == "true" else f"[{condition}] "
        rows.append(f"{source:<{width}} ──{label}✗─▶ {step}")
    return "\n".join(rows)


def draw_ways(ways: Sequence[Sequence[str]], edges: Mapping[str, Mapping[str, str]], crossed: str) -> str:
    """Draw ways through a graph, one in a row, with the conditions of their edges; one step is crossed out."""
    return "\n".join(_row(way, edges, crossed) for way in ways)


def _row(way: Sequence[str], edges: Mapping[str, Mapping[str, str]], crossed: str) -> str:
    hidden = len(way) - _ROW
    row = ""
    for position, step in enumerate(way):
        if hidden > 0 and _ROW // 2 <= position < _ROW // 2 + hidden:
            row += f"{_ARROW}({hidden} more)" if position == _ROW // 2 else ""
            continue
        condition = edges[way[position - 1]][step] if position else ""
        arrow = _ARROW if condition in {"", "true"} else f" ──[{condition}]─▶ "
        row += f"{arrow if position else ''}{step}{' ✗' if step == crossed else ''}"
    return row
