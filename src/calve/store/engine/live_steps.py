"""Unfinished steps, and what they wait for (part of the port ``calve.engine.ports.EngineState``)."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CTE, ColumnElement, Select, and_, bindparam, case, func, not_, or_, select, text

from calve.engine import APPROVAL, Attempt, LiveSteps, PermitUse, Run, RunStatus, StepStatus
from calve.store.database import Transactions, chunks, is_below
from calve.store.engine.permits import TAG
from calve.store.engine.rows import attempt_of, run_of
from calve.store.tables import (
    IS_COUNTED,
    IS_INSTANCE,
    IS_LATEST,
    IS_LIVE,
    IS_UNSUCCESSFUL,
    attempt,
    claim,
    log_chunk,
    run,
    tag_permit,
)

_ASKING, _RETRYING, _HELD, _RUNNING = range(4)
_TAIL = 4_000
_RETRYABLE = [status.value for status in StepStatus if status.is_retryable]
_HOLDS = [StepStatus.PAUSED.value, StepStatus.WAITING_FOR_SIGNALS.value, StepStatus.WAITING_FOR_PERMITS.value]
_LIVE_RUNS = [status.value for status in RunStatus if not status.is_terminal]
_IS_RUNNING = attempt.c.status == StepStatus.RUNNING.value
_KIND: ColumnElement[int] = case(
    (and_(_IS_RUNNING, attempt.c.type == APPROVAL), _ASKING),
    (attempt.c.status.in_(_RETRYABLE), _RETRYING),
    (attempt.c.status.in_(_HOLDS), _HELD),
    else_=_RUNNING,
)
_WILL_MOVE = or_(attempt.c.status.in_([*_RETRYABLE, *_HOLDS]), and_(_IS_RUNNING, attempt.c.is_leaf))


def _live_runs() -> CTE:
    """Return a query for a run and the unfinished runs below it, found by the index of unsuccessful children."""
    # The conditions of the partial index do not name a table, so they need a subquery of their own.
    children = (
        select(run.c.uuid, run.c.parent_attempt)
        .where(text("parent_attempt IS NOT NULL"), text(IS_LATEST), text(IS_UNSUCCESSFUL), run.c.status.in_(_LIVE_RUNS))
        .subquery("children")
    )
    found = select(run.c.uuid.label("uuid")).where(run.c.uuid == bindparam("run_uuid")).cte("live", recursive=True)
    loops = attempt.alias("around")
    below = (
        select(children.c.uuid)
        .join(loops, loops.c.uuid == children.c.parent_attempt)
        .join(found, found.c.uuid == loops.c.run_uuid)
        .where(not_(loops.c.is_leaf))
    )
    return found.union_all(below)


def _live_steps() -> Select[Any]:
    live = _live_runs()
    kinds = (
        select(
            attempt.c.uuid.label("attempt_uuid"),
            _KIND.label("kind"),
            func.row_number().over(partition_by=_KIND, order_by=attempt.c.uuid).label("place"),
            func.count().over(partition_by=_KIND).label("number"),
        )
        .join(live, live.c.uuid == attempt.c.run_uuid)
        .where(not_(attempt.c.is_superseded), _WILL_MOVE)
        .subquery("kinds")
    )
    return (
        select(attempt, kinds.c.kind, kinds.c.number)
        .join(kinds, kinds.c.attempt_uuid == attempt.c.uuid)
        .where(kinds.c.place <= bindparam("limit"))
        .order_by(attempt.c.uuid)
    )


def _ancestry() -> Select[Any]:
    found = (
        select(run.c.uuid.label("uuid"), run.c.parent_run.label("parent"))
        .where(run.c.uuid.in_(bindparam("run_uuids", expanding=True)))
        .cte("around", recursive=True)
    )
    above = run.alias("above")
    # UNION, not UNION ALL: drops the runs that two runs have in common.
    found = found.union(select(above.c.uuid, above.c.parent_run).join(found, found.c.parent == above.c.uuid))
    return select(run).where(run.c.uuid.in_(select(found.c.uuid)))


def _awaited_permits() -> Select[Any]:
    waiting = claim.alias("waiting")
    limit = func.coalesce(waiting.c.max_held, tag_permit.c.max_allowed)
    is_held = and_(claim.c.permit == waiting.c.permit, claim.c.is_held.is_(True))
    held = select(func.count()).where(is_held).correlate(waiting).scalar_subquery()
    return (
        select(waiting.c.attempt_uuid, waiting.c.permit, limit.label("limit"), held.label("held"))
        .outerjoin(tag_permit, waiting.c.permit == TAG + tag_permit.c.tag)
        .where(
            waiting.c.attempt_uuid.in_(bindparam("uuids", expanding=True)),
            waiting.c.is_held.is_(False),
            limit.is_not(None),
        )
        .order_by(waiting.c.seq)
    )


def _last_pieces() -> Select[Any]:
    newest = (
        select(log_chunk.c.attempt_uuid, func.max(log_chunk.c.number).label("number"))
        .where(log_chunk.c.attempt_uuid.in_(bindparam("uuids", expanding=True)))
        .group_by(log_chunk.c.attempt_uuid)
        .subquery("newest")
    )
    # If a text is shorter than the tail, start at character 1, which both databases accept.
    start = case((func.length(log_chunk.c.text) > _TAIL, func.length(log_chunk.c.text) - _TAIL + 1), else_=1)
    is_newest = and_(log_chunk.c.attempt_uuid == newest.c.attempt_uuid, log_chunk.c.number == newest.c.number)
    return select(log_chunk.c.attempt_uuid, func.substr(log_chunk.c.text, start).label("text")).join(newest, is_newest)


_LIVE_STEPS = _live_steps()
_ANCESTRY = _ancestry()
_AWAITED_PERMITS = _awaited_permits()
_LAST_PIECES = _last_pieces()
_LIVE_TREES = select(run.c.root_uuid).where(text(IS_INSTANCE), text(IS_LIVE))
_IN_LIVE_TREE = or_(
    and_(attempt.c.root_uuid != "", attempt.c.root_uuid.in_(_LIVE_TREES)),
    and_(attempt.c.root_uuid == "", attempt.c.run_uuid.in_(_LIVE_TREES)),  # of a run that is its own root
)
APPROVALS = (
    select(attempt)
    .where(text(IS_COUNTED), _IS_RUNNING, attempt.c.type == APPROVAL, _IN_LIVE_TREE)
    .subquery("approvals")
)
"""Finds approvals by the unfinished trees, whose leaf steps have an index by status."""


class SqlLiveWork:
    """Reads unfinished steps."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def live_steps(self, run_uuid: str, limit: int = 5) -> LiveSteps:
        """Return the unfinished attempts in a run, and in the unfinished runs below it."""
        with self._transactions.read() as connection:
            rows = connection.execute(_LIVE_STEPS, {"run_uuid": run_uuid, "limit": limit}).all()
            kinds: dict[int, list[Attempt]] = {}
            for row in rows:
                kinds.setdefault(row.kind, []).append(attempt_of(row, connection))
        return LiveSteps(
            asking=tuple(kinds.get(_ASKING, ())),
            retrying=tuple(kinds.get(_RETRYING, ())),
            held=tuple(kinds.get(_HELD, ())),
            running=tuple(kinds.get(_RUNNING, ())),
            waiting=sum({row.kind: row.number for row in rows if row.kind != _RUNNING}.values()),
        )

    def ancestry(self, run_uuids: Sequence[str]) -> dict[str, Run]:
        """Return some runs, and the runs that contain them up to the roots, by uuid."""
        found: dict[str, Run] = {}
        with self._transactions.read() as connection:
            for some in chunks(list(run_uuids)):
                found |= {
                    row.uuid: run_of(row, connection)
                    for row in connection.execute(_ANCESTRY, {"run_uuids": some}).all()
                }
        return found

    def approvals(
        self,
        *,
        workflow_id: str | None = None,
        after: str = "",
        limit: int = 100,
        namespaces: Sequence[str] = ("",),
    ) -> list[Attempt]:
        """Return the attempts of Approval steps that wait for people, by uuid, starting after ``after``."""
        query = (
            select(APPROVALS)
            .join(run, run.c.uuid == APPROVALS.c.run_uuid)
            .where(APPROVALS.c.uuid > after, is_below(run.c.owner_workflow, namespaces))
        )
        if workflow_id is not None:
            query = query.where(run.c.owner_workflow == workflow_id)
        with self._transactions.read() as connection:
            return [
                attempt_of(row, connection) for row in connection.execute(query.order_by(APPROVALS.c.uuid).limit(limit))
            ]

    def awaited_permits(self, attempt_uuids: Sequence[str]) -> dict[str, list[PermitUse]]:
        """Return the limited permits that attempts wait for, by attempt."""
        found: dict[str, list[PermitUse]] = {}
        with self._transactions.read() as connection:
            for some in chunks(list(attempt_uuids)):
                for row in connection.execute(_AWAITED_PERMITS, {"uuids": some}):
                    found.setdefault(row.attempt_uuid, []).append(PermitUse(row.permit, row.limit, row.held))
        return found

    def last_lines(self, attempt_uuids: Sequence[str]) -> dict[str, str]:
        """Return the end of the newest piece of each attempt's log."""
        found: dict[str, str] = {}
        with self._transactions.read() as connection:
            for some in chunks(list(attempt_uuids)):
                found |= {row.attempt_uuid: row.text for row in connection.execute(_LAST_PIECES, {"uuids": some})}
        return found
