"""Runs and attempts as Maestro's documents. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any

from calve.definition.model.retries import FixedBackoff
from calve.definition.model.steps import Step, TypedStep
from calve.definition.params import InitiatorType, ParsedRetryPolicy, RetryReason, parse_duration, parse_retry_policy
from calve.definition.params import values_of as results_of
from calve.engine.attempts import MOMENTS
from calve.engine.awaiting import SEEN
from calve.engine.blueprints import Blueprint
from calve.engine.facts import parsed
from calve.engine.model import Attempt, Initiator, Json, Run
from calve.engine.signals import Signal
from calve.engine.statuses import RunStatus
from calve.engine.views.artifacts import artifacts_of, runtime_overview
from calve.engine.views.models import (
    AggregatedInfo,
    InitiatorDocument,
    InstanceTransition,
    LogEvent,
    RestartConfig,
    RunConfig,
    RunProperties,
    RuntimeState,
    SignalDependencies,
    SignalOutput,
    SignalOutputs,
    StatusEvent,
    StepAggregatedView,
    StepInstance,
    StepRetry,
    Timeline,
    User,
    WorkflowInstance,
)
from calve.engine.views.sources import RunSource, StepSource
from calve.errors import OF_THE_WORKFLOW

_STATUSES = {moment: status for status, moment in MOMENTS.items()}


def params_json(stored: Json) -> dict[str, Any]:
    """Return evaluated params: what Maestro keeps as metadata of a param stands among its fields."""
    return {name: flat(param.as_json()) for name, param in parsed(stored).items()}


def flat(param: Mapping[str, Any]) -> dict[str, Any]:
    """Return a param in JSON's types with its metadata among its fields."""
    fields = {name: value for name, value in param.items() if value is not None and name != "meta"}
    return {**fields, **(param.get("meta") or {})}


# Steps.


def step_instance(run: Run, attempt: Attempt, source: StepSource | None = None) -> StepInstance:
    """Return an attempt of a step; ``run`` is the run that shows it, its own may be an earlier one."""
    of_run = source.of_run if source else None
    run = of_run.runs.get(attempt.run_uuid, run) if of_run else run
    blueprint = of_run.blueprint_of(attempt) if of_run else None
    step = blueprint.steps.get(attempt.step_id) if blueprint else None
    changed = run.restart.step_params.get(attempt.step_id)
    params = params_json(attempt.params)
    known = {**of_run.around, **run.params} if of_run else run.params
    return StepInstance(
        workflow_id=run.workflow_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        step_id=attempt.step_id,
        step_attempt_id=attempt.attempt_id,
        workflow_uuid=run.uuid,
        step_uuid=attempt.uuid,
        correlation_id=run.root_uuid,
        step_instance_id=attempt.step_instance_id,
        workflow_version_id=run.version_id,
        owner=_owner(run),
        definition={step.kind: step.as_json()} if step else None,
        tags=_tags(step, attempt),
        step_run_params=_definitions(changed) if changed else None,
        restart_config=_restart_config(run),
        params=params,
        transition=_transition(attempt, blueprint) if blueprint and step else None,
        step_retry=_step_retry(known, attempt, step) if step else None,
        timeout_in_millis=_timeout(step.timeout, known) if step else None,
        runtime_state=runtime_state(attempt),
        signal_dependencies=_dependencies(attempt.dependencies),
        signal_outputs=_outputs(of_run.sent.get(attempt.uuid, ())) if of_run else None,
        artifacts=artifacts_of(run, attempt, params, source),
        timeline=_step_timeline(attempt),
    )


def runtime_state(attempt: Attempt) -> RuntimeState:
    """Return where an attempt stands, and when it came to each state."""
    times = {f"{moment}_time": at for moment, at in attempt.times.items()}
    changes = [*attempt.times.values(), *(entry["timestamp"] for entry in attempt.timeline)]
    return RuntimeState(status=attempt.status.value, **times, modify_time=max(changes, default=None))


def _tags(step: Step | None, attempt: Attempt) -> list[Json]:
    if step is None:
        return [{"name": name} for name in attempt.tags]
    return [_tag(tag.as_json()) for tag in step.tags]


def _tag(tag: Any) -> Json:
    """Return a tag as an object, its attributes among its fields."""
    if isinstance(tag, str):
        return {"name": tag}
    return {**{name: value for name, value in tag.items() if name != "attributes"}, **tag.get("attributes", {})}


def _transition(attempt: Attempt, blueprint: Blueprint) -> InstanceTransition:
    before = blueprint.dag.predecessors[attempt.step_id]
    edges = {
        target: _edge(condition, attempt, target)
        for target, condition in blueprint.dag.successors[attempt.step_id].items()
    }
    return InstanceTransition(predecessors=list(before) or None, successors=edges or None)


def _edge(condition: str, attempt: Attempt, target: str) -> Json:
    written: dict[str, Any] = {"expression": condition, "type": "BOOLEAN"}
    if target not in attempt.edges:
        return written
    return {**written, "evaluated_result": attempt.edges[target], "evaluated_time": attempt.ended_at}


def _step_retry(known: Json, attempt: Attempt, step: Step) -> StepRetry:
    policy = _retry_policy(known, step)
    said = attempt.artifacts.get("maestro_retry")
    counts = {f"{reason}_retries": attempt.retries.get(reason, 0) for reason in RetryReason}
    limits = {f"{reason}_retry_limit": policy.of(reason).limit for reason in RetryReason} if policy else {}
    return StepRetry(
        **counts,
        **limits,
        retryable=not (isinstance(said, Mapping) and said.get("retryable") is False),
        backoff=_backoff(step, policy) if policy else None,
    )


def _retry_policy(known: Json, step: Step) -> ParsedRetryPolicy | None:
    """Return how often a step is tried again; None if that cannot be told."""
    given = step.retry_policy if isinstance(step, TypedStep) else None
    try:
        return parse_retry_policy(given, results_of(parsed(known)) if given else {})
    except OF_THE_WORKFLOW:
        return None


def _backoff(step: Step, policy: ParsedRetryPolicy) -> Json:
    given = step.retry_policy.backoff if isinstance(step, TypedStep) and step.retry_policy else None
    found: dict[str, Any] = {}
    for reason in RetryReason:
        retries = policy.of(reason)
        found[f"{reason}_retry_backoff_in_secs"] = retries.backoff
        if not isinstance(given, FixedBackoff):
            found |= {f"{reason}_retry_exponent": retries.exponent, f"{reason}_retry_limit_in_secs": retries.ceiling}
    return {**found, "type": "FIXED_BACKOFF" if isinstance(given, FixedBackoff) else "EXPONENTIAL_BACKOFF"}


def _timeout(given: int | str | None, known: Json) -> int | None:
    """Return how many milliseconds something may take; None if its definition sets no limit."""
    if given is None:
        return None
    try:
        return parse_duration(given, results_of(parsed(known)))
    except OF_THE_WORKFLOW:
        return None


def _dependencies(dependencies: Iterable[Json]) -> SignalDependencies | None:
    """Return what an attempt's dependencies matched; how far it has looked is its own affair."""
    found = [{key: value for key, value in each.items() if key != SEEN} for each in dependencies]
    return SignalDependencies(dependencies=found) if found else None


def _outputs(sent: Iterable[Signal]) -> SignalOutputs | None:
    outputs = tuple(
        SignalOutput(
            name=each.name, params=dict(each.params) or None, signal_id=each.seq, announce_time=each.announced_at
        )
        for each in sent
    )
    return SignalOutputs(outputs=outputs) if outputs else None


# Timelines.


def _said(timeline: Iterable[Json]) -> list[LogEvent | StatusEvent]:
    return [
        LogEvent(timestamp=entry["timestamp"], level=entry.get("level", "INFO"), message=entry["message"])
        for entry in timeline
    ]


def _in_order(events: list[LogEvent | StatusEvent]) -> Timeline:
    return tuple(sorted(events, key=lambda event: event.timestamp))


def _step_timeline(attempt: Attempt) -> Timeline:
    """Return what was said about an attempt, and the statuses that it came to."""
    statuses = [
        StatusEvent(timestamp=at, status=_STATUSES.get(moment, attempt.status).value)
        for moment, at in attempt.times.items()
    ]
    return _in_order([*_said(attempt.timeline), *statuses])


def start_event(run: Run) -> LogEvent:
    """Return what a timeline says first of a run: who started it."""
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
    return _in_order([start_event(run), *_said(run.timeline), *statuses])


# Instances.


def workflow_instance(run: Run, source: RunSource | None = None, attempts: Iterable[Attempt] = ()) -> WorkflowInstance:
    """Return a run; without a source, as it stands in a list."""
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
            restart_config=_restart_config(run),
        ),
        run_params=_definitions(run.run_params) or None,
        step_run_params={step_id: _definitions(given) for step_id, given in run.restart.step_params.items()} or None,
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
    )


def _owner(run: Run) -> User | None:
    """Return the owner of the workflow; Maestro keeps no more than the name with a run."""
    owner = run.properties.get("owner")
    return owner.get("name") if isinstance(owner, Mapping) else owner


def _run_properties(run: Run) -> RunProperties:
    tags = [_tag(tag) for tag in run.properties.get("tags", ())]
    return RunProperties(
        owner=_owner(run),
        alerting=run.properties.get("alerting"),
        step_concurrency=run.properties.get("step_concurrency"),
        tags=tags or None,
    )


def _restart_config(run: Run) -> RestartConfig | None:
    if run.policy.is_fresh:
        return None
    restart = run.restart
    step_id = restart.step_path[0] if restart.step_path else None
    changed = {each: _definitions(given) for each, given in restart.step_params.items()}
    return RestartConfig(
        restart_path=[{"workflow_id": run.workflow_id, "instance_id": run.instance_id, "step_id": step_id}],
        restart_policy=run.policy.value,
        restart_params=_definitions(run.run_params) or None,
        step_restart_params=changed or None,
        skip_steps=list(restart.skip) or None,
    )


def _definitions(params: Json) -> dict[str, Any]:
    """Return definitions of params that came with a request."""
    return {name: flat(given) if isinstance(given, Mapping) else given for name, given in params.items()}


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
    return None if run.is_inline else _timeout(blueprint.workflow.timeout, run.params)


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
    """Return where the instance and its steps stand, all runs taken together: what Maestro's clients watch."""
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
