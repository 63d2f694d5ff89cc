"""What an action does to an attempt."""

from dataclasses import replace

from calve.engine.attempts.completion import finish_attempt
from calve.engine.attempts.lifecycle import with_message, with_status
from calve.engine.attempts.outcomes import status_by_action
from calve.engine.attempts.signals import PENDING, SKIPPED
from calve.engine.instances import RunState, UnitOfWork, is_leaf, needs_worker
from calve.engine.model import HOLDING, Action, Attempt, NewTask, Pending, StepStatus, TaskKind


def request_action(work: UnitOfWork, state: RunState, attempt: Attempt, pending: Pending) -> Attempt:
    """Request an action that ends an attempt; only KILL replaces an earlier request of this kind."""
    known = attempt.action
    is_ending = known is not None and status_by_action(known.action) is not None
    is_harsher = known is not None and pending.action is Action.KILL and known.action is not Action.KILL
    if is_ending and not is_harsher:
        return attempt
    return work.set_attempt(state, replace(attempt, action=pending))


def apply_action(work: UnitOfWork, state: RunState, attempt: Attempt) -> Attempt:
    """Apply the requested action to an attempt, or pass it on to its worker or its child runs."""
    pending = attempt.action
    assert pending is not None  # noqa: S101 - the caller has looked
    match pending.action:
        case Action.RESUME:
            return work.set_attempt(state, with_status(attempt, StepStatus.INITIALIZED, work.now, action=None))
        case Action.BYPASS_STEP_DEPENDENCIES:
            return work.set_attempt(state, _bypassed(attempt, pending, work.now))
        case Action.PAUSE:
            return work.set_attempt(state, with_status(attempt, StepStatus.PAUSED, work.now, action=None))
        case _:
            return _cut(work, state, attempt, pending)


def _bypassed(attempt: Attempt, pending: Pending, now: int) -> Attempt:
    skipped = tuple(
        {**dependency, "status": SKIPPED} if dependency.get("status") == PENDING else dependency
        for dependency in attempt.dependencies
    )
    attempt = with_message(attempt, now, f"The dependencies were bypassed by {pending.by or 'someone'}.")
    return with_status(attempt, StepStatus.EVALUATING_PARAMS, now, action=None, dependencies=skipped)


def _cut(work: UnitOfWork, state: RunState, attempt: Attempt, pending: Pending) -> Attempt:
    """End an attempt: immediately if nothing runs, otherwise through its worker or its children."""
    step = state.blueprint.steps[attempt.step_id]
    if attempt.status in HOLDING and needs_worker(step):
        # Its worker sees the action at its next heartbeat; if it has none, one claims the task now.
        work.enqueue(NewTask(TaskKind.STEP, state.run.uuid, attempt.uuid, priority=state.run.priority))
        return attempt
    if attempt.status in HOLDING and not is_leaf(step):
        work.pass_down(attempt.uuid, replace(pending, is_upstream=True))
        if work.children(attempt.uuid).active:
            return attempt
    return end_by_action(work, state, attempt)


def end_by_action(work: UnitOfWork, state: RunState, attempt: Attempt) -> Attempt:
    """End an attempt whose work has ended, with the status of the requested action."""
    pending = attempt.action
    status = status_by_action(pending.action) if pending else None
    assert pending is not None  # noqa: S101 - the caller has looked
    assert status is not None  # noqa: S101 - nothing else can be asked of an attempt whose work is under way
    who = f" by {pending.by}" if pending.by else ""
    why = f": {pending.reason}" if pending.reason else ""
    attempt = with_message(attempt, work.now, f"{pending.action}{who}{why}.")
    return finish_attempt(work, state, attempt, status, is_mode_honoured=not pending.is_upstream)
