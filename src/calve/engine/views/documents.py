"""Documents in Maestro's shape: snake_case, times in milliseconds, nothing where there is no value, no secret. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, assert_never

from calve.engine.awaiting import SEEN
from calve.engine.facts import parsed
from calve.engine.model import Attempt, Initiator, Json, Run, Started
from calve.engine.statuses import FLAGS, StepStatus
from calve.engine.views.overview import Failure, Overview, StepOverview, last_message
from calve.engine.views.waits import (
    Approval,
    Progress,
    Wait,
    WaitReason,
    pending_signals,
    question_of,
    wait_reason,
)

API = "/api/v3"
"""Where the paths of a server begin: Maestro's."""

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
        "failures": [_failure(run, failure) for failure in overview.failures],
        "waiting": [_wait(run, wait) for wait in overview.live.waits],
        "waiting_count": overview.live.waiting,
        "progress": [_progress(progress) for progress in overview.live.progress],
    }


def approval_json(approval: Approval) -> Document:
    """Return an Approval step that waits for people, and how to answer it."""
    address, attempt = approval.address, approval.attempt
    path = "/".join(address.path)
    return {
        "workflow_id": address.workflow_id,
        "workflow_instance_id": address.instance_id,
        "path": path,
        "step_id": attempt.step_id,
        "step_attempt_id": attempt.attempt_id,
        "step_instance_uuid": attempt.uuid,
        **_asked(attempt),
        "links": _answers(f"{API}/workflows/{address.workflow_id}/instances/{address.instance_id}/steps/{path}"),
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
        next_attempt_time=attempt.due_at if attempt.status.is_retryable else None,
        tags=list(attempt.tags) or None,
        signal_dependencies=_dependencies(attempt.dependencies),
        worker=attempt.worker,
        params=_params(attempt.params),
        artifacts=dict(attempt.artifacts),
        timeline=[dict(entry) for entry in attempt.timeline],
        message=last_message(attempt) or None,
        waiting=_waiting(attempt),
    )


def _failure(run: Run, failure: Failure) -> Document:
    attempt, path = failure.attempt, "/".join(failure.path)
    return _present(
        path=path,
        step_id=attempt.step_id,
        type=attempt.type,
        status=attempt.status.value,
        step_attempt_id=attempt.attempt_id,
        step_instance_uuid=attempt.uuid,
        end_time=attempt.ended_at,
        message=failure.message,
        # A log is found by its step: that of an earlier run may be another attempt's by now.
        links={"log": f"{_steps(run)}/{path}/logs"} if failure.has_log and run.is_latest else None,
    )


def _wait(run: Run, wait: Wait) -> Document:
    attempt, path = wait.attempt, "/".join(wait.path)
    place = f"{_steps(run)}/{path}"
    links = {
        WaitReason.APPROVAL: _answers(place),
        WaitReason.RETRY: {"log": f"{place}/logs"},
        WaitReason.SIGNALS: {"bypass": f"{place}/actions/bypass"},
        WaitReason.PERMITS: None,
        WaitReason.BREAKPOINT: {"resume": f"{place}/actions/resume"},
    }
    return _present(
        path=path,
        step_id=attempt.step_id,
        type=attempt.type,
        status=attempt.status.value,
        step_attempt_id=attempt.attempt_id,
        step_instance_uuid=attempt.uuid,
        **(_waiting(attempt) or {}),
        max_attempts=wait.max_attempts,
        permits=[asdict(permit) for permit in wait.permits] or None,
        links=links[wait.reason],
    )


def _waiting(attempt: Attempt) -> Document | None:
    """Return what an attempt waits for, as far as it knows that itself; None if it does not wait."""
    reason = wait_reason(attempt)
    match reason:
        case None:
            return None
        case WaitReason.APPROVAL:
            about = _asked(attempt)
        case WaitReason.RETRY:
            about = _present(message=last_message(attempt) or None, next_attempt_time=attempt.due_at)
        case WaitReason.SIGNALS:
            about = {"signals": pending_signals(attempt), "since": attempt.times.get("wait_signal")}
        case WaitReason.PERMITS:
            about = {"since": attempt.times.get("wait_permit")}
        case WaitReason.BREAKPOINT:
            about = {"since": attempt.times.get("pause")}
        case _:
            assert_never(reason)
    return {"reason": reason.value, **about}


def _asked(attempt: Attempt) -> Document:
    question = question_of(attempt)
    return _present(
        question=question.message,
        approvers=list(question.approvers),
        min_approvals=question.min_approvals,
        decisions=[dict(decision) for decision in question.decisions],
        since=attempt.times.get("execute"),
        until=attempt.due_at,
        on_timeout=None if attempt.due_at is None else question.on_timeout,
    )


def _progress(progress: Progress) -> Document:
    attempt = progress.attempt
    return {
        "path": "/".join(progress.path),
        "step_id": attempt.step_id,
        "type": attempt.type,
        "step_attempt_id": attempt.attempt_id,
        "step_instance_uuid": attempt.uuid,
        "message": progress.message,
    }


def _steps(run: Run) -> str:
    return f"{API}/workflows/{run.workflow_id}/instances/{run.instance_id}/steps"


def _answers(place: str) -> Document:
    return {"approve": f"{place}/actions/approve", "reject": f"{place}/actions/reject"}


def _step(run: Run, step: StepOverview) -> Document:
    if step.attempt is None:
        waiting = StepStatus.NOT_CREATED.value
        return {"step_id": step.step_id, "step_instance_id": step.ordinal, "type": step.type, "status": waiting}
    return attempt_json(run, step.attempt) | _present(
        iterations=_present(**asdict(step.iterations)) if step.iterations else None,
        child=run_json(step.child) | _present(is_queued=step.child.is_queued or None) if step.child else None,
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
