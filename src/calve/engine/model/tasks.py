"""Tasks of the queue, and the workers that claim them."""

from dataclasses import dataclass
from enum import StrEnum


class TaskKind(StrEnum):
    """What a task is about: decide about a run, or execute an attempt."""

    RUN = "run"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class NewTask:
    """Something to do, now or later. There is at most one task per key; enqueuing a second one wakes the first."""

    kind: TaskKind
    run_uuid: str
    attempt_uuid: str | None = None
    due_at: int = 0
    priority: int = 0
    owner: str | None = None
    """The worker that owns it from the start."""

    @property
    def key(self) -> str:
        """The uuid of the attempt, or else of the run."""
        return self.attempt_uuid or self.run_uuid


@dataclass(frozen=True, slots=True)
class Task:
    """A task that a worker has claimed."""

    kind: TaskKind
    key: str
    run_uuid: str
    attempt_uuid: str | None
    owner: str
    generation: int
    """Grows whenever another worker claims the task: the previous owner can then no longer record anything."""
    wakes: int
    """Grows whenever the task is enqueued again while it is being done."""
    tries: int
    """How many workers have died while they owned it."""


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
    """The answer to a heartbeat of a worker."""

    is_alive: bool
    """Whether it still counts as alive; if not, its tasks have been released."""
    now: int
    """The database's clock."""
    interrupted: frozenset[str] = frozenset()
    """The attempts that it executes and on which an action was requested."""
    owned: tuple[Task, ...] = ()
    """Every task that it owns according to the store."""


@dataclass(frozen=True, slots=True)
class RunningTask:
    """A task that a worker owns, and the instance that it belongs to."""

    kind: TaskKind
    workflow_id: str
    instance_id: int
    owner_workflow: str
    """The workflow whose definition contains the step."""
    step_id: str | None


@dataclass(frozen=True, slots=True)
class Workload:
    """A worker and its tasks."""

    worker: WorkerRecord
    is_dead: bool
    tasks: tuple[RunningTask, ...] = ()
    """The first few tasks that it owns."""
    held: int = 0
    """How many tasks it owns."""


@dataclass(frozen=True, slots=True)
class QueueState:
    """How many tasks of a kind are in the queue."""

    ready: int = 0
    """Not claimed, and due."""
    later: int = 0
    """Not claimed, and due later."""
    claimed: int = 0
    retried: int = 0
    """Owned before by a worker that died."""
    oldest: int | None = None
    """When the task that has waited longest became due."""
