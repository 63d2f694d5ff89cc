"""The statuses of many steps and iterations at once (part of the port ``calve.engine.ports.EngineState``)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, func, not_, select, tuple_

from calve.engine import GridCell, GridRow, Run, RunStatus, StepStatus
from calve.store.codec import loaded
from calve.store.database import Transactions, chunks
from calve.store.engine.filters import has_param
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

    def iteration_statuses(self, workflow_id: str, *, started_by: Sequence[str] = ()) -> list[tuple[int, str]]:
        """Return the numbers and statuses of a loop's iterations, by number."""
        query = select(run.c.instance_id, run.c.status).where(*_iterations(workflow_id, started_by))
        with self._transactions.read() as connection:
            return [(number, status) for number, status in connection.execute(query.order_by(run.c.instance_id))]

    def iteration_runs(
        self,
        workflow_id: str,
        *,
        statuses: Sequence[RunStatus] = (),
        holding: Iterable[str] = (),
        started_by: Sequence[str] = (),
        after: int = 0,
        limit: int = 100,
    ) -> list[Run]:
        """Return the latest runs of a loop's iterations, by number, starting after ``after``."""
        query = select(run).where(*_iterations(workflow_id, started_by))
        if statuses:
            query = query.where(run.c.status.in_([status.value for status in statuses]))
        query = query.where(*(has_param(value) for value in holding))
        query = query.where(run.c.instance_id > after).order_by(run.c.instance_id).limit(limit)
        with self._transactions.read() as connection:
            return [run_of(row, connection) for row in connection.execute(query)]


def _iterations(workflow_id: str, started_by: Sequence[str]) -> tuple[ColumnElement[bool], ...]:
    """Return conditions for the latest runs of iterations: of all, or of those started by some runs."""
    if not started_by:
        return run.c.workflow_id == workflow_id, run.c.is_latest.is_(True)
    other = run.alias("other")
    newest = (
        select(other.c.instance_id, func.max(other.c.run_id))
        .where(other.c.workflow_id == workflow_id, other.c.parent_run.in_(started_by))
        .group_by(other.c.instance_id)
    )
    return run.c.workflow_id == workflow_id, tuple_(run.c.instance_id, run.c.run_id).in_(newest)


def _carried(connection: Connection, rows: Sequence[Row[Any]]) -> Iterator[tuple[str, Row[Any]]]:
    """Yield the attempts that restarts carried over, each with the run that carries it."""
    kept: Mapping[str, str] = {uuid: row.uuid for row in rows for uuid in loaded(row.carried).values()}
    for some in chunks(list(kept)):
        for cell in connection.execute(_CARRIED, {"uuids": some}):
            yield kept[cell.uuid], cell


def _cell(row: Row[Any]) -> GridCell:
    begun = times_of(row.times).get("start") if row.ended_at is not None else None
    return GridCell(StepStatus(row.status), None if begun is None else row.ended_at - begun)
