"""The shapes of answers: Maestro's documents about definitions and actions, and ours. Instances are the engine's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from calve.engine.views import ActionEvent, Document, Json, LogEvent, RuntimeState, User, WorkflowInstance
from calve.operations.shapes import PageInfo, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertiesSnapshot(Document):
    """The newest properties of a workflow."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "incremental_trigger_disabled": "whether triggers on table changes are disabled",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {"author": "who changed the properties is in the audit log"}

    workflow_id: str
    create_time: int
    owner: User | None = None
    access_control: Json | None = None
    run_strategy: Json | None = None
    step_concurrency: int | None = None
    alerting: Json | None = None
    alerting_disabled: bool | None = None
    signal_trigger_disabled: bool | None = None
    time_trigger_disabled: bool | None = None
    incremental_trigger_disabled: bool | None = None
    description: str | None = None
    tags: Sequence[str | Json] | None = None
    """A tag that has only a name is that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata(Document):
    """Which version it is, and its origin; further fields of a push are added to these, as in Maestro."""

    workflow_id: str
    workflow_version_id: int
    create_time: int
    version_author: User
    git_info: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionExtras(Document):
    """The resolved params of a definition, with ``?enriched=true``."""

    workflow_params: Json
    step_params: Json
    next_execution_time: int | None = None
    next_execution_times: Sequence[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDefinition(Document):
    """A version of a workflow."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "warnings": "the warnings about a pushed definition",
        "workflow_definition": "the whole document again, in the answer to a push, as in Maestro",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "activated_by": "who activated a version is in the audit log",
        "internal_id": "a number in Maestro's database",
    }
    ALONE: ClassVar[frozenset[str]] = frozenset({"enriched_extras"})

    properties_snapshot: Json
    metadata: Json
    workflow: Json
    is_active: bool
    activate_time: int | None = None
    is_latest: bool
    is_default: bool
    enriched_extras: DefinitionExtras | None = None
    modify_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowOverview(Document):
    """A summary of a workflow."""

    workflow_id: str
    active_version_id: int | None = None
    latest_version_id: int
    default_version_id: int
    properties_snapshot: Json
    step_concurrency: int
    nonterminal_instances: Mapping[str, int]
    failed_instances: int
    latest_instance_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowAction(Document):
    """An action on a workflow."""

    workflow_id: str
    workflow_version_id: int
    timeline_event: ActionEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceAction(Document):
    """An action that was requested for an instance."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    workflow_instance_status: str
    info: str
    timeline_event: ActionEvent
    completed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAction(Document):
    """An action that was requested for a step."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int | None = None
    step_runtime_state: RuntimeState
    timeline_event: ActionEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBreakpoint(Document):
    """A breakpoint, where attempts pause; 0 stands for all."""

    workflow_id: str
    step_id: str
    workflow_version_id: int
    workflow_instance_id: int
    workflow_run_id: int
    step_attempt_id: int
    create_time: int
    created_by: User


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakpointDeleted(Document):
    """A breakpoint that was removed."""

    workflow_id: str
    step_id: str
    timeline_event: LogEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedAttempt(Document):
    """A paused attempt."""

    workflow_id: str
    workflow_version_id: int
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    create_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPermit(Document):
    """How many steps with a tag may run at once."""

    ADDED: ClassVar[Mapping[str, str]] = {"held": "how many steps run"}
    LEFT_OUT: ClassVar[Mapping[str, str]] = {"timeline": "who changed a limit is in the audit log"}

    tag: str
    max_allowed: int
    held: int


class Versions(Shape):
    """A page of versions."""

    elements: list[WorkflowDefinition]
    page_info: PageInfo


class Instances(Shape):
    """A page of instances."""

    elements: list[WorkflowInstance]
    page_info: PageInfo
