"""Advances runs as far as they go without a worker."""

from dataclasses import replace
from typing import assert_never

from calve.definition.model import ForeachStep, SubworkflowStep, TemplateStep, TypedStep, WhileStep
from calve.engine.attempts import (
    apply_action,
    finish_attempt,
    new_attempt,
    record_outcome,
    request_action,
    retry_attempt,
    run_status_by_action,
    start_attempt,
    with_message,
)
from calve.engine.control_steps import progress_approval, progress_foreach, progress_subworkflow, progress_while
from calve.engine.decisions.next_steps import Create, Finish, StopOthers, decide, why_not_run
from calve.engine.instances import RunState, UnitOfWork, ended_run, is_approval, is_immediate, with_timeline_entry
from calve.engine.model import HOLDING, Action, Attempt, NewTask, Pending, RunStatus, StepStatus, TaskKind, final_status
from calve.engine.params import evaluate_run, params_as_stored, run_timeout
from calve.engine.ports import Outcome, State
from calve.engine.restarts import carry_over_steps, changes_since, inherit
from calve.errors import OF_THE_WORKFLOW


def advance(work: UnitOfWork) -> None:
    """Advance every run on the agenda, including those that join it meanwhile."""
    while work.agenda:
        run_uuid = next(iter(work.agenda))
        del work.agenda[run_uuid]
        _advance_run(work, work.state(run_uuid))


def _advance_run(work: UnitOfWork, state: RunState) -> None:
    if state.run.status.is_terminal:
        return
    if state.run.status is RunStatus.CREATED:
        if state.run.action is not None:
            _finish_run(work, state, run_status_by_action(state.run.action.action) or RunStatus.STOPPED)
            return
        if state.run.is_queued or not _begin(work, state):
            return
    _time_out(work, state)
    _move_attempts(work, state)
    _move_on(work, state)
    _set_alarm(work, state)


def _begin(work: UnitOfWork, state: RunState) -> bool:
    """Start a run; return whether it could start."""
    run = state.run
    try:
        known = {} if run.policy.is_fresh else inherit(work, state)
        # An iteration is part of the run around it: it has that run's params and timeout.
        if not run.is_inline:
            state.params = evaluate_run(work, state)
            timeout_at = work.now + run_timeout(state)
            work.set_run(state, params=params_as_stored(state.params), timeout_at=timeout_at)
        if not run.policy.is_fresh:
            carry_over_steps(work, state, known, changes_since(work, state, known))
    # Errors of the workflow end the run. Any other error, such as an unavailable database, leaves the task to be
    # tried again.
    except OF_THE_WORKFLOW as error:
        said = f"{error.message} {error.remedy}".strip()
        work.set_run(state, message=said, timeline=with_timeline_entry(run.timeline, work.now, said, "ERROR"))
        _finish_run(work, state, RunStatus.FAILED)
        return False
    work.set_run(state, status=RunStatus.IN_PROGRESS, run_status=RunStatus.IN_PROGRESS, started_at=work.now)
    return True


def _time_out(work: UnitOfWork, state: RunState) -> None:
    run = state.run
    if run.action is None and run.timeout_at is not None and run.timeout_at <= work.now:
        work.set_run(state, action=Pending(Action.TIME_OUT, at=work.now, reason="the run timed out"))


def _move_attempts(work: UnitOfWork, state: RunState) -> None:
    """Apply requested actions to unfinished steps, and advance those that can continue."""
    run = state.run
    for attempt in list(state.attempts.values()):
        if attempt.run_uuid != run.uuid or attempt.status.is_final:
            continue
        if run.action is not None:
            attempt = request_action(work, state, attempt, replace(run.action, is_upstream=True))  # noqa: PLW2901 - as it is now
        _move(work, state, attempt)


def _move(work: UnitOfWork, state: RunState, attempt: Attempt) -> None:
    if attempt.action is not None:
        attempt = apply_action(work, state, attempt)
    if attempt.status.is_retryable and attempt.due_at is not None and attempt.due_at <= work.now:
        attempt = retry_attempt(work, state, attempt)
    if attempt.status.is_terminal or attempt.status is StepStatus.PAUSED or work.is_admitting(attempt.uuid):
        return
    if attempt.action is None and attempt.status not in HOLDING:
        attempt = start_attempt(work, state, attempt)
    if attempt.status is not StepStatus.RUNNING or attempt.action is not None:
        return
    _carry_on(work, state, attempt)


def _carry_on(work: UnitOfWork, state: RunState, attempt: Attempt) -> None:
    """Continue a running step that the engine executes itself; workers execute the others."""
    step = state.blueprint.steps[attempt.step_id]
    is_late = attempt.timeout_at is not None and attempt.timeout_at <= work.now
    match step:
        case TypedStep() if is_immediate(step):
            finish_attempt(work, state, attempt, StepStatus.SUCCEEDED)
        case TypedStep() if is_approval(step):
            if is_late:
                record_outcome(work, state, attempt, Outcome(State.TIMED_OUT))
            else:
                progress_approval(work, state, attempt)
        case TypedStep() | TemplateStep():
            if is_late:  # its worker ends it; if it has none now, one claims it
                work.enqueue(NewTask(TaskKind.STEP, state.run.uuid, attempt.uuid, priority=state.run.priority))
        case _ if is_late:
            late = Pending(Action.TIME_OUT, at=work.now, reason="the step timed out")
            apply_action(work, state, request_action(work, state, attempt, late))
        case SubworkflowStep():
            progress_subworkflow(work, state, step, attempt)
        case ForeachStep():
            progress_foreach(work, state, step, attempt)
        case WhileStep():
            progress_while(work, state, step, attempt)
        case _:
            assert_never(step)


def _move_on(work: UnitOfWork, state: RunState) -> None:
    """Start the steps that are ready, until only workers can make progress."""
    run = state.run
    # A step taken over from an earlier run must not stop this one a second time.
    modes = {step_id: mode for step_id, mode in state.blueprint.modes.items() if step_id not in run.carried}
    while True:
        moves = list(decide(state.blueprint.dag, state.attempts, modes, is_ending=state.run.action is not None))
        for move in moves:
            match move:
                case Create(step_id, is_satisfied):
                    _create(work, state, step_id, is_satisfied=is_satisfied)
                case StopOthers(step_id):
                    _stop_others(work, state, step_id)
                    return
                case Finish(status):
                    _finish_run(work, state, status)
                    return
                case _:
                    assert_never(move)
        if not moves:
            return


def _create(work: UnitOfWork, state: RunState, step_id: str, *, is_satisfied: bool) -> None:
    attempt = work.set_attempt(state, new_attempt(work, state, step_id))
    if not is_satisfied:
        reason = why_not_run(state.blueprint.dag, state.attempts, step_id)
        finish_attempt(work, state, with_message(attempt, work.now, reason), StepStatus.UNSATISFIED)
    elif state.is_skipped(step_id):
        finish_attempt(work, state, attempt, StepStatus.SKIPPED)
    else:
        _move(work, state, attempt)


def _stop_others(work: UnitOfWork, state: RunState, step_id: str) -> None:
    """Stop all unfinished steps because a step with failure mode FAIL_IMMEDIATELY failed."""
    stop = Pending(Action.STOP, at=work.now, reason=f"{step_id} failed", is_upstream=True)
    is_moved = False
    for attempt in list(state.attempts.values()):
        if not attempt.status.is_final:
            asked = request_action(work, state, attempt, stop)
            is_moved |= apply_action(work, state, asked).status.is_final
    if is_moved:
        work.wake(state.run.uuid)


def _finish_run(work: UnitOfWork, state: RunState, status: RunStatus) -> None:
    run = state.run
    own = [attempt.status for attempt in state.attempts.values() if attempt.run_uuid == run.uuid]
    by_action = run_status_by_action(run.action.action) if run.action else None
    status = by_action or status
    run_status = by_action or (final_status(own) if own else status)
    work.put_run(state, ended_run(run, status, run_status, work.now))
    if run.parent is not None:
        work.wake(run.parent.run_uuid, priority=run.priority)


def _set_alarm(work: UnitOfWork, state: RunState) -> None:
    """Enqueue the run for the time when the first of its steps is due."""
    if state.run.status.is_terminal:
        return
    # One alarm per run is enough: when it goes off, every step that is due is handled.
    due = [attempt.due_at for attempt in state.attempts.values() if attempt.due_at is not None]
    if due:
        work.enqueue(NewTask(TaskKind.RUN, state.run.uuid, due_at=min(due), priority=state.run.priority))
