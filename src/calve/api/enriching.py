"""What Maestro tells of a version besides its definition: its params as they will be, and when it starts next."""

from collections.abc import Mapping
from typing import Any

from calve.api.callers import Caller
from calve.api.models import DefinitionExtras
from calve.definition import Definition
from calve.definition.params import Parameter
from calve.definition.resolving import resolve
from calve.engine.model import VersionRecord
from calve.engine.views.instances import flat
from calve.triggers import Kind


def extras_of(call: Caller, version: VersionRecord) -> DefinitionExtras:
    """Return the params that can be told before a run, those that are given by default too, and the next starts."""
    tools = call.engine.tools
    definition = Definition.model_validate(version.definition)
    found = resolve(definition, tools.vocabulary, run={}, clock=tools.clock)
    times = _times(call, version)
    return DefinitionExtras(
        workflow_params=_params(found.workflow),
        step_params={step_id: _params(params) for step_id, params in found.steps.items()},
        next_execution_time=times[0] if times else None,
        next_execution_times=times or None,
    )


def _params(params: Mapping[str, Parameter]) -> dict[str, Any]:
    return {name: flat(param.as_json()) for name, param in params.items()}


def _times(call: Caller, version: VersionRecord) -> list[int]:
    state = call.services.triggers
    if state is None:
        return []
    triggers = state.triggers(workflow_id=version.workflow_id, kind=Kind.TIME)
    begun = (one for one in triggers if one.is_begun and one.version_id == version.version_id)
    return sorted(one.due_at for one in begun if one.due_at is not None)
