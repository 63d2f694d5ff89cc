"""The current state and recent events, for metrics (the port is ``calve.telemetry.TelemetryState``)."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select, text

from calve.engine import RUN_EVENT, STEP_EVENT, Event, RunStatus, StepStatus
from calve.store.codec import loaded
from calve.store.database import Transactions, chunks
from calve.store.engine import read_events, times_of
from calve.store.tables import (
    IS_DUE,
    IS_FREE,
    IS_INSTANCE,
    IS_LIVE,
    alert_message,
    attempt,
    capture,
    event,
    run,
    task,
    trigger,
    worker,
)
from calve.telemetry import Begun, Ended, Gauges, Happened

_ENDS = frozenset(status.value for status in RunStatus if status.is_terminal)
_STEP_ENDS = frozenset(status.value for status in StepStatus if status.is_terminal)
_LATENCY = ("scheduled_at", "committed_at")
"""The keys under which triggers record when an instance should have been created."""
_TASKS = select(task.c.kind, func.count()).group_by(task.c.kind)
_DUE_TASKS = select(func.count()).select_from(task).where(text(IS_FREE))
_WORKERS = select(worker.c.slots, worker.c.is_draining).where(worker.c.is_dead.is_(False))
_INSTANCES = select(run.c.status, func.count()).where(text(IS_INSTANCE), text(IS_LIVE)).group_by(run.c.status)
_CAPTURES = select(func.count()).select_from(capture).where(text("status = 'open'"))
_TRIGGERS = select(trigger.c.kind, func.count()).group_by(trigger.c.kind)
_FAILING = select(func.count()).select_from(trigger).where(trigger.c.failures > 0)
_OLDEST_TRIGGER = select(func.min(trigger.c.due_at)).where(text(IS_DUE))
_ALERTS = (
    select(alert_message.c.status, func.count())
    .where(alert_message.c.status != "sent")
    .group_by(alert_message.c.status)
)
_RUN_COLUMNS = (
    run.c.uuid,
    run.c.workflow_id,
    run.c.initiator,
    run.c.created_at,
    run.c.started_at,
    run.c.ended_at,
)
_STEP_COLUMNS = (attempt.c.run_uuid, attempt.c.step_id, attempt.c.attempt_id, attempt.c.type, attempt.c.times)


class SqlTelemetryState:
    """Computes metrics from indexes, and from the newest events."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def newest(self) -> int:
        """Return the number of the newest event."""
        with self._transactions.read() as connection:
            return int(connection.scalar(select(func.max(event.c.seq))) or 0)

    def gauges(self, now: int) -> Gauges:
        """Return the current state."""
        with self._transactions.read() as connection:
            alive = connection.execute(_WORKERS).all()
            return Gauges(
                tasks=_counted(connection, _TASKS),
                due=connection.scalar(_DUE_TASKS.where(task.c.due_at <= now)) or 0,
                workers=len(alive),
                draining=sum(bool(row.is_draining) for row in alive),
                slots=sum(row.slots for row in alive),
                instances=_counted(connection, _INSTANCES),
                captures=connection.scalar(_CAPTURES) or 0,
                triggers=_counted(connection, _TRIGGERS),
                failing_triggers=connection.scalar(_FAILING) or 0,
                oldest_trigger=connection.scalar(_OLDEST_TRIGGER.where(trigger.c.due_at <= now)),
                alerts=_counted(connection, _ALERTS),
            )

    def happened(self, after: int, limit: int = 5_000) -> Happened:
        """Return what happened after an event, from at most ``limit`` events."""
        with self._transactions.read() as connection:
            events = read_events(connection, after=after, run_uuid=None, root_uuid=None, limit=limit)
            if not events:
                return Happened(after)
            of_runs = [each for each in events if each.kind == RUN_EVENT]
            runs = _runs(connection, {each.run_uuid for each in of_runs})
            told = [(each, runs[each.run_uuid]) for each in of_runs if each.run_uuid in runs]
            return Happened(
                events[-1].seq,
                begun=tuple(_begun(row) for each, row in told if _is_begun(each)),
                runs=tuple(_run_end(each, row) for each, row in told if each.after in _ENDS),
                steps=tuple(_steps(connection, events)),
                is_all=len(events) < limit,
            )


def _counted(connection: Connection, query: Select[Any]) -> Mapping[str, int]:
    return {str(key): int(count) for key, count in connection.execute(query)}


def _runs(connection: Connection, uuids: Iterable[str]) -> dict[str, Row[Any]]:
    """Return the runs that are not iterations."""
    found: dict[str, Row[Any]] = {}
    for some in chunks(sorted(uuids)):
        query = select(*_RUN_COLUMNS).where(run.c.uuid.in_(some), text(IS_INSTANCE))
        found |= {row.uuid: row for row in connection.execute(query)}
    return found


def _is_begun(each: Event) -> bool:
    return each.before == RunStatus.CREATED and each.after == RunStatus.IN_PROGRESS


def _begun(row: Row[Any]) -> Begun:
    initiator = loaded(row.initiator)
    told = initiator.get("trigger", {})
    due = next((told[name] for name in _LATENCY if name in told), None)
    waited = (row.started_at or row.created_at) - row.created_at
    return Begun(initiator.get("type", "MANUAL"), waited, None if due is None else row.created_at - int(due))


def _run_end(each: Event, row: Row[Any]) -> Ended:
    took = None if row.started_at is None else (row.ended_at or each.at) - row.started_at
    return Ended(each.after or "", took, workflow_id=row.workflow_id)


def _steps(connection: Connection, events: Iterable[Event]) -> Iterable[Ended]:
    ends = {
        (each.run_uuid, each.step_id, each.attempt_id): each
        for each in events
        if each.kind == STEP_EVENT and each.after in _STEP_ENDS
    }
    for some in chunks(sorted({run_uuid for run_uuid, _, _ in ends})):
        for row in connection.execute(select(*_STEP_COLUMNS).where(attempt.c.run_uuid.in_(some))):
            found = ends.get((row.run_uuid, row.step_id, row.attempt_id))
            if found is not None:
                begun = times_of(row.times).get("start")
                yield Ended(found.after or "", None if begun is None else found.at - begun, type=row.type)
