"""Many workflows and instances with few fields each (part of the port ``calve.engine.ports.EngineState``)."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from sqlalchemy import Column, ColumnElement, Connection, Row, Select, and_, bindparam, case, func, literal, or_, select

from calve.engine import RecentRun, RunStatus, WorkflowOrder, WorkflowQuery, WorkflowRow
from calve.store.codec import loaded
from calve.store.database import Transactions, is_below
from calve.store.engine.rows import WORKFLOW
from calve.store.tables import run, version, workflow

_BATCH = 500
"""How many rows are read at a time if not all of them may match the query."""
RECENT_RUN: tuple[Column[Any], ...] = (
    run.c.workflow_id,
    run.c.instance_id,
    run.c.run_id,
    run.c.status,
    run.c.created_at,
    run.c.started_at,
    run.c.ended_at,
)
"""The columns that ``recent_run_of`` reads."""
# Instances of a workflow are numbered without gaps, so the newest are found by number: a window function would scan
# all instances of each workflow to number them.
_RECENT_RUNS: Select[Any] = (
    select(*RECENT_RUN)
    .join(workflow, workflow.c.workflow_id == run.c.workflow_id)
    .where(
        workflow.c.workflow_id.in_(bindparam("workflow_ids", expanding=True)),
        run.c.instance_id > workflow.c.last_instance - bindparam("number"),
        run.c.is_latest.is_(True),
    )
    .order_by(run.c.workflow_id, run.c.instance_id.desc())
)
_last = run.alias("last")


class SqlOverviews:
    """Reads lists of workflows and instances."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def workflow_rows(self, query: WorkflowQuery) -> list[WorkflowRow]:
        """Return workflows with their default versions."""
        found: list[WorkflowRow] = []
        with self._transactions.read() as connection:
            for row in _rows(connection, query):
                read = _row_of(row)
                if read.meets(query):
                    found.append(read)
                if len(found) == query.limit:
                    break
        return found

    def recent_runs(self, workflow_ids: Sequence[str], number: int) -> dict[str, list[RecentRun]]:
        """Return the newest instances of each workflow, the highest number first."""
        found: dict[str, list[RecentRun]] = {workflow_id: [] for workflow_id in workflow_ids}
        with self._transactions.read() as connection:
            place = {"workflow_ids": list(workflow_ids), "number": number}
            for row in connection.execute(_RECENT_RUNS, place):
                found[row.workflow_id].append(recent_run_of(row))
        return found

    def instances_numbered(
        self, number: int, *, contains: str, limit: int = 10, namespaces: Sequence[str] = ("",)
    ) -> list[RecentRun]:
        """Return the instances with a number, of workflows whose ids contain a text; the shortest ids first."""
        is_wanted = workflow.c.workflow_id.icontains(contains, autoescape=True)
        query = _numbered.where(is_wanted, is_below(workflow.c.workflow_id, namespaces)).limit(limit)
        with self._transactions.read() as connection:
            return [recent_run_of(row) for row in connection.execute(query, {"number": number})]


_numbered: Select[Any] = (
    select(*RECENT_RUN)
    .join(workflow, workflow.c.workflow_id == run.c.workflow_id)
    .where(workflow.c.deleted_at.is_(None), run.c.instance_id == bindparam("number"), run.c.is_latest.is_(True))
    .order_by(func.length(run.c.workflow_id), run.c.workflow_id)
)


def recent_run_of(row: Row[Any]) -> RecentRun:
    """Read the columns of a run for lists."""
    return RecentRun(
        row.workflow_id,
        row.instance_id,
        row.run_id,
        RunStatus(row.status),
        row.created_at,
        row.started_at,
        row.ended_at,
    )


def _rows(connection: Connection, query: WorkflowQuery) -> Iterator[Row[Any]]:
    """Yield the rows that may match a query, in order, read in batches."""
    after = query.after
    size = min(_BATCH, query.limit)
    while True:
        rows = connection.execute(_listed(query, after).limit(size)).all()
        yield from rows
        if len(rows) < size:
            return
        after = (rows[-1].rank, rows[-1].workflow_id)
        size = _BATCH


def _listed(query: WorkflowQuery, after: tuple[int, str] | None) -> Select[Any]:
    default = func.coalesce(workflow.c.active_version, workflow.c.latest_version)
    is_default = and_(version.c.workflow_id == workflow.c.workflow_id, version.c.version_id == default)
    is_last = and_(
        _last.c.workflow_id == workflow.c.workflow_id,
        _last.c.instance_id == workflow.c.last_instance,
        _last.c.is_latest.is_(True),
    )
    rank = _rank(query)
    listed = (
        select(workflow, version.c.definition, _last.c.created_at.label("last_run_at"), rank.label("rank"))
        .join(version, is_default)
        .outerjoin(_last, is_last)
        .where(workflow.c.deleted_at.is_(None), is_below(workflow.c.workflow_id, query.namespaces))
        .where(*_conditions(query))
    )
    if query.order is WorkflowOrder.ID:
        listed = listed.order_by(workflow.c.workflow_id)
    else:
        listed = listed.order_by(rank, workflow.c.workflow_id)
    if after is None:
        return listed
    is_later = workflow.c.workflow_id > after[1]
    if query.order is WorkflowOrder.ID:
        return listed.where(is_later)
    return listed.where(or_(rank > after[0], and_(rank == after[0], is_later)))


def _rank(query: WorkflowQuery) -> ColumnElement[int]:
    match query.order:
        case WorkflowOrder.ID:
            return literal(0)
        case WorkflowOrder.LAST_RUN:
            return -func.coalesce(_last.c.created_at, 0)
        case WorkflowOrder.MATCH:
            return case((workflow.c.workflow_id.icontains(query.text, autoescape=True), 0), else_=1)
        case _:
            assert_never(query.order)


def _conditions(query: WorkflowQuery) -> Iterator[ColumnElement[bool]]:
    places = (workflow.c.properties, version.c.definition)
    if query.contains:
        yield workflow.c.workflow_id.icontains(query.contains, autoescape=True)
    if query.text:
        is_written = (one.icontains(_in_json(query.text), autoescape=True) for one in places)
        yield or_(workflow.c.workflow_id.icontains(query.text, autoescape=True), *is_written)
    # Reading a row decides whether the text in its JSON is the owner or a tag; few other texts are the same.
    if query.owner is not None:
        yield workflow.c.properties.contains(json.dumps(query.owner), autoescape=True)
    if query.tag is not None:
        yield or_(*(one.contains(json.dumps(query.tag), autoescape=True) for one in places))


def _in_json(text: str) -> str:
    """Return a text as it is escaped inside JSON."""
    return json.dumps(text)[1:-1]


def _row_of(row: Row[Any]) -> WorkflowRow:
    return WorkflowRow(WORKFLOW.from_row(row), loaded(row.definition), row.last_run_at, row.rank)
