"""Starts and dequeues instances by their run strategies, under the lock of the workflow's row."""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, select, update

from calve.engine import (
    RUN_EVENT,
    Action,
    Arrival,
    Event,
    NewTask,
    Pending,
    Run,
    RunStatus,
    Start,
    Started,
    StartStatus,
    TaskKind,
    arrive,
    leaving,
    never_begins,
)
from calve.errors import Conflict
from calve.store.database import chunks
from calve.store.engine.rows import pending_text, run_of
from calve.store.engine.run_queue import RunQueue, read_queue, waiting_for, waiting_for_queue
from calve.store.tables import run, workflow

_uuids: BindParameter[Any] = bindparam("uuids", expanding=True)
_NUMBERED = (
    update(workflow).where(workflow.c.workflow_id == bindparam("the_id")).values(last_instance=bindparam("number"))
)
_KNOWN = select(run).where(
    run.c.workflow_id == bindparam("workflow_id"), run.c.request_id.in_(bindparam("requests", expanding=True))
)
_NEWEST = (
    select(run.c.run_id, run.c.status)
    .where(run.c.workflow_id == bindparam("workflow_id"), run.c.instance_id == bindparam("instance_id"))
    .order_by(run.c.run_id.desc())
    .limit(1)
)
_OLDER = (
    update(run)
    .where(
        run.c.workflow_id == bindparam("the_workflow"),
        run.c.instance_id == bindparam("the_instance"),
        run.c.run_id < bindparam("the_run"),
        run.c.is_latest.is_(True),
    )
    .values(is_latest=False, is_blocking=False, seq=run.c.seq + 1)
)
_LEAVE = update(run).where(run.c.uuid.in_(_uuids)).values(is_queued=False, seq=run.c.seq + 1)
_STOPPED = select(
    run.c.uuid, run.c.workflow_id, run.c.instance_id, run.c.run_id, run.c.root_uuid, run.c.parent_run
).where(run.c.uuid.in_(_uuids))
_STOP_QUEUED = (
    update(run)
    .where(run.c.uuid.in_(_uuids))
    .values(
        is_queued=False,
        status=RunStatus.STOPPED.value,
        run_status=RunStatus.STOPPED.value,
        message=bindparam("why"),
        ended_at=bindparam("now"),
        seq=run.c.seq + 1,
    )
)
_STOP_ACTIVE = (
    update(run)
    .where(run.c.uuid.in_(_uuids), run.c.action.is_(None))
    .values(action=bindparam("pending"), seq=run.c.seq + 1)
)
_REFUSED = "Not started: another instance is not over, and the run strategy is FIRST_ONLY."


@dataclass(slots=True)
class StartOutcome:
    """The results of starts, and the effects on the run queue."""

    answers: dict[str, tuple[StartStatus, Run]] = field(default_factory=dict)
    """The result of each start, by the uuid of its new run."""
    new: dict[str, Run] = field(default_factory=dict)
    """Runs to insert."""
    tasks: list[NewTask] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)
    """The roots of the runs in ``events``."""

    def started(self, starts: Sequence[Start]) -> tuple[Started, ...]:
        """Return the result of each start, in order."""
        answers = [self.answers[start.run.uuid] for start in starts]
        return tuple(Started(status, self.new.get(made.uuid, made)) for status, made in answers)


def no_longer_latest(connection: Connection, runs: Iterable[Run]) -> None:
    """Mark earlier runs of the same instances as not the latest."""
    rows = [
        {"the_workflow": each.workflow_id, "the_instance": each.instance_id, "the_run": each.run_id}
        for each in runs
        if each.run_id > 1
    ]
    if rows:
        connection.execute(_OLDER, rows)


def start_instances(connection: Connection, queues: dict[str, RunQueue], starts: Sequence[Start]) -> StartOutcome:
    """Carry out starts, and dequeue instances that may start.

    Raises:
        Conflict: the instance to restart has not ended, or was restarted meanwhile.
    """
    outcome = StartOutcome()
    for workflow_id, queue in queues.items():
        mine = [start for start in starts if start.run.workflow_id == workflow_id]
        known = _known(connection, queue, mine)
        restarts = [start.run for start in mine if start.is_restart and start.run.request_id not in known]
        for each in restarts:
            _check_restart(connection, each)
        no_longer_latest(connection, restarts)
        read_queue(connection, queue)
        for start in mine:
            outcome.answers[start.run.uuid] = _answer(connection, queue, start, known, outcome)
        if mine:
            connection.execute(_NUMBERED, {"the_id": workflow_id, "number": queue.last_instance})
        _let_go(connection, queue, outcome)
    over = [made for made in outcome.new.values() if made.status.is_terminal]
    outcome.tasks += [NewTask(TaskKind.RUN, made.parent.run_uuid) for made in over if made.parent is not None]
    return outcome


def _known(connection: Connection, queue: RunQueue, starts: Sequence[Start]) -> dict[str | None, Run]:
    """Return the runs that earlier starts with the same request ids created, by request id."""
    requests = [start.run.request_id for start in starts if start.run.request_id is not None]
    known: dict[str | None, Run] = {}
    for some in chunks(requests):
        rows = connection.execute(_KNOWN, {"workflow_id": queue.workflow_id, "requests": some})
        known |= {row.request_id: run_of(row, connection) for row in rows}
    return known


def _check_restart(connection: Connection, again: Run) -> None:
    place = {"workflow_id": again.workflow_id, "instance_id": again.instance_id}
    newest = connection.execute(_NEWEST, place).one_or_none()
    if newest is None or newest.run_id != again.run_id - 1 or not RunStatus(newest.status).is_terminal:
        raise Conflict(
            f"Run {again.run_id - 1} of {again.workflow_id}/{again.instance_id} is not over, or not the latest.",
            workflow=again.workflow_id,
            instance=again.instance_id,
        )


def _answer(
    connection: Connection, queue: RunQueue, start: Start, known: dict[str | None, Run], outcome: StartOutcome
) -> tuple[StartStatus, Run]:
    if start.run.request_id in known:
        return StartStatus.DUPLICATED, known[start.run.request_id]
    cycle = _cycle(connection, queue, start.run, outcome)
    arrival = Arrival() if cycle else arrive(queue.strategy, queue.view)
    if not start.is_restart:
        queue.last_instance += 1
    made = replace(
        start.run, instance_id=start.run.instance_id if start.is_restart else queue.last_instance, is_queued=True
    )
    if start.run.request_id is not None:
        known[start.run.request_id] = made
    if cycle:
        drawn = " → ".join((*cycle, f"{made.workflow_id} {made.instance_id}"))
        outcome.new[made.uuid] = _ended(made, RunStatus.FAILED, _endless(queue, drawn))
        return StartStatus.CREATED, made
    if arrival.is_refused:
        outcome.new[made.uuid] = _ended(made, RunStatus.STOPPED, _REFUSED)
        return StartStatus.STOPPED, made
    _stop(connection, queue, arrival.stopped, made, outcome)
    insort(queue.queued, (made.instance_id, made.run_id, made.uuid))
    outcome.new[made.uuid] = made
    return StartStatus.CREATED, made


def _cycle(connection: Connection, queue: RunQueue, new: Run, outcome: StartOutcome) -> tuple[str, ...]:
    """Return the chain of instances around a new one, from one of its own workflow, if they block it forever."""
    if new.parent is None or len(queue.active) < queue.strategy.concurrency:
        return ()
    around = waiting_for(connection, new.parent.run_uuid, new.parent.attempt_uuid)
    above = {row.uuid for row in around}
    if above.isdisjoint(queue.active):
        return ()
    waiting = waiting_for_queue(connection, queue.workflow_id)
    for made in outcome.new.values():  # these are not written yet
        if made.workflow_id == queue.workflow_id and made.is_queued and made.parent is not None:
            parents = waiting_for(connection, made.parent.run_uuid, made.parent.attempt_uuid)
            waiting.update(row.uuid for row in parents)
    if not never_begins(queue.strategy, queue.active, above, waiting):
        return ()
    names = [f"{row.workflow_id} {row.instance_id}" for row in reversed(around) if row.inline_step is None]
    first = next(row for row in reversed(around) if row.uuid in queue.active)
    return tuple(names[names.index(f"{first.workflow_id} {first.instance_id}") :])


def _endless(queue: RunQueue, drawn: str) -> str:
    number = "one instance" if queue.strategy.concurrency == 1 else f"{queue.strategy.concurrency} instances"
    return (
        f"The workflow would wait for itself: {drawn}. {queue.workflow_id} has the run strategy {queue.strategy.rule} "
        f"with {number} at a time, and each of them waits for one inside it. Use PARALLEL with a higher "
        "workflow_concurrency, or sync: false in the subworkflow step."
    )


def _ended(made: Run, status: RunStatus, message: str) -> Run:
    """Return a run that ends before it has started."""
    return replace(made, is_queued=False, status=status, run_status=status, message=message, ended_at=made.created_at)


def _stop(connection: Connection, queue: RunQueue, stopped: Sequence[str], by: Run, outcome: StartOutcome) -> None:
    """Stop queued instances immediately, and request a stop of active ones."""
    if not stopped:
        return
    why = f"Stopped by instance {by.instance_id}: the run strategy is {queue.strategy.rule}."
    gone = set(stopped)
    queued = [uuid for _, _, uuid in queue.queued if uuid in gone]
    queue.queued = [place for place in queue.queued if place[2] not in gone]
    for uuid in queued:
        if uuid in outcome.new:  # it was created in this transaction
            outcome.new[uuid] = _ended(outcome.new[uuid], RunStatus.STOPPED, why)
    stored = [uuid for uuid in queued if uuid not in outcome.new]
    for some in chunks(stored):
        _stop_queued(connection, some, why, by.created_at, outcome)
    asked = pending_text(Pending(Action.STOP, at=by.created_at, reason=why))
    active = [uuid for uuid in queue.active if uuid in gone]
    for some in chunks(active):
        connection.execute(_STOP_ACTIVE, {"uuids": some, "pending": asked})
    outcome.tasks += [NewTask(TaskKind.RUN, uuid) for uuid in active]


def _stop_queued(connection: Connection, uuids: Sequence[str], why: str, now: int, outcome: StartOutcome) -> None:
    connection.execute(_STOP_QUEUED, {"uuids": uuids, "why": why, "now": now})
    for row in connection.execute(_STOPPED, {"uuids": uuids}):
        outcome.roots[row.uuid] = row.root_uuid
        outcome.events.append(
            Event(
                RUN_EVENT,
                row.uuid,
                row.workflow_id,
                row.instance_id,
                row.run_id,
                now,
                before=RunStatus.CREATED,
                after=RunStatus.STOPPED,
                detail={"message": why},
            )
        )
        if row.parent_run is not None:
            outcome.tasks.append(NewTask(TaskKind.RUN, row.parent_run))


def _let_go(connection: Connection, queue: RunQueue, outcome: StartOutcome) -> None:
    """Dequeue instances that may start."""
    going = leaving(queue.strategy, queue.view)
    for uuid in going:
        outcome.tasks.append(NewTask(TaskKind.RUN, uuid))
        if uuid in outcome.new:
            outcome.new[uuid] = replace(outcome.new[uuid], is_queued=False)
    stored = [uuid for uuid in going if uuid not in outcome.new]
    for some in chunks(stored):
        connection.execute(_LEAVE, {"uuids": some})
