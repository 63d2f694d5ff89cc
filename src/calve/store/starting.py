"""Starts instances, and lets them leave the queue, by the run strategies: under the lock of the workflow's row."""

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import BindParameter, Connection, bindparam, select, update

from calve.engine.actions import Action
from calve.engine.model import RUN_EVENT, Event, NewTask, Pending, Run, Start, Started, StartStatus, TaskKind
from calve.engine.statuses import RunStatus
from calve.engine.strategies import Arrival, arrive, leaving, never_begins
from calve.errors import Conflict
from calve.store.engine_rows import pending_text, run_of
from calve.store.engine_tables import run, workflow
from calve.store.fencing import chunks
from calve.store.lines import Line, read_line, waiting_for, waiting_for_queue

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
class Launch:
    """What starting and leaving came to."""

    answers: dict[str, tuple[StartStatus, Run]] = field(default_factory=dict)
    """What became of each start, by the uuid of the run that it brought."""
    new: dict[str, Run] = field(default_factory=dict)
    """Runs that are to be inserted."""
    tasks: list[NewTask] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)
    """The roots of runs that events are about."""

    def started(self, starts: Sequence[Start]) -> tuple[Started, ...]:
        """Return what became of each start, in order."""
        answers = [self.answers[start.run.uuid] for start in starts]
        return tuple(Started(status, self.new.get(made.uuid, made)) for status, made in answers)


def no_longer_latest(connection: Connection, runs: Iterable[Run]) -> None:
    """Let new runs take the place of the earlier ones of their instances."""
    rows = [
        {"the_workflow": each.workflow_id, "the_instance": each.instance_id, "the_run": each.run_id}
        for each in runs
        if each.run_id > 1
    ]
    if rows:
        connection.execute(_OLDER, rows)


def launch(connection: Connection, lines: dict[str, Line], starts: Sequence[Start]) -> Launch:
    """Carry out starts, and let instances leave the queues.

    Raises:
        Conflict: the instance that is to be restarted is not over, or was restarted by somebody else.
    """
    launched = Launch()
    for workflow_id, line in lines.items():
        mine = [start for start in starts if start.run.workflow_id == workflow_id]
        known = _known(connection, line, mine)
        restarts = [start.run for start in mine if start.is_restart and start.run.request_id not in known]
        for each in restarts:
            _check_restart(connection, each)
        no_longer_latest(connection, restarts)
        read_line(connection, line)
        for start in mine:
            launched.answers[start.run.uuid] = _answer(connection, line, start, known, launched)
        if mine:
            connection.execute(_NUMBERED, {"the_id": workflow_id, "number": line.last_instance})
        _let_go(connection, line, launched)
    over = [made for made in launched.new.values() if made.status.is_terminal]
    launched.tasks += [NewTask(TaskKind.RUN, made.parent.run_uuid) for made in over if made.parent is not None]
    return launched


def _known(connection: Connection, line: Line, starts: Sequence[Start]) -> dict[str | None, Run]:
    """Return the runs that the same requests have started already, by request."""
    requests = [start.run.request_id for start in starts if start.run.request_id is not None]
    known: dict[str | None, Run] = {}
    for some in chunks(requests):
        rows = connection.execute(_KNOWN, {"workflow_id": line.workflow_id, "requests": some})
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
    connection: Connection, line: Line, start: Start, known: dict[str | None, Run], launched: Launch
) -> tuple[StartStatus, Run]:
    if start.run.request_id in known:
        return StartStatus.DUPLICATED, known[start.run.request_id]
    cycle = _cycle(connection, line, start.run, launched)
    arrival = Arrival() if cycle else arrive(line.strategy, line.view)
    if not start.is_restart:
        line.last_instance += 1
    made = replace(
        start.run, instance_id=start.run.instance_id if start.is_restart else line.last_instance, is_queued=True
    )
    if start.run.request_id is not None:
        known[start.run.request_id] = made
    if cycle:
        drawn = " → ".join((*cycle, f"{made.workflow_id} {made.instance_id}"))
        launched.new[made.uuid] = _ended(made, RunStatus.FAILED, _endless(line, drawn))
        return StartStatus.CREATED, made
    if arrival.is_refused:
        launched.new[made.uuid] = _ended(made, RunStatus.STOPPED, _REFUSED)
        return StartStatus.STOPPED, made
    _stop(connection, line, arrival.stopped, made, launched)
    insort(line.queued, (made.instance_id, made.run_id, made.uuid))
    launched.new[made.uuid] = made
    return StartStatus.CREATED, made


def _cycle(connection: Connection, line: Line, new: Run, launched: Launch) -> tuple[str, ...]:
    """Return the instances around a new one, from one of its own workflow on, if it could never begin inside them."""
    if new.parent is None or len(line.active) < line.strategy.concurrency:
        return ()
    around = waiting_for(connection, new.parent.run_uuid, new.parent.attempt_uuid)
    above = {row.uuid for row in around}
    if above.isdisjoint(line.active):
        return ()
    waiting = waiting_for_queue(connection, line.workflow_id)
    for made in launched.new.values():  # they are not written yet
        if made.workflow_id == line.workflow_id and made.is_queued and made.parent is not None:
            parents = waiting_for(connection, made.parent.run_uuid, made.parent.attempt_uuid)
            waiting.update(row.uuid for row in parents)
    if not never_begins(line.strategy, line.active, above, waiting):
        return ()
    names = [f"{row.workflow_id} {row.instance_id}" for row in reversed(around) if row.inline_step is None]
    first = next(row for row in reversed(around) if row.uuid in line.active)
    return tuple(names[names.index(f"{first.workflow_id} {first.instance_id}") :])


def _endless(line: Line, drawn: str) -> str:
    number = "one instance" if line.strategy.concurrency == 1 else f"{line.strategy.concurrency} instances"
    return (
        f"The workflow would wait for itself: {drawn}. {line.workflow_id} has the run strategy {line.strategy.rule} "
        f"with {number} at a time, and each of them waits for one inside it. Use PARALLEL with a higher "
        "workflow_concurrency, or sync: false in the subworkflow step."
    )


def _ended(made: Run, status: RunStatus, message: str) -> Run:
    """Return a run that ends before it has begun."""
    return replace(made, is_queued=False, status=status, run_status=status, message=message, ended_at=made.created_at)


def _stop(connection: Connection, line: Line, stopped: Sequence[str], by: Run, launched: Launch) -> None:
    """Stop queued instances at once, and ask the active ones to stop."""
    if not stopped:
        return
    why = f"Stopped by instance {by.instance_id}: the run strategy is {line.strategy.rule}."
    gone = set(stopped)
    queued = [uuid for _, _, uuid in line.queued if uuid in gone]
    line.queued = [place for place in line.queued if place[2] not in gone]
    for uuid in queued:
        if uuid in launched.new:  # it came in this very transaction
            launched.new[uuid] = _ended(launched.new[uuid], RunStatus.STOPPED, why)
    stored = [uuid for uuid in queued if uuid not in launched.new]
    for some in chunks(stored):
        _stop_queued(connection, some, why, by.created_at, launched)
    asked = pending_text(Pending(Action.STOP, at=by.created_at, reason=why))
    active = [uuid for uuid in line.active if uuid in gone]
    for some in chunks(active):
        connection.execute(_STOP_ACTIVE, {"uuids": some, "pending": asked})
    launched.tasks += [NewTask(TaskKind.RUN, uuid) for uuid in active]


def _stop_queued(connection: Connection, uuids: Sequence[str], why: str, now: int, launched: Launch) -> None:
    connection.execute(_STOP_QUEUED, {"uuids": uuids, "why": why, "now": now})
    for row in connection.execute(_STOPPED, {"uuids": uuids}):
        launched.roots[row.uuid] = row.root_uuid
        launched.events.append(
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
            launched.tasks.append(NewTask(TaskKind.RUN, row.parent_run))


def _let_go(connection: Connection, line: Line, launched: Launch) -> None:
    """Let instances leave the queue."""
    going = leaving(line.strategy, line.view)
    for uuid in going:
        launched.tasks.append(NewTask(TaskKind.RUN, uuid))
        if uuid in launched.new:
            launched.new[uuid] = replace(launched.new[uuid], is_queued=False)
    stored = [uuid for uuid in going if uuid not in launched.new]
    for some in chunks(stored):
        connection.execute(_LEAVE, {"uuids": some})
