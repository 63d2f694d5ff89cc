"""The facts that expressions can read in a dry run, and the calls that need a real one."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from calve.definition.model import Definition, MapParam, Param, Step, TypedStep
from calve.definition.params import InstanceFacts, InstanceView, StepView
from calve.definition.schedules import zone_of
from calve.errors import DefinitionInvalid
from calve.expressions import ParamCall, calls, complete, parse

_OF_THE_RUN = frozenset(
    {
        "getFromForeach",
        "getFromSubworkflow",
        "getFromSignal",
        "getFromSignalOrDefault",
        "getFromSignalDependency",
    }
)
_NO_ID = "00000000-0000-0000-0000-000000000000"


def asks_the_run(param: Param, is_known: Callable[[str], bool]) -> bool:
    """Tell whether a param needs what is known only at run time: another step, a signal, or an unknown name."""
    if isinstance(param, MapParam) and param.value:
        return any(asks_the_run(member, is_known) for member in param.value.values())
    if param.expression is None or "params" not in param.expression:
        return False
    return any(_is_of_the_run(call, is_known) for call in calls(parse(complete(param.expression))))


def _is_of_the_run(call: ParamCall, is_known: Callable[[str], bool]) -> bool:
    match call:
        case ParamCall("get", (name,)):
            return name is None or not is_known(name)
        case ParamCall("getFromStep", (_, _)):
            return True
        case _:
            return call.name in _OF_THE_RUN


def _is_zone(name: str | None) -> bool:
    """Tell whether a time zone exists; one that does not is reported with its trigger."""
    try:
        zone_of(name)
    except DefinitionInvalid:
        return False
    return True


@dataclass(frozen=True)
class DryRunFacts(InstanceFacts):
    """The facts of an instance in a dry run: placeholders, and what the definition declares."""

    definition: Definition
    of: Step | None

    @cached_property
    def instance(self) -> InstanceView:
        """An instance that was not started."""
        workflow = self.definition.workflow
        zones = [trigger.timezone for trigger in workflow.time_triggers if _is_zone(trigger.timezone)]
        owner = self.definition.properties.owner
        signals = workflow.signal_triggers
        return InstanceView(
            workflow.id,
            workflow_instance_id=1,
            workflow_run_id=1,
            owner=owner.name if owner else None,
            first_time_trigger_timezone=zones[0] if zones else None,
            is_dry_run=True,
            declared_signals=frozenset(name for trigger in signals for name in trigger.definitions),
            declared_signal_params=frozenset(name for trigger in signals for name in trigger.params),
        )

    @cached_property
    def own_step(self) -> StepView | None:
        """The first attempt of the step."""
        if self.of is None:
            return None
        if isinstance(self.of, TypedStep):
            return StepView(self.of.id, 1, _NO_ID, 1, self.of.type, self.of.sub_type)
        return StepView(self.of.id, 1, _NO_ID, 1, self.of.kind)

    @property
    def environment(self) -> str:
        """The name of the environment in a dry run."""
        return "validation"

    def next_unique_id(self) -> int | str:
        """Return the same id each time: nothing is created with it."""
        return _NO_ID
