"""Steps at any depth that wait, have failed or report progress: documents with paths and links."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, assert_never

from calve.engine.model import Attempt, Run
from calve.engine.views.document import API, Document, Json
from calve.engine.views.overview import Failure, last_message
from calve.engine.views.waits import Approval, Progress, Wait, WaitReason, pending_signals, question_of, wait_reason

Links = Mapping[str, str]
"""Paths on the server, by action."""


@dataclass(frozen=True, kw_only=True)
class Waiting(Document):
    """The reason why an attempt waits."""

    reason: str
    """APPROVAL, RETRY, SIGNALS, PERMITS or BREAKPOINT."""
    question: str | None = None
    """APPROVAL."""
    approvers: Sequence[str] | None = None
    """APPROVAL: who may decide; if empty, anyone who may run the workflow."""
    min_approvals: int | None = None
    """APPROVAL."""
    decisions: Sequence[Json] | None = None
    """APPROVAL: the decisions so far."""
    message: str | None = None
    """RETRY: why the last attempt failed."""
    next_attempt_time: int | None = None
    """RETRY."""
    signals: Sequence[Json] | None = None
    """SIGNALS: those that have not arrived yet."""
    since: int | None = None
    until: int | None = None
    """APPROVAL: when ``on_timeout`` decides."""
    on_timeout: str | None = None
    """APPROVAL: approve or reject."""


@dataclass(frozen=True, kw_only=True)
class LocatedStep(Document):
    """A step of a run, at any depth."""

    path: str
    """The path of the step, such as ``parts/3/load``."""
    step_id: str
    type: str
    status: str
    step_attempt_id: int
    step_instance_uuid: str


@dataclass(frozen=True, kw_only=True)
class StepWait(Waiting, LocatedStep):
    """A step that waits."""

    max_attempts: int | None = None
    """RETRY: the number of attempts if all of them fail like the last one."""
    permits: Sequence[Json] | None = None
    """PERMITS: the missing permits."""
    links: Links | None = None


@dataclass(frozen=True, kw_only=True)
class StepFailure(LocatedStep):
    """A step that failed."""

    end_time: int | None = None
    message: str
    """Why it failed."""
    links: Links | None = None
    """The link to its log, if it may have written one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepProgress(Document):
    """The progress of a running step."""

    path: str
    step_id: str
    type: str
    step_attempt_id: int
    step_instance_uuid: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval(Document):
    """An Approval step that waits for people, with links to decide it."""

    workflow_id: str
    workflow_instance_id: int
    path: str
    """The path of the step, with the iterations of the loops that contain it."""
    step_id: str
    step_attempt_id: int
    step_instance_uuid: str
    question: str
    approvers: Sequence[str]
    """Who may decide; if empty, anyone who may run the workflow."""
    min_approvals: int
    decisions: Sequence[Json]
    since: int | None = None
    until: int | None = None
    """When ``on_timeout`` decides."""
    on_timeout: str | None = None
    links: Links


def waiting_of(attempt: Attempt) -> Waiting | None:
    """Return why an attempt waits, as far as its row shows; None if it does not wait."""
    reason = wait_reason(attempt)
    match reason:
        case None:
            return None
        case WaitReason.APPROVAL:
            return Waiting(reason=reason.value, **_question(attempt))
        case WaitReason.RETRY:
            message = last_message(attempt) or None
            return Waiting(reason=reason.value, message=message, next_attempt_time=attempt.due_at)
        case WaitReason.SIGNALS:
            since = attempt.times.get("wait_signal")
            return Waiting(reason=reason.value, signals=pending_signals(attempt), since=since)
        case WaitReason.PERMITS:
            return Waiting(reason=reason.value, since=attempt.times.get("wait_permit"))
        case WaitReason.BREAKPOINT:
            return Waiting(reason=reason.value, since=attempt.times.get("pause"))
        case _:
            assert_never(reason)


def step_wait(run: Run, wait: Wait) -> StepWait:
    """Return a waiting step, relative to a run."""
    attempt, path = wait.attempt, "/".join(wait.path)
    place = f"{_steps_path(run)}/{path}"
    links: Mapping[WaitReason, Links | None] = {
        WaitReason.APPROVAL: _answers(place),
        WaitReason.RETRY: {"log": f"{place}/logs"},
        WaitReason.SIGNALS: {"bypass": f"{place}/actions/bypass"},
        WaitReason.PERMITS: None,
        WaitReason.BREAKPOINT: {"resume": f"{place}/actions/resume"},
    }
    waiting = waiting_of(attempt)
    assert waiting is not None  # noqa: S101 - its reason was found the same way
    return StepWait(
        **_located(path, attempt),
        **waiting.present(),
        max_attempts=wait.max_attempts,
        permits=[asdict(permit) for permit in wait.permits] or None,
        links=links[wait.reason],
    )


def step_failure(run: Run, failure: Failure) -> StepFailure:
    """Return a failed step, relative to a run."""
    attempt, path = failure.attempt, "/".join(failure.path)
    # A log is found by its step: that of an earlier run may now belong to another attempt.
    has_log = failure.has_log and run.is_latest
    return StepFailure(
        **_located(path, attempt),
        end_time=attempt.ended_at,
        message=failure.message,
        links={"log": f"{_steps_path(run)}/{path}/logs"} if has_log else None,
    )


def step_progress(progress: Progress) -> StepProgress:
    """Return the progress of a running step."""
    located = _located("/".join(progress.path), progress.attempt)
    del located["status"]
    return StepProgress(**located, message=progress.message)


def pending_approval(approval: Approval) -> PendingApproval:
    """Return an Approval step that waits for people."""
    address, attempt = approval.address, approval.attempt
    path = "/".join(address.path)
    place = f"{API}/workflows/{address.workflow_id}/instances/{address.instance_id}/steps/{path}"
    return PendingApproval(
        workflow_id=address.workflow_id,
        workflow_instance_id=address.instance_id,
        path=path,
        step_id=attempt.step_id,
        step_attempt_id=attempt.attempt_id,
        step_instance_uuid=attempt.uuid,
        **_question(attempt),
        links=_answers(place),
    )


def _located(path: str, attempt: Attempt) -> dict[str, Any]:
    return {
        "path": path,
        "step_id": attempt.step_id,
        "type": attempt.type,
        "status": attempt.status.value,
        "step_attempt_id": attempt.attempt_id,
        "step_instance_uuid": attempt.uuid,
    }


def _question(attempt: Attempt) -> dict[str, Any]:
    question = question_of(attempt)
    return {
        "question": question.message,
        "approvers": list(question.approvers),
        "min_approvals": question.min_approvals,
        "decisions": [dict(decision) for decision in question.decisions],
        "since": attempt.times.get("execute"),
        "until": attempt.due_at,
        "on_timeout": None if attempt.due_at is None else question.on_timeout,
    }


def _steps_path(run: Run) -> str:
    return f"{API}/workflows/{run.workflow_id}/instances/{run.instance_id}/steps"


def _answers(place: str) -> Links:
    return {"approve": f"{place}/actions/approve", "reject": f"{place}/actions/reject"}
