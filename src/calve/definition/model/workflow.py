"""A workflow, its properties, and the definition with both, which is what users push."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer, StrictBool, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from calve.definition.model.alerts import Alerting
from calve.definition.model.fields import Description, Model, ParsableLong, Tags, Title, WorkflowId
from calve.definition.model.params import Params
from calve.definition.model.steps import ForeachStep, Step, WhileStep
from calve.definition.model.triggers import IncrementalTrigger, SignalTrigger, TimeTrigger

CONCURRENCY = 1000
DEFAULT_CONCURRENCY = 20


class Criticality(StrEnum):
    """How critical a workflow is."""

    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Rule(StrEnum):
    """What happens when an instance is started while others run."""

    SEQUENTIAL = "SEQUENTIAL"
    STRICT_SEQUENTIAL = "STRICT_SEQUENTIAL"
    FIRST_ONLY = "FIRST_ONLY"
    LAST_ONLY = "LAST_ONLY"
    PARALLEL = "PARALLEL"
    SERIAL_LATEST_ONLY = "SERIAL_LATEST_ONLY"


class RunStrategy(Model):
    """A rule for concurrent instances, and for PARALLEL how many may run at once."""

    rule: Rule
    workflow_concurrency: StrictInt | None = Field(default=None, ge=1, le=CONCURRENCY)

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, value: Any) -> Any:
        match value:
            case str():
                value = {"rule": value}
            case bool():
                return value
            case int():
                value = {"rule": Rule.PARALLEL, "workflow_concurrency": value}
            case _:
                pass
        if not isinstance(value, dict):
            return value
        rule = value.get("rule")
        return {**value, "rule": rule.upper()} if isinstance(rule, str) else value

    @property
    def concurrency(self) -> int:
        """The maximum number of instances that run at once."""
        default = DEFAULT_CONCURRENCY if self.rule is Rule.PARALLEL else 1
        return default if self.workflow_concurrency is None else self.workflow_concurrency

    @model_validator(mode="after")
    def _is_parallel_if_many(self) -> "RunStrategy":
        if self.rule is not Rule.PARALLEL and self.concurrency > 1:
            raise PydanticCustomError(
                "not_parallel", "Only PARALLEL run strategy allows a workflow_concurrency greater than 1"
            )
        return self


class Owner(Model):
    """The owner of a workflow: a name, and any further data."""

    name: str = Field(min_length=1)
    extra_info: dict[str, Any] = Field(default_factory=dict)


def _owner_from_text(value: Any) -> Any:
    match value:
        case str():
            return {"name": value}
        case dict():
            extra = {key: item for key, item in value.items() if key not in {"name", "extra_info"}}
            return {"name": value.get("name"), "extra_info": {**value.get("extra_info", {}), **extra}}
        case _:
            return value


def _owner_as_text(owner: Owner | None) -> Any:
    if owner is None:
        return None
    return {"name": owner.name, **owner.extra_info} if owner.extra_info else owner.name


class Properties(Model):
    """The properties of a workflow that apply to all of its versions."""

    owner: Annotated[Owner | None, BeforeValidator(_owner_from_text), PlainSerializer(_owner_as_text)] = None
    access_control: dict[str, Any] | None = None
    run_strategy: RunStrategy | None = None
    step_concurrency: StrictInt | None = Field(default=None, ge=1, le=CONCURRENCY)
    alerting: Alerting | None = None
    alerting_disabled: StrictBool | None = None
    signal_trigger_disabled: StrictBool | None = None
    time_trigger_disabled: StrictBool | None = None
    incremental_trigger_disabled: StrictBool | None = None
    description: Description | None = None
    tags: Tags = ()


class Workflow(Model):
    """One version of a workflow."""

    id: WorkflowId
    name: Title | None = None
    description: Description | None = None
    tags: Tags = ()
    timeout: ParsableLong | None = None
    time_triggers: tuple[TimeTrigger, ...] = ()
    signal_triggers: tuple[SignalTrigger, ...] = ()
    incremental_triggers: tuple[IncrementalTrigger, ...] = ()
    criticality: Criticality | None = None
    instance_step_concurrency: StrictInt | None = Field(default=None, ge=1, lt=CONCURRENCY)
    params: Params = Field(default_factory=dict)
    steps: tuple[Step, ...] = Field(min_length=1)

    def all_steps(self) -> Iterator[Step]:
        """Yield every step, those inside loops after the loop."""
        return walked(self.steps)


class GitInfo(Model):
    """Where the definition came from."""

    origin: str | None = None
    branch: str | None = None
    sha: str | None = None
    path: str | None = None
    author: str | None = None
    timestamp: StrictInt | None = None
    uncommitted_changes: StrictBool | None = None


class Definition(Model):
    """The definition that is pushed: one version of a workflow, and its properties."""

    properties: Properties = Properties()
    workflow: Workflow
    is_active: StrictBool = True
    git_info: GitInfo | None = None
    extra_info: dict[str, Any] = Field(default_factory=dict)


def walked(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield every step, those inside loops after the loop."""
    for step in steps:
        yield step
        if isinstance(step, ForeachStep | WhileStep):
            yield from walked(step.steps)
