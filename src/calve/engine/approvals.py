"""Approval: a step that waits for people."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calve.definition.params import parse_duration
from calve.engine.actions import Action
from calve.engine.attempts import told
from calve.engine.children import replaced_by
from calve.engine.ending import end
from calve.engine.facts import params_of, parsed
from calve.engine.model import Attempt, Json, Pending
from calve.engine.ports import Outcome, State
from calve.engine.states import RunState
from calve.engine.statuses import StepStatus
from calve.engine.work import Work
from calve.errors import OF_THE_WORKFLOW

KEY = "calve_approval"
_QUESTION = ("message", "approvers", "min_approvals")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of it."""

    is_approved: bool
    by: str
    comment: str


def with_decision(attempt: Attempt, pending: Pending) -> Attempt:
    """Return an attempt with what one more person has decided; who decides twice has changed their mind."""
    kept = attempt.artifacts.get(KEY, {})
    others = [decision for decision in kept.get("decisions", ()) if decision["by"] != pending.by]
    decision = {
        "by": pending.by,
        "at": pending.at,
        "is_approved": pending.action is Action.APPROVE,
        "comment": str(pending.params.get("comment", "")),
    }
    return replace(attempt, artifacts={**attempt.artifacts, KEY: {**kept, "decisions": [*others, decision]}})


def progress(work: Work, state: RunState, attempt: Attempt) -> Attempt:
    """End the step when enough people have decided, or its time is over."""
    config: Mapping[str, Any] = params_of(state, attempt)["approval"].result
    if "message" not in attempt.artifacts.get(KEY, {}):
        try:
            attempt = work.set_attempt(state, _begun(work, state, config, attempt))
        except OF_THE_WORKFLOW as error:
            return end(work, state, attempt, Outcome(State.FATAL_ERROR, message=error.message))
    verdict = _verdict(attempt.artifacts[KEY]["decisions"], config.get("min_approvals", 1))
    if verdict is None and attempt.due_at is not None and attempt.due_at <= work.now:
        verdict = Verdict(config.get("on_timeout") == "approve", "", "Nobody decided in time.")
    return attempt if verdict is None else _ended(work, state, config, attempt, verdict)


def _begun(work: Work, state: RunState, config: Mapping[str, Any], attempt: Attempt) -> Attempt:
    limit = config.get("timeout")
    due_at = None if limit is None else work.now + parse_duration(limit, {})
    answers = _answers(work, state, config, attempt)
    kept = {"message": config["message"], "decisions": answers, **attempt.artifacts.get(KEY, {})}
    attempt = replace(attempt, due_at=due_at, artifacts={**attempt.artifacts, KEY: kept})
    return told(attempt, work.now, "The same question was approved in an earlier run." if answers else "")


def _answers(work: Work, state: RunState, config: Mapping[str, Any], attempt: Attempt) -> Sequence[Json]:
    """Return the decisions by which people approved the same question before the instance got another version.

    What comes before the step may have run again. Whoever wants to be asked about its results puts them into the
    question, which then is another one.
    """
    before = replaced_by(work, state, attempt) if state.run.restart.is_latest else None
    if before is None or before.type != attempt.type or before.status is not StepStatus.SUCCEEDED:
        return []
    params = parsed(before.params)
    is_approved = params["decision"].result == "approved"
    is_same = all(params["approval"].result.get(key) == config.get(key) for key in _QUESTION)
    found: Sequence[Json] = before.artifacts[KEY]["decisions"] if is_approved and is_same else []
    return found


def _verdict(decisions: Sequence[Json], wanted: int) -> Verdict | None:
    """Return what people have decided together: one who rejects is enough."""
    for decision in decisions:
        if not decision["is_approved"]:
            return Verdict(is_approved=False, by=decision["by"], comment=decision["comment"])
    if len(decisions) < wanted:
        return None
    names = ", ".join(decision["by"] for decision in decisions)
    return Verdict(is_approved=True, by=names, comment=decisions[-1]["comment"])


def _ended(work: Work, state: RunState, config: Mapping[str, Any], attempt: Attempt, verdict: Verdict) -> Attempt:
    decision = "approved" if verdict.is_approved else "rejected"
    is_done = verdict.is_approved or config.get("on_reject") == "succeed"
    outputs = {"decision": decision, "decided_by": verdict.by, "comment": verdict.comment}
    said = f"{decision} by {verdict.by}" if verdict.by else decision
    message = f"{said}: {verdict.comment}" if verdict.comment else said
    return end(work, state, attempt, Outcome(State.DONE if is_done else State.FATAL_ERROR, outputs, message=message))
