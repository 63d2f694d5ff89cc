"""Documents in Maestro's shape: snake_case, times in milliseconds, nothing where there is no value, no secret. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from calve.engine.awaiting import SEEN
from calve.engine.facts import parsed
from calve.engine.model import Attempt, Initiator, Json, Run, Started
from calve.engine.restart_plans import RestartPlan
from calve.engine.statuses import FLAGS, StepStatus
from calve.engine.views.overview import Overview, StepOverview

Document = dict[str, Any]


def run_json(run: Run) -> Document:
    """Return which run it is, and where it stands."""
    return {
        "workflow_id": run.workflow_id,
        "workflow_version_id": run.version_id,
        "workflow_instance_id": run.instance_id,
        "workflow_run_id": run.run_id,
        "workflow_uuid": run.uuid,
        "status": run.status.value,
    }


def started_json(started: Started) -> Document:
    """Return the answer to a start: which run it is, and whether it was created by it."""
    return {**run_json(started.run), "status": started.status.value}


def restart_plan_json(plan: RestartPlan) -> Document:
    """Return what a restart would do with each step, and why."""
    return {
        "workflow_version_id": plan.from_version,
        "restart_version_id": plan.to_version,
        "steps": [
            {"step_id": step.step_id, "fate": step.fate.value, "reason": step.reason, "obstacle": step.obstacle}
            for step in plan.steps
        ],
        "refusal": plan.refusal,
    }


def instance_json(run: Run) -> Document:
    """Return a run of an instance, without its steps."""
    return run_json(run) | _present(
        initiator=_initiator(run.initiator),
        run_policy=run.policy.value,
        request_id=run.request_id,
        tags=list(run.tags) or None,
        create_time=run.created_at,
        start_time=run.started_at,
        end_time=run.ended_at,
        is_queued=run.is_queued or None,
        message=run.message or None,
    )


def overview_json(overview: Overview) -> Document:
    """Return a run of an instance in full, with its params and its steps."""
    run = overview.run
    return instance_json(run) | {
        "params": _params(run.params),
        "runtime_overview": _runtime_overview(overview),
        "aggregated_info": _aggregated_info(overview),
        "timeline": [dict(entry) for entry in run.timeline],
        "steps": [_step(run, step) for step in overview.steps],
    }


def attempt_json(run: Run, attempt: Attempt) -> Document:
    """Return an attempt of a step."""
    times = {f"{moment}_time": at for moment, at in attempt.times.items()}
    return _present(
        workflow_id=run.workflow_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        step_id=attempt.step_id,
        step_instance_id=attempt.step_instance_id,
        step_attempt_id=attempt.attempt_id,
        step_instance_uuid=attempt.uuid,
        type=attempt.type,
        status=attempt.status.value,
        runtime_state={"status": attempt.status.value, **times},
        retries=dict(attempt.retries) or None,
        next_attempt_time=attempt.due_at,
        tags=list(attempt.tags) or None,
        signal_dependencies=_dependencies(attempt.dependencies),
        worker=attempt.worker,
        params=_params(attempt.params),
        artifacts=dict(attempt.artifacts),
        timeline=[dict(entry) for entry in attempt.timeline],
    )


def _step(run: Run, step: StepOverview) -> Document:
    if step.attempt is None:
        waiting = StepStatus.NOT_CREATED.value
        return {"step_id": step.step_id, "step_instance_id": step.ordinal, "type": step.type, "status": waiting}
    return attempt_json(run, step.attempt) | _present(
        iterations=_present(**asdict(step.iterations)) if step.iterations else None,
        child=run_json(step.child) if step.child else None,
    )


def _dependencies(dependencies: Iterable[Json]) -> Document | None:
    """Return what an attempt's dependencies matched; how far it has looked is its own affair."""
    found = [{key: value for key, value in each.items() if key != SEEN} for each in dependencies]
    return {"dependencies": found} if found else None


def _params(stored: Json) -> Document:
    return {name: _present(**param.as_json()) for name, param in parsed(stored).items()}


def _initiator(initiator: Initiator) -> Document:
    return _present(
        type=initiator.type.value,
        user=initiator.user,
        timezone=initiator.timezone,
        trigger=dict(initiator.trigger) or None,
    )


def _runtime_overview(overview: Overview) -> Document:
    return _present(
        total_step_count=len(overview.steps),
        step_overview=_step_overview(overview.steps),
        rollup_overview=None if overview.rollup is None else _rollup(overview.rollup),
        run_status=overview.run.run_status.value,
    )


def _aggregated_info(overview: Overview) -> Document:
    """Return where the instance and its steps stand, all runs taken together: what Maestro's clients watch."""
    run = overview.run
    views = {step.step_id: _aggregated(run, step) for step in overview.steps}
    return {"workflow_instance_status": run.status.value, "step_aggregated_views": views}


def _aggregated(run: Run, step: StepOverview) -> Document:
    attempt = step.attempt
    if attempt is None:
        return {"status": step.status.value}
    return _present(
        status=attempt.status.value,
        workflow_run_id=run.run_id if attempt.run_uuid == run.uuid else None,
        start_time=attempt.times.get("start"),
        end_time=attempt.times.get("end"),
    )


def _step_overview(steps: Iterable[StepOverview]) -> Document:
    found: Document = {}
    for step in steps:
        summary = found.setdefault(step.status.value, {"cnt": 0})
        summary["cnt"] += 1
        if step.attempt is not None:
            times = step.attempt.times
            summary.setdefault("steps", []).append([step.ordinal, times.get("start"), times.get("end")])
    return found


def _rollup(rollup: Mapping[StepStatus, int]) -> Document:
    counts = {status.value: {"cnt": rollup[status]} for status in FLAGS if rollup.get(status)}
    return {"total_leaf_count": sum(rollup.values()), "overview": counts}


def _present(**values: Any) -> Document:
    return {name: value for name, value in values.items() if value is not None}
