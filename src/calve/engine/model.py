"""What the engine keeps: workflows, runs, attempts, tasks, workers. Times are milliseconds, as in Maestro."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from calve.definition.params import InitiatorType
from calve.engine.actions import Action
from calve.engine.signals import Announcement, SignalUse
from calve.engine.statuses import RunStatus, StepStatus
from calve.namespaces import covers, namespace_of

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WorkflowRecord:
    """A workflow, whatever its version."""

    workflow_id: str
    active_version: int | None
    latest_version: int
    properties: Json
    """The newest snapshot of its properties, as JSON of ``calve.definition``'s ``Properties``."""
    created_at: int
    modified_at: int
    activated_at: int | None = None
    """When the active version became that."""


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """One version of a workflow; never changes."""

    workflow_id: str
    version_id: int
    definition: Json
    """The whole pushed definition, as JSON of ``calve.definition``'s ``Definition``."""
    author: str
    created_at: int


class RunPolicy(StrEnum):
    """What a run takes over from the runs before it."""

    START_FRESH_NEW_RUN = "START_FRESH_NEW_RUN"
    RESTART_FROM_INCOMPLETE = "RESTART_FROM_INCOMPLETE"
    RESTART_FROM_BEGINNING = "RESTART_FROM_BEGINNING"
    RESTART_FROM_SPECIFIC = "RESTART_FROM_SPECIFIC"

    @property
    def is_fresh(self) -> bool:
        """Tell whether it is no restart."""
        return self is RunPolicy.START_FRESH_NEW_RUN


@dataclass(frozen=True, slots=True)
class Initiator:
    """Who started an instance."""

    type: InitiatorType = InitiatorType.MANUAL
    user: str | None = None
    timezone: str | None = None
    trigger: Json = field(default_factory=dict)
    """What a trigger passes on, such as the params of the signals that it joined."""
    within: tuple[str, ...] | None = None
    """The namespaces of the workflows and signals that only the run names, by its params; None: all."""

    def may_name(self, name: str) -> bool:
        """Tell whether params of the run may name a workflow or a signal."""
        return self.within is None or any(covers(granted, namespace_of(name)) for granted in self.within)


@dataclass(frozen=True, slots=True)
class Parent:
    """The step attempt that started a child run."""

    run_uuid: str
    step_id: str
    attempt_uuid: str


@dataclass(frozen=True, slots=True)
class Restart:
    """What a restart asks for, beyond its policy."""

    step_path: tuple[str, ...] = ()
    """RESTART_FROM_SPECIFIC: the step, and the steps inside it down to the one that is meant."""
    iterations: tuple[int, ...] = ()
    """The iteration to go down into at each loop of the path."""
    step_params: Mapping[str, Json] = field(default_factory=dict)
    """Changed params by step."""
    skip: tuple[str, ...] = ()
    """Steps that are to be skipped."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Steps that run again: the uuids of the attempts of earlier runs in whose place they run."""
    is_latest: bool = False
    """Continue with the newest version: what changed since runs again, beside what is incomplete."""
    keep: tuple[str, ...] = ()
    """Steps whose results are kept, with those of the steps before them, though they changed."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an instance; each restart makes another one."""

    uuid: str
    workflow_id: str
    """The workflow's; of an iteration, a name made for its loop."""
    instance_id: int
    run_id: int
    version_id: int
    owner_workflow: str
    """The workflow whose definition holds its steps; of an iteration, that of the nearest instance that is none."""
    root_uuid: str
    status: RunStatus = RunStatus.CREATED
    run_status: RunStatus = RunStatus.CREATED
    """How this run ended by itself; ``status`` counts what earlier runs left undone too."""
    initiator: Initiator = field(default_factory=Initiator)
    policy: RunPolicy = RunPolicy.START_FRESH_NEW_RUN
    parent: Parent | None = None
    inline_step: str | None = None
    """The loop whose steps an iteration runs; nothing for an instance of a workflow."""
    depth: int = 0
    priority: int = 0
    """Lower comes first."""
    properties: Json = field(default_factory=dict)
    """The workflow's properties when the run was made."""
    run_params: Json = field(default_factory=dict)
    """Definitions of params that came with the start, by name."""
    params: Json = field(default_factory=dict)
    """Evaluated params (``Parameter.as_stored``); of an iteration only its own."""
    restart: Restart = field(default_factory=Restart)
    carried: Mapping[str, str] = field(default_factory=dict)
    """Steps that earlier runs left as they are to stay: the uuids of their attempts."""
    request_id: str | None = None
    tags: tuple[str, ...] = ()
    is_queued: bool = False
    """Waits for its turn by the run strategy."""
    is_latest: bool = True
    is_blocking: bool = False
    """FAILED, and nobody has unblocked or restarted it: STRICT_SEQUENTIAL starts nothing after it."""
    action: "Pending | None" = None
    """What somebody asked to be done with all of it, until it is done."""
    message: str = ""
    timeline: tuple[Json, ...] = ()
    created_at: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    timeout_at: int | None = None
    seq: int = 0
    """Grows with each change; a change is refused if it no longer is what it was when the run was read."""

    @property
    def is_inline(self) -> bool:
        """Tell whether it is an iteration of a loop."""
        return self.inline_step is not None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How far a run has come."""

    status: RunStatus
    ended_at: int | None

    @property
    def is_success(self) -> bool:
        """Tell whether it has succeeded."""
        return self.status is RunStatus.SUCCEEDED


@dataclass(frozen=True, slots=True)
class Pending:
    """An action that somebody asked for and that has not taken effect yet."""

    action: Action
    by: str = ""
    at: int = 0
    reason: str = ""
    is_upstream: bool = False
    """Came down from the workflow or a step around it."""
    params: Json = field(default_factory=dict)
    """What the action brings: the comment of an approval, say."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a step in a run."""

    uuid: str
    """Also the key under which outside work is started, so that none is started twice."""
    run_uuid: str
    root_uuid: str
    step_id: str
    step_instance_id: int
    """The position of the step in its workflow, from 1."""
    attempt_id: int
    type: str
    status: StepStatus = StepStatus.CREATED
    is_leaf: bool = True
    is_superseded: bool = False
    """A later attempt has taken its place."""
    params: Json = field(default_factory=dict)
    """Evaluated params (``Parameter.as_stored``)."""
    artifacts: Json = field(default_factory=dict)
    edges: Mapping[str, bool] = field(default_factory=dict)
    """Once it has ended: which successors its conditions allow."""
    retries: Mapping[str, int] = field(default_factory=dict)
    """How often it was tried again, by ``RetryReason``."""
    times: Mapping[str, int] = field(default_factory=dict)
    """When it came to each state: create, initialize, pause, wait_signal, evaluate_param, wait_permit, start …"""
    timeline: tuple[Json, ...] = ()
    dependencies: tuple[Json, ...] = ()
    """What each of its signal dependencies matched."""
    tags: tuple[str, ...] = ()
    action: Pending | None = None
    due_at: int | None = None
    """When it goes on by itself: the next attempt after a failure, the end of an approval."""
    timeout_at: int | None = None
    worker: str | None = None
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class Permit:
    """A limit that an attempt counts against: of its workflow, of its tree, of a tag."""

    name: str
    limit: int | None
    """Nothing: the limit is that of the tag, if it has one."""


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


class TaskKind(StrEnum):
    """What there is to do: move a run on, or carry out an attempt."""

    RUN = "run"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class NewTask:
    """Something to do, now or later. There is at most one task of a key; a second one wakes the first."""

    kind: TaskKind
    run_uuid: str
    attempt_uuid: str | None = None
    due_at: int = 0
    priority: int = 0
    owner: str | None = None
    """A worker that takes it at once."""

    @property
    def key(self) -> str:
        """What the task is about: the attempt, or the run."""
        return self.attempt_uuid or self.run_uuid


@dataclass(frozen=True, slots=True)
class Task:
    """Something that a worker has taken."""

    kind: TaskKind
    key: str
    run_uuid: str
    attempt_uuid: str | None
    owner: str
    generation: int
    """Grows whenever the task changes hands: whoever held it before can no longer record anything."""
    wakes: int
    """Grows whenever somebody asks for it again while it is being done."""
    tries: int
    """How many workers have died over it."""


@dataclass(frozen=True, slots=True)
class Start:
    """An instance that is to be started by the rules of its workflow's run strategy."""

    run: Run
    """Without its instance id, which the transaction gives it."""
    is_restart: bool = False


class StartStatus(StrEnum):
    """What became of a start."""

    CREATED = "CREATED"
    DUPLICATED = "DUPLICATED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Started:
    """What became of a start, and which instance it is."""

    status: StartStatus
    run: Run
    warnings: tuple[Json, ...] = ()
    """What looks wrong in the request."""


RUN_EVENT = "WORKFLOW_INSTANCE_STATUS_CHANGE"
STEP_EVENT = "STEP_INSTANCE_STATUS_CHANGE"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, for whoever follows along."""

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
class LogChunk:
    """A piece of an attempt's log."""

    attempt_uuid: str
    number: int
    text: str
    start: int = 0
    """Its place in the log: how many bytes were written before it."""
    line: int = 0
    """How many lines were."""
    dropped: tuple[int, int] = (0, 0)
    """When it is kept, pieces that lie wholly between these places are not kept any longer."""

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.text.encode())


@dataclass(frozen=True, slots=True)
class LogExtent:
    """Which part of a log is kept: in a piece of the store, or in a file outside."""

    start: int
    size: int
    number: int = 0
    """Of the piece."""
    line: int = 0
    """How many lines end before it; of a file nobody knows."""
    address: str | None = None
    """Of the file."""

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class TriggerMark:
    """How far a trigger has come: written only while its row is the one that was read, and its version is active."""

    workflow_id: str
    trigger_id: str
    seq: int
    """What the row was read with; it grows with each change."""
    state: Json
    due_at: int | None
    """When it is looked at next by itself."""
    is_begun: bool = True
    fired_at: int | None = None
    """When it last started something, if that is new."""
    error: str | None = None
    """Why it could not be looked at."""
    failures: int = 0
    """How often that failed, one after the other."""


@dataclass(slots=True)
class Changes:
    """All that one piece of progress changes: written whole, or not at all."""

    done: list[Task] = field(default_factory=list)
    """Tasks that this worker holds and gives back; if one of them is no longer its own, nothing is written."""
    held: list[Task] = field(default_factory=list)
    """Tasks that this worker holds and keeps; the same is true of them."""
    new_runs: list[Run] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    """Changed runs, with the ``seq`` that they were read with; an attempt changes only together with its run."""
    new_attempts: list[Attempt] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    admissions: list[Admission] = field(default_factory=list)
    """Attempts that want permits. A new one stands in ``new_attempts`` too, a changed one in ``attempts``: in either
    way the admission's own form is what is written."""
    passed_down: list[PassDown] = field(default_factory=list)
    """Applied after runs are written: ``action`` is set, ``seq`` grows, the children's tasks are enqueued."""
    starts: list[Start] = field(default_factory=list)
    marks: list[TriggerMark] = field(default_factory=list)
    """Triggers that brought the starts, or have moved on without one; if somebody else has moved one of them, nothing
    is written."""
    signals: list[Announcement] = field(default_factory=list)
    """Signals that steps send: whoever waits for them is woken, and the triggers that they may fire are due."""
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
    """The tasks among ``Changes.tasks`` (and of admissions) that went to an owner at once."""


@dataclass(frozen=True, slots=True)
class Children:
    """The child runs of an attempt, counted: the latest run of each."""

    active: int = 0
    failed: int = 0
    timed_out: int = 0
    stopped: int = 0


@dataclass(frozen=True, slots=True)
class Scope:
    """Where leaf steps are counted: in a whole tree, in one of its instances, or in all iterations of a loop."""

    root_uuid: str
    workflow_id: str | None = None
    """Of the instance, or the name of the loop; without it the whole tree is meant."""
    instance_id: int | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """An attempt of a leaf step, wherever it lies."""

    status: StepStatus
    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str
    attempt_id: int
    is_live: bool
    """Whether the instance or the iteration of the scope that it belongs to is not over."""


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf steps of a scope by the status of their newest attempt, and the first that are unfinished or failed."""

    over: Mapping[StepStatus, int] = field(default_factory=dict)
    """Of instances and iterations that are over."""
    live: Mapping[StepStatus, int] = field(default_factory=dict)
    """Of the others."""
    named: tuple[Leaf, ...] = ()


@dataclass(frozen=True, slots=True)
class IterationRecord:
    """An iteration of a loop: the latest run of it."""

    number: int
    status: RunStatus
    params: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ancestor:
    """An attempt that a run belongs to, directly or not."""

    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str
    attempt_id: int


@dataclass(frozen=True, slots=True)
class PermitUse:
    """A permit that an attempt waits for, and how many attempts hold it."""

    name: str
    """``workflow:…``, ``tree:…`` or ``tag:…``."""
    limit: int
    held: int


@dataclass(frozen=True, slots=True)
class LiveSteps:
    """Attempts in a run, and in the runs below it that are not over, that will move again: the first of each kind."""

    asking: tuple[Attempt, ...] = ()
    """Approvals that nobody has decided yet."""
    retrying: tuple[Attempt, ...] = ()
    """They have failed and are tried again later."""
    held: tuple[Attempt, ...] = ()
    """They wait for signals, permits or a breakpoint."""
    running: tuple[Attempt, ...] = ()
    """Their work is under way; leaf steps only."""
    waiting: int = 0
    """How many ask, are tried again or are held, those that are left out included."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run as it was read, with the newest attempt of each of its steps, carried ones too."""

    run: Run
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A process that carries out tasks."""

    uuid: str
    host: str
    pid: int
    started_at: int
    heartbeat_at: int
    slots: int
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat tells a worker."""

    is_alive: bool
    """Whether it still counts as alive; if not, all that it held has been given away."""
    now: int
    """The database's clock."""
    interrupted: frozenset[str] = frozenset()
    """Attempts in its hands for which somebody has asked an action."""
    owned: tuple[Task, ...] = ()
    """Every task that is on record as its own."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where attempts pause: at a step of a workflow; 0 stands for every version, instance, run or attempt."""

    workflow_id: str
    step_id: str
    version_id: int = 0
    instance_id: int = 0
    run_id: int = 0
    attempt_id: int = 0
    created_by: str = ""
    created_at: int = 0

    def is_for(self, run: Run, attempt: Attempt) -> bool:
        """Tell whether an attempt pauses here; ``run`` is that of the instance, also for a step inside a loop."""
        wanted = (self.version_id, self.instance_id, self.run_id, self.attempt_id)
        place = (run.version_id, run.instance_id, run.run_id, attempt.attempt_id)
        is_there = self.workflow_id == run.workflow_id and self.step_id == attempt.step_id
        return is_there and all(want in {0, is_} for want, is_ in zip(wanted, place, strict=True))


@dataclass(frozen=True, slots=True)
class TagPermit:
    """How many steps of a tag may run at once."""

    tag: str
    max_allowed: int
    held: int = 0
