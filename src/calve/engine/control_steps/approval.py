"""Approval: a step that waits for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calve.definition.params import parse_duration
from calve.engine.attempts import record_outcome, with_message
from calve.engine.instances import RunState, UnitOfWork
from calve.engine.model import Action, Attempt, Json, Pending, StepStatus
from calve.engine.params import params_from_stored, params_of
from calve.engine.ports import Outcome, State
from calve.engine.restarts import replaced_by
from calve.errors import OF_THE_WORKFLOW

APPROVAL_KEY = "calve_approval"
_QUESTION = ("message", "approvers", "min_approvals")


@dataclass(frozen=True, slots=True)
class ApprovalResult:
    """The result of an approval."""

    is_approved: bool
    by: str
    comment: str


def with_decision(attempt: Attempt, pending: Pending) -> Attempt:
    """Return an attempt with one more decision; it replaces an earlier one of the same person."""
    kept = attempt.artifacts.get(APPROVAL_KEY, {})
    others = [decision for decision in kept.get("decisions", ()) if decision["by"] != pending.by]
    decision = {
        "by": pending.by,
        "at": pending.at,
        "is_approved": pending.action is Action.APPROVE,
        "comment": str(pending.params.get("comment", "")),
    }
    return replace(attempt, artifacts={**attempt.artifacts, APPROVAL_KEY: {**kept, "decisions": [*others, decision]}})


def progress_approval(work: UnitOfWork, state: RunState, attempt: Attempt) -> Attempt:
    """End the step when enough people have decided, or when it has timed out."""
    config: Mapping[str, Any] = params_of(state, attempt)["approval"].result
    if "message" not in attempt.artifacts.get(APPROVAL_KEY, {}):
        try:
            attempt = work.set_attempt(state, _begun(work, state, config, attempt))
        except OF_THE_WORKFLOW as error:
            return record_outcome(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
    result = _result(attempt.artifacts[APPROVAL_KEY]["decisions"], config.get("min_approvals", 1))
    if result is None and attempt.due_at is not None and attempt.due_at <= work.now:
        result = ApprovalResult(config.get("on_timeout") == "approve", "", "The approval timed out.")
    return attempt if result is None else _ended(work, state, config, attempt, result)


def _begun(work: UnitOfWork, state: RunState, config: Mapping[str, Any], attempt: Attempt) -> Attempt:
    limit = config.get("timeout")
    due_at = None if limit is None else work.now + parse_duration(limit, {})
    answers = _answers(work, state, config, attempt)
    kept = {"message": config["message"], "decisions": answers, **attempt.artifacts.get(APPROVAL_KEY, {})}
    attempt = replace(attempt, due_at=due_at, artifacts={**attempt.artifacts, APPROVAL_KEY: kept})
    return with_message(attempt, work.now, "The same question was approved in an earlier run." if answers else "")


def _answers(work: UnitOfWork, state: RunState, config: Mapping[str, Any], attempt: Attempt) -> Sequence[Json]:
    """Return the approvals that the same question got before a restart with a new version.

    The steps before this one may have run again. To be asked about their new results, include them in the message: a
    different message is a different question.
    """
    before = replaced_by(work, state, attempt) if state.run.restart.is_latest else None
    if before is None or before.type != attempt.type or before.status is not StepStatus.SUCCEEDED:
        return []
    params = params_from_stored(before.params)
    is_approved = params["decision"].result == "approved"
    is_same = all(params["approval"].result.get(key) == config.get(key) for key in _QUESTION)
    found: Sequence[Json] = before.artifacts[APPROVAL_KEY]["decisions"] if is_approved and is_same else []
    return found


def _result(decisions: Sequence[Json], wanted: int) -> ApprovalResult | None:
    """Return the combined decision, or None while approvals are missing; one rejection is enough to reject."""
    for decision in decisions:
        if not decision["is_approved"]:
            return ApprovalResult(is_approved=False, by=decision["by"], comment=decision["comment"])
    if len(decisions) < wanted:
        return None
    names = ", ".join(decision["by"] for decision in decisions)
    return ApprovalResult(is_approved=True, by=names, comment=decisions[-1]["comment"])


def _ended(
    work: UnitOfWork, state: RunState, config: Mapping[str, Any], attempt: Attempt, result: ApprovalResult
) -> Attempt:
    decision = "approved" if result.is_approved else "rejected"
    is_done = result.is_approved or config.get("on_reject") == "succeed"
    outputs = {"decision": decision, "decided_by": result.by, "comment": result.comment}
    said = f"{decision} by {result.by}" if result.by else decision
    message = f"{said}: {result.comment}" if result.comment else said
    return record_outcome(
        work, state, attempt, Outcome(State.DONE if is_done else State.FATAL_ERROR, outputs, message=message)
    )
