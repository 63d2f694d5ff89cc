"""The shapes of answers, for whoever reads the OpenAPI document; what they hold besides is allowed."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow")


class Error(_Shape):
    """What went wrong, in Maestro's form; with ``Accept: application/problem+json`` in that of RFC 9457."""

    status: str | int
    """The name of the status; in a problem document its number."""
    code: str
    """For machines; the reference of errors lists them."""
    remedy: str
    """What to do about it."""
    errors: list[str]
    context: dict[str, Any]


class PageInfo(_Shape):
    """Where a page lies."""

    start_cursor: str | None
    end_cursor: str | None
    """The ``cursor`` of the next page."""
    has_previous_page: bool
    has_next_page: bool


class LogPage(_Shape):
    """Some of a log."""

    offset: int
    """Where the text begins, in bytes."""
    text: str
    next_offset: int
    """Where to go on."""
    size: int
    """How long the log is by now."""
    left_out: int
    """How many bytes before the text are not kept."""


class LogMatch(_Shape):
    """A line of a log."""

    offset: int
    line: int | None
    """Its number, from 1, if it is known."""
    text: str


class LogMatches(_Shape):
    """Lines of a log that hold a text."""

    matches: list[LogMatch]
    next_offset: int | None
    """Where to go on, if there is more to look through."""
    size: int
    left_out: int
    """How many bytes are not kept, and could not be looked through."""


class TimelineEvent(_Shape):
    """Something that was done."""

    type: str
    message: str
    timestamp: int


class Version(_Shape):
    """A version of a workflow."""

    properties_snapshot: dict[str, Any]
    metadata: dict[str, Any]
    workflow: dict[str, Any]
    is_active: bool
    is_default: bool
    is_latest: bool
    modify_time: int
    warnings: list[dict[str, Any]] = []
    """What looks wrong in a definition that was pushed."""


class Properties(_Shape):
    """The newest properties of a workflow."""

    workflow_id: str
    create_time: int


class Workflow(_Shape):
    """A workflow in a list."""

    workflow_id: str
    active_version_id: int | None = None
    latest_version_id: int
    create_time: int
    modify_time: int


class WorkflowOverview(_Shape):
    """A workflow at a glance."""

    workflow_id: str
    latest_version_id: int
    default_version_id: int
    nonterminal_instances: dict[str, int]
    failed_instances: int


class Timeline(_Shape):
    """What was done to a workflow."""

    workflow_id: str
    timeline_events: list[dict[str, Any]]


class Run(_Shape):
    """Which run it is, and where it stands."""

    workflow_id: str
    workflow_version_id: int
    workflow_instance_id: int
    workflow_run_id: int
    workflow_uuid: str
    status: str


class Instance(Run):
    """A run of an instance."""

    create_time: int
    run_policy: str
    initiator: dict[str, Any]


class InstanceDetails(Instance):
    """A run of an instance, with its params and steps."""

    params: dict[str, Any]
    runtime_overview: dict[str, Any]
    aggregated_info: dict[str, Any]
    timeline: list[dict[str, Any]]
    steps: list[dict[str, Any]]


class Step(_Shape):
    """A step of an instance, as its newest attempt leaves it."""

    step_id: str
    step_instance_id: int
    type: str
    status: str


class Attempt(Step):
    """An attempt of a step."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_attempt_id: int
    step_instance_uuid: str
    runtime_state: dict[str, Any]
    params: dict[str, Any]
    artifacts: dict[str, Any]
    timeline: list[dict[str, Any]]


class WorkflowAction(_Shape):
    """What was done to a workflow."""

    workflow_id: str
    workflow_version_id: int
    timeline_event: TimelineEvent


class InstanceAction(_Shape):
    """What was asked of an instance."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    workflow_instance_status: str
    completed: bool
    info: str
    timeline_event: TimelineEvent


class StepAction(_Shape):
    """What was asked of a step."""

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int | None = None
    step_runtime_state: dict[str, Any]
    timeline_event: TimelineEvent


class Breakpoint(_Shape):
    """Where attempts pause; 0 stands for all."""

    workflow_id: str
    step_id: str
    workflow_version_id: int
    workflow_instance_id: int
    workflow_run_id: int
    step_attempt_id: int
    create_time: int


class TagPermit(_Shape):
    """How many steps of a tag may run at once."""

    tag: str
    max_allowed: int
    held: int


class Template(_Shape):
    """A job template in one version."""

    metadata: dict[str, Any]
    definition: dict[str, Any]


class Workflows(_Shape):
    """A page of workflows."""

    elements: list[Workflow]
    page_info: PageInfo


class Versions(_Shape):
    """A page of versions."""

    elements: list[Version]
    page_info: PageInfo


class Instances(_Shape):
    """A page of instances."""

    elements: list[Instance]
    page_info: PageInfo


class Page(_Shape):
    """A page of documents."""

    elements: list[dict[str, Any]]
    page_info: PageInfo


class Health(_Shape):
    """How the server is."""

    status: str
