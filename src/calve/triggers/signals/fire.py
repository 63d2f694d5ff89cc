"""The start that joined signals lead to: params, condition and fire key of a signal trigger."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from calve.definition.model import BooleanParam, Params, SignalTrigger, StringParam
from calve.definition.params import (
    ForeachResults,
    InitiatorType,
    InstanceFunctions,
    InstanceView,
    Language,
    Parameter,
    StepView,
    UpstreamStep,
    evaluate_workflow_params,
    holds_secret,
)
from calve.engine import Initiator, Values
from calve.errors import ParamError
from calve.triggers.model import Fire, Trigger
from calve.triggers.signals.joins import Arrived

_CONDITION = "condition"
_DEDUP = "dedup_expr"


@dataclass(frozen=True, slots=True)
class TriggerInstance:
    """What expressions of a trigger can use: the signals, but no instance, since there is none yet."""

    instance: InstanceView
    signals: Mapping[str, Values]
    new_id: Callable[[], str]
    environment: str
    own_step: StepView | None = None

    def step(self, step_id: str) -> UpstreamStep | None:  # noqa: ARG002 - there is none
        """Return nothing."""
        return None

    def signal(self, name: str) -> Values | None:
        """Return the params of a signal."""
        return self.signals.get(name)

    def foreach_results(self, foreach_id: str, step_id: str, param: str) -> ForeachResults | None:  # noqa: ARG002 - there is none
        """Return nothing."""
        return None

    def subworkflow_param(self, subworkflow_id: str, step_id: str, param: str) -> Parameter | None:  # noqa: ARG002 - there is none
        """Return nothing."""
        return None

    def next_unique_id(self) -> int | str:
        """Return a unique id, the same if the signals are evaluated again."""
        return self.new_id()


def fire_for(
    trigger: Trigger, definition: SignalTrigger, group: Mapping[str, Arrived], *, now: int, environment: str
) -> Fire | None:
    """Return the start that signals lead to; None if the condition is false.

    Raises:
        ParamError: a param or the condition has no value, or one of the wrong type.
        ExpressionError: an expression failed.
    """
    ids = {name: arrived.seq for name, arrived in group.items()}
    key = ",".join(f"{name}:{seq}" for name, seq in sorted(ids.items()))
    signals = {name: dict(arrived.params) for name, arrived in group.items()}
    numbers = count(1)
    view = InstanceView(trigger.workflow_id, InitiatorType.SIGNAL, signal_params={})
    facts = TriggerInstance(
        view,
        signals,
        # Derived, not random: a repeated evaluation must give the same params.
        lambda: str(uuid5(NAMESPACE_OID, f"{trigger.request_id(key)}:{next(numbers)}")),
        environment,
    )
    params = _values(trigger, definition.params, facts, now)
    facts = replace(facts, instance=replace(view, signal_params=params))
    if definition.condition:
        condition: Params = {_CONDITION: BooleanParam(expression=definition.condition)}
        if not _values(trigger, condition, facts, now)[_CONDITION]:
            return None
    if definition.dedup_expr:
        dedup: Params = {_DEDUP: StringParam(expression=definition.dedup_expr)}
        key = f"dedup:{_values(trigger, dedup, facts, now)[_DEDUP]}"
    told = {
        "trigger_id": trigger.trigger_id,
        "trigger_uuid": trigger.uuid,
        "signal_ids": ids,
        "signals": signals,
        "params": params,
    }
    return Fire(key, Initiator(InitiatorType.SIGNAL, trigger=told))


def _values(trigger: Trigger, params: Params, facts: TriggerInstance, now: int) -> dict[str, Any]:
    language = Language(functions=InstanceFunctions(facts), clock=lambda: now)
    found = evaluate_workflow_params(params, workflow_id=trigger.workflow_id, language=language)
    values = {name: param.result for name, param in found.items()}
    if holds_secret(values):
        raise ParamError("The params of a signal trigger cannot hold a secret.")
    return values
