"""Runs of instances as Maestro's documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from calve.definition.params import (
    InitiatorType,
)
from calve.engine.instances import Blueprint
from calve.engine.model import Attempt, Initiator, Run, RunStatus
from calve.engine.views.artifacts import RuntimeOverview, runtime_overview
from calve.engine.views.document import Document, Json, LogEvent, StatusEvent, Timeline, User
from calve.engine.views.live_steps import StepFailure, StepProgress, StepWait, step_failure, step_progress, step_wait
from calve.engine.views.overview import Overview
from calve.engine.views.sources import RunSource
from calve.engine.views.steps import (
    RestartConfig,
    StepInstance,
    StepNotCreated,
    definitions_json,
    in_order,
    log_events,
    overview_step,
    owner_of,
    params_json,
    parsed_timeout,
    restart_config,
    tag_json,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepAggregatedView(Document):
    """The state of a step, over all runs."""

    workflow_run_id: int | None = None
    status: str
    start_time: int | None = None
    end_time: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatedInfo(Document):
    """The state of an instance, over all runs."""

    workflow_instance_status: str
    step_aggregated_views: Mapping[str, StepAggregatedView]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(Document):
    """How a run was started."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"correlation_id": "requests do not have one"}

    runtime_tags: Sequence[Json] | None = None
    policy: str
    restart_config: RestartConfig | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProperties(Document):
    """The properties of the workflow when the run was created."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"create_time": "earlier properties are not kept"}

    owner: User | None = None
    alerting: Json | None = None
    step_concurrency: int | None = None
    tags: Sequence[Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InitiatorDocument(Document):
    """Who started an instance; the fields depend on the type."""

    ADDED: ClassVar[Mapping[str, str]] = {"trigger": "all fields that a trigger has passed on"}
    LEFT_OUT: ClassVar[Mapping[str, str]] = {"params": "the params of signals are plain values in trigger"}
    ALONE: ClassVar[frozenset[str]] = frozenset({"ancestors"})

    ancestors: Sequence[Json] | None = None
    """SUBWORKFLOW, FOREACH, WHILE: the steps that contain it, starting at the root."""
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
    """MANUAL: the user; otherwise the user who started the root."""
    trigger: Json | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInstance(Document):
    """A run of an instance."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "run_policy": "the policy in run_config",
        "request_id": "the id of the request that started it",
        "tags": "the names of runtime_tags",
        "is_queued": "whether it is queued by the run strategy",
        "message": "the reason for its status",
        "steps": "its steps, as in lists of steps",
        "failures": "the first failed steps at any depth: their paths, causes, and links to their logs",
        "waiting": "the first waiting steps at any depth: for people, a retry, signals or permits",
        "waiting_count": "the number of waiting steps",
        "progress": "the progress of steps that report it",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "group_info": "assigns an instance to one of Maestro's servers",
        "internal_id": "a number in Maestro's database",
        "execution_id": "a number in Maestro's flow engine",
        "artifacts": "requests do not have any",
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
    """The uuid of the root's first run, shared by everything that the instance has started."""
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
    """The last recorded change."""
    runtime_overview: RuntimeOverview | None = None
    timeline: Timeline | None = None
    aggregated_info: AggregatedInfo | None = None
    run_policy: str | None = None
    request_id: str | None = None
    tags: Sequence[str] | None = None
    is_queued: bool | None = None
    message: str | None = None
    steps: tuple[StepInstance | StepNotCreated, ...] | None = None
    failures: tuple[StepFailure, ...] | None = None
    waiting: tuple[StepWait, ...] | None = None
    waiting_count: int | None = None
    progress: tuple[StepProgress, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartResponse(Document):
    """The result of a start or a restart."""

    ADDED: ClassVar[Mapping[str, str]] = {"warnings": "params of the request that the definition does not use"}

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
    """The result of the restart of a step."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "workflow_uuid": "of the run",
        "warnings": "params of the request that the definition does not use",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {"step_attempt_id": "the attempt starts later"}

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
class PlannedStepDocument(Document):
    """The effect of a restart on a step."""

    step_id: str
    fate: str
    """KEPT, RUNS_AGAIN, RUNS, SKIPPED or REMOVED."""
    reason: str
    obstacle: str
    """Why the step cannot run again; empty if it can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlanDocument(Document):
    """The effect of a restart."""

    workflow_version_id: int
    restart_version_id: int
    steps: tuple[PlannedStepDocument, ...]
    refusal: str
    """Why the restart would be refused; empty if it would not."""
    repeats: tuple[str, ...] = ()
    """The steps whose work would be done a second time though they have no targets: nothing undoes what they did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalInstance(Document):
    """An announced signal."""

    ADDED: ClassVar[Mapping[str, str]] = {"status": "in the answer to an announcement: CREATED or DUPLICATED"}

    name: str
    seq_id: int
    instance_id: str
    params: Json
    payload: Json
    request_time: int
    create_time: int


def start_event(run: Run) -> LogEvent:
    """Return the first message of a run's timeline: who started it."""
    by = run.initiator
    match by.type:
        case InitiatorType.MANUAL:
            message = f"Started by {by.user or 'an unknown user'}."
        case kind if run.parent is not None:
            message = f"Started by the {kind.value.lower()} step {run.parent.step_id}."
        case kind:
            message = f"Started by the {kind.value.lower()} trigger {by.trigger.get('trigger_id', '')}".rstrip() + "."
    return LogEvent(timestamp=run.created_at, message=message)


def _run_timeline(run: Run) -> Timeline:
    moments = [(run.created_at, RunStatus.CREATED), (run.started_at, RunStatus.IN_PROGRESS), (run.ended_at, run.status)]
    statuses = [StatusEvent(timestamp=at, status=status.value) for at, status in moments if at is not None]
    return in_order([start_event(run), *log_events(run.timeline), *statuses])


def listed_instance(run: Run) -> WorkflowInstance:
    """Return a run for lists."""
    return _instance(run)


def overview_instance(overview: Overview) -> WorkflowInstance:
    """Return a run with its params and its steps."""
    run, source, live = overview.run, overview.source, overview.live
    attempts = [step.attempt for step in overview.steps if step.attempt is not None]
    return replace(
        _instance(run, source, attempts),
        steps=tuple(overview_step(run, step, source) for step in overview.steps),
        failures=tuple(step_failure(run, failure) for failure in overview.failures),
        waiting=tuple(step_wait(run, wait) for wait in live.waits),
        waiting_count=live.waiting,
        progress=tuple(step_progress(progress) for progress in live.progress),
    )


def _instance(run: Run, source: RunSource | None = None, attempts: Iterable[Attempt] = ()) -> WorkflowInstance:
    changes = [at for at in (run.created_at, run.started_at, run.ended_at) if at is not None]
    said = [entry["timestamp"] for entry in run.timeline]
    shown = tuple(attempts)
    return WorkflowInstance(
        workflow_id=run.workflow_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        workflow_uuid=run.uuid,
        correlation_id=run.root_uuid,
        workflow_version_id=run.version_id,
        run_config=RunConfig(
            runtime_tags=[{"name": name, "namespace": "RUNTIME"} for name in run.tags] or None,
            policy=run.policy.value,
            restart_config=restart_config(run),
        ),
        run_params=definitions_json(run.run_params) or None,
        step_run_params={step_id: definitions_json(given) for step_id, given in run.restart.step_params.items()}
        or None,
        run_properties=_run_properties(run),
        runtime_workflow=_runtime_workflow(run, source.blueprint) if source else None,
        runtime_dag=_runtime_dag(source.blueprint) if source else None,
        timeout_in_millis=_run_timeout(run, source.blueprint) if source else None,
        params=params_json(run.params) if source else None,
        initiator=_initiator(run, source),
        status=run.status.value,
        request_time=run.created_at,
        create_time=run.created_at,
        start_time=run.started_at,
        end_time=run.ended_at,
        modify_time=max(changes + said),
        runtime_overview=runtime_overview(run, source.blueprint, shown, source.leaves) if source else None,
        timeline=_run_timeline(run) if source else None,
        aggregated_info=_aggregated_info(run, source, shown) if source else None,
        run_policy=run.policy.value,
        request_id=run.request_id,
        tags=list(run.tags) or None,
        is_queued=run.is_queued or None,
        message=run.message or None,
    )


def _run_properties(run: Run) -> RunProperties:
    tags = [tag_json(tag) for tag in run.properties.get("tags", ())]
    return RunProperties(
        owner=owner_of(run),
        alerting=run.properties.get("alerting"),
        step_concurrency=run.properties.get("step_concurrency"),
        tags=tags or None,
    )


def _runtime_workflow(run: Run, blueprint: Blueprint) -> Json:
    """Return the definition that a run follows: the workflow's with the tags of the start, or the steps of a loop."""
    written = blueprint.written
    if run.is_inline:
        return {"id": run.workflow_id, "steps": written["steps"]}
    tags = [*written.get("tags", ()), *({"name": name, "namespace": "RUNTIME"} for name in run.tags)]
    return {**written, "tags": tags} if run.tags else written


def _runtime_dag(blueprint: Blueprint) -> Json:
    dag = blueprint.dag
    return {
        step_id: {
            name: value
            for name, value in (("predecessors", list(dag.predecessors[step_id])), ("successors", dict(edges)))
            if value
        }
        for step_id, edges in dag.successors.items()
    }


def _run_timeout(run: Run, blueprint: Blueprint) -> int | None:
    return None if run.is_inline else parsed_timeout(blueprint.workflow.timeout, run.params)


def _initiator(run: Run, source: RunSource | None) -> InitiatorDocument:
    by: Initiator = run.initiator
    told = by.trigger
    ancestors = [
        {
            "workflow_id": each.workflow_id,
            "instance_id": each.instance_id,
            "run_id": each.run_id,
            "step_id": each.step_id,
            "step_attempt_id": each.attempt_id,
        }
        for each in (source.ancestors if source else ())
    ]
    return InitiatorDocument(
        ancestors=ancestors if by.type.is_upstream and source else None,
        trigger_uuid=told.get("trigger_uuid"),
        trigger_time=told.get("scheduled_at"),
        timezone=by.timezone,
        signal_id_map=told.get("signal_ids"),
        depth=run.depth,
        type=by.type.value,
        user=by.user,
        trigger=dict(told) or None,
    )


def _aggregated_info(run: Run, source: RunSource, attempts: Iterable[Attempt]) -> AggregatedInfo:
    """Return the state of an instance and its steps over all runs, which Maestro's clients watch."""
    known = {attempt.step_id: attempt for attempt in attempts}
    views = {step_id: _aggregated(run, source, known.get(step_id)) for step_id in source.blueprint.steps}
    return AggregatedInfo(workflow_instance_status=run.status.value, step_aggregated_views=views)


def _aggregated(run: Run, source: RunSource, attempt: Attempt | None) -> StepAggregatedView:
    if attempt is None:
        return StepAggregatedView(status="NOT_CREATED")
    return StepAggregatedView(
        workflow_run_id=source.runs.get(attempt.run_uuid, run).run_id,
        status=attempt.status.value,
        start_time=attempt.times.get("start"),
        end_time=attempt.times.get("end"),
    )
