"""All that one transaction changes."""

from dataclasses import dataclass, field

from calve.engine.model.attempts import Attempt, LogChunk, Permit
from calve.engine.model.runs import Pending, Run, Start, Started
from calve.engine.model.signals import Announcement, SignalUse
from calve.engine.model.tasks import NewTask, Task
from calve.engine.model.workflows import Json


@dataclass(frozen=True, slots=True)
class Admission:
    """An attempt that may start if its permits are free: both ways of writing it, the transaction chooses."""

    waiting: Attempt
    started: Attempt
    permits: tuple[Permit, ...]
    task: "NewTask"
    """What is put into the queue if it starts."""
    priority: int = 0
    events: "tuple[Event, ...]" = ()
    """What is recorded: the first if it waits, the second if it starts."""


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
    """Given by the store, in order."""


@dataclass(frozen=True, slots=True)
class PassDown:
    """An action on an attempt that goes down to every child run of it that is not over and has none yet."""

    attempt_uuid: str
    pending: Pending


@dataclass(frozen=True, slots=True)
class TriggerMark:
    """How far a trigger has come: written only while its row is the one that was read, and its version is active."""

    workflow_id: str
    trigger_id: str
    seq: int
    """What the row was read with; it grows with each change."""
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
    """Tasks that this worker holds and has done; if one of them is no longer its own, nothing is written."""
    held: list[Task] = field(default_factory=list)
    """Tasks that this worker holds and keeps; the same is true of them."""
    new_runs: list[Run] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    """Changed runs, with the ``seq`` that they were read with; an attempt changes only together with its run."""
    new_attempts: list[Attempt] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    admissions: list[Admission] = field(default_factory=list)
    """Attempts that want permits. A new one is in ``new_attempts`` too, a changed one in ``attempts``: in either
    way the admission's own form is what is written."""
    passed_down: list[PassDown] = field(default_factory=list)
    """Applied after runs are written: ``action`` is set, ``seq`` grows, the children's tasks are enqueued."""
    starts: list[Start] = field(default_factory=list)
    marks: list[TriggerMark] = field(default_factory=list)
    """Triggers that brought the starts, or have moved on without one; if another process has moved one of them, nothing
    is written."""
    signals: list[Announcement] = field(default_factory=list)
    """Signals that steps send: steps that wait for them are woken, and the triggers that they may fire become due."""
    uses: list[SignalUse] = field(default_factory=list)
    """What signals have released; what they started, and who sent them, is told by starts and signals."""
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
