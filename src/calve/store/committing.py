"""The one transaction in which the engine makes progress, step by step."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, insert, text, update

from calve.engine.model import RUN_EVENT, Attempt, Changes, Committed, Event, NewTask, PassDown, Run, TaskKind
from calve.errors import Conflict
from calve.store.admitting import Admitted, settle_permits
from calve.store.announcing import announce, awaited, call_triggers, record_uses, settle_waits, started_by, woken
from calve.store.ended import call_table_triggers
from calve.store.engine_rows import attempt_changes, attempt_row, pending_text, run_row
from calve.store.engine_tables import IS_LIVE, attempt, run
from calve.store.enqueuing import enqueue
from calve.store.fencing import give_back, update_runs
from calve.store.lines import lock_workflows
from calve.store.marking import mark
from calve.store.param_sets import write_params
from calve.store.recording import append_events, append_logs
from calve.store.starting import Launch, launch, no_longer_latest
from calve.store.transacting import Transaction

_INSERT_RUN = insert(run)
_INSERT_ATTEMPT = insert(attempt)
_CHANGED = [column for column in attempt_changes(Attempt("", "", "", "", 0, 0, ""), "") if column != "uuid"]
_UPDATE_ATTEMPT = (
    update(attempt)
    .where(attempt.c.uuid == bindparam("the_uuid"))
    .values(**{column: bindparam(f"new_{column}") for column in _CHANGED})
)
_PASS_DOWN = (
    update(run)
    .where(run.c.parent_attempt == bindparam("attempt_uuid"), text(IS_LIVE), run.c.action.is_(None))
    .values(action=bindparam("pending"), seq=run.c.seq + 1)
    .returning(run.c.uuid, run.c.priority)
)


def commit(transaction: Transaction, changes: Changes) -> Committed:
    """Write everything that one piece of progress changes: see ``calve.engine.ports.Instances.commit``.

    All transactions lock in one order, so that none waits for another that waits for it: names of signals, workflows,
    triggers, permits, tasks, runs. Permits are freed before new ones are asked for: a step that follows another takes
    over its permit.
    """
    connection = transaction.connection
    board = announce(transaction, changes.signals, awaited(changes))
    lines = lock_workflows(connection, changes)
    mark(connection, changes.marks)
    call_triggers(transaction, board)
    call_table_triggers(transaction, changes.runs)
    admitted = settle_permits(transaction, changes)
    give_back(transaction, changes)
    update_runs(transaction, changes.runs)
    no_longer_latest(connection, changes.new_runs)
    _insert_runs(transaction, changes.new_runs)
    passed = _pass_down(connection, changes.passed_down)
    _write_attempts(transaction, changes, admitted.uuids)
    launched = launch(connection, lines, changes.starts) if lines else Launch()
    _insert_runs(transaction, list(launched.new.values()))
    record_uses(transaction, [*changes.uses, *started_by(launched.new.values())])
    calls = [*settle_waits(transaction, changes, board), *woken(transaction, board)]
    held = enqueue(transaction, [*_tasks(changes, admitted, launched), *passed, *calls], changes.done)
    append_events(connection, _events(changes, admitted, launched), _roots(changes, launched))
    append_logs(transaction, changes.logs)
    return Committed(launched.started(changes.starts), admitted.uuids, tuple(held))


def _insert_runs(transaction: Transaction, runs: Sequence[Run]) -> None:
    if runs:
        rows = [run_row(each, write_params(transaction, each.params, each.uuid)) for each in runs]
        transaction.connection.execute(_INSERT_RUN, rows)


def _pass_down(connection: Connection, passed_down: Sequence[PassDown]) -> list[NewTask]:
    """Ask an action of all child runs of attempts; return the tasks that carry it out."""
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
        rows = [attempt_row(each, write_params(transaction, each.params, each.uuid)) for each in made]
        transaction.connection.execute(_INSERT_ATTEMPT, rows)
    changed = [_update(transaction, chosen.get(each.uuid, each)) for each in changes.attempts]
    if changed and transaction.connection.execute(_UPDATE_ATTEMPT, changed).rowcount != len(changed):
        raise Conflict("An attempt is no longer there.", attempts=[each.uuid for each in changes.attempts])


def _update(transaction: Transaction, changed: Attempt) -> dict[str, Any]:
    row = attempt_changes(changed, write_params(transaction, changed.params, changed.uuid))
    uuid = row.pop("uuid")
    return {"the_uuid": uuid} | {f"new_{column}": value for column, value in row.items()}


def _tasks(changes: Changes, admitted: Admitted, launched: Launch) -> list[NewTask]:
    """Return all tasks that come up; a start that was answered with an earlier run brings none."""
    unborn = {start.run.uuid for start in changes.starts} - launched.new.keys()
    asked = [task for task in changes.tasks if task.run_uuid not in unborn]
    starting = [each.task for each in changes.admissions if each.waiting.uuid in admitted.uuids]
    return [*asked, *starting, *admitted.woken, *launched.tasks]


def _events(changes: Changes, admitted: Admitted, launched: Launch) -> list[Event]:
    """Return all events; those of starts get the numbers that their instances got."""
    unborn = {start.run.uuid for start in changes.starts} - launched.new.keys()
    events = [_numbered(event, launched) for event in changes.events if event.run_uuid not in unborn]
    for admission in changes.admissions:
        chosen = admission.events[1:2] if admission.waiting.uuid in admitted.uuids else admission.events[:1]
        events += [event for event in chosen if event.before != event.after]
    told = {event.run_uuid for event in changes.events}
    born = [_born(made) for made in launched.new.values() if made.uuid not in told]
    return [*events, *born, *launched.events]


def _born(made: Run) -> Event:
    return Event(
        RUN_EVENT, made.uuid, made.workflow_id, made.instance_id, made.run_id, made.created_at, after=made.status
    )


def _numbered(event: Event, launched: Launch) -> Event:
    made = launched.new.get(event.run_uuid)
    return event if made is None else replace(event, instance_id=made.instance_id, run_id=made.run_id)


def _roots(changes: Changes, launched: Launch) -> dict[str, str]:
    written = (*changes.runs, *changes.new_runs, *launched.new.values())
    return {each.uuid: each.root_uuid for each in written} | launched.roots
