"""Attempts of steps as Maestro's documents."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from calve.definition.model import FixedBackoff, Step, TypedStep
from calve.definition.params import (
    ParsedRetryPolicy,
    RetryReason,
    parse_duration,
    parse_retry_policy,
    values_of as results_of,
)
from calve.engine.attempts import MOMENTS, SEEN
from calve.engine.instances import Blueprint
from calve.engine.model import Attempt, Run, Signal, StepStatus
from calve.engine.params import params_from_stored
from calve.engine.views.artifacts import artifacts_of
from calve.engine.views.document import Document, Json, LogEvent, StatusEvent, Timeline, User
from calve.engine.views.live_steps import Waiting, waiting_of
from calve.engine.views.overview import StepOverview, last_message
from calve.engine.views.sources import RunSource, StepSource
from calve.errors import OF_THE_WORKFLOW


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeState(Document):
    """The state of an attempt, and when it reached each state."""

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
    """The last recorded change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceTransition(Document):
    """The steps before and after a step; each edge is a param, with a result when the step has ended."""

    predecessors: list[str] | None = None
    successors: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRetry(Document):
    """How often a step was retried, and may be retried."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"manual_retries": "manual restarts are not counted"}

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
    """A sent signal."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"payload": "GET the signal, whose source is the step"}

    name: str
    params: Json | None = None
    signal_id: int
    announce_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalOutputs(Document):
    """The signals that an attempt has sent; those that earlier attempts have sent are not repeated."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"info": "errors are in the timeline"}

    outputs: tuple[SignalOutput, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalDependencies(Document):
    """The signals that a step waits for, and those that have arrived; ``params`` and ``signal_source`` are calve's."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"info": "who bypassed them is in the timeline"}

    dependencies: Sequence[Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartConfig(Document):
    """The request of a restart."""

    LEFT_OUT: ClassVar[Mapping[str, str]] = {"downstream_policy": "steps below follow the policy of the restart"}

    restart_path: Sequence[Json]
    """The instance, and its step if the restart named one."""
    restart_policy: str
    restart_params: Json | None = None
    step_restart_params: Json | None = None
    skip_steps: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReference(Document):
    """The run and its status."""

    workflow_id: str
    workflow_version_id: int
    workflow_instance_id: int
    workflow_run_id: int
    workflow_uuid: str
    status: str
    is_queued: bool | None = None
    """For the child of a subworkflow step: whether the run strategy has queued it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepInstance(Document):
    """An attempt of a step."""

    ADDED: ClassVar[Mapping[str, str]] = {
        "step_instance_uuid": "the same as step_uuid; the name of the param",
        "type": "the type of the step",
        "status": "the status in runtime_state",
        "retries": "how often it was retried, by reason",
        "next_attempt_time": "when it is retried",
        "message": "the last message about it, such as the cause of a failure",
        "waiting": "why it waits, if it does",
        "worker": "the worker that runs it",
        "iterations": "for a loop, in lists: how many iterations are done, active and failed",
        "child": "for a subworkflow, in lists: its instance",
    }
    LEFT_OUT: ClassVar[Mapping[str, str]] = {
        "group_info": "assigns a step to one of Maestro's servers; calve's workers take tasks from a queue",
    }

    workflow_id: str
    workflow_instance_id: int
    workflow_run_id: int
    step_id: str
    step_attempt_id: int
    workflow_uuid: str
    step_uuid: str
    correlation_id: str
    """The uuid of the root's first run, shared by everything that the instance has started."""
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
    step_instance_uuid: str | None = None
    type: str | None = None
    status: str | None = None
    retries: Mapping[str, int] | None = None
    next_attempt_time: int | None = None
    worker: str | None = None
    message: str | None = None
    waiting: Waiting | None = None
    iterations: Json | None = None
    child: RunReference | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNotCreated(Document):
    """A step of a run that has no attempt yet."""

    step_id: str
    step_instance_id: int
    type: str
    status: str = StepStatus.NOT_CREATED.value


_STATUSES = {moment: status for status, moment in MOMENTS.items()}


def params_json(stored: Json) -> dict[str, Any]:
    """Return evaluated params, with Maestro's metadata of a param among its fields."""
    return {name: flat(param.as_json()) for name, param in params_from_stored(stored).items()}


def flat(param: Mapping[str, Any]) -> dict[str, Any]:
    """Return a param in JSON's types with its metadata among its fields."""
    fields = {name: value for name, value in param.items() if value is not None and name != "meta"}
    return {**fields, **(param.get("meta") or {})}


def run_reference(run: Run, *, is_queued: bool | None = None) -> RunReference:
    """Return which run it is, and its status."""
    return RunReference(
        workflow_id=run.workflow_id,
        workflow_version_id=run.version_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        workflow_uuid=run.uuid,
        status=run.status.value,
        is_queued=is_queued,
    )


def overview_step(run: Run, step: StepOverview, source: RunSource) -> StepInstance | StepNotCreated:
    """Return a step of a run for the run's document."""
    if step.attempt is None:
        return StepNotCreated(step_id=step.step_id, step_instance_id=step.ordinal, type=step.type)
    counts, child = step.iterations, step.child
    return replace(
        step_instance(run, step.attempt, StepSource(source)),
        iterations=_without_none(asdict(counts)) if counts else None,
        child=run_reference(child, is_queued=child.is_queued or None) if child else None,
    )


def _without_none(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def step_instance(run: Run, attempt: Attempt, source: StepSource | None = None) -> StepInstance:
    """Return an attempt of a step; ``run`` is the run that shows it, which may be later than the attempt's."""
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
        owner=owner_of(run),
        definition={step.kind: step.as_json()} if step else None,
        tags=_tags(step, attempt),
        step_run_params=definitions_json(changed) if changed else None,
        restart_config=restart_config(run),
        params=params,
        transition=_transition(attempt, blueprint) if blueprint and step else None,
        step_retry=_step_retry(known, attempt, step) if step else None,
        timeout_in_millis=parsed_timeout(step.timeout, known) if step else None,
        runtime_state=runtime_state(attempt),
        signal_dependencies=_dependencies(attempt.dependencies),
        signal_outputs=_outputs(of_run.sent.get(attempt.uuid, ())) if of_run else None,
        artifacts=artifacts_of(run, attempt, params, source),
        timeline=_step_timeline(attempt),
        step_instance_uuid=attempt.uuid,
        type=attempt.type,
        status=attempt.status.value,
        retries=dict(attempt.retries) or None,
        next_attempt_time=attempt.due_at if attempt.status.is_retryable else None,
        worker=attempt.worker,
        message=last_message(attempt) or None,
        waiting=waiting_of(attempt),
    )


def runtime_state(attempt: Attempt) -> RuntimeState:
    """Return the state of an attempt, and when it reached each state."""
    times = {f"{moment}_time": at for moment, at in attempt.times.items()}
    changes = [*attempt.times.values(), *(entry["timestamp"] for entry in attempt.timeline)]
    return RuntimeState(status=attempt.status.value, **times, modify_time=max(changes, default=None))


def _tags(step: Step | None, attempt: Attempt) -> list[Json]:
    if step is None:
        return [{"name": name} for name in attempt.tags]
    return [tag_json(tag.as_json()) for tag in step.tags]


def tag_json(tag: Any) -> Json:
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
    """Return how often a step is retried; None if it is not known."""
    given = step.retry_policy if isinstance(step, TypedStep) else None
    try:
        return parse_retry_policy(given, results_of(params_from_stored(known)) if given else {})
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


def parsed_timeout(given: int | str | None, known: Json) -> int | None:
    """Return a timeout in milliseconds; None if the definition has none."""
    if given is None:
        return None
    try:
        return parse_duration(given, results_of(params_from_stored(known)))
    except OF_THE_WORKFLOW:
        return None


def _dependencies(dependencies: Iterable[Json]) -> SignalDependencies | None:
    """Return what an attempt's dependencies matched, without its position in the signals."""
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


def log_events(timeline: Iterable[Json]) -> list[LogEvent | StatusEvent]:
    """Return the messages of a timeline."""
    return [
        LogEvent(timestamp=entry["timestamp"], level=entry.get("level", "INFO"), message=entry["message"])
        for entry in timeline
    ]


def in_order(events: list[LogEvent | StatusEvent]) -> Timeline:
    """Return events by time."""
    return tuple(sorted(events, key=lambda event: event.timestamp))


def _step_timeline(attempt: Attempt) -> Timeline:
    """Return the messages about an attempt, and its changes of status."""
    statuses = [
        StatusEvent(timestamp=at, status=_STATUSES.get(moment, attempt.status).value)
        for moment, at in attempt.times.items()
    ]
    return in_order([*log_events(attempt.timeline), *statuses])


def owner_of(run: Run) -> User | None:
    """Return the owner of the workflow; Maestro stores only the name with a run."""
    owner = run.properties.get("owner")
    return owner.get("name") if isinstance(owner, Mapping) else owner


def restart_config(run: Run) -> RestartConfig | None:
    """Return the request of a restart; None if the run is not a restart."""
    if run.policy.is_fresh:
        return None
    restart = run.restart
    step_id = restart.step_path[0] if restart.step_path else None
    changed = {each: definitions_json(given) for each, given in restart.step_params.items()}
    return RestartConfig(
        restart_path=[{"workflow_id": run.workflow_id, "instance_id": run.instance_id, "step_id": step_id}],
        restart_policy=run.policy.value,
        restart_params=definitions_json(run.run_params) or None,
        step_restart_params=changed or None,
        skip_steps=list(restart.skip) or None,
    )


def definitions_json(params: Json) -> dict[str, Any]:
    """Return the definitions of params in a request."""
    return {name: flat(given) if isinstance(given, Mapping) else given for name, given in params.items()}
