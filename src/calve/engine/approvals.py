"""Approval: a step that waits for people."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calve.definition.params import parse_duration
from calve.engine.actions import Action
from calve.engine.ending import end
from calve.engine.facts import params_of
from calve.engine.model import Attempt
from calve.engine.ports import Outcome, State
from calve.engine.states import RunState
from calve.engine.work import Work
from calve.errors import CalveError

KEY = "calve_approval"


def config_of(state: RunState, attempt: Attempt) -> Mapping[str, Any]:
    """Return what the step asks of people."""
    found: Mapping[str, Any] = params_of(state, attempt)["approval"].result
    return found


def progress(work: Work, state: RunState, attempt: Attempt) -> Attempt:
    """Count a decision, and end the step when there are enough, or its time is over."""
    try:
        config = config_of(state, attempt)
        if KEY not in attempt.artifacts:
            return work.set_attempt(state, _begun(work, config, attempt))
    except CalveError as error:
        return end(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
    if attempt.action is not None:
        return _decided(work, state, config, attempt)
    if attempt.due_at is not None and attempt.due_at <= work.now:
        is_approved = config.get("on_timeout") == "approve"
        return _ended(work, state, config, attempt, is_approved=is_approved, by="", comment="Nobody decided in time.")
    return attempt


def _begun(work: Work, config: Mapping[str, Any], attempt: Attempt) -> Attempt:
    limit = config.get("timeout")
    due_at = None if limit is None else work.now + parse_duration(limit, {})
    kept = {"message": config["message"], "approvals": []}
    return replace(attempt, due_at=due_at, artifacts={**attempt.artifacts, KEY: kept})


def _decided(work: Work, state: RunState, config: Mapping[str, Any], attempt: Attempt) -> Attempt:
    pending = attempt.action
    assert pending is not None  # noqa: S101 - the caller has looked
    comment = str(pending.params.get("comment", ""))
    attempt = replace(attempt, action=None)
    if pending.action is Action.REJECT:
        return _ended(work, state, config, attempt, is_approved=False, by=pending.by, comment=comment)
    kept = attempt.artifacts[KEY]
    others = [entry for entry in kept["approvals"] if entry["by"] != pending.by]
    approvals = [*others, {"by": pending.by, "at": pending.at, "comment": comment}]
    attempt = replace(attempt, artifacts={**attempt.artifacts, KEY: {**kept, "approvals": approvals}})
    if len(approvals) < config.get("min_approvals", 1):
        return work.set_attempt(state, attempt)
    names = ", ".join(entry["by"] for entry in approvals)
    return _ended(work, state, config, attempt, is_approved=True, by=names, comment=comment)


def _ended(
    work: Work,
    state: RunState,
    config: Mapping[str, Any],
    attempt: Attempt,
    *,
    is_approved: bool,
    by: str,
    comment: str,
) -> Attempt:
    decision = "approved" if is_approved else "rejected"
    is_done = is_approved or config.get("on_reject") == "succeed"
    outputs = {"decision": decision, "decided_by": by, "comment": comment}
    said = f"{decision} by {by}" if by else decision
    message = f"{said}: {comment}" if comment else said
    return end(work, state, attempt, Outcome(State.DONE if is_done else State.FATAL_ERROR, outputs, message=message))
