"""The engine's turn: moves runs on as far as they go by themselves."""

from dataclasses import replace
from typing import assert_never

from calve.definition.model.steps import ForeachStep, SubworkflowStep, TemplateStep, TypedStep, WhileStep
from calve.engine import approvals, foreach, subworkflows, whiles
from calve.engine.acting import act, ask
from calve.engine.actions import Action
from calve.engine.attempts import new_attempt, told
from calve.engine.blueprints import is_approval, is_immediate
from calve.engine.deciding import Create, Finish, StopOthers, decide, why_not
from calve.engine.ending import end, finish, retry
from calve.engine.evaluating import evaluate_run, run_timeout
from calve.engine.facts import stored
from calve.engine.launching import over
from calve.engine.model import Attempt, NewTask, Pending, TaskKind
from calve.engine.outcomes import run_ended_by
from calve.engine.ports import Outcome, State
from calve.engine.restarts import carry_over, inherit, is_skipped
from calve.engine.revisions import news_of
from calve.engine.states import RunState
from calve.engine.statuses import HOLDING, RunStatus, StepStatus, final_status
from calve.engine.stepping import prepare
from calve.engine.work import Work, noted
from calve.errors import OF_THE_WORKFLOW


def advance(work: Work) -> None:
    """Move every run on the agenda on, and those that this brings up."""
    while work.agenda:
        run_uuid = next(iter(work.agenda))
        del work.agenda[run_uuid]
        _advance_run(work, work.state(run_uuid))


def _advance_run(work: Work, state: RunState) -> None:
    if state.run.status.is_terminal:
        return
    if state.run.status is RunStatus.CREATED:
        if state.run.action is not None:
            _finish_run(work, state, run_ended_by(state.run.action.action) or RunStatus.STOPPED)
            return
        if state.run.is_queued or not _begin(work, state):
            return
    _time_out(work, state)
    _move_attempts(work, state)
    _move_on(work, state)
    _set_alarm(work, state)


def _begin(work: Work, state: RunState) -> bool:
    """Begin a run; tell whether that went well."""
    run = state.run
    try:
        known = {} if run.policy.is_fresh else inherit(work, state)
        if not run.is_inline:
            state.params = evaluate_run(work, state)
            timeout_at = work.now + run_timeout(state)
            work.set_run(state, params=stored(state.params), timeout_at=timeout_at)
        if not run.policy.is_fresh:
            carry_over(work, state, known, news_of(work, state, known))
    except OF_THE_WORKFLOW as error:
        said = f"{error.message} {error.remedy}".strip()
        work.set_run(state, message=said, timeline=noted(run.timeline, work.now, said, "ERROR"))
        _finish_run(work, state, RunStatus.FAILED)
        return False
    work.set_run(state, status=RunStatus.IN_PROGRESS, run_status=RunStatus.IN_PROGRESS, started_at=work.now)
    return True


def _time_out(work: Work, state: RunState) -> None:
    run = state.run
    if run.action is None and run.timeout_at is not None and run.timeout_at <= work.now:
        work.set_run(state, action=Pending(Action.TIME_OUT, at=work.now, reason="the run took too long"))


def _move_attempts(work: Work, state: RunState) -> None:
    """Do what is asked of the steps under way, and move on those that can."""
    run = state.run
    for attempt in list(state.attempts.values()):
        if attempt.run_uuid != run.uuid or attempt.status.is_final:
            continue
        if run.action is not None:
            attempt = ask(work, state, attempt, replace(run.action, is_upstream=True))  # noqa: PLW2901 - as it is now
        _move(work, state, attempt)


def _move(work: Work, state: RunState, attempt: Attempt) -> None:
    if attempt.action is not None:
        attempt = act(work, state, attempt)
    if attempt.status.is_retryable and attempt.due_at is not None and attempt.due_at <= work.now:
        attempt = retry(work, state, attempt)
    if attempt.status.is_terminal or attempt.status is StepStatus.PAUSED or work.is_admitting(attempt.uuid):
        return
    if attempt.action is None and attempt.status not in HOLDING:
        attempt = prepare(work, state, attempt)
    if attempt.status is not StepStatus.RUNNING or attempt.action is not None:
        return
    _carry_on(work, state, attempt)


def _carry_on(work: Work, state: RunState, attempt: Attempt) -> None:
    """Go on with a step that runs and is the engine's own; others are in the hands of workers."""
    step = state.blueprint.steps[attempt.step_id]
    is_late = attempt.timeout_at is not None and attempt.timeout_at <= work.now
    match step:
        case TypedStep() if is_immediate(step):
            finish(work, state, attempt, StepStatus.SUCCEEDED)
        case TypedStep() if is_approval(step):
            if is_late:
                end(work, state, attempt, Outcome(State.TIMED_OUT))
            else:
                approvals.progress(work, state, attempt)
        case TypedStep() | TemplateStep():
            if is_late:  # its worker sees to it; if it has none now, it is to be claimed
                work.enqueue(NewTask(TaskKind.STEP, state.run.uuid, attempt.uuid, priority=state.run.priority))
        case _ if is_late:
            late = Pending(Action.TIME_OUT, at=work.now, reason="the step took too long")
            act(work, state, ask(work, state, attempt, late))
        case SubworkflowStep():
            subworkflows.progress(work, state, step, attempt)
        case ForeachStep():
            foreach.progress(work, state, step, attempt)
        case WhileStep():
            whiles.progress(work, state, step, attempt)
        case _:
            assert_never(step)


def _move_on(work: Work, state: RunState) -> None:
    """Begin the steps whose turn has come, until nothing more happens by itself."""
    run = state.run
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


def _create(work: Work, state: RunState, step_id: str, *, is_satisfied: bool) -> None:
    attempt = work.set_attempt(state, new_attempt(work, state, step_id))
    if not is_satisfied:
        reason = why_not(state.blueprint.dag, state.attempts, step_id)
        finish(work, state, told(attempt, work.now, reason), StepStatus.UNSATISFIED)
    elif is_skipped(state, step_id):
        finish(work, state, attempt, StepStatus.SKIPPED)
    else:
        _move(work, state, attempt)


def _stop_others(work: Work, state: RunState, step_id: str) -> None:
    """Stop what is under way because a step failed that lets nothing else go on."""
    stop = Pending(Action.STOP, at=work.now, reason=f"{step_id} failed", is_upstream=True)
    is_moved = False
    for attempt in list(state.attempts.values()):
        if not attempt.status.is_final:
            asked = ask(work, state, attempt, stop)
            is_moved |= act(work, state, asked).status.is_final
    if is_moved:
        work.wake(state.run.uuid)


def _finish_run(work: Work, state: RunState, status: RunStatus) -> None:
    run = state.run
    own = [attempt.status for attempt in state.attempts.values() if attempt.run_uuid == run.uuid]
    by_action = run_ended_by(run.action.action) if run.action else None
    status = by_action or status
    run_status = by_action or (final_status(own) if own else status)
    work.put_run(state, over(run, status, run_status, work.now))
    if run.parent is not None:
        work.wake(run.parent.run_uuid, priority=run.priority)


def _set_alarm(work: Work, state: RunState) -> None:
    """Have the run moved on when the first of its steps is due."""
    if state.run.status.is_terminal:
        return
    due = [attempt.due_at for attempt in state.attempts.values() if attempt.due_at is not None]
    if due:
        work.enqueue(NewTask(TaskKind.RUN, state.run.uuid, due_at=min(due), priority=state.run.priority))
