"""Which events and delays lead to alerts. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from calve.addresses import instance_page, workflow_page
from calve.alerts.model import Alert, Message
from calve.alerts.policy import Policy, Wish, alerting_of
from calve.definition.model import AlertType, Tct
from calve.definition.params import InitiatorType
from calve.engine import STEP_EVENT, Ancestor, Attempt, Event, Run, RunStatus, Snapshot, StepStatus, VersionRecord

_FAILED = frozenset({RunStatus.FAILED, RunStatus.TIMED_OUT})
_MINUTE = 60_000


def is_of_interest(event: Event) -> bool:
    """Tell whether an event may be worth an alert, before anything else is read."""
    if event.kind == STEP_EVENT:
        status = StepStatus(event.after or StepStatus.NOT_CREATED)
        return status is StepStatus.PAUSED or _is_failed(status)
    return event.step_id is None and event.after in {status.value for status in RunStatus if status.is_terminal}


def of_event(event: Event, found: Snapshot, policy: Policy, around: Sequence[Ancestor] = ()) -> Iterator[Message]:
    """Yield the messages for an event; ``found`` is its run, ``around`` the attempts that contain an iteration."""
    if event.kind == STEP_EVENT:
        yield from _of_step(event, found, policy, around)
    elif not found.run.is_inline:
        yield from _of_end(event, found, policy)
        yield from of_time(found.run, event.at, policy)


def of_time(run: Run, now: int, policy: Policy) -> Iterator[Message]:
    """Yield the messages for a run that takes too long, or should have ended."""
    until = run.ended_at or now
    for wish in _wishes(AlertType.LONG_RUNNING, run, policy):
        limit = None if wish.after is None or run.started_at is None else run.started_at + wish.after
        if limit is not None and limit < until:
            yield _late(AlertType.LONG_RUNNING, run, limit, wish, f"runs longer than {_shown(wish.after)}")
    for wish in _wishes(AlertType.SUCCESS_WITHIN, run, policy):
        limit = None if wish.after is None else run.created_at + wish.after
        if limit is not None and limit < until:
            yield _late(AlertType.SUCCESS_WITHIN, run, limit, wish, f"has not succeeded within {_shown(wish.after)}")
    for wish in _wishes(AlertType.TCT_VIOLATION, run, policy):
        limit = _complete_by(run, wish)
        if limit is not None and limit < until:
            yield _late(AlertType.TCT_VIOLATION, run, limit, wish, f"is late: it should have ended by {_time(limit)}")


def wants_dependencies(run: Run, policy: Policy) -> bool:
    """Tell whether a route exists for steps that wait too long for signals."""
    return bool(_wishes(AlertType.DEPENDENCY_LATE, run, policy))


def of_waiting(found: Snapshot, now: int, policy: Policy) -> Iterator[Message]:
    """Yield the messages for steps that wait too long for signals."""
    for wish in _wishes(AlertType.DEPENDENCY_LATE, found.run, policy):
        for attempt in found.attempts:
            since = attempt.times.get("wait_signal")
            is_waiting = attempt.status is StepStatus.WAITING_FOR_SIGNALS and since is not None
            if is_waiting and wish.after is not None and (since or 0) + wish.after < now:
                alert = _alert(AlertType.DEPENDENCY_LATE, found.run, now, f"{attempt.uuid}/{wish.after}")
                said = f"{_name(found.run)}: step {attempt.step_id} waits for signals since {_time(since or 0)}"
                page = _page(found.run, attempt.step_id)
                told = replace(alert, step_id=attempt.step_id, status=attempt.status.value, title=said, page=page)
                yield Message(told, wish.route)


def of_version(version: VersionRecord, properties: Mapping[str, object], policy: Policy) -> Iterator[Message]:
    """Yield the messages for a pushed definition."""
    for wish in policy.wishes(AlertType.DEFINITION_CHANGE, version.workflow_id, properties):
        title = f"{version.workflow_id}: {version.author or 'someone'} pushed version {version.version_id}"
        key = f"{AlertType.DEFINITION_CHANGE}/{version.workflow_id}/{version.version_id}"
        kind, page = AlertType.DEFINITION_CHANGE, workflow_page(version.workflow_id)
        yield Message(Alert(key, kind, version.workflow_id, version.created_at, title=title, page=page), wish.route)


def may_come_again(alert: Alert, *, is_live: bool, definitions: int | None) -> bool:
    """Tell whether an alert may be found again, so that its message must not be pruned yet.

    Args:
        alert: the alert.
        is_live: whether its run is active: every check finds alerts about delays again.
        definitions: the time from which versions are read; None if they are not read.
    """
    if alert.type is AlertType.DEFINITION_CHANGE:
        return definitions is not None and alert.at >= definitions
    return is_live


def _of_end(event: Event, found: Snapshot, policy: Policy) -> Iterator[Message]:
    run, status = found.run, RunStatus(event.after or RunStatus.CREATED)
    if status in _FAILED:
        kind, text = AlertType.STEP_FAILURE, _reasons(found)
        wishes = [wish for wish in _wishes(kind, run, policy) if not wish.is_by_step]
    elif status is RunStatus.SUCCEEDED:
        kind, text = AlertType.RUN_SUCCESS, ""
        wishes = _wishes(kind, run, policy)
    else:
        return
    alert = _alert(kind, run, event.at, f"{run.uuid}/{event.seq}")
    told = replace(alert, status=status.value, title=f"{_name(run)} {_word(status)}", text=text)
    yield from (Message(told, wish.route) for wish in wishes)


def _of_step(event: Event, found: Snapshot, policy: Policy, around: Sequence[Ancestor]) -> Iterator[Message]:
    run, status = found.run, StepStatus(event.after or StepStatus.NOT_CREATED)
    attempt = next((each for each in found.attempts if each.step_id == event.step_id), None)
    kind = AlertType.BREAKPOINT_HIT if status is StepStatus.PAUSED else AlertType.STEP_FAILURE
    wishes = _wishes(kind, run, policy)
    if kind is AlertType.STEP_FAILURE:
        wishes = [wish for wish in wishes if wish.is_by_step]
    said = "is paused at a breakpoint" if status is StepStatus.PAUSED else "failed"
    alert = _alert(kind, run, event.at, f"{run.uuid}/{event.seq}")
    title = f"{_name(run)}: step {event.step_id} {said}"
    text = "" if attempt is None else _last_word(attempt)
    page = _page(run, event.step_id, around)
    told = replace(alert, step_id=event.step_id, status=status.value, title=title, text=text, page=page)
    yield from (Message(told, wish.route) for wish in wishes)


def _wishes(kind: AlertType, run: Run, policy: Policy) -> list[Wish]:
    """Return the routes of a run; rules of the settings apply to parents, not to their children."""
    found = policy.wishes(kind, run.owner_workflow, run.properties)
    return [wish for wish in found if run.parent is None or not wish.is_by_rule]


def _late(kind: AlertType, run: Run, limit: int, wish: Wish, said: str) -> Message:
    alert = _alert(kind, run, limit, f"{run.uuid}/{limit}")
    return Message(replace(alert, status=run.status.value, title=f"{_name(run)} {said}"), wish.route)


def _complete_by(run: Run, wish: Wish) -> int | None:
    """Return the time by which a run must have ended, if any; rules of the settings only apply to scheduled runs."""
    if wish.is_by_rule:
        is_scheduled = run.initiator.type is InitiatorType.TIME
        return _scheduled(run) + wish.after if is_scheduled and wish.after is not None else None
    alerting = alerting_of(run.properties)
    return None if alerting is None or alerting.tct is None else _by(alerting.tct, run)


def _scheduled(run: Run) -> int:
    """Return the time for which a trigger scheduled a run, or else when the run was created."""
    found = run.initiator.trigger.get("scheduled_at")
    return found if isinstance(found, int) else run.created_at


def _by(tct: Tct, run: Run) -> int:
    if tct.completed_by_ts is not None:
        return tct.completed_by_ts
    if tct.duration_minutes is not None:
        return run.created_at + tct.duration_minutes * _MINUTE
    zone = ZoneInfo(tct.tz or run.initiator.timezone or "UTC")
    made = datetime.fromtimestamp(run.created_at / 1_000, zone)
    due = made.replace(hour=tct.completed_by_hour or 0, minute=0, second=0, microsecond=0)
    due = due if due > made else due + timedelta(days=1)
    return round(due.timestamp() * 1_000)


def _alert(kind: AlertType, run: Run, at: int, key: str) -> Alert:
    return Alert(f"{kind}/{key}", kind, run.owner_workflow, at, run.instance_id, run.run_id, page=_page(run))


def _page(run: Run, step_id: str | None = None, around: Sequence[Ancestor] = ()) -> str:
    """Return the page of a run or a step; an iteration is shown on the page of the instance that it belongs to."""
    if not run.is_inline:
        return instance_page(run.workflow_id, run.instance_id, step_id)
    outer = [at for at, one in enumerate(around) if one.workflow_id == run.owner_workflow]
    if not outer:
        return workflow_page(run.owner_workflow)
    instance, *loops = around[outer[-1] :]
    inside = [part for one in loops for part in (str(one.instance_id), one.step_id)]
    path = [instance.step_id, *inside, str(run.instance_id), *([step_id] if step_id else [])]
    return instance_page(instance.workflow_id, instance.instance_id, "/".join(path))


def _name(run: Run) -> str:
    return f"{run.workflow_id} {run.instance_id}"


def _word(status: RunStatus) -> str:
    return {RunStatus.FAILED: "failed", RunStatus.TIMED_OUT: "timed out"}.get(status, "succeeded")


def _is_failed(status: StepStatus) -> bool:
    return status.is_restartable and status is not StepStatus.STOPPED


def _reasons(found: Snapshot) -> str:
    lines = [found.run.message] if found.run.message else []
    lines += [
        f"{attempt.step_id}: {attempt.status} {_last_word(attempt)}".rstrip()
        for attempt in found.attempts
        if _is_failed(attempt.status)
    ]
    return "\n".join(lines)


def _last_word(attempt: Attempt) -> str:
    return str(attempt.timeline[-1].get("message", "")) if attempt.timeline else ""


def _shown(milliseconds: int | None) -> str:
    return str(timedelta(milliseconds=milliseconds or 0))


def _time(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).isoformat(timespec="seconds")
