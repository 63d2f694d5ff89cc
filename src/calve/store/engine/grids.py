"""The statuses of many steps and iterations at once (part of the port ``calve.engine.ports.EngineState``)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, bindparam, not_, select

from calve.engine import GridCell, GridRow, Run, RunStatus, StepStatus
from calve.store.codec import loaded
from calve.store.database import Transactions, chunks
from calve.store.engine.overviews import RECENT_RUN, recent_run_of
from calve.store.engine.rows import run_of, times_of
from calve.store.tables import attempt, run, workflow

_ROWS: Select[Any] = (
    select(*RECENT_RUN, run.c.uuid, run.c.version_id, run.c.carried)
    .join(workflow, workflow.c.workflow_id == run.c.workflow_id)
    .where(
        workflow.c.workflow_id == bindparam("workflow_id"),
        run.c.instance_id > workflow.c.last_instance - bindparam("number"),
        run.c.is_latest.is_(True),
    )
    .order_by(run.c.instance_id.desc())
)
_CELLS: Select[Any] = select(
    attempt.c.uuid, attempt.c.run_uuid, attempt.c.step_id, attempt.c.status, attempt.c.times, attempt.c.ended_at
)
_OWN = (
    _CELLS.where(attempt.c.run_uuid.in_(bindparam("uuids", expanding=True)))
    .where(not_(attempt.c.is_superseded))
    .order_by(attempt.c.run_uuid, attempt.c.step_id, attempt.c.attempt_id)
)
_CARRIED = _CELLS.where(attempt.c.uuid.in_(bindparam("uuids", expanding=True)))
_STATUSES: Select[Any] = (
    select(run.c.instance_id, run.c.status)
    .where(run.c.workflow_id == bindparam("workflow_id"), run.c.is_latest.is_(True))
    .order_by(run.c.instance_id)
)


class SqlGrids:
    """Reads the statuses of many steps and iterations."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def grid(self, workflow_id: str, number: int) -> list[GridRow]:
        """Return the newest instances of a workflow with their steps, the highest number first."""
        with self._transactions.read() as connection:
            rows = connection.execute(_ROWS, {"workflow_id": workflow_id, "number": number}).all()
            cells: dict[str, dict[str, GridCell]] = {row.uuid: {} for row in rows}
            for run_uuid, cell in _carried(connection, rows):
                cells[run_uuid][cell.step_id] = _cell(cell)
            for some in chunks(list(cells)):
                for cell in connection.execute(_OWN, {"uuids": some}):
                    cells[cell.run_uuid][cell.step_id] = _cell(cell)
        return [GridRow(recent_run_of(row), row.version_id, cells[row.uuid]) for row in rows]

    def iteration_statuses(self, workflow_id: str) -> list[tuple[int, str]]:
        """Return the numbers and statuses of the iterations under the name of a loop, by number."""
        with self._transactions.read() as connection:
            return [(number, status) for number, status in connection.execute(_STATUSES, {"workflow_id": workflow_id})]

    def iteration_runs(
        self, workflow_id: str, *, statuses: Sequence[RunStatus] = (), after: int = 0, limit: int = 100
    ) -> list[Run]:
        """Return the latest runs of the iterations under the name of a loop, by number, after ``after``."""
        query = select(run).where(run.c.workflow_id == workflow_id, run.c.is_latest.is_(True))
        if statuses:
            query = query.where(run.c.status.in_([status.value for status in statuses]))
        query = query.where(run.c.instance_id > after).order_by(run.c.instance_id).limit(limit)
        with self._transactions.read() as connection:
            return [run_of(row, connection) for row in connection.execute(query)]


def _carried(connection: Connection, rows: Sequence[Row[Any]]) -> Iterator[tuple[str, Row[Any]]]:
    """Yield the attempts that restarts have kept, each with the run that keeps it."""
    kept: Mapping[str, str] = {uuid: row.uuid for row in rows for uuid in loaded(row.carried).values()}
    for some in chunks(list(kept)):
        for cell in connection.execute(_CARRIED, {"uuids": some}):
            yield kept[cell.uuid], cell


def _cell(row: Row[Any]) -> GridCell:
    begun = times_of(row.times).get("start") if row.ended_at is not None else None
    return GridCell(StepStatus(row.status), None if begun is None else row.ended_at - begun)
