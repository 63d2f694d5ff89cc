"""Stored attempts of steps, the permits that they need, and the pieces of their logs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from calve.engine.model.runs import Pending, Run
from calve.engine.model.statuses import StepStatus
from calve.engine.model.workflows import Json

LAST = "calve_last"
"""The artifact that says why no step follows an attempt, whatever its conditions say."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a step in a run."""

    uuid: str
    """Also the idempotency key of work that the attempt starts in another system."""
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
    """A later attempt has replaced it."""
    params: Json = field(default_factory=dict)
    """Evaluated params (``Parameter.as_stored``)."""
    artifacts: Json = field(default_factory=dict)
    edges: Mapping[str, bool] = field(default_factory=dict)
    """Once it has ended: which successors its conditions allow."""
    retries: Mapping[str, int] = field(default_factory=dict)
    """How often it was retried, by ``RetryReason``."""
    times: Mapping[str, int] = field(default_factory=dict)
    """When it reached each status: create, initialize, pause, wait_signal, evaluate_param, wait_permit, start …"""
    timeline: tuple[Json, ...] = ()
    dependencies: tuple[Json, ...] = ()
    """What each of its signal dependencies matched."""
    tags: tuple[str, ...] = ()
    action: Pending | None = None
    due_at: int | None = None
    """When the engine continues it: the next attempt after a failure, the timeout of an approval."""
    timeout_at: int | None = None
    worker: str | None = None
    ended_at: int | None = None


@dataclass(frozen=True, slots=True)
class Permit:
    """A limit that an attempt counts against: of its workflow, of its tree, of a tag."""

    name: str
    limit: int | None
    """None: the limit of the tag applies, if it has one."""


@dataclass(frozen=True, slots=True)
class PermitUse:
    """A permit that an attempt waits for, and how many attempts hold it."""

    name: str
    """``workflow:…``, ``tree:…`` or ``tag:…``."""
    limit: int
    held: int


@dataclass(frozen=True, slots=True)
class LiveSteps:
    """The first unfinished attempts of each kind in a run, and in the unfinished runs below it."""

    asking: tuple[Attempt, ...] = ()
    """Approvals without a decision so far."""
    retrying: tuple[Attempt, ...] = ()
    """Attempts that have failed and are retried later."""
    held: tuple[Attempt, ...] = ()
    """Attempts that wait for signals, permits or a breakpoint."""
    running: tuple[Attempt, ...] = ()
    """Attempts whose work is under way; leaf steps only."""
    waiting: int = 0
    """How many attempts are asking, retrying or held, including those left out."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A run as read from the store, with the newest attempt of each step, including carried-over ones."""

    run: Run
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """Where attempts pause: at a step of a workflow; 0 means every version, instance, run or attempt."""

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
    """How many steps of a tag may run concurrently."""

    tag: str
    max_allowed: int
    held: int = 0


@dataclass(frozen=True, slots=True)
class LogChunk:
    """A piece of an attempt's log."""

    attempt_uuid: str
    number: int
    text: str
    start: int = 0
    """Its offset in the log: how many bytes were written before it."""
    line: int = 0
    """How many lines end before it."""
    dropped: tuple[int, int] = (0, 0)
    """Storing it drops the pieces that lie wholly between these offsets."""

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
    """The number of the piece; for a file, how many of its bytes precede this part."""
    line: int = 0
    """How many lines end before it; unknown for a file."""
    address: str | None = None
    """The address of the file; None for a piece."""

    @property
    def end(self) -> int:
        """The offset where it ends."""
        return self.start + self.size
