"""Maestro's documents: the fields of each, in its order and under its names.

What calve adds to a document, what it leaves out of it and why, and what only the document of one thing has and not
that in a list, stands beside the fields. docs/reference/maestro-documents.md is written from here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

Json = Mapping[str, Any]
User = str | Json
"""A name; with more than that, an object."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document of Maestro's; a field without a value is not in it."""

    ADDED: ClassVar[Mapping[str, str]] = {}
    """What calve says besides, and what it means."""
    LEFT_OUT: ClassVar[Mapping[str, str]] = {}
    """What Maestro says and calve does not, and why."""
    ALONE: ClassVar[frozenset[str]] = frozenset()
    """Fields that cost a query: they stand in the document of one thing, not in a list."""

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of its fields, in order."""
        return tuple(field.name for field in fields(cls))

    def as_json(self) -> dict[str, Any]:
        """Return it in JSON's types."""
        found = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: _plain(value) for name, value in found if value is not None}


def _plain(value: Any) -> Any:
    match value:
        case Document():
            return value.as_json()
        case tuple():
            return [_plain(item) for item in value]
        case Mapping() if isinstance(next(iter(value.values()), None), Document):
            return {name: item.as_json() for name, item in value.items()}
        case _:
            return value


# Timelines.


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent(Document):
    """Something that was said about a run or a step."""

    timestamp: int
    type: str = "LOG"
    level: str = "INFO"
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusEvent(Document):
    """A status that a run or a step has come to."""

    timestamp: int
    type: str = "STATUS"
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEvent(Document):
    """Something that somebody did."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "info": "it holds the group of a permit's holder, which calve does not have"
    }

    timestamp: int
    type: str = "ACTION"
    action: str
    author: User
    message: str
    reason: str | None = None


Timeline = tuple[LogEvent | StatusEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTimelineEvent(Document):
    """A change of a workflow."""

    author: User
    log: str
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowTimeline(Document):
    """The changes of a workflow, newest first."""

    workflow_id: str
    timeline_events: tuple[WorkflowTimelineEvent, ...]


# Overviews and rollups.


@dataclass(frozen=True, slots=True, kw_only=True)
class CountReference(Document):
    """How many leaf steps are in a status, and which, if they are unfinished or failed: the first hundred."""

    cnt: int
    ref: Mapping[str, list[str]] | None = None
    """``workflow:run`` → ``instance:step:attempt``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RollupOverview(Document):
    """The leaf steps of a run, however deep they lie, by status."""

    total_leaf_count: int
    overview: Mapping[str, CountReference] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSummary(Document):
    """How many steps are in a status, and which: ordinal, start and end of each."""

    cnt: int
    steps: list[list[int | None]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOverview(Document):
    """A run at a glance."""

    total_step_count: int
    step_overview: Mapping[str, StatusSummary]
    rollup_overview: RollupOverview | None = None
    run_status: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAggregatedView(Document):
    """Where a step stands, all runs taken together."""

    workflow_run_id: int | None = None
    status: str
    start_time: int | None = None
    end_time: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatedInfo(Document):
    """Where an instance stands, all runs taken together."""

    workflow_instance_status: str
    step_aggregated_views: Mapping[str, StepAggregatedView]


# Artifacts.


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeachOverview(Document):
    """How the iterations of a foreach stand."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"restart_info": "iterations are restarted by a run of the instance"}

    checkpoint: int
    """So many iterations from the first one on are over."""
    stats: Mapping[str, int] | None = None
    """Iterations that are over, by status."""
    running_stats: Mapping[str, int] | None = None
    """The others."""
    rollup: RollupOverview | None = None
    """The leaf steps of iterations that are over."""
    running_rollup: RollupOverview | None = None
    """Those of the others."""
    details: Mapping[str, list[int | list[int]]] | None = None
    """By status: numbers of iterations, and intervals of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeachArtifact(Document):
    """What a foreach keeps: ``maestro_foreach``."""

    ADDED: ClassVar[Mapping[str, str]] = {"concurrency": "how many iterations run at once"}
    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "ancestor_iteration_count": "a restart looks at the iterations themselves",
        "pending_action": "iterations are restarted by a run of the instance",
    }
    ALONE: ClassVar[frozenset[str]] = frozenset({"foreach_overview"})

    foreach_workflow_id: str
    foreach_identity: str
    foreach_run_id: int
    """The run of the instance around it; an iteration that was not run again has fewer runs."""
    run_policy: str
    run_id: int
    total_loop_count: int
    next_loop_index: int
    foreach_overview: ForeachOverview | None = None
    type: str = "FOREACH"
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WhileArtifact(Document):
    """What a while keeps: ``maestro_while``."""

    ALONE: ClassVar[frozenset[str]] = frozenset(
        {"first_iteration", "last_status", "last_overview", "rollup", "loop_param_values"}
    )

    loop_workflow_id: str
    loop_identity: str
    loop_run_id: int
    """The run of the instance around it."""
    run_policy: str
    run_id: int
    first_iteration: int | None = None
    last_iteration: int
    last_status: str | None = None
    last_overview: RuntimeOverview | None = None
    rollup: RollupOverview | None = None
    """The leaf steps of all iterations but the last one."""
    loop_param_values: Mapping[str, list[Any]] | None = None
    """What each iteration began with."""
    type: str = "WHILE"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubworkflowArtifact(Document):
    """What a subworkflow keeps: ``maestro_subworkflow``."""

    ALONE: ClassVar[frozenset[str]] = frozenset({"subworkflow_overview"})

    subworkflow_id: str
    subworkflow_version_id: int
    subworkflow_instance_id: int | None = None
    subworkflow_run_id: int | None = None
    subworkflow_uuid: str | None = None
    subworkflow_overview: RuntimeOverview | None = None
    type: str = "SUBWORKFLOW"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotebookArtifact(Document):
    """What a Notebook step leaves: ``maestro_notebook``."""

    output_path: Any
    type: str = "NOTEBOOK"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpArtifact(Document):
    """What an Http step asked, and what it was answered: ``maestro_http``."""

    request: Any
    status: str
    """SUCCESS or FAILED."""
    status_code: Any
    body: Any = None
    type: str = "HTTP"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesArtifact(Document):
    """The job of a Kubernetes step: ``maestro_kubernetes``."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "execution_script": "the command is in the params",
        "execution_output": "what the job prints is in the log",
    }

    job_id: str
    command: Any = None
    type: str = "KUBERNETES"


# Steps.


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeState(Document):
    """Where an attempt stands, and when it came to each state on the way."""

    status: str
    create_time: int | None = None
    initialize_time: int | None = None
    pause_time: int | None = None
    wait_signal_time: int | None = None
    evaluate_param_time: int | None = None
    wait_permit_time: int | None = None
    start_time: int | None = None
    execute_time: int | None = None
    finish_time: int | None = None
    end_time: int | None = None
    modify_time: int | None = None
    """The last change that is on record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceTransition(Document):
    """The steps before and after a step; each edge is a param, with a result once the step is over."""

    predecessors: list[str] | None = None
    successors: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRetry(Document):
    """How often a step was tried again, and may be."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"manual_retries": "restarts by hand are not counted"}

    error_retries: int
    error_retry_limit: int | None = None
    platform_retries: int
    platform_retry_limit: int | None = None
    timeout_retries: int
    timeout_retry_limit: int | None = None
    retryable: bool
    backoff: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalOutput(Document):
    """A signal that a step has sent."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"payload": "GET the signal: it names the step as its source"}

    name: str
    params: Json | None = None
    signal_id: int
    announce_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalOutputs(Document):
    """The signals that an attempt has sent; what the step had sent before is not sent again, and not told again."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"info": "what went wrong is in the timeline"}

    outputs: tuple[SignalOutput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalDependencies(Document):
    """The signals that a step waits for, and what has come; ``params`` and ``signal_source`` of each are calve's."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"info": "who bypassed them is in the timeline"}

    dependencies: Sequence[Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartConfig(Document):
    """What a restart asked for."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"downstream_policy": "what is below follows the restart's own policy"}

    restart_path: Sequence[Json]
    """The instance itself, and its step if the restart named one."""
    restart_policy: str
    restart_params: Json | None = None
    step_restart_params: Json | None = None
    skip_steps: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInstance(Document):
    """An attempt of a step."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "step_instance_uuid": "the same as step_uuid; the name of the param",
        "type": "the type of the step",
        "status": "the status in runtime_state",
        "retries": "how often it was tried again, by reason",
        "next_attempt_time": "when it is tried again",
        "message": "what was said about it last: why it failed",
        "waiting": "what it waits for, if it does",
        "worker": "the worker that has it",
        "iterations": "of a loop, in a list: how many are done, active and failed",
        "child": "of a subworkflow, in a list: its instance",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "group_info": "it places a step among Maestro's servers; calve's workers take tasks from a queue",
    }

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    workflow_uuid: str
    step_uuid: str
    correlation_id: str
    """The same in all that an instance has brought about: the uuid of its first run, that of the root."""
    step_instance_id: int
    workflow_version_id: int
    owner: User | None = None
    definition: Json | None = None
    tags: Sequence[Json]
    step_run_params: Json | None = None
    restart_config: RestartConfig | None = None
    params: Json
    transition: InstanceTransition | None = None
    step_retry: StepRetry | None = None
    timeout_in_millis: int | None = None
    runtime_state: RuntimeState
    signal_dependencies: SignalDependencies | None = None
    signal_outputs: SignalOutputs | None = None
    artifacts: Json
    timeline: Timeline


# Instances.


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(Document):
    """How a run was started."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"correlation_id": "no request brings one"}

    runtime_tags: Sequence[Json] | None = None
    policy: str
    restart_config: RestartConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProperties(Document):
    """The properties of the workflow when the run was made."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"create_time": "snapshots of properties are not kept by their time"}

    owner: User | None = None
    alerting: Json | None = None
    step_concurrency: int | None = None
    tags: Sequence[Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InitiatorDocument(Document):
    """Who started an instance; what it holds depends on its type."""

    ADDED: ClassVar[Mapping[str, str]] = {"trigger": "all that a trigger has passed on"}
    LEFT_OUT: ClassVar[Mapping[str, str]] = {"params": "of signals; as plain values they are in trigger"}
    ALONE: ClassVar[frozenset[str]] = frozenset({"ancestors"})

    ancestors: Sequence[Json] | None = None
    """SUBWORKFLOW, FOREACH, WHILE: the steps around it, from the root."""
    trigger_uuid: str | None = None
    trigger_time: int | None = None
    """TIME."""
    timezone: str | None = None
    """TIME."""
    signal_id_map: Mapping[str, int] | None = None
    """SIGNAL."""
    depth: int
    type: str
    user: User | None = None
    """MANUAL: who; otherwise who started the root."""
    trigger: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInstance(Document):
    """A run of an instance."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "run_policy": "the policy in run_config",
        "request_id": "the request that started it",
        "tags": "the names of runtime_tags",
        "is_queued": "it waits for its turn by the run strategy",
        "message": "why it ended like this",
        "steps": "its steps, as in a list of them",
        "failures": "the first steps that failed, however deep: their paths, why, and where their logs are",
        "waiting": "the first steps that wait, however deep: for people, another try, signals or permits",
        "waiting_count": "how many wait",
        "progress": "how far steps have come that tell it",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "group_info": "it places an instance among Maestro's servers",
        "internal_id": "a number of Maestro's database",
        "execution_id": "a number of Maestro's flow engine",
        "artifacts": "no request brings any",
    }
    ALONE: ClassVar[frozenset[str]] = frozenset(
        {
            "runtime_workflow",
            "runtime_dag",
            "timeout_in_millis",
            "params",
            "runtime_overview",
            "timeline",
            "aggregated_info",
        }
    )

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    workflow_uuid: str
    correlation_id: str
    """The same in all that an instance has brought about: the uuid of its first run, that of the root."""
    workflow_version_id: int
    run_config: RunConfig
    run_params: Json | None = None
    step_run_params: Json | None = None
    run_properties: RunProperties
    runtime_workflow: Json | None = None
    runtime_dag: Json | None = None
    timeout_in_millis: int | None = None
    params: Json | None = None
    initiator: InitiatorDocument
    status: str
    request_time: int
    create_time: int
    start_time: int | None = None
    end_time: int | None = None
    modify_time: int
    """The last change that is on record."""
    runtime_overview: RuntimeOverview | None = None
    timeline: Timeline | None = None
    aggregated_info: AggregatedInfo | None = None


# Starts and signals.


@dataclass(frozen=True, slots=True, kw_only=True)
class StartResponse(Document):
    """What became of a start or a restart."""

    ADDED: ClassVar[Mapping[str, str]] = {"warnings": "params that were given and that nothing in the definition knows"}

    workflow_id: str
    workflow_version_id: int
    workflow_instance_id: int
    workflow_run_id: int
    workflow_uuid: str
    status: str
    timeline_event: LogEvent
    warnings: tuple[Json, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRestartResponse(Document):
    """What became of the restart of a step."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "workflow_uuid": "of the run",
        "warnings": "params that were given and that nothing in the definition knows",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {"step_attempt_id": "the attempt begins when its turn has come"}

    workflow_id: str
    workflow_version_id: int
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    status: str
    timeline_event: LogEvent
    workflow_uuid: str
    warnings: tuple[Json, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalInstance(Document):
    """A signal that was announced."""

    ADDED: ClassVar[Mapping[str, str]] = {"status": "in the answer to an announcement: CREATED or DUPLICATED"}

    name: str
    seq_id: int
    instance_id: str
    params: Json
    payload: Json
    request_time: int
    create_time: int
