"""The lineage graph: which steps read and wrote which tables, according to the last attempt of each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from calve.errors import RequestInvalid
from calve.lake import TableName

if TYPE_CHECKING:
    from calve.lineage.events import Parse, Told

MOST_EDGES = 2_000
"""The maximum number of edges in one response."""
_CAPTURING = frozenset({"IpCapture", "ICDC"})


class Direction(StrEnum):
    """What a step did with a table."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Edge:
    """A step that read or wrote a table, as its last attempt that succeeded did."""

    workflow_id: str
    step_id: str
    direction: Direction
    table: TableName
    at: int
    """When that attempt ended, in milliseconds."""
    instance_id: int
    attempt: str
    """The uuid of the attempt."""
    rows: int | None = None
    bytes: int | None = None
    """The number of bytes that it read or wrote, if known."""
    snapshot_id: int | None = None
    """The last snapshot that it read, or the snapshot that it published."""


class EdgeState(Protocol):
    """Stores edges."""

    def keep(self, edges: Sequence[Edge]) -> None:
        """Store edges; replace an edge of the same step and table, unless the stored one is newer."""
        ...

    def edges(self, workflows: Sequence[str], tables: Sequence[TableName], limit: int) -> list[Edge]:
        """Return the edges of some workflows, and those of some tables."""
        ...

    def newest(self, limit: int) -> list[Edge]:
        """Return up to ``limit`` edges, newest first."""
        ...


def edges_of(told: "Told", parse: "Parse") -> list[Edge]:
    """Return the edges of an attempt; tables that a capture created are left out: its sources count."""
    made = {name for name in _made(told) if name is not None}
    found = [
        *(_edge(told, Direction.READ, *one) for one in _read(told)),
        *(_edge(told, Direction.WRITE, *one) for one in _written(told)),
    ]
    named: dict[tuple[Direction, TableName], Edge] = {}
    for text, edge in found:
        try:
            table = parse(text)
        except RequestInvalid:  # Spark also reports names that are not tables of a catalog
            continue
        if text not in made and table not in {parse(name) for name in made}:
            named.setdefault((edge["direction"], table), Edge(table=table, **edge))
    return list(named.values())


_Counted = tuple[str, int | None, int | None, int | None]
"""The name of a table, rows, bytes and a snapshot."""


def _read(told: "Told") -> Iterator[_Counted]:
    if told.attempt.type == "IpCommit":
        return
    for table in told.capture.tables if told.capture else ():
        yield table.source_table, table.records, table.bytes, table.to_snapshot_id
    for name in told.attempt.artifacts.get("tables_read", ()):
        yield name, None, None, None


def _written(told: "Told") -> Iterator[_Counted]:
    artifacts = told.attempt.artifacts
    if told.attempt.type in _CAPTURING:
        return
    published = {each["table"]: each["snapshot_id"] for each in artifacts.get("published", ())}
    names = dict.fromkeys((*published, *artifacts.get("tables_written", ())))
    counts = artifacts.get("spark", {}) if len(names) == 1 else {}
    for name in names:
        yield name, counts.get("rows_written"), counts.get("bytes_written"), published.get(name)


def _made(told: "Told") -> Iterator[str | None]:
    if told.capture is not None and told.capture.mode == "table":
        for table in told.capture.tables:
            yield from (table.icdc_table, table.deletes_table, table.carried_table)


def _edge(
    told: "Told",
    direction: Direction,
    text: str,
    rows: int | None,
    size: int | None,
    snapshot_id: int | None,
) -> tuple[str, dict[str, Any]]:
    return text, {
        "workflow_id": told.run.owner_workflow,
        "step_id": told.attempt.step_id,
        "direction": direction,
        "at": told.event.at,
        "instance_id": told.run.instance_id,
        "attempt": told.attempt.uuid,
        "rows": rows,
        "bytes": size,
        "snapshot_id": snapshot_id,
    }


@dataclass(frozen=True, slots=True)
class Visibility:
    """The part of the graph that a caller is allowed to see."""

    workflow: Callable[[str], bool]
    table: Callable[[TableName], bool]

    def of(self, edges: Iterable[Edge]) -> list[Edge]:
        """Return the edges whose workflow and table are both visible."""
        return [edge for edge in edges if self.workflow(edge.workflow_id) and self.table(edge.table)]


def graph(
    state: EdgeState, visibility: Visibility, *, tables: Sequence[TableName], workflows: Sequence[str], depth: int
) -> list[Edge]:
    """Return the edges within some distance of tables and workflows; if none are given, the newest edges.

    Paths do not lead through tables and workflows that the caller is not allowed to see.
    """
    if not tables and not workflows:
        return visibility.of(state.newest(MOST_EDGES))
    found: dict[tuple[str, str, Direction, TableName], Edge] = {}
    seen_tables, seen_workflows = set(tables), set(workflows)
    new_tables, new_workflows = list(tables), list(workflows)
    for _ in range(depth):
        edges = visibility.of(state.edges(new_workflows, new_tables, MOST_EDGES))
        found |= {(one.workflow_id, one.step_id, one.direction, one.table): one for one in edges}
        new_tables = sorted({one.table for one in edges} - seen_tables)
        new_workflows = sorted({one.workflow_id for one in edges} - seen_workflows)
        seen_tables.update(new_tables)
        seen_workflows.update(new_workflows)
        if len(found) >= MOST_EDGES or not (new_tables or new_workflows):
            break
    return list(found.values())[:MOST_EDGES]
