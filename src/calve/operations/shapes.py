"""The schemas of calve's own documents and of lists, for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """A document of calve; other fields are allowed."""

    model_config = ConfigDict(extra="allow")


class PageInfo(Shape):
    """The position of a page in its list."""

    start_cursor: str | None
    end_cursor: str | None
    """The ``cursor`` of the next page."""
    has_previous_page: bool
    has_next_page: bool


class LogPage(Shape):
    """A part of a log."""

    offset: int
    """Where the text starts, in bytes."""
    text: str
    next_offset: int
    """Where to continue."""
    size: int
    """The current length of the log."""
    left_out: int
    """How many bytes before the text are not kept."""


class LogMatch(Shape):
    """A line of a log."""

    offset: int
    line: int | None
    """Its number, from 1, if it is known."""
    text: str


class LogMatches(Shape):
    """Lines of a log that contain a text."""

    matches: list[LogMatch]
    next_offset: int | None
    """Where to continue, if there is more to search."""
    size: int
    left_out: int
    """How many bytes are not kept, and were not searched."""


class Workflow(Shape):
    """A workflow in a list."""

    workflow_id: str
    active_version_id: int | None = None
    latest_version_id: int
    owner: str | None = None
    tags: list[str] = []
    """The tags of the version, and those of the workflow's properties."""
    is_paused: bool = False
    """No version is active, so that triggers do not fire."""
    last_run_time: int | None = None
    """When its newest instance was created."""
    create_time: int
    modify_time: int


class Step(Shape):
    """A step of an instance, in its newest attempt."""

    step_id: str
    step_instance_id: int
    type: str
    status: str


class Template(Shape):
    """A job template in one version."""

    metadata: dict[str, Any]
    definition: dict[str, Any]


class Workflows(Shape):
    """A page of workflows."""

    elements: list[Workflow]
    page_info: PageInfo


class Approval(Shape):
    """An Approval step that waits for people, with links to decide it."""

    workflow_id: str
    workflow_instance_id: int
    path: str
    """The path of the step, with the iterations of the loops that contain it."""
    step_id: str
    step_attempt_id: int
    step_instance_uuid: str
    question: str
    approvers: list[str]
    """Who may decide; if empty, anyone who may run the workflow."""
    min_approvals: int
    decisions: list[dict[str, Any]]
    since: int
    until: int | None = None
    """When it times out, and ``on_timeout`` decides."""
    on_timeout: str | None = None
    links: dict[str, str]


class Approvals(Shape):
    """A page of Approval steps."""

    elements: list[Approval]
    page_info: PageInfo


class AttentionPart(Shape):
    """What needs attention for one reason."""

    count: int
    has_more: bool
    """Whether there is more than was counted or listed."""
    elements: list[dict[str, Any]]


class Attention(Shape):
    """What may need attention."""

    at: int
    failed: AttentionPart
    """Instances that failed and were not restarted, by workflow and first line of the error."""
    late: AttentionPart
    """Time triggers that did not fire, and instances that run much longer than usual."""
    waiting: AttentionPart
    """Approval steps, attempts at breakpoints, instances that were set aside, and what is held on branches."""


class Grid(Shape):
    """The newest instances of a workflow, and the statuses of their steps."""

    workflow_id: str
    workflow_version_id: int
    """The version whose steps and order are shown: the active one, else the latest."""
    steps: list[dict[str, Any]]
    """In the order of the graph; steps of earlier versions come last, without a type."""
    legend: dict[str, str]
    """What each letter means."""
    runs: list[dict[str, Any]]
    """The newest first; ``steps`` has a letter for each step, ``durations`` its milliseconds."""


class IterationPage(Shape):
    """The statuses of all iterations of a loop, and a page of them."""

    first: int | None = None
    """The number of the iteration that the first letter stands for."""
    total: int | None = None
    """How many there will be; unknown for while loops."""
    letters: str | None = None
    legend: dict[str, str] | None = None
    counts: dict[str, int] | None = None
    elements: list[dict[str, Any]]
    page_info: PageInfo


class VersionDiff(Shape):
    """The differences of two versions of a workflow."""

    workflow_id: str
    diff: str
    """A unified diff of the definitions as YAML in canonical form; empty if they are the same."""
    steps: list[dict[str, Any]]
    """Which steps were added, removed or changed, also inside loops; ``fields`` lists the changed fields."""
    params: list[dict[str, Any]]
    """Which params of the workflow were added, removed or changed."""


class Workers(Shape):
    """The workers."""

    alive: int
    slots: int
    """How many tasks the workers that are alive can run together."""
    running: int
    last_heartbeat: int | None = None
    """The latest heartbeat of any worker, by the clock of the database."""
    now: int
    """The clock of the database."""
    scheduler: dict[str, Any]
    """``late_since``: when the earliest late time trigger was due; null if none is late.

    ``last_heartbeat``: when a scheduler last said that it runs; null if none ever did. ``is_silent``: whether that is
    too long ago.
    """
    elements: list[dict[str, Any]]


class Queue(Shape):
    """The queue of tasks."""

    tasks: dict[str, dict[str, Any]]
    """By kind (run or step): ready, later, claimed, retried, and since when the oldest has been ready."""
    set_aside: dict[str, Any]
    """Instances that were set aside because workers died while processing them."""


class Page(Shape):
    """A page of documents."""

    elements: list[dict[str, Any]]
    page_info: PageInfo
