"""Tasks of the queue, and the workers that claim them."""

from dataclasses import dataclass
from enum import StrEnum


class TaskKind(StrEnum):
    """What a task is about: decide about a run, or execute an attempt."""

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
    """A worker that owns it from the start."""

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
    """Grows whenever another worker claims the task: the one that held it before can no longer record anything."""
    wakes: int
    """Grows whenever it is enqueued again while it is being done."""
    tries: int
    """How many workers have died while they held it."""


@dataclass(frozen=True, slots=True)
class WorkerRecord:
    """A process that executes tasks."""

    uuid: str
    host: str
    pid: int
    started_at: int
    heartbeat_at: int
    slots: int
    is_draining: bool = False
    version: str = ""
    """The version of calve that it runs."""


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """What a heartbeat tells a worker."""

    is_alive: bool
    """Whether it still counts as alive; if not, all that it held has been given away."""
    now: int
    """The database's clock."""
    interrupted: frozenset[str] = frozenset()
    """Attempts that it executes and on which an action was requested."""
    owned: tuple[Task, ...] = ()
    """Every task that is on record as its own."""


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task that a worker holds, and the instance that it belongs to."""

    kind: TaskKind
    workflow_id: str
    instance_id: int
    owner_workflow: str
    """The workflow whose definition holds the step."""
    step_id: str | None


@dataclass(frozen=True, slots=True)
class Workload:
    """A worker, and what it does."""

    worker: WorkerRecord
    is_dead: bool
    tasks: tuple[RunningTask, ...] = ()
    """The first few that it holds."""
    held: int = 0
    """How many it holds."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many tasks of a kind are in the queue."""

    ready: int = 0
    """Free, and due."""
    later: int = 0
    """Free, and due later."""
    claimed: int = 0
    retried: int = 0
    """Held before by a worker that died."""
    oldest: int | None = None
    """Since when the one that waits longest is due."""
