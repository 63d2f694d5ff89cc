"""How an attempt ends: its outputs taken, its edges judged, its failure weighed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calve.definition.document import Mark, Node
from calve.definition.model.params import Param, ParamType
from calve.definition.params import Parameter, with_outputs
from calve.engine.attempts import moved, next_attempt, told
from calve.engine.evaluating import condition_holds, retry_policy
from calve.engine.facts import params_of, stored
from calve.engine.model import Attempt
from calve.engine.outcomes import end_of, reason_of, with_mode
from calve.engine.ports import Outcome, State
from calve.engine.states import Params, RunState
from calve.engine.statuses import StepStatus
from calve.engine.work import Work
from calve.errors import CalveError, ParamError

_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
_NOWHERE = Node(None, Mark(1, 1), "")
_TYPES = {bool: "BOOLEAN", int: "LONG", float: "DOUBLE", str: "STRING"}
_RETRY = "maestro_retry"


def end(work: Work, state: RunState, attempt: Attempt, outcome: Outcome) -> Attempt:
    """Record how the work of an attempt ended; a failure may leave it to be tried again later."""
    step = state.blueprint.steps[attempt.step_id]
    attempt = replace(attempt, artifacts={**attempt.artifacts, **outcome.artifacts})
    attempt = told(attempt, work.now, outcome.message)
    if outcome.outputs:
        try:
            attempt = take_outputs(work, state, attempt, outcome.outputs)
        except CalveError as error:
            attempt = told(attempt, work.now, error.message)
            if outcome.state is State.DONE:
                return finish(work, state, attempt, StepStatus.FATALLY_FAILED)
    try:
        policy = retry_policy(step, state)
        status = end_of(_escalated(outcome.state, attempt), attempt.retries, policy)
    except CalveError as error:
        return finish(work, state, told(attempt, work.now, error.message), StepStatus.INTERNALLY_FAILED)
    if status.is_retryable:
        reason = reason_of(status)
        delay = policy.delay(reason, attempt.retries.get(reason, 0))
        attempt = moved(attempt, status, work.now, due_at=work.now + delay * 1_000)
        return work.set_attempt(state, told(attempt, work.now, f"Tried again in {delay} s."))
    return finish(work, state, attempt, status)


def _escalated(state: State, attempt: Attempt) -> State:
    """Return how the work ended; a failure that the work itself calls hopeless is fatal."""
    said = attempt.artifacts.get(_RETRY)
    is_hopeless = isinstance(said, Mapping) and said.get("retryable") is False
    return State.FATAL_ERROR if is_hopeless and state in {State.USER_ERROR, State.PLATFORM_ERROR} else state


def finish(
    work: Work, state: RunState, attempt: Attempt, status: StepStatus, *, is_mode_honoured: bool = True
) -> Attempt:
    """End an attempt for good, and judge which steps may follow."""
    step = state.blueprint.steps[attempt.step_id]
    if is_mode_honoured:
        status = with_mode(status, step.failure_mode)
    ended = work.set_attempt(state, moved(attempt, status, work.now))
    if not status.is_complete:
        return ended
    edges = dict.fromkeys(step.transition.successors, False)
    if status is not StepStatus.UNSATISFIED:
        for target, condition in step.transition.successors.items():
            try:
                edges[target] = condition_holds(work, state, ended, condition)
            except CalveError as error:
                ended = told(ended, work.now, f"The condition of {target} gave no answer: {error.message}")
                if status is not StepStatus.SKIPPED:  # nothing was run, so nothing can be missing for good
                    failed = moved(ended, StepStatus.INTERNALLY_FAILED, work.now)
                    return work.set_attempt(state, failed)
    return work.set_attempt(state, replace(ended, edges=edges))


def retry(work: Work, state: RunState, attempt: Attempt) -> Attempt:
    """Return the next attempt of a step whose last one failed, and whose time has come."""
    reason = reason_of(attempt.status)
    retries = {**attempt.retries, reason.value: attempt.retries.get(reason, 0) + 1}
    return work.set_attempt(state, next_attempt(work, state, attempt, retries))


def take_outputs(work: Work, state: RunState, attempt: Attempt, outputs: Mapping[str, Any]) -> Attempt:
    """Return an attempt with what its work gave: params that the step or its type declares.

    Raises:
        ParamError: neither declares one of them, or it may not be changed.
    """
    step = state.blueprint.steps[attempt.step_id]
    params = params_of(state, attempt)
    typical = work.tools.vocabulary.types.outputs(_NOWHERE.made(step.as_json()), kind=step.kind)
    definitions = {name: _definition(name, value, params) for name, value in outputs.items()}
    given = {
        name: output
        for name, output in definitions.items()
        if name not in params and (typical.is_open or name in typical.params)
    }
    own = {name: output for name, output in definitions.items() if name not in given}
    changed = with_outputs(params, own, evaluated_time=work.now)
    for name, output in given.items():
        changed[name] = Parameter(name, output, _plain(output), work.now)
    state.step_params[attempt.uuid] = changed
    return replace(attempt, params=stored(changed))


def _definition(name: str, value: Any, params: Params) -> Param:
    """Return what a step gave as a param: a plain value, or a definition as Maestro's programs write it."""
    if name in params and params[name].type is ParamType.SECRET:
        raise ParamError(f"Output [{name}] cannot be taken: it would be stored in clear", param=name)
    if not (isinstance(value, Mapping) and "value" in value and value.keys() <= {"value", "type", "name", "mode"}):
        value = {"value": value, "type": params[name].type.value if name in params else _type_name(name, value)}
    try:
        return _PARAM.validate_python({key: item for key, item in value.items() if key != "name"})
    except ValidationError as error:
        raise ParamError(f"Output [{name}] cannot be taken: {error.errors()[0]['msg']}", param=name) from None


def _type_name(name: str, value: Any) -> str:
    match value:
        case list():
            kinds = {_TYPES.get(type(item)) for item in value} or {"STRING"}
            if len(kinds) == 1 and None not in kinds:
                return f"{kinds.pop()}_ARRAY"
        case dict() if all(isinstance(item, str) for item in value.values()):
            return "STRING_MAP"
        case _ if type(value) in _TYPES:
            return _TYPES[type(value)]
        case _:
            pass
    raise ParamError(f"Output [{name}] is of a type that no param has", param=name)


def _plain(output: Param) -> Any:
    return getattr(output, "value", None)
