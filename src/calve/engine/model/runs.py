"""Stored runs of instances, and counts of the runs and steps below them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from calve.definition.params import InitiatorType
from calve.engine.model.actions import Action
from calve.engine.model.statuses import RunStatus, StepStatus
from calve.engine.model.workflows import Json
from calve.namespaces import covers, namespace_of


class RunPolicy(StrEnum):
    """What a run takes over from earlier runs of its instance."""

    START_FRESH_NEW_RUN = "START_FRESH_NEW_RUN"
    RESTART_FROM_INCOMPLETE = "RESTART_FROM_INCOMPLETE"
    RESTART_FROM_BEGINNING = "RESTART_FROM_BEGINNING"
    RESTART_FROM_SPECIFIC = "RESTART_FROM_SPECIFIC"

    @property
    def is_fresh(self) -> bool:
        """Tell whether it is not a restart."""
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
    """The namespaces of workflows and signals that params of the run may name; None means all."""

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
    """What a restart requests, besides its policy."""

    step_path: tuple[str, ...] = ()
    """RESTART_FROM_SPECIFIC: the step ids on the way from the outermost step down to the one to restart from."""
    iterations: tuple[int, ...] = ()
    """The iteration to enter at each loop of the path."""
    step_params: Mapping[str, Json] = field(default_factory=dict)
    """Changed params by step."""
    skip: tuple[str, ...] = ()
    """Steps that are to be skipped."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """Steps that run again: the uuids of the attempts of earlier runs that they replace."""
    is_latest: bool = False
    """Continue with the latest version: run again what changed since, besides what is incomplete."""
    keep: tuple[str, ...] = ()
    """Steps whose results are kept although they changed, with those of the steps before them."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an instance; each restart makes another one."""

    uuid: str
    workflow_id: str
    """The id of the workflow; for an iteration, a name generated for its loop."""
    instance_id: int
    run_id: int
    version_id: int
    owner_workflow: str
    """The workflow whose definition contains its steps; for an iteration, that of the instance around its loop."""
    root_uuid: str
    status: RunStatus = RunStatus.CREATED
    run_status: RunStatus = RunStatus.CREATED
    """How this run itself ended; ``status`` includes what earlier runs left undone."""
    initiator: Initiator = field(default_factory=Initiator)
    policy: RunPolicy = RunPolicy.START_FRESH_NEW_RUN
    parent: Parent | None = None
    inline_step: str | None = None
    """The loop whose steps an iteration runs; None for an instance of a workflow."""
    depth: int = 0
    priority: int = 0
    """Lower comes first."""
    properties: Json = field(default_factory=dict)
    """The workflow's properties when the run was created."""
    run_params: Json = field(default_factory=dict)
    """Definitions of params that came with the start, by name."""
    params: Json = field(default_factory=dict)
    """Evaluated params (``Parameter.as_stored``); for an iteration, only its own."""
    restart: Restart = field(default_factory=Restart)
    carried: Mapping[str, str] = field(default_factory=dict)
    """Steps whose results are carried over from earlier runs: the uuids of their attempts."""
    request_id: str | None = None
    tags: tuple[str, ...] = ()
    is_queued: bool = False
    """Waits in the queue of the run strategy."""
    is_latest: bool = True
    is_blocking: bool = False
    """FAILED, and neither unblocked nor restarted: STRICT_SEQUENTIAL starts nothing after it."""
    action: "Pending | None" = None
    """The action requested on the whole run, until it has taken effect."""
    message: str = ""
    timeline: tuple[Json, ...] = ()
    created_at: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    timeout_at: int | None = None
    seq: int = 0
    """Grows with each change; a commit is refused if it has changed since the run was read."""

    @property
    def is_inline(self) -> bool:
        """Tell whether it is an iteration of a loop."""
        return self.inline_step is not None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The status of a run, and when it ended."""

    status: RunStatus
    ended_at: int | None

    @property
    def is_success(self) -> bool:
        """Tell whether it has succeeded."""
        return self.status is RunStatus.SUCCEEDED


@dataclass(frozen=True, slots=True)
class Pending:
    """An action that was requested and has not taken effect yet."""

    action: Action
    by: str = ""
    at: int = 0
    reason: str = ""
    is_upstream: bool = False
    """Passed down from the run or the step around it."""
    params: Json = field(default_factory=dict)
    """What comes with the action, such as the comment of an approval."""


@dataclass(frozen=True, slots=True)
class Start:
    """An instance to start under its workflow's run strategy."""

    run: Run
    """Without its instance id, which the transaction gives it."""
    is_restart: bool = False


class StartStatus(StrEnum):
    """The result of a request to start."""

    CREATED = "CREATED"
    DUPLICATED = "DUPLICATED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Started:
    """The result of a request to start, and the run."""

    status: StartStatus
    run: Run
    warnings: tuple[Json, ...] = ()
    """What looks wrong in the request."""


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
    """The workflow of the instance, or the name of the loop; None means the whole tree."""
    instance_id: int | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """An attempt of a leaf step, at any depth."""

    status: StepStatus
    workflow_id: str
    instance_id: int
    run_id: int
    step_id: str
    attempt_id: int
    is_live: bool
    """Whether the instance or the iteration of the scope that contains it has not ended."""


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaf steps of a scope by the status of their newest attempt, and the first that are unfinished or failed."""

    over: Mapping[StepStatus, int] = field(default_factory=dict)
    """Counts in instances and iterations that have ended."""
    live: Mapping[StepStatus, int] = field(default_factory=dict)
    """Counts in those that have not ended."""
    named: tuple[Leaf, ...] = ()


@dataclass(frozen=True, slots=True)
class IterationRecord:
    """The latest run of an iteration."""

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
