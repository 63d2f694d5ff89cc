"""The signals of a step: those that it waits for, and those that it sends when it has succeeded."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid5

from calve.definition.model import VALID_THROUGH, Operator, Params as Definitions, SignalDependency, Step, StringParam
from calve.engine.attempts.lifecycle import with_status
from calve.engine.instances import RunState, UnitOfWork
from calve.engine.model import (
    SOURCE,
    Announcement,
    Attempt,
    Json,
    ParamMatch,
    Signal,
    SignalUse,
    StepStatus,
    UseKind,
    check_name,
    check_value,
)
from calve.engine.params import evaluate_ahead, evaluate_beside, party_of, place_of
from calve.errors import ParamError

PENDING = "PENDING"
MATCHED = "MATCHED"
SKIPPED = "SKIPPED"
SEEN = "seen"
"""The number of the newest signal that a dependency was compared with."""
_NEVER = -1


def await_signals(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> Attempt:
    """Return the attempt waiting for its signals, or ready to continue because all of them have matched.

    Raises:
        ParamError: a value of a dependency is missing or invalid, or the run may not wait for its signal.
        ExpressionError: an expression cannot be evaluated.
        RequestInvalid: a name or a value is not valid for a signal.
    """
    before = attempt.dependencies or tuple(
        _evaluated(work, state, step, attempt, number) for number in range(len(step.signal_dependencies))
    )
    pending = [each["name"] for each in before if each["status"] == PENDING]
    heads = work.tools.state.signal_heads(pending) if pending else {}
    dependencies = tuple(_looked(work, state, attempt, each, heads) for each in before)
    if attempt.status is not StepStatus.WAITING_FOR_SIGNALS:
        attempt = with_status(attempt, StepStatus.WAITING_FOR_SIGNALS, work.now)
    elif dependencies == before:
        return attempt
    if all(each["status"] != PENDING for each in dependencies):
        return with_status(attempt, StepStatus.EVALUATING_PARAMS, work.now, dependencies=dependencies)
    return work.set_attempt(state, replace(attempt, dependencies=dependencies))


def _evaluated(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt, number: int) -> Json:
    """Return a pending dependency with its name and params evaluated."""
    dependency = step.signal_dependencies[number]
    place = f"signal_dependencies[{number}]"
    definitions: Definitions = {f"{place}.name": StringParam(value=dependency.name)}
    definitions |= {f"{place}.{name}": match.param for name, match in dependency.match_params.items()}
    values = {name: param.result for name, param in evaluate_ahead(work, state, step, attempt, definitions).items()}
    name = values[f"{place}.name"]
    check_name(name)
    _check_right(work, state, dependency, name)
    return {"name": name, "status": PENDING, "match_params": _matches(dependency, values, place), SEEN: _NEVER}


def _check_right(work: UnitOfWork, state: RunState, dependency: SignalDependency, name: str) -> None:
    """Refuse a signal that this run may not read; the author of the definition could read those that it names.

    Raises:
        ParamError: the run may not wait for the signal.
    """
    run = state.run
    if name.startswith(VALID_THROUGH):
        is_allowed = work.tools.may_read_table(run.owner_workflow, name.removeprefix(VALID_THROUGH))
    else:
        is_allowed = name == dependency.name or run.initiator.may_name(name)
    if not is_allowed:
        raise ParamError(f"This run may not wait for the signal {name}: it is outside the namespaces of the run")


def _matches(dependency: SignalDependency, values: Mapping[str, Any], place: str) -> Json:
    found = {}
    for name, match in dependency.match_params.items():
        check_value(name, values[f"{place}.{name}"])
        found[name] = {"value": values[f"{place}.{name}"], "operator": match.operator.value}
    return found


def _looked(work: UnitOfWork, state: RunState, attempt: Attempt, dependency: Json, heads: Mapping[str, int]) -> Json:
    """Compare a dependency with its signals if newer ones have been announced, and return it."""
    name = dependency["name"]
    if dependency["status"] != PENDING or heads[name] <= dependency[SEEN]:
        return dependency
    wanted = [
        ParamMatch(param, match["value"], Operator(match["operator"]))
        for param, match in dependency["match_params"].items()
    ]
    found = work.tools.state.match_signal(name, wanted)
    if found is None:
        return {**dependency, SEEN: heads[name]}
    work.note_release(SignalUse(name, found.seq, UseKind.RELEASED, party_of(state, attempt)))
    return {**dependency, "status": MATCHED, **_about(found)}


def _about(signal: Signal) -> dict[str, Any]:
    source = {} if signal.source is None else {"signal_source": dict(signal.source)}
    return {"signal_id": signal.seq, "params": dict(signal.params), **source}


DYNAMIC = "maestro_dynamic_output"
"""The artifact in which the work of a step lists signals to send besides those of the definition."""
_NAMES = UUID("0d3f3f0a-4b1c-5b8e-8e5c-54d4e5b1f2aa")
_Said = tuple[str, dict[str, Any]]


def send_signals(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> None:
    """Announce the signals of a step that has succeeded, with the step as their source.

    If a step of an instance runs again, it does not send the same signal twice.

    Raises:
        ParamError: a value is missing or invalid, or the run may not announce the signal.
        ExpressionError: an expression cannot be evaluated.
        RequestInvalid: a name or a value is not valid for a signal.
    """
    said = [*_defined(work, state, step, attempt), *_dynamic(attempt.artifacts)]
    if not said:
        return
    party, place = party_of(state, attempt), place_of(state, attempt).work
    made = []
    for name, params in said:
        # The same step, name and params give the same request id, which the store accepts once.
        request = uuid5(_NAMES, json.dumps([place, name, params], sort_keys=True, default=str))
        payload = {SOURCE: party.as_source()}
        made.append(Announcement(name, params, payload, str(request), work.now, party))
    for each in made:
        work.send(each)


def _defined(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> Iterator[_Said]:
    """Yield the signals of the definition."""
    for number, output in enumerate(step.signal_outputs):
        place = f"signal_outputs[{number}]"
        definitions: Definitions = {f"{place}.name": StringParam(value=output.name)}
        definitions |= {f"{place}.{name}": param for name, param in output.params.items()}
        found = evaluate_beside(work, state, attempt, definitions)
        name: str = found[f"{place}.name"].result
        if name != output.name and not state.run.initiator.may_name(name):
            raise ParamError(f"This run may not announce the signal {name}: it is outside the namespaces of the run")
        yield name, {param: found[f"{place}.{param}"].result for param in output.params}


def dynamic_signal_names(artifacts: Json) -> list[str]:
    """Return the names of the signals that artifacts make a step send.

    Raises:
        ParamError: the artifact is malformed.
    """
    return [name for name, _ in _dynamic(artifacts)]


def _dynamic(artifacts: Json) -> Iterator[_Said]:
    """Yield the signals that the work listed: maps of ``name`` and params, as plain values or as MAP params."""
    artifact = artifacts.get(DYNAMIC, {})
    outputs = artifact.get("signal_outputs", ()) if isinstance(artifact, Mapping) else None
    if not isinstance(outputs, list | tuple):
        raise ParamError(f"The artifact {DYNAMIC} holds no list of signal_outputs")
    for output in outputs:
        values = {key: _plain(value) for key, value in _plain(output).items()} if isinstance(output, Mapping) else {}
        if not isinstance(values.get("name"), str):
            raise ParamError(f"A signal in the artifact {DYNAMIC} has no name")
        yield values.pop("name"), values


def _plain(value: Any) -> Any:
    """Return a value without the param around it."""
    return value["value"] if isinstance(value, Mapping) and "value" in value else value
