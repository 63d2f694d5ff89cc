"""All that one transaction changes."""

from dataclasses import dataclass, field

from calve.engine.model.attempts import Attempt, LogChunk, Permit
from calve.engine.model.runs import Pending, Run, Start, Started
from calve.engine.model.signals import Announcement, SignalUse
from calve.engine.model.tasks import NewTask, Task
from calve.engine.model.workflows import Json


@dataclass(frozen=True, slots=True)
class Admission:
    """An attempt that starts if its permits are free, in both forms; the transaction chooses which one it writes."""

    waiting: Attempt
    started: Attempt
    permits: tuple[Permit, ...]
    task: "NewTask"
    """The task to enqueue if it starts."""
    priority: int = 0
    events: "tuple[Event, ...]" = ()
    """The events to record: the first if it waits, the second if it starts."""


RUN_EVENT = "WORKFLOW_INSTANCE_STATUS_CHANGE"
STEP_EVENT = "STEP_INSTANCE_STATUS_CHANGE"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, for those who follow an instance."""

    kind: str
    run_uuid: str
    workflow_id: str
    instance_id: int
    run_id: int
    at: int
    step_id: str | None = None
    attempt_id: int | None = None
    before: str | None = None
    after: str | None = None
    detail: Json = field(default_factory=dict)
    seq: int = 0
    """Its position in the order of events, assigned by the store."""


@dataclass(frozen=True, slots=True)
class PassDown:
    """An action on an attempt, passed on to each of its unfinished child runs that has no action yet."""

    attempt_uuid: str
    pending: Pending


@dataclass(frozen=True, slots=True)
class TriggerMark:
    """The progress of a trigger, written only if its row is unchanged since it was read, and its version is active."""

    workflow_id: str
    trigger_id: str
    seq: int
    """The ``seq`` of the row when it was read; it grows with each change."""
    state: Json
    due_at: int | None
    """When it is evaluated next, unless something makes it due earlier."""
    is_begun: bool = True
    fired_at: int | None = None
    """When it last started something, if that is new."""
    error: str | None = None
    """Why its evaluation failed."""
    failures: int = 0
    """How often it failed in a row."""


@dataclass(slots=True)
class Changes:
    """All that one transaction changes: written completely, or not at all."""

    done: list[Task] = field(default_factory=list)
    """Tasks that this worker owns and has completed; if it no longer owns one of them, nothing is written."""
    held: list[Task] = field(default_factory=list)
    """Tasks that this worker owns and keeps; if it no longer owns one of them, nothing is written."""
    new_runs: list[Run] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    """Changed runs, with the ``seq`` that they were read with; an attempt changes only together with its run."""
    new_attempts: list[Attempt] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    admissions: list[Admission] = field(default_factory=list)
    """Attempts that need permits. A new one is also in ``new_attempts``, a changed one in ``attempts``; what is written
    is the form that the admission chose."""
    passed_down: list[PassDown] = field(default_factory=list)
    """Applied after runs are written: ``action`` is set, ``seq`` grows, the children's tasks are enqueued."""
    starts: list[Start] = field(default_factory=list)
    marks: list[TriggerMark] = field(default_factory=list)
    """Triggers that caused the starts, or that made progress without one; if another process has changed one of them,
    nothing is written."""
    signals: list[Announcement] = field(default_factory=list)
    """Signals that steps send: steps that wait for them are woken, and the triggers that they may fire become due."""
    uses: list[SignalUse] = field(default_factory=list)
    """Steps that signals released; starts and signals record what signals started, and who sent them."""
    tasks: list[NewTask] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    logs: list[LogChunk] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Committed:
    """What the transaction decided."""

    started: tuple[Started, ...] = ()
    admitted: frozenset[str] = frozenset()
    """The attempts that got their permits."""
    held: tuple[Task, ...] = ()
    """The tasks among ``Changes.tasks`` (and of admissions) that got an owner immediately."""
