"""What the functions of ``params`` ask for: the port to the running instance, and the values that it gives."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from calve.definition.model.params import ParamType
from calve.definition.params.parameter import Parameter
from calve.definition.params.sources import InitiatorType


@dataclass(frozen=True, slots=True)
class InstanceView:
    """The instance that an expression belongs to; in a dry run there are only declarations."""

    workflow_id: str
    initiator: InitiatorType = InitiatorType.MANUAL
    run_policy: str = "START_FRESH_NEW_RUN"
    workflow_instance_id: int | None = None
    workflow_run_id: int | None = None
    owner: str | None = None
    initiator_timezone: str | None = None
    initiator_user: str | None = None
    first_time_trigger_timezone: str | None = None
    signal_params: Mapping[str, Any] | None = None
    """The evaluated params of the signal trigger that started it."""
    is_dry_run: bool = False
    declared_signals: frozenset[str] = frozenset()
    declared_signal_params: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StepView:
    """The step that an expression belongs to."""

    step_id: str
    step_instance_id: int
    step_instance_uuid: str
    step_attempt_id: int
    type: str
    sub_type: str | None = None
    error_retries: int = 0
    dependencies: tuple[Mapping[str, str | int] | None, ...] = ()
    """The params of the signals that its dependencies matched, in their order."""


@dataclass(frozen=True, slots=True)
class UpstreamStep:
    """Another step of the same instance."""

    type: str
    status: str
    end_time: int | None = None
    params: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ForeachResults:
    """A param over the iterations of a foreach, which are numbered from 1; some may have none yet."""

    type: ParamType
    count: int
    values: Mapping[int, Any]


class InstanceFacts(Protocol):
    """What a running instance can tell an expression."""

    @property
    def instance(self) -> InstanceView:
        """The instance itself."""
        ...

    @property
    def own_step(self) -> StepView | None:
        """The step whose params are evaluated, or None for those of the workflow."""
        ...

    @property
    def environment(self) -> str:
        """The name of the environment that calve runs in."""
        ...

    def step(self, step_id: str) -> UpstreamStep | None:
        """Return a step of the instance, or None if there is none of that id."""
        ...

    def signal(self, name: str) -> Mapping[str, str | int] | None:
        """Return the params of a signal that started the instance, or None if none of that name did."""
        ...

    def foreach_results(self, foreach_id: str, step_id: str, param: str) -> ForeachResults | None:
        """Return a param over the iterations of a foreach, or None if it has not started."""
        ...

    def subworkflow_param(self, subworkflow_id: str, step_id: str, param: str) -> Parameter | None:
        """Return a param of a step of a subworkflow, or None if there is none."""
        ...

    def next_unique_id(self) -> int | str:
        """Return an id that nothing else has."""
        ...
