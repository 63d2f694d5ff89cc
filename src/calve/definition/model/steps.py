"""The five kinds of steps of a workflow."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, PlainSerializer, StrictBool, StrictInt, Tag, WrapValidator

from calve.definition.model.fields import Description, Model, ParsableLong, StepId, Tags, Title
from calve.definition.model.params import Params
from calve.definition.model.triggers import SignalDependency, SignalOutput


class ExponentialBackoff(Model):
    """A delay between retries that grows each time, up to a limit."""

    type: Literal["EXPONENTIAL_BACKOFF"] = "EXPONENTIAL_BACKOFF"
    error_retry_backoff_in_secs: ParsableLong | None = None
    error_retry_exponent: ParsableLong | None = None
    error_retry_limit_in_secs: ParsableLong | None = None
    platform_retry_backoff_in_secs: ParsableLong | None = None
    platform_retry_exponent: ParsableLong | None = None
    platform_retry_limit_in_secs: ParsableLong | None = None
    timeout_retry_backoff_in_secs: ParsableLong | None = None
    timeout_retry_exponent: ParsableLong | None = None
    timeout_retry_limit_in_secs: ParsableLong | None = None


class FixedBackoff(Model):
    """A fixed delay between retries."""

    type: Literal["FIXED_BACKOFF"] = "FIXED_BACKOFF"
    error_retry_backoff_in_secs: ParsableLong | None = None
    platform_retry_backoff_in_secs: ParsableLong | None = None
    timeout_retry_backoff_in_secs: ParsableLong | None = None


Backoff = Annotated[ExponentialBackoff | FixedBackoff, Field(discriminator="type")]


class RetryPolicy(Model):
    """The number of retries for each kind of failure, and the delay between them."""

    error_retry_limit: ParsableLong | None = None
    platform_retry_limit: ParsableLong | None = None
    timeout_retry_limit: ParsableLong | None = None
    backoff: Backoff | None = None


FOREACH_CONCURRENCY = 500


class FailureMode(StrEnum):
    """How the failure of a step affects the other steps."""

    FAIL_AFTER_RUNNING = "FAIL_AFTER_RUNNING"
    FAIL_IMMEDIATELY = "FAIL_IMMEDIATELY"
    IGNORE_FAILURE = "IGNORE_FAILURE"


def _as_expression(value: Any) -> Any:
    """Convert a JSON boolean to the expression ``true`` or ``false``."""
    return str(value).lower() if isinstance(value, bool) else value


Condition = Annotated[str, BeforeValidator(_as_expression)]


class Transition(Model):
    """The successors of a step, each with the condition of its edge."""

    predecessors: tuple[str, ...] = ()
    successors: dict[str, Condition] = Field(default_factory=dict)


class _Step(Model):
    id: StepId
    name: Title | None = None
    description: Description | None = None
    transition: Transition = Transition()
    failure_mode: FailureMode | None = None
    tags: Tags = ()
    timeout: ParsableLong | None = None
    signal_dependencies: tuple[SignalDependency, ...] = ()
    signal_outputs: tuple[SignalOutput, ...] = ()
    params: Params = Field(default_factory=dict)


class TypedStep(_Step):
    """A step that does work itself, according to its type."""

    kind: ClassVar[str] = "step"
    type: str
    sub_type: str | None = None
    sub_type_version: str | None = None
    retry_policy: RetryPolicy | None = None
    targets: tuple[str, ...] = ()
    """The tables to which its rows are delivered exactly once."""


class SubworkflowStep(_Step):
    """Runs another workflow."""

    kind: ClassVar[str] = "subworkflow"
    sync: StrictBool | None = None
    explicit_params: StrictBool | None = None


class ForeachStep(_Step):
    """Runs its steps once for every combination of its loop params."""

    kind: ClassVar[str] = "foreach"
    concurrency: StrictInt | None = Field(default=None, ge=1, le=FOREACH_CONCURRENCY)
    strict_ordering: StrictBool | None = None
    steps: "tuple[Step, ...]" = Field(min_length=1)


class WhileStep(_Step):
    """Repeats its steps while its condition is true."""

    kind: ClassVar[str] = "while"
    condition: str
    steps: "tuple[Step, ...]" = Field(min_length=1)


class TemplateStep(_Step):
    """Runs the steps of a template."""

    kind: ClassVar[str] = "template"
    sub_type: str
    sub_type_version: str | None = None


LOOPS = frozenset({ForeachStep.kind, WhileStep.kind})
"""The kinds of steps that contain other steps."""


def _kind(value: Any) -> Any:
    """Return the kind of a wrapped step."""
    if isinstance(value, dict):
        return next(iter(value)) if len(value) == 1 else None
    return getattr(value, "kind", None)


def _unwrap(value: Any, inner: Any) -> Any:
    return inner(next(iter(value.values())) if isinstance(value, dict) else value)


def _wrap(step: "TypedStep | SubworkflowStep | ForeachStep | WhileStep | TemplateStep") -> dict[str, Any]:
    return {step.kind: step.as_json()}


Step = Annotated[
    Annotated[TypedStep, WrapValidator(_unwrap), Tag(TypedStep.kind)]
    | Annotated[SubworkflowStep, WrapValidator(_unwrap), Tag(SubworkflowStep.kind)]
    | Annotated[ForeachStep, WrapValidator(_unwrap), Tag(ForeachStep.kind)]
    | Annotated[WhileStep, WrapValidator(_unwrap), Tag(WhileStep.kind)]
    | Annotated[TemplateStep, WrapValidator(_unwrap), Tag(TemplateStep.kind)],
    Discriminator(_kind),
    PlainSerializer(_wrap, return_type=dict[str, Any]),
]
"""A step in a mapping whose only key is its kind."""

ForeachStep.model_rebuild()
WhileStep.model_rebuild()
