"""Results for notebooks: plain lists and dicts, and graphs, that also have ``_repr_html_``. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

Document = dict[str, Any]
_BOX, _GAP = (150, 30), (40, 14)
"""Width and height of a step in a graph, and the space between two, in pixels."""
_COLOURS = {"SUCCEEDED": "#2e7d32", "FAILED": "#c62828", "FATALLY_FAILED": "#c62828", "RUNNING": "#1565c0"}


class Records(list[Document]):
    """A list of documents, which a notebook shows as a table of some columns."""

    def __init__(self, documents: Iterable[Document], columns: Sequence[str]) -> None:
        super().__init__(documents)
        self.columns = tuple(columns)

    def _repr_html_(self) -> str:
        return table(self.columns, ([one.get(name) for name in self.columns] for one in self))


class Instance(Document):
    """An instance of a workflow: the document of the REST API."""

    @property
    def status(self) -> str:
        """The status of the instance, such as SUCCEEDED."""
        return str(self["status"])

    @property
    def succeeded(self) -> bool:
        """Whether the instance succeeded."""
        return self.status == "SUCCEEDED"

    @property
    def graph(self) -> "Graph":
        """The graph of the steps, with their statuses."""
        dag: Mapping[str, Mapping[str, Any]] = self.get("runtime_dag", {})
        return Graph(
            {step: tuple(node.get("successors", ())) for step, node in dag.items()},
            {step["step_id"]: step.get("status", "") for step in self.get("steps", ())},
        )

    def _repr_html_(self) -> str:
        name = f"{self['workflow_id']} {self['workflow_instance_id']}"
        steps = (
            [step.get("step_id"), step.get("type"), step.get("status"), step.get("message")] for step in self.steps
        )
        head = f"<p><b>{escape(name)}</b> {escape(self.status)}</p>"
        return f"{head}{self.graph._repr_html_()}{table(('step', 'type', 'status', 'message'), steps)}"

    @property
    def steps(self) -> list[Document]:
        """The steps, in the order of the definition."""
        found: list[Document] = self.get("steps", [])
        return found


class Graph:
    """The graph of a workflow's steps.

    Args:
        successors: the successors of each step.
        statuses: the status of each step, for the graph of an instance.
    """

    def __init__(self, successors: Mapping[str, Sequence[str]], statuses: Mapping[str, str] | None = None) -> None:
        self.successors = {step: tuple(after) for step, after in successors.items()}
        self.statuses = dict(statuses or {})

    def __repr__(self) -> str:
        return "\n".join(f"{step} → {', '.join(after) or '·'}" for step, after in self.successors.items())

    @property
    def columns(self) -> list[list[str]]:
        """The steps in columns, by the longest path to them; each column is in the order of the definition."""
        depth = dict.fromkeys(self.successors, 0)
        for _ in depth:  # the longest path has at most that many steps, so the depths are final after as many rounds
            for step, after in self.successors.items():
                for each in after:
                    depth[each] = max(depth[each], depth[step] + 1)
        return [
            [step for step in depth if depth[step] == number] for number in range(max(depth.values(), default=-1) + 1)
        ]

    def _repr_html_(self) -> str:
        width, height = _BOX
        across, down = width + _GAP[0], height + _GAP[1]
        places = {
            step: (number * across, row * down)
            for number, column in enumerate(self.columns)
            for row, step in enumerate(column)
        }
        size = (len(self.columns) * across, max((len(column) for column in self.columns), default=0) * down)
        lines = (
            f'<path d="M{places[step][0] + width} {places[step][1] + height // 2} L{x} {y + height // 2}" '
            'stroke="currentColor" fill="none" opacity=".5"/>'
            for step, after in self.successors.items()
            for x, y in (places[each] for each in after)
        )
        boxes = (
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" fill="none" '
            f'stroke="{_COLOURS.get(self.statuses.get(step, ""), "currentColor")}"/>'
            f'<text x="{x + 8}" y="{y + 20}" font-size="12" fill="currentColor">{escape(step[:20])}</text>'
            for step, (x, y) in places.items()
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}">'
            f"{''.join(lines)}{''.join(boxes)}</svg>"
        )


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table; None is an empty cell."""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, columns, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(column: str, value: Any) -> str:
    return f"<td>{escape(_shown(column, value))}</td>"


def _shown(column: str, value: Any) -> str:
    if value is None:
        return ""
    if column.endswith("_time") and isinstance(value, int):  # Maestro's times are milliseconds
        return f"{datetime.fromtimestamp(value / 1_000, UTC):%Y-%m-%d %H:%M:%S}"
    return str(value)
