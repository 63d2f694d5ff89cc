"""Lineage: which steps read and wrote which tables, as recorded from their attempts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from calve.capture.inspection import LagSample
from calve.lake import TableName
from calve.lineage import MOST_EDGES, Direction, Edge, Visibility, graph
from calve.namespaces import workflow_of
from calve.operations.arguments import OfWorkflow
from calve.operations.declaration import Argument, Document, Topic, operation
from calve.operations.policy import READ_SOMEWHERE

_Lags = Mapping[tuple[str, TableName], LagSample]


class Lineage(Topic):
    """Reads which steps read and wrote which tables."""

    __slots__ = ()
    tag = "lineage"

    @operation("GET /lineage", READ_SOMEWHERE, id="get_lineage", is_slow=True)
    def table_lineage(
        self,
        table: Annotated[str | None, Argument("Around this table.", max_length=512)] = None,
        workflow: OfWorkflow = None,
        depth: Annotated[int, Argument("How many edges away from there.", ge=1, le=20)] = 4,
    ) -> Document:
        """Return the tables and workflows around a table or a workflow, and which steps read and wrote what and when.

        Without a table or a workflow, the newest edges. Tables have the time of their last change, and edges that read
        have the lag of the workflow.
        """
        call, tables = self.call, self.call.tables
        wanted = [] if table is None else [tables.load(table).name]
        visibility = Visibility(call.may_read, tables.may_see())
        edges = graph(
            call.lineage, visibility, tables=wanted, workflows=[] if workflow is None else [workflow], depth=depth
        )
        samples = tables.newest_samples()
        lags = {(workflow_of(one.consumer), one.table): one for one in samples}
        names = {one: tables.short(one) for one in {*wanted, *(edge.table for edge in edges)}}
        return {
            "nodes": [
                *_table_nodes(names, edges, samples),
                *({"id": _of_workflow(one), "kind": "workflow", "name": one} for one in _workflows(edges)),
            ],
            "edges": [_edge_json(edge, names[edge.table], lags) for edge in edges],
            "is_cut": len(edges) >= MOST_EDGES,
        }


def _workflows(edges: Iterable[Edge]) -> list[str]:
    return sorted({edge.workflow_id for edge in edges})


def _table_nodes(
    names: Mapping[TableName, str], edges: Sequence[Edge], samples: Iterable[LagSample]
) -> Iterable[Document]:
    """Yield tables with the time of their last change: of the newest snapshot, or the last step that wrote it."""
    changed: dict[TableName, int] = {}
    for edge in edges:
        if edge.direction is Direction.WRITE:
            changed[edge.table] = max(edge.at, changed.get(edge.table, 0))
    for sample in samples:
        if sample.current_at is not None:
            changed[sample.table] = max(sample.current_at, changed.get(sample.table, 0))
    for table, name in sorted(names.items()):
        yield {"id": _of_table(name), "kind": "table", "name": name, "changed_at": changed.get(table)}


def _edge_json(edge: Edge, name: str, lags: _Lags) -> Document:
    ends = [_of_table(name), _of_workflow(edge.workflow_id)]
    is_read = edge.direction is Direction.READ
    lag = lags.get((edge.workflow_id, edge.table)) if is_read else None
    return {
        "from": ends[0] if is_read else ends[1],
        "to": ends[1] if is_read else ends[0],
        "workflow_id": edge.workflow_id,
        "step_id": edge.step_id,
        "table": name,
        "direction": edge.direction.value,
        "at": edge.at,
        "workflow_instance_id": edge.instance_id,
        "step_attempt_uuid": edge.attempt,
        "rows": edge.rows,
        "bytes": edge.bytes,
        "snapshot_id": edge.snapshot_id,
        "pending_commits": None if lag is None else lag.commits,
        "pending_rows": None if lag is None else lag.rows,
    }


def _of_table(name: str) -> str:
    return f"table:{name}"


def _of_workflow(workflow_id: str) -> str:
    return f"workflow:{workflow_id}"
