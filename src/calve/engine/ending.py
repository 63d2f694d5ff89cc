"""How an attempt ends: its outputs taken, its edges judged, its failure weighed."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calve.definition.document import Mark, Node
from calve.definition.model.params import Param, ParamType
from calve.definition.params import SCALARS, with_outputs
from calve.engine.attempts import moved, next_attempt, told, told_before
from calve.engine.deciding import LAST
from calve.engine.evaluating import condition_holds, retry_policy
from calve.engine.facts import params_of, stored
from calve.engine.model import Attempt
from calve.engine.outcomes import end_of, reason_of, with_mode
from calve.engine.ports import Outcome, State
from calve.engine.sending import send_signals
from calve.engine.states import RunState
from calve.engine.statuses import StepStatus
from calve.engine.work import Work
from calve.errors import OF_THE_WORKFLOW, ParamError
from calve.texts import text_fault

_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
_NOWHERE = Node(None, Mark(1, 1), "")
_RETRY = "maestro_retry"
_AS_WISHED = frozenset({State.DONE, State.STOPPED})


def end(work: Work, state: RunState, attempt: Attempt, outcome: Outcome) -> Attempt:
    """Record how the work of an attempt ended; a failure may leave it to be tried again later."""
    step = state.blueprint.steps[attempt.step_id]
    attempt = told(attempt, work.now, outcome.message, "INFO" if outcome.state in _AS_WISHED else "ERROR")
    if outcome.outputs or outcome.artifacts:
        try:
            attempt = take_artifacts(attempt, outcome.artifacts)
            attempt = take_outputs(work, state, attempt, outcome.outputs) if outcome.outputs else attempt
        except OF_THE_WORKFLOW as error:
            attempt = told(attempt, work.now, error.message, "ERROR")
            if outcome.state is State.DONE:
                return finish(work, state, attempt, StepStatus.FATALLY_FAILED)
    try:
        policy = retry_policy(step, state)
        status = end_of(_escalated(outcome.state, attempt), attempt.retries, policy)
    except OF_THE_WORKFLOW as error:
        return finish(work, state, told(attempt, work.now, error.message, "ERROR"), StepStatus.INTERNALLY_FAILED)
    if status.is_retryable:
        reason = reason_of(status)
        delay = max(policy.delay(reason, attempt.retries.get(reason, 0)), ceil(outcome.retry_after))
        attempt = moved(attempt, status, work.now, due_at=work.now + delay * 1_000)
        return work.set_attempt(state, told_before(attempt, work.now, f"Tried again in {delay} s."))
    if outcome.is_last:
        attempt = replace(attempt, artifacts={**attempt.artifacts, LAST: outcome.message})
    return finish(work, state, attempt, status)


def _escalated(state: State, attempt: Attempt) -> State:
    """Return how the work ended; a failure that the work itself calls hopeless is fatal."""
    said = attempt.artifacts.get(_RETRY)
    is_hopeless = isinstance(said, Mapping) and said.get("retryable") is False
    return State.FATAL_ERROR if is_hopeless and state in {State.USER_ERROR, State.PLATFORM_ERROR} else state


def finish(
    work: Work,
    state: RunState,
    attempt: Attempt,
    status: StepStatus,
    *,
    is_mode_honoured: bool = True,
) -> Attempt:
    """End an attempt for good, and judge which steps may follow: none of them, where its work said so."""
    step = state.blueprint.steps[attempt.step_id]
    if is_mode_honoured:
        status = with_mode(status, step.failure_mode)
    ended = work.set_attempt(state, moved(attempt, status, work.now))
    if not status.is_complete:
        return ended
    edges = dict.fromkeys(step.transition.successors, False)
    if status is not StepStatus.UNSATISFIED and LAST not in attempt.artifacts:
        for target, condition in step.transition.successors.items():
            try:
                edges[target] = condition_holds(work, state, ended, condition)
            except OF_THE_WORKFLOW as error:
                message = f"The condition of {target} gave no answer: {error.message}"
                ended = told(ended, work.now, message, "ERROR")
                if status is not StepStatus.SKIPPED:  # nothing was run, so nothing can be missing for good
                    failed = moved(ended, StepStatus.INTERNALLY_FAILED, work.now)
                    return work.set_attempt(state, failed)
    if status is StepStatus.SUCCEEDED:
        try:
            send_signals(work, state, step, ended)
        except OF_THE_WORKFLOW as error:
            message = f"The signals cannot be sent: {error.message} {error.remedy}".rstrip()
            ended = told(ended, work.now, message, "ERROR")
            return work.set_attempt(state, moved(ended, StepStatus.INTERNALLY_FAILED, work.now))
    return work.set_attempt(state, replace(ended, edges=edges))


def retry(work: Work, state: RunState, attempt: Attempt) -> Attempt:
    """Return the next attempt of a step whose last one failed, and whose time has come."""
    reason = reason_of(attempt.status)
    retries = {**attempt.retries, reason.value: attempt.retries.get(reason, 0) + 1}
    return work.set_attempt(state, next_attempt(work, state, attempt, retries))


def take_artifacts(attempt: Attempt, artifacts: Mapping[str, Any]) -> Attempt:
    """Return an attempt with what its work said about itself.

    Raises:
        ParamError: a text in it is not text.
    """
    _check_text(artifacts, "artifacts")
    return replace(attempt, artifacts={**attempt.artifacts, **artifacts})


def _check_text(value: Any, place: str) -> None:
    if fault := text_fault(value, place):
        raise ParamError(f"What the step gave back cannot be kept: {fault}")


def take_outputs(work: Work, state: RunState, attempt: Attempt, outputs: Mapping[str, Any]) -> Attempt:
    """Return an attempt with what its work gave: params that the step or its type declares.

    Raises:
        ParamError: neither declares one of them, it may not be changed, or a text in it is not text.
    """
    _check_text(outputs, "outputs")
    step = state.blueprint.steps[attempt.step_id]
    params = params_of(state, attempt)
    typical = work.tools.vocabulary.types.outputs(_NOWHERE.made(step.as_json()), kind=step.kind)
    kinds = {name: output.type for name, output in typical.params.items()}
    kinds |= {name: param.type for name, param in params.items()}
    definitions = {name: _definition(name, value, kinds.get(name)) for name, value in outputs.items()}
    known = definitions if typical.is_open else typical.params
    changed = with_outputs(params, definitions, evaluated_time=work.now, typical=known)
    state.step_params[attempt.uuid] = changed
    return replace(attempt, params=stored(changed))


def _definition(name: str, value: Any, kind: ParamType | None) -> Param:
    """Return what a step gave as a param: a plain value, or a definition as Maestro's programs write it."""
    if kind is ParamType.SECRET:
        raise ParamError(f"Output [{name}] cannot be taken: it would be stored in clear", param=name)
    if not (isinstance(value, Mapping) and "value" in value and value.keys() <= {"value", "type", "name", "mode"}):
        value = _written(name, value, kind)
    try:
        return _PARAM.validate_python({key: item for key, item in value.items() if key != "name"})
    except ValidationError as error:
        raise ParamError(f"Output [{name}] cannot be taken: {error.errors()[0]['msg']}", param=name) from None


def _written(name: str, value: Any, kind: ParamType | None = None) -> dict[str, Any]:
    """Return a plain value as a definition in JSON's types, of a kind or of the one that fits."""
    kind = kind or _kind_of(name, value)
    if kind is ParamType.MAP and isinstance(value, Mapping):
        value = {member: _written(member, inner) for member, inner in value.items()}
    return {"type": kind, "value": value}


def _kind_of(name: str, value: Any) -> ParamType:
    match value:
        case list():
            kinds = {SCALARS.get(type(item)) for item in value} or {ParamType.STRING}
            if len(kinds) == 1 and None not in kinds:
                return ParamType(f"{kinds.pop()}_ARRAY")
        case dict():
            return ParamType.STRING_MAP if all(isinstance(item, str) for item in value.values()) else ParamType.MAP
        case _ if type(value) in SCALARS:
            return SCALARS[type(value)]
        case _:
            pass
    raise ParamError(f"Output [{name}] is of a type that no param has", param=name)
