"""How an attempt starts: breakpoints, signals, params, permits."""

from calve.definition.model import DEFAULT_CONCURRENCY, Step
from calve.engine.attempts.completion import finish_attempt
from calve.engine.attempts.lifecycle import with_message, with_status
from calve.engine.attempts.signals import await_signals
from calve.engine.instances import RunState, UnitOfWork, needs_worker
from calve.engine.model import Admission, Attempt, NewTask, Permit, StepStatus, TaskKind
from calve.engine.params import evaluate_step, params_as_stored, timeout_of
from calve.errors import OF_THE_WORKFLOW

_BEFORE_SIGNALS = frozenset({StepStatus.INITIALIZED, StepStatus.WAITING_FOR_SIGNALS})


def start_attempt(work: UnitOfWork, state: RunState, attempt: Attempt) -> Attempt:
    """Advance a new attempt until it runs, waits for something, or has ended."""
    step = state.blueprint.steps[attempt.step_id]
    if attempt.status is StepStatus.CREATED:
        attempt = with_status(attempt, StepStatus.INITIALIZED, work.now)
        if _pauses(work, state, attempt):
            return work.set_attempt(state, with_status(attempt, StepStatus.PAUSED, work.now))
    if step.signal_dependencies and attempt.status in _BEFORE_SIGNALS:
        attempt = _held(work, state, step, attempt)
    if attempt.status in {StepStatus.INITIALIZED, StepStatus.EVALUATING_PARAMS}:
        return _evaluated(work, state, step, attempt)
    if attempt.status is not StepStatus.WAITING_FOR_PERMITS:
        return attempt
    return _started(work, state, step, attempt)


def _held(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> Attempt:
    """Hold an attempt until the signals that it waits for have been announced."""
    try:
        return await_signals(work, state, step, attempt)
    except OF_THE_WORKFLOW as error:
        why = f"The dependencies cannot be evaluated: {error.message} {error.remedy}".rstrip()
        return finish_attempt(work, state, with_message(attempt, work.now, why), StepStatus.INTERNALLY_FAILED)


def _pauses(work: UnitOfWork, state: RunState, attempt: Attempt) -> bool:
    run = state.outermost.run
    return any(point.is_for(run, attempt) for point in work.breakpoints(run.workflow_id))


def _evaluated(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> Attempt:
    attempt = with_status(attempt, StepStatus.EVALUATING_PARAMS, work.now)
    try:
        params = evaluate_step(work, state, step, attempt)
    except OF_THE_WORKFLOW as error:
        failed = with_message(
            attempt, work.now, f"The params cannot be evaluated: {error.message} {error.remedy}".rstrip()
        )
        return finish_attempt(work, state, failed, StepStatus.INTERNALLY_FAILED)
    state.step_params[attempt.uuid] = params
    attempt = with_status(attempt, StepStatus.WAITING_FOR_PERMITS, work.now, params=params_as_stored(params))
    return _started(work, state, step, attempt)


def _started(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> Attempt:
    """Start an attempt, now or when its permits are free."""
    try:
        started = _running(work, state, step, attempt)
    except OF_THE_WORKFLOW as error:
        return finish_attempt(work, state, with_message(attempt, work.now, error.message), StepStatus.INTERNALLY_FAILED)
    permits = _permits(state, step, attempt)
    if not permits:
        return work.set_attempt(state, started)
    # The engine itself continues steps without a runtime, as part of the run's task.
    about = attempt.uuid if needs_worker(step) else None
    kind = TaskKind.STEP if about else TaskKind.RUN
    task = NewTask(kind, state.run.uuid, about, priority=state.run.priority)
    work.admit(state, Admission(attempt, started, permits, task, state.run.priority))
    return attempt


def _running(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> Attempt:
    limit = timeout_of(step.timeout, state)
    attempt = with_status(attempt, StepStatus.STARTING, work.now)
    return with_status(attempt, StepStatus.RUNNING, work.now, timeout_at=None if limit is None else work.now + limit)


def _permits(state: RunState, step: Step, attempt: Attempt) -> tuple[Permit, ...]:
    """Return the permits that an attempt needs; a step without a worker needs only those of its tags."""
    run = state.run
    of_tags = tuple(Permit(f"tag:{tag}", None) for tag in attempt.tags)
    if not needs_worker(step):
        return of_tags
    limit = run.properties.get("step_concurrency") or DEFAULT_CONCURRENCY
    of_workflow = Permit(f"workflow:{run.owner_workflow}", limit)
    tree = run.properties.get("instance_step_concurrency")
    of_tree = () if tree is None else (Permit(f"tree:{run.root_uuid}", tree),)
    return (of_workflow, *of_tree, *of_tags)
