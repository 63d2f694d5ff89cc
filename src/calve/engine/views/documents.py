"""Documents in Maestro's shape, and what calve adds to them: no secret, nothing where there is no value. Pure."""

from dataclasses import asdict
from typing import Any, assert_never

from calve.engine.model import Attempt, Run, Started
from calve.engine.restart_plans import RestartPlan
from calve.engine.statuses import StepStatus
from calve.engine.views.instances import start_event, step_instance, workflow_instance
from calve.engine.views.models import StartResponse
from calve.engine.views.overview import Failure, Overview, StepOverview, last_message
from calve.engine.views.sources import RunSource, StepSource
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
    run = started.run
    return StartResponse(
        workflow_id=run.workflow_id,
        workflow_version_id=run.version_id,
        workflow_instance_id=run.instance_id,
        workflow_run_id=run.run_id,
        workflow_uuid=run.uuid,
        status=started.status.value,
        timeline_event=start_event(run),
        warnings=started.warnings or None,
    ).as_json()


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
    """Return a run of an instance as it stands in a list."""
    return workflow_instance(run).as_json() | _own(run)


def _own(run: Run) -> Document:
    """Return what calve says of a run besides."""
    return _present(
        run_policy=run.policy.value,
        request_id=run.request_id,
        tags=list(run.tags) or None,
        is_queued=run.is_queued or None,
        message=run.message or None,
    )


def overview_json(overview: Overview) -> Document:
    """Return a run of an instance in full, with its params and its steps."""
    run, source = overview.run, overview.source
    attempts = [step.attempt for step in overview.steps if step.attempt is not None]
    return (
        workflow_instance(run, source, attempts).as_json()
        | _own(run)
        | {
            "steps": [_step(run, step, source) for step in overview.steps],
            "failures": [_failure(run, failure) for failure in overview.failures],
            "waiting": [_wait(run, wait) for wait in overview.live.waits],
            "waiting_count": overview.live.waiting,
            "progress": [_progress(progress) for progress in overview.live.progress],
        }
    )


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


def attempt_json(run: Run, attempt: Attempt, source: StepSource | None = None) -> Document:
    """Return an attempt of a step."""
    return step_instance(run, attempt, source).as_json() | _present(
        step_instance_uuid=attempt.uuid,
        type=attempt.type,
        status=attempt.status.value,
        retries=dict(attempt.retries) or None,
        next_attempt_time=attempt.due_at if attempt.status.is_retryable else None,
        worker=attempt.worker,
        message=last_message(attempt) or None,
        waiting=_waiting(attempt),
    )


def _located(path: str, attempt: Attempt) -> Document:
    return {
        "path": path,
        "step_id": attempt.step_id,
        "type": attempt.type,
        "status": attempt.status.value,
        "step_attempt_id": attempt.attempt_id,
        "step_instance_uuid": attempt.uuid,
    }


def _failure(run: Run, failure: Failure) -> Document:
    attempt, path = failure.attempt, "/".join(failure.path)
    return _present(
        **_located(path, attempt),
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
        **_located(path, attempt),
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


def _step(run: Run, step: StepOverview, source: RunSource) -> Document:
    if step.attempt is None:
        waiting = StepStatus.NOT_CREATED.value
        return {"step_id": step.step_id, "step_instance_id": step.ordinal, "type": step.type, "status": waiting}
    return attempt_json(run, step.attempt, StepSource(source)) | _present(
        iterations=_present(**asdict(step.iterations)) if step.iterations else None,
        child=run_json(step.child) | _present(is_queued=step.child.is_queued or None) if step.child else None,
    )


def _present(**values: Any) -> Document:
    return {name: value for name, value in values.items() if value is not None}
