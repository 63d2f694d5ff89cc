"""How a step waits for signals: its dependencies evaluated, and matched with what was announced."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calve.definition.model.params import Params as Definitions
from calve.definition.model.params import StringParam
from calve.definition.model.steps import Step
from calve.definition.model.triggers import VALID_THROUGH, Operator, SignalDependency
from calve.engine.attempts import moved
from calve.engine.evaluating import evaluate_ahead
from calve.engine.facts import party_of
from calve.engine.model import Attempt, Json
from calve.engine.signals import Signal, SignalUse, UseKind, Wanted, check_name, check_value
from calve.engine.states import RunState
from calve.engine.statuses import StepStatus
from calve.engine.work import Work
from calve.errors import ParamError

PENDING = "PENDING"
MATCHED = "MATCHED"
SKIPPED = "SKIPPED"
SEEN = "seen"
"""The last signal of its name that a dependency has been compared with."""
_NEVER = -1


def await_signals(work: Work, state: RunState, step: Step, attempt: Attempt) -> Attempt:
    """Return an attempt that waits for signals, or may go on because all of them have come.

    Raises:
        ParamError: a dependency has no value, or none that fits.
        ExpressionError: an expression gave no value.
        RequestInvalid: a name or a value can be none of a signal.
    """
    before = attempt.dependencies or tuple(
        _evaluated(work, state, step, attempt, number) for number in range(len(step.signal_dependencies))
    )
    pending = [each["name"] for each in before if each["status"] == PENDING]
    heads = work.tools.state.signal_heads(pending) if pending else {}
    dependencies = tuple(_looked(work, state, attempt, each, heads) for each in before)
    if attempt.status is not StepStatus.WAITING_FOR_SIGNALS:
        attempt = moved(attempt, StepStatus.WAITING_FOR_SIGNALS, work.now)
    elif dependencies == before:
        return attempt
    if all(each["status"] != PENDING for each in dependencies):
        return moved(attempt, StepStatus.EVALUATING_PARAMS, work.now, dependencies=dependencies)
    return work.set_attempt(state, replace(attempt, dependencies=dependencies))


def _evaluated(work: Work, state: RunState, step: Step, attempt: Attempt, number: int) -> Json:
    """Return a dependency that nothing has been compared with yet."""
    dependency = step.signal_dependencies[number]
    place = f"signal_dependencies[{number}]"
    definitions: Definitions = {f"{place}.name": StringParam(value=dependency.name)}
    definitions |= {f"{place}.{name}": match.param for name, match in dependency.match_params.items()}
    values = {name: param.result for name, param in evaluate_ahead(work, state, step, attempt, definitions).items()}
    name = values[f"{place}.name"]
    check_name(name)
    _check_right(work, state, dependency, name)
    return {"name": name, "status": PENDING, "match_params": _matches(dependency, values, place), SEEN: _NEVER}


def _check_right(work: Work, state: RunState, dependency: SignalDependency, name: str) -> None:
    """Refuse a signal that is not for this run; one that the definition writes out, its author could read.

    Raises:
        ParamError: it is not.
    """
    run = state.run
    if name.startswith(VALID_THROUGH):
        is_allowed = work.tools.may_read_table(run.owner_workflow, name.removeprefix(VALID_THROUGH))
    else:
        is_allowed = name == dependency.name or run.initiator.may_name(name)
    if not is_allowed:
        raise ParamError(f"This run may not wait for the signal {name}: it is not of its namespaces")


def _matches(dependency: SignalDependency, values: Mapping[str, Any], place: str) -> Json:
    found = {}
    for name, match in dependency.match_params.items():
        check_value(name, values[f"{place}.{name}"])
        found[name] = {"value": values[f"{place}.{name}"], "operator": match.operator.value}
    return found


def _looked(work: Work, state: RunState, attempt: Attempt, dependency: Json, heads: Mapping[str, int]) -> Json:
    """Return a dependency after a look at what has come since the last one."""
    name = dependency["name"]
    if dependency["status"] != PENDING or heads[name] <= dependency[SEEN]:
        return dependency
    wanted = [
        Wanted(param, match["value"], Operator(match["operator"]))
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
