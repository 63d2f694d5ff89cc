"""What a signal trigger makes of signals that came together: its params, its condition, its fire key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from calve.definition.model.params import BooleanParam, Params, StringParam
from calve.definition.model.triggers import SignalTrigger
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
from calve.engine import Initiator
from calve.engine.signals import Values
from calve.errors import ParamError
from calve.triggers.model import Fire, Trigger
from calve.triggers.signals.joining import Arrived

_CONDITION = "condition"
_DEDUP = "dedup_expr"


@dataclass(frozen=True, slots=True)
class Facts:
    """What expressions of a trigger can ask: the signals, and nothing of an instance, as there is none yet."""

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
        """Return an id that nothing else has, the same when these signals are looked at again."""
        return self.new_id()


def judge(
    trigger: Trigger, definition: SignalTrigger, group: Mapping[str, Arrived], *, now: int, environment: str
) -> Fire | None:
    """Return the start that signals bring; None if the condition does not hold.

    Raises:
        ParamError: a param or the condition has no value, or none that fits.
        ExpressionError: an expression gave no value.
    """
    ids = {name: arrived.seq for name, arrived in group.items()}
    key = ",".join(f"{name}:{seq}" for name, seq in sorted(ids.items()))
    signals = {name: dict(arrived.params) for name, arrived in group.items()}
    numbers = count(1)
    view = InstanceView(trigger.workflow_id, InitiatorType.SIGNAL, signal_params={})
    facts = Facts(
        view,
        signals,
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


def _values(trigger: Trigger, params: Params, facts: Facts, now: int) -> dict[str, Any]:
    language = Language(functions=InstanceFunctions(facts), clock=lambda: now)
    found = evaluate_workflow_params(params, workflow_id=trigger.workflow_id, language=language)
    values = {name: param.result for name, param in found.items()}
    if holds_secret(values):
        raise ParamError("The params of a signal trigger cannot hold a secret.")
    return values
