"""The one transaction in which the engine makes progress, step by step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, insert, text, update

from calve.engine import RUN_EVENT, Attempt, Changes, Committed, Event, NewTask, PassDown, Run, TaskKind
from calve.errors import Conflict
from calve.store.database import Transaction
from calve.store.engine.events import append_events
from calve.store.engine.logs import append_logs
from calve.store.engine.params import write_params
from calve.store.engine.permits import Admitted, settle_permits
from calve.store.engine.queue import enqueue, give_back
from calve.store.engine.rows import ATTEMPT_CHANGES, RUN_CHANGES, attempt_row, pending_text, run_row
from calve.store.engine.run_queue import lock_workflows
from calve.store.engine.signals import (
    announce,
    awaited,
    call_triggers,
    record_uses,
    settle_waits,
    started_by,
    woken,
)
from calve.store.engine.starts import StartOutcome, no_longer_latest, start_instances
from calve.store.engine.triggers import call_table_triggers, mark
from calve.store.tables import IS_LIVE, attempt, run

_INSERT_RUN = insert(run)
_INSERT_ATTEMPT = insert(attempt)
_UPDATE_ATTEMPT = update(attempt).where(attempt.c.uuid == bindparam("the_uuid")).values(**ATTEMPT_CHANGES.parameters)
_UPDATE_RUN = (
    update(run)
    # The run's sequence number is the compare-and-set of a turn (decision 0013).
    .where(run.c.uuid == bindparam("the_uuid"), run.c.seq == bindparam("the_seq"))
    .values(**RUN_CHANGES.parameters, seq=run.c.seq + 1)
)
_PASS_DOWN = (
    update(run)
    .where(run.c.parent_attempt == bindparam("attempt_uuid"), text(IS_LIVE), run.c.action.is_(None))
    # Incrementing seq makes a turn fail that was computed without the action (decision 0013).
    .values(action=bindparam("pending"), seq=run.c.seq + 1)
    .returning(run.c.uuid, run.c.priority)
)


def commit(transaction: Transaction, changes: Changes) -> Committed:
    """Write all changes of a turn: see ``calve.engine.ports.Instances.commit``.

    All transactions lock in one order, to avoid deadlocks: names of signals, workflows, triggers, permits, tasks, runs.
    Permits are released before new ones are requested, so that a step takes over the permit of the step
    before it.
    """
    connection = transaction.connection
    announcements = announce(transaction, changes.signals, awaited(changes))
    queues = lock_workflows(connection, changes)
    mark(connection, changes.marks)
    call_triggers(transaction, announcements)
    call_table_triggers(transaction, changes.runs)
    admitted = settle_permits(transaction, changes)
    give_back(transaction, changes)
    update_runs(transaction, changes.runs)
    no_longer_latest(connection, changes.new_runs)
    _insert_runs(transaction, changes.new_runs)
    passed = _pass_down(connection, changes.passed_down)
    _write_attempts(transaction, changes, admitted.uuids)
    outcome = start_instances(connection, queues, changes.starts) if queues else StartOutcome()
    _insert_runs(transaction, list(outcome.new.values()))
    record_uses(transaction, [*changes.uses, *started_by(outcome.new.values())])
    calls = [*settle_waits(transaction, changes, announcements), *woken(transaction, announcements)]
    held = enqueue(transaction, [*_tasks(changes, admitted, outcome), *passed, *calls], changes.done)
    append_events(connection, _events(changes, admitted, outcome), _roots(changes, outcome))
    append_logs(transaction, changes.logs)
    return Committed(outcome.started(changes.starts), admitted.uuids, tuple(held))


def _insert_runs(transaction: Transaction, runs: Sequence[Run]) -> None:
    if runs:
        transaction.connection.execute(_INSERT_RUN, [run_row(each, transaction) for each in runs])


def _pass_down(connection: Connection, passed_down: Sequence[PassDown]) -> list[NewTask]:
    """Request an action on all child runs of attempts; return the tasks that carry it out."""
    tasks: list[NewTask] = []
    for each in passed_down:
        place = {"attempt_uuid": each.attempt_uuid, "pending": pending_text(each.pending)}
        rows = connection.execute(_PASS_DOWN, place)
        tasks += [NewTask(TaskKind.RUN, row.uuid, priority=row.priority) for row in rows]
    return tasks


def _write_attempts(transaction: Transaction, changes: Changes, admitted: frozenset[str]) -> None:
    chosen = {
        each.waiting.uuid: each.started if each.waiting.uuid in admitted else each.waiting
        for each in changes.admissions
    }
    made = [chosen.get(each.uuid, each) for each in changes.new_attempts]
    if made:
        transaction.connection.execute(_INSERT_ATTEMPT, [attempt_row(each, transaction) for each in made])
    changed = [_update(transaction, chosen.get(each.uuid, each)) for each in changes.attempts]
    if changed and transaction.connection.execute(_UPDATE_ATTEMPT, changed).rowcount != len(changed):
        raise Conflict("An attempt was deleted.", attempts=[each.uuid for each in changes.attempts])


def _update(transaction: Transaction, changed: Attempt) -> dict[str, Any]:
    params = write_params(transaction, changed.params, changed.uuid)
    return ATTEMPT_CHANGES.to_row(changed, the_uuid=changed.uuid, new_params=params)


def _tasks(changes: Changes, admitted: Admitted, outcome: StartOutcome) -> list[NewTask]:
    """Return all new tasks; a start that was answered with an earlier run has none."""
    unborn = {start.run.uuid for start in changes.starts} - outcome.new.keys()
    asked = [task for task in changes.tasks if task.run_uuid not in unborn]
    starting = [each.task for each in changes.admissions if each.waiting.uuid in admitted.uuids]
    return [*asked, *starting, *admitted.woken, *outcome.tasks]


def _events(changes: Changes, admitted: Admitted, outcome: StartOutcome) -> list[Event]:
    """Return all events; those of starts get the instance ids that were assigned."""
    unborn = {start.run.uuid for start in changes.starts} - outcome.new.keys()
    events = [_numbered(event, outcome) for event in changes.events if event.run_uuid not in unborn]
    for admission in changes.admissions:
        chosen = admission.events[1:2] if admission.waiting.uuid in admitted.uuids else admission.events[:1]
        events += [event for event in chosen if event.before != event.after]
    told = {event.run_uuid for event in changes.events}
    born = [_born(made) for made in outcome.new.values() if made.uuid not in told]
    return [*events, *born, *outcome.events]


def _born(made: Run) -> Event:
    return Event(
        RUN_EVENT, made.uuid, made.workflow_id, made.instance_id, made.run_id, made.created_at, after=made.status
    )


def _numbered(event: Event, outcome: StartOutcome) -> Event:
    made = outcome.new.get(event.run_uuid)
    return event if made is None else replace(event, instance_id=made.instance_id, run_id=made.run_id)


def _roots(changes: Changes, outcome: StartOutcome) -> dict[str, str]:
    written = (*changes.runs, *changes.new_runs, *outcome.new.values())
    return {each.uuid: each.root_uuid for each in written} | outcome.roots


def update_runs(transaction: Transaction, runs: Sequence[Run]) -> None:
    """Write runs that have not changed since they were read.

    Raises:
        Conflict: a run has changed.
    """
    if not runs:
        return
    # Sorted, so that transactions that write the same runs lock them in the same order, and cannot deadlock.
    rows = [_update_run(transaction, each) for each in sorted(runs, key=lambda each: each.uuid)]
    if transaction.connection.execute(_UPDATE_RUN, rows).rowcount != len(rows):
        raise Conflict("A run has changed since it was read.", runs=[each.uuid for each in runs])


def _update_run(transaction: Transaction, changed: Run) -> dict[str, Any]:
    params = write_params(transaction, changed.params, changed.uuid)
    return RUN_CHANGES.to_row(changed, the_uuid=changed.uuid, the_seq=changed.seq, new_params=params)
