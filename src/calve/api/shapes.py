"""The shapes of answers, for whoever reads the OpenAPI document: Maestro's, and ours; more than they say is allowed."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from calve.api.models import (
    BreakpointDeleted,
    InstanceAction,
    PausedAttempt,
    PropertiesSnapshot,
    StepAction,
    StepBreakpoint,
    TagPermit,
    WorkflowAction,
    WorkflowDefinition,
    WorkflowOverview,
)
from calve.engine.views.models import (
    ActionEvent,
    SignalInstance,
    StartResponse,
    StepInstance,
    StepRestartResponse,
    WorkflowInstance,
    WorkflowTimeline,
)

__all__ = [
    "ActionEvent",
    "BreakpointDeleted",
    "Error",
    "Health",
    "InstanceAction",
    "Instances",
    "Page",
    "PageInfo",
    "PausedAttempt",
    "PropertiesSnapshot",
    "SignalInstance",
    "StartResponse",
    "Step",
    "StepAction",
    "StepBreakpoint",
    "StepInstance",
    "StepRestartResponse",
    "TagPermit",
    "Template",
    "Versions",
    "Workflow",
    "WorkflowAction",
    "WorkflowDefinition",
    "WorkflowInstance",
    "WorkflowOverview",
    "WorkflowTimeline",
    "Workflows",
]


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


class Workflow(_Shape):
    """A workflow in a list."""

    workflow_id: str
    active_version_id: int | None = None
    latest_version_id: int
    create_time: int
    modify_time: int


class Step(_Shape):
    """A step of an instance, as its newest attempt leaves it."""

    step_id: str
    step_instance_id: int
    type: str
    status: str


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

    elements: list[WorkflowDefinition]
    page_info: PageInfo


class Instances(_Shape):
    """A page of instances."""

    elements: list[WorkflowInstance]
    page_info: PageInfo


class Approval(_Shape):
    """An Approval step that waits for people, and how to answer it."""

    workflow_id: str
    workflow_instance_id: int
    path: str
    """The step; inside of loops with their iterations, as paths of steps have them."""
    step_id: str
    step_attempt_id: int
    step_instance_uuid: str
    question: str
    approvers: list[str]
    """Who may decide; nobody in particular: whoever may run the workflow."""
    min_approvals: int
    decisions: list[dict[str, Any]]
    since: int
    until: int | None = None
    """When it is decided without people, as ``on_timeout`` says."""
    on_timeout: str | None = None
    links: dict[str, str]


class Approvals(_Shape):
    """A page of Approval steps."""

    elements: list[Approval]
    page_info: PageInfo


class Page(_Shape):
    """A page of documents."""

    elements: list[dict[str, Any]]
    page_info: PageInfo


class Health(_Shape):
    """How the server is."""

    status: str
