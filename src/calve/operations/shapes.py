"""The shapes of our own documents and of lists, for those who read the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """A document of ours; more than its fields is allowed."""

    model_config = ConfigDict(extra="allow")


class PageInfo(Shape):
    """Where a page lies."""

    start_cursor: str | None
    end_cursor: str | None
    """The ``cursor`` of the next page."""
    has_previous_page: bool
    has_next_page: bool


class LogPage(Shape):
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


class LogMatch(Shape):
    """A line of a log."""

    offset: int
    line: int | None
    """Its number, from 1, if it is known."""
    text: str


class LogMatches(Shape):
    """Lines of a log that hold a text."""

    matches: list[LogMatch]
    next_offset: int | None
    """Where to go on, if there is more to look through."""
    size: int
    left_out: int
    """How many bytes are not kept, and could not be looked through."""


class Workflow(Shape):
    """A workflow in a list."""

    workflow_id: str
    active_version_id: int | None = None
    latest_version_id: int
    owner: str | None = None
    tags: list[str] = []
    """Those of the version, and those that the workflow was given whatever its version."""
    is_paused: bool = False
    """No version is active: nothing starts it by itself."""
    last_run_time: int | None = None
    """When its newest instance was made."""
    create_time: int
    modify_time: int


class Step(Shape):
    """A step of an instance, as its newest attempt leaves it."""

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


class Approvals(Shape):
    """A page of Approval steps."""

    elements: list[Approval]
    page_info: PageInfo


class AttentionPart(Shape):
    """What needs a person for one reason."""

    count: int
    has_more: bool
    """Whether there is more than is counted or listed."""
    elements: list[dict[str, Any]]


class Attention(Shape):
    """What may need a person."""

    at: int
    failed: AttentionPart
    """Instances that failed and were not restarted, by workflow and first line of the error."""
    late: AttentionPart
    """Time triggers that did not fire, and instances that run much longer than usual."""
    waiting: AttentionPart
    """Approval steps, attempts at breakpoints, and instances that were set aside."""


class Grid(Shape):
    """The newest instances of a workflow, and the statuses of their steps."""

    workflow_id: str
    workflow_version_id: int
    """The version whose steps and order are shown: the active one, else the latest."""
    steps: list[dict[str, Any]]
    """In the order of the graph; steps that only earlier versions have come last, without a type."""
    legend: dict[str, str]
    """What each letter means."""
    runs: list[dict[str, Any]]
    """The newest first; ``steps`` has a letter for each step, ``durations`` its milliseconds."""


class IterationPage(Shape):
    """The statuses of all iterations of a loop, and a page of them."""

    first: int | None = None
    """The number of the iteration that the first letter stands for."""
    total: int | None = None
    """How many there will be; a while loop does not know."""
    letters: str | None = None
    legend: dict[str, str] | None = None
    counts: dict[str, int] | None = None
    elements: list[dict[str, Any]]
    page_info: PageInfo


class VersionDiff(Shape):
    """What differs from one version of a workflow to another."""

    workflow_id: str
    diff: str
    """A unified diff of the definitions as YAML in canonical form; empty if they are the same."""
    steps: list[dict[str, Any]]
    """Which steps were added, removed or changed, also inside loops; ``fields`` tells what changed."""
    params: list[dict[str, Any]]
    """Which params of the workflow were added, removed or changed."""


class Workers(Shape):
    """The workers."""

    alive: int
    slots: int
    """How many tasks those that are alive can run together."""
    running: int
    last_heartbeat: int | None = None
    """The newest of all heartbeats, by the clock of the database."""
    now: int
    """The clock of the database."""
    scheduler: dict[str, Any]
    """``late_since``: when the time trigger was due that should have fired first; null if none is late.

    ``last_heartbeat``: when a scheduler last said that it runs; null if none ever did. ``is_silent``: whether that is
    too long ago.
    """
    elements: list[dict[str, Any]]


class Queue(Shape):
    """The queue of tasks."""

    tasks: dict[str, dict[str, Any]]
    """By kind, run or step: ready, later, claimed, retried, and since when the oldest is ready."""
    set_aside: dict[str, Any]
    """Instances that were set aside because workers died over them."""


class Page(Shape):
    """A page of documents."""

    elements: list[dict[str, Any]]
    page_info: PageInfo
