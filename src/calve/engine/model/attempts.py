"""Attempts of steps, as the store keeps them, the permits that they need, and the pieces of their logs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from calve.engine.model.runs import Pending, Run
from calve.engine.model.statuses import StepStatus
from calve.engine.model.workflows import Json

LAST = "calve_last"
"""The artifact of an attempt after which nothing follows, whatever the conditions say: why that is."""


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
    """Approvals without a decision so far."""
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
    """How many lines end before it; unknown for a file."""
    address: str | None = None
    """Of the file."""

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + self.size
