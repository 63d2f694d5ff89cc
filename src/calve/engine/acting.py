"""What an action does to an attempt or a run that it was asked for."""

from dataclasses import replace

from calve.engine.actions import Action
from calve.engine.attempts import moved, told
from calve.engine.awaiting import PENDING, SKIPPED
from calve.engine.blueprints import is_leaf, needs_worker
from calve.engine.ending import finish
from calve.engine.model import Attempt, NewTask, Pending, TaskKind
from calve.engine.outcomes import ended_by
from calve.engine.states import RunState
from calve.engine.statuses import HOLDING, StepStatus
from calve.engine.work import Work


def ask(work: Work, state: RunState, attempt: Attempt, pending: Pending) -> Attempt:
    """Ask an end of an attempt; one that was asked for before stays, unless this one is harsher."""
    known = attempt.action
    is_ending = known is not None and ended_by(known.action) is not None
    is_harsher = known is not None and pending.action is Action.KILL and known.action is not Action.KILL
    if is_ending and not is_harsher:
        return attempt
    return work.set_attempt(state, replace(attempt, action=pending))


def act(work: Work, state: RunState, attempt: Attempt) -> Attempt:
    """Carry out the action that was asked of an attempt, as far as that can be done here."""
    pending = attempt.action
    assert pending is not None  # noqa: S101 - the caller has looked
    match pending.action:
        case Action.RESUME:
            return work.set_attempt(state, moved(attempt, StepStatus.INITIALIZED, work.now, action=None))
        case Action.BYPASS_STEP_DEPENDENCIES:
            return work.set_attempt(state, _bypassed(attempt, pending, work.now))
        case Action.PAUSE:
            return work.set_attempt(state, moved(attempt, StepStatus.PAUSED, work.now, action=None))
        case _:
            return _cut(work, state, attempt, pending)


def _bypassed(attempt: Attempt, pending: Pending, now: int) -> Attempt:
    skipped = tuple(
        {**dependency, "status": SKIPPED} if dependency.get("status") == PENDING else dependency
        for dependency in attempt.dependencies
    )
    attempt = told(attempt, now, f"The dependencies were bypassed by {pending.by or 'somebody'}.")
    return moved(attempt, StepStatus.EVALUATING_PARAMS, now, action=None, dependencies=skipped)


def _cut(work: Work, state: RunState, attempt: Attempt, pending: Pending) -> Attempt:
    """End an attempt: at once where nothing is under way, else through its worker or its children."""
    step = state.blueprint.steps[attempt.step_id]
    if attempt.status in HOLDING and needs_worker(step):
        # Whoever holds it hears of the action by its next heartbeat; if nobody does, it is to be claimed now.
        work.enqueue(NewTask(TaskKind.STEP, state.run.uuid, attempt.uuid, priority=state.run.priority))
        return attempt
    if attempt.status in HOLDING and not is_leaf(step):
        work.pass_down(attempt.uuid, replace(pending, is_upstream=True))
        if work.children(attempt.uuid).active:
            return attempt
    return cut_short(work, state, attempt)


def cut_short(work: Work, state: RunState, attempt: Attempt) -> Attempt:
    """End an attempt whose work is over, as the action that was asked of it says."""
    pending = attempt.action
    status = ended_by(pending.action) if pending else None
    assert pending is not None  # noqa: S101 - the caller has looked
    assert status is not None  # noqa: S101 - nothing else can be asked of an attempt whose work is under way
    who = f" by {pending.by}" if pending.by else ""
    why = f": {pending.reason}" if pending.reason else ""
    attempt = told(attempt, work.now, f"{pending.action}{who}{why}.")
    return finish(work, state, attempt, status, is_mode_honoured=not pending.is_upstream)
