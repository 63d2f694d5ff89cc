"""Stores the output params and artifacts of a step's work."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calve.definition import Mark, Node
from calve.definition.model import Param, ParamType
from calve.definition.params import SCALARS, with_outputs
from calve.engine.instances import RunState, Tools, UnitOfWork
from calve.engine.model import HOLDING, Attempt, Json
from calve.engine.params.scope import params_as_stored, params_of
from calve.errors import ActionRefused, Conflict, ParamError, WorkflowMissing
from calve.texts import check_text, text_fault

_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
_NOWHERE = Node(None, Mark(1, 1), "")


def take_artifacts(attempt: Attempt, artifacts: Mapping[str, Any]) -> Attempt:
    """Return an attempt with the artifacts that its work returned.

    Raises:
        ParamError: a text in them has an invalid character.
    """
    _check_text(artifacts, "artifacts")
    return replace(attempt, artifacts={**attempt.artifacts, **artifacts})


def _check_text(value: Any, place: str) -> None:
    if fault := text_fault(value, place):
        raise ParamError(f"The outputs of the step cannot be stored: {fault}")


def take_outputs(work: UnitOfWork, state: RunState, attempt: Attempt, outputs: Mapping[str, Any]) -> Attempt:
    """Return an attempt with the outputs of its work: params that the step or its type declares.

    Raises:
        ParamError: an output is not declared, may not be changed, or contains an invalid character.
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
    return replace(attempt, params=params_as_stored(changed))


def _definition(name: str, value: Any, kind: ParamType | None) -> Param:
    """Return an output as a param; it is a plain value, or a definition as programs for Maestro write it."""
    if kind is ParamType.SECRET:
        raise ParamError(f"Output [{name}] is a secret, but outputs are stored in plain text", param=name)
    if not (isinstance(value, Mapping) and "value" in value and value.keys() <= {"value", "type", "name", "mode"}):
        value = _written(name, value, kind)
    try:
        return _PARAM.validate_python({key: item for key, item in value.items() if key != "name"})
    except ValidationError as error:
        raise ParamError(f"Output [{name}] is invalid: {error.errors()[0]['msg']}", param=name) from None


def _written(name: str, value: Any, kind: ParamType | None = None) -> dict[str, Any]:
    """Return a plain value as a definition in JSON's types, of the given type or of the one that fits."""
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
    raise ParamError(f"Output [{name}] has an unsupported type", param=name)


AGAIN = 20


def put_outputs(tools: Tools, attempt_uuid: str, outputs: Mapping[str, Any], artifacts: Json) -> None:
    """Store outputs of a running attempt.

    Raises:
        WorkflowMissing: the attempt does not exist.
        ActionRefused: the attempt is not running, or artifacts are given for a step that runs other steps.
        ParamError: the step does not declare one of the params.
        RequestInvalid: a text in them has an invalid character.
    """
    check_text({"params": outputs, "artifacts": artifacts})
    known = tools.state.attempt(attempt_uuid)
    if known is None:
        raise WorkflowMissing(f"Attempt {attempt_uuid} does not exist.", attempt=attempt_uuid)
    if artifacts and not known.is_leaf:
        raise ActionRefused(
            f"The step {known.step_id} runs other steps: its artifacts are the engine's own.",
            remedy="Hand over artifacts of the steps inside it.",
        )
    for _ in range(AGAIN):
        work = UnitOfWork(tools, tools.clock())
        state = work.state(known.run_uuid, is_fresh=True)
        attempt = state.attempts[known.step_id]
        if attempt.uuid != attempt_uuid or attempt.status not in HOLDING:
            raise ActionRefused(f"Attempt {attempt_uuid} has ended.", remedy="Hand over outputs while the step runs.")
        attempt = replace(attempt, artifacts={**attempt.artifacts, **artifacts})
        work.set_attempt(state, take_outputs(work, state, attempt, outputs) if outputs else attempt)
        try:
            work.settle(tools.state.commit(work.changes()))
        except Conflict:
            work.drop()
        else:
            return
    raise Conflict(f"Attempt {attempt_uuid} keeps changing.")
