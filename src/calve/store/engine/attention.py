"""What may need attention (part of the port ``calve.engine.ports.EngineState``).

Partial indexes answer each query, and it reads a limited number of rows: old failures that were never restarted do
not make it slow.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, exists, func, not_, or_, select, text

from calve.engine import Attempt, FailedRun, HeldWork, RecentRun, Run, RunStatus, StepStatus
from calve.store.database import Transactions, chunks, is_below
from calve.store.engine.live_steps import APPROVALS
from calve.store.engine.overviews import RECENT_RUN, recent_run_of
from calve.store.engine.rows import attempt_of
from calve.store.tables import (
    IS_FAILED,
    IS_INSTANCE,
    IS_LATEST,
    IS_LIVE,
    IS_PAUSED,
    IS_UNSUCCESSFUL,
    attempt,
    delivery_branch,
    run,
)

_FAILED = [RunStatus.FAILED.value, RunStatus.TIMED_OUT.value]
_WRONG = [StepStatus.FATALLY_FAILED.value, StepStatus.INTERNALLY_FAILED.value, StepStatus.TIMED_OUT.value]
_DEEPEST = 30
"""How many levels of loops and subworkflows are searched for the failed step: as many as a path may have."""
_WRONG_ATTEMPTS: Select[Any] = (
    select(attempt.c.uuid, attempt.c.run_uuid, attempt.c.step_id, attempt.c.is_leaf, attempt.c.timeline)
    .where(attempt.c.run_uuid.in_(bindparam("uuids", expanding=True)), attempt.c.status.in_(_WRONG))
    .where(not_(attempt.c.is_superseded))
    .order_by(attempt.c.ended_at.desc(), attempt.c.uuid.desc())
)
"""The attempt that ended first comes last, so that a dictionary by run keeps it."""
_failed_child = (
    select(
        run.c.uuid,
        run.c.parent_attempt,
        run.c.instance_id,
        run.c.inline_step,
        run.c.owner_workflow,
        run.c.message,
        func.row_number().over(partition_by=run.c.parent_attempt, order_by=run.c.instance_id).label("place"),
    )
    .where(run.c.parent_attempt.in_(bindparam("uuids", expanding=True)), run.c.status.in_(_FAILED))
    .where(text("parent_attempt IS NOT NULL"), text(IS_LATEST), text(IS_UNSUCCESSFUL))
    .subquery("failed_child")
)
_top = run.alias("top")
_UNDER_WAY = [status.value for status in RunStatus if not status.is_terminal]
_HELD: Select[Any] = (
    select(delivery_branch.c.attempt, delivery_branch.c.capture_id, delivery_branch.c.changed_at)
    .where(text("status = 'held'"))
    .order_by(delivery_branch.c.changed_at.desc(), delivery_branch.c.branch)
)
"""The oldest comes last, so that a dictionary by attempt keeps it."""
_ENDED: Select[Any] = (
    select(*RECENT_RUN, attempt.c.uuid, attempt.c.step_id)
    .select_from(attempt)
    .join(
        _top, _top.c.uuid == case((func.length(attempt.c.root_uuid) > 0, attempt.c.root_uuid), else_=attempt.c.run_uuid)
    )
    .join(run, and_(run.c.workflow_id == _top.c.workflow_id, run.c.instance_id == _top.c.instance_id))
    .where(attempt.c.uuid.in_(bindparam("uuids", expanding=True)), run.c.is_latest, run.c.inline_step.is_(None))
    .where(run.c.status.not_in(_UNDER_WAY))
)
"""Considers the newest run of an instance: it may still commit what an earlier run held."""
_PAUSED = select(attempt).where(text(IS_PAUSED)).subquery("paused")


class SqlAttention:
    """Finds what may need a person."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def failed_runs(
        self, *, limit: int = 1_000, namespaces: Sequence[str] = ("",), saying: str = ""
    ) -> list[FailedRun]:
        """Return the instances that failed and were not restarted, newest first, each with the step that failed.

        With ``saying``, return only those of the newest ``limit`` whose message begins with this text.
        """
        query = _failed(namespaces).limit(limit)
        with self._transactions.read() as connection:
            rows = connection.execute(_may_say(query, saying) if saying else query).all()
            found = {row.uuid: FailedRun(recent_run_of(row), message=row.message) for row in rows}
            _explain(connection, found, namespaces)
        return [one for one in found.values() if one.message.startswith(saying)]

    def explained(self, runs: Sequence[Run], *, namespaces: Sequence[str] = ("",)) -> dict[str, FailedRun]:
        """Return why some runs failed, by uuid."""
        found = {one.uuid: FailedRun(RecentRun.of(one), message=one.message) for one in runs}
        with self._transactions.read() as connection:
            _explain(connection, found, namespaces)
        return found

    def held_work(self, *, limit: int = 100, namespaces: Sequence[str] = ("",)) -> list[HeldWork]:
        """Return branches that are held although their instance has ended, oldest first."""
        with self._transactions.read() as connection:
            held = {row.attempt: row for row in connection.execute(_HELD)}
            ended = _ENDED.where(is_below(run.c.workflow_id, namespaces))
            rows = [row for some in chunks(list(held)) for row in connection.execute(ended, {"uuids": some})]
        found = [
            HeldWork(recent_run_of(row), row.step_id, one.capture_id, int(one.changed_at.timestamp() * 1_000))
            for row in rows
            for one in (held[row.uuid],)
        ]
        return sorted(found, key=lambda one: one.since)[:limit]

    def running_since(self, before: int, *, limit: int = 200, namespaces: Sequence[str] = ("",)) -> list[RecentRun]:
        """Return the unfinished instances that started before a time, oldest start first."""
        is_under_way = (text(IS_INSTANCE), text(IS_LIVE), not_(run.c.is_queued), run.c.started_at <= before)
        query: Select[Any] = select(*RECENT_RUN).where(*is_under_way, is_below(run.c.workflow_id, namespaces))
        with self._transactions.read() as connection:
            rows = connection.execute(query.order_by(run.c.started_at, run.c.uuid).limit(limit))
            return [recent_run_of(row) for row in rows]

    def all_paused(self, *, limit: int = 100, namespaces: Sequence[str] = ("",)) -> list[Attempt]:
        """Return the paused attempts, oldest first."""
        query = select(_PAUSED).join(run, run.c.uuid == _PAUSED.c.run_uuid)
        query = query.where(is_below(run.c.owner_workflow, namespaces)).order_by(_PAUSED.c.uuid)
        with self._transactions.read() as connection:
            return [attempt_of(row, connection) for row in connection.execute(query.limit(limit))]

    def waiting_counts(self, *, namespaces: Sequence[str] = ("",)) -> tuple[int, int]:
        """Count the Approval steps that wait for people, and the paused attempts."""
        counts = [
            select(func.count())
            .select_from(found.join(run, run.c.uuid == found.c.run_uuid))
            .where(is_below(run.c.owner_workflow, namespaces))
            for found in (APPROVALS, _PAUSED)
        ]
        with self._transactions.read() as connection:
            approvals, paused = (connection.scalar(query) or 0 for query in counts)
        return approvals, paused


def _failed(namespaces: Sequence[str]) -> Select[Any]:
    """Return a query for failed instances, without those of a subworkflow whose parent failed too."""
    parent = run.alias("parent")
    is_told = exists().where(
        parent.c.uuid == run.c.parent_run,
        parent.c.status.in_(_FAILED),
        is_below(parent.c.owner_workflow, namespaces),
    )
    return (
        select(*RECENT_RUN, run.c.uuid, run.c.message)
        .where(text(IS_LATEST), text(IS_INSTANCE), text(IS_FAILED), is_below(run.c.workflow_id, namespaces))
        .where(or_(run.c.parent_run.is_(None), not_(is_told)))
        .order_by(run.c.created_at.desc(), run.c.uuid.desc())
    )


def _may_say(query: Select[Any], text: str) -> Select[Any]:
    """Return a query for failed instances whose message begins with a text, or that contain runs whose message may."""
    failed = query.subquery("failed")
    holds_others = exists().where(
        attempt.c.run_uuid == failed.c.uuid,
        attempt.c.status.in_(_WRONG),
        attempt.c.is_leaf.is_(False),
        attempt.c.is_superseded.is_(False),
    )
    says_it = failed.c.message.startswith(text, autoescape=True)
    return select(failed).where(or_(says_it, holds_others)).order_by(failed.c.created_at.desc(), failed.c.uuid.desc())


def _explain(connection: Connection, found: dict[str, FailedRun], namespaces: Sequence[str]) -> None:
    """Find the step that made each run fail: two queries for each level of loops and subworkflows."""
    inside = {uuid: uuid for uuid in found}
    for _ in range(_DEEPEST):
        if not inside:
            return
        inside = _go_down(connection, found, inside, namespaces)


def _go_down(
    connection: Connection, found: dict[str, FailedRun], inside: Mapping[str, str], namespaces: Sequence[str]
) -> dict[str, str]:
    """Find the failed steps of runs; return the failed runs inside them, each with the uuid of its instance."""
    around: dict[str, str] = {}
    for row in _first_wrong(connection, list(inside)).values():
        key = inside[row.run_uuid]
        failed = found[key]
        found[key] = replace(failed, path=(*failed.path, row.step_id), message=_said(row) or failed.message)
        if not row.is_leaf:
            around[row.uuid] = key
    deeper: dict[str, str] = {}
    is_first = and_(_failed_child.c.place == 1, is_below(_failed_child.c.owner_workflow, namespaces))
    for some in chunks(list(around)):
        for row in connection.execute(select(_failed_child).where(is_first), {"uuids": some}):
            key = deeper[row.uuid] = around[row.parent_attempt]
            number = () if row.inline_step is None else (str(row.instance_id),)
            failed = found[key]
            found[key] = replace(failed, path=(*failed.path, *number), message=row.message or failed.message)
    return deeper


def _first_wrong(connection: Connection, run_uuids: Sequence[str]) -> dict[str, Row[Any]]:
    """Return the attempt of each run that failed first."""
    found: dict[str, Row[Any]] = {}
    for some in chunks(run_uuids):
        found |= {row.run_uuid: row for row in connection.execute(_WRONG_ATTEMPTS, {"uuids": some})}
    return found


def _said(row: Row[Any]) -> str:
    timeline = json.loads(row.timeline)
    return str(timeline[-1]["message"]) if timeline else ""
