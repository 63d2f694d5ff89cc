"""The signals that a step sends when it has succeeded."""

import json
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID, uuid5

from calve.definition.model.params import Params as Definitions
from calve.definition.model.params import StringParam
from calve.definition.model.steps import Step
from calve.engine.evaluating import evaluate_beside
from calve.engine.facts import party_of, place_of
from calve.engine.model import Attempt, Json
from calve.engine.signals import SOURCE, Announcement
from calve.engine.states import RunState
from calve.engine.work import Work
from calve.errors import ParamError

DYNAMIC = "maestro_dynamic_output"
"""The artifact in which work says which signals it sends, beyond those of the definition."""
_NAMES = UUID("0d3f3f0a-4b1c-5b8e-8e5c-54d4e5b1f2aa")

_Said = tuple[str, dict[str, Any]]


def send_signals(work: Work, state: RunState, step: Step, attempt: Attempt) -> None:
    """Announce the signals of a step that has succeeded, with the step as their source.

    A step of an instance says the same thing once, however often it is run.

    Raises:
        ParamError: one of them has no value, or none that fits.
        ExpressionError: an expression gave no value.
        RequestInvalid: a name or a value can be none of a signal.
    """
    said = [*_defined(work, state, step, attempt), *_dynamic(attempt.artifacts)]
    if not said:
        return
    party, place = party_of(state, attempt), place_of(state, attempt).work
    made = []
    for name, params in said:
        request = uuid5(_NAMES, json.dumps([place, name, params], sort_keys=True, default=str))
        payload = {SOURCE: party.as_source()}
        made.append(Announcement(name, params, payload, str(request), work.now, party))
    for each in made:
        work.send(each)


def _defined(work: Work, state: RunState, step: Step, attempt: Attempt) -> Iterator[_Said]:
    """Yield the signals of the definition."""
    for number, output in enumerate(step.signal_outputs):
        place = f"signal_outputs[{number}]"
        definitions: Definitions = {f"{place}.name": StringParam(value=output.name)}
        definitions |= {f"{place}.{name}": param for name, param in output.params.items()}
        found = evaluate_beside(work, state, attempt, definitions)
        name: str = found[f"{place}.name"].result
        if name != output.name and not state.run.initiator.may_name(name):
            raise ParamError(f"This run may not announce the signal {name}: it is not of its namespaces")
        yield name, {param: found[f"{place}.{param}"].result for param in output.params}


def named_in(artifacts: Json) -> list[str]:
    """Return the names of the signals that artifacts make a step send.

    Raises:
        ParamError: they cannot be told.
    """
    return [name for name, _ in _dynamic(artifacts)]


def _dynamic(artifacts: Json) -> Iterator[_Said]:
    """Yield the signals that the work itself has named: a map of ``name`` and params, plain or as a MAP param."""
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
