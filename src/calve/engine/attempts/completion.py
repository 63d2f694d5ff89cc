"""How an attempt ends: store its outputs, evaluate its transitions, retry its failure or make it final."""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from zlib import crc32

from calve.engine.attempts.lifecycle import next_attempt, with_message, with_message_before_last, with_status
from calve.engine.attempts.outcomes import retry_delay, retry_reason, status_after, with_failure_mode
from calve.engine.attempts.signals import send_signals
from calve.engine.instances import RunState, UnitOfWork
from calve.engine.model import LAST, Attempt, StepStatus
from calve.engine.params import condition_holds, retry_policy, take_artifacts, take_outputs
from calve.engine.ports import Outcome, State
from calve.errors import OF_THE_WORKFLOW

_RETRY = "maestro_retry"
_RETRYABLE = frozenset({State.USER_ERROR, State.PLATFORM_ERROR, State.INFRASTRUCTURE_ERROR})
_JITTER_MS = 1_000
_AS_WISHED = frozenset({State.DONE, State.STOPPED})


def record_outcome(work: UnitOfWork, state: RunState, attempt: Attempt, outcome: Outcome) -> Attempt:
    """Record the outcome of an attempt's work; a failed attempt may be retried later."""
    step = state.blueprint.steps[attempt.step_id]
    attempt = with_message(attempt, work.now, outcome.message, "INFO" if outcome.state in _AS_WISHED else "ERROR")
    if outcome.outputs or outcome.artifacts:
        try:
            attempt = take_artifacts(attempt, outcome.artifacts)
            attempt = take_outputs(work, state, attempt, outcome.outputs) if outcome.outputs else attempt
        except OF_THE_WORKFLOW as error:
            attempt = with_message(attempt, work.now, error.message, "ERROR")
            if outcome.state is State.DONE:
                return finish_attempt(work, state, attempt, StepStatus.FATALLY_FAILED)
    try:
        policy = retry_policy(step, state)
        status = status_after(_escalated(outcome.state, attempt), attempt.retries, policy)
    except OF_THE_WORKFLOW as error:
        return finish_attempt(
            work, state, with_message(attempt, work.now, error.message, "ERROR"), StepStatus.INTERNALLY_FAILED
        )
    if status.is_retryable:
        reason = retry_reason(status)
        delay = retry_delay(outcome.state, reason, attempt.retries.get(reason, 0), policy)
        delay = max(delay, ceil(outcome.retry_after))
        # Not all at the same moment, when a server on which many steps depend comes back.
        due_in = delay * 1_000 or crc32(attempt.uuid.encode()) % _JITTER_MS
        attempt = with_status(attempt, status, work.now, due_at=work.now + due_in)
        message = f"Retry in {delay} s." if delay else "Retry immediately."
        return work.set_attempt(state, with_message_before_last(attempt, work.now, message))
    if outcome.is_last:
        attempt = replace(attempt, artifacts={**attempt.artifacts, LAST: outcome.message})
    return finish_attempt(work, state, attempt, status)


def _escalated(state: State, attempt: Attempt) -> State:
    """Return the state of the work, or FATAL_ERROR if the work itself marked its failure as not retryable."""
    said = attempt.artifacts.get(_RETRY)
    is_hopeless = isinstance(said, Mapping) and said.get("retryable") is False
    return State.FATAL_ERROR if is_hopeless and state in _RETRYABLE else state


def finish_attempt(
    work: UnitOfWork,
    state: RunState,
    attempt: Attempt,
    status: StepStatus,
    *,
    is_mode_honoured: bool = True,
) -> Attempt:
    """End an attempt, and evaluate which steps may follow it: none if its work declared it the last (``LAST``)."""
    step = state.blueprint.steps[attempt.step_id]
    if is_mode_honoured:
        status = with_failure_mode(status, step.failure_mode)
    ended = work.set_attempt(state, with_status(attempt, status, work.now))
    if not status.is_complete:
        return ended
    edges = dict.fromkeys(step.transition.successors, False)
    if status is not StepStatus.UNSATISFIED and LAST not in attempt.artifacts:
        for target, condition in step.transition.successors.items():
            try:
                edges[target] = condition_holds(work, state, ended, condition)
            except OF_THE_WORKFLOW as error:
                message = f"The condition of {target} cannot be evaluated: {error.message}"
                ended = with_message(ended, work.now, message, "ERROR")
                if status is not StepStatus.SKIPPED:  # nothing ran, so nothing is missing
                    failed = with_status(ended, StepStatus.INTERNALLY_FAILED, work.now)
                    return work.set_attempt(state, failed)
    if status is StepStatus.SUCCEEDED:
        try:
            send_signals(work, state, step, ended)
        except OF_THE_WORKFLOW as error:
            message = f"The signals cannot be sent: {error.message} {error.remedy}".rstrip()
            ended = with_message(ended, work.now, message, "ERROR")
            return work.set_attempt(state, with_status(ended, StepStatus.INTERNALLY_FAILED, work.now))
    return work.set_attempt(state, replace(ended, edges=edges))


def retry_attempt(work: UnitOfWork, state: RunState, attempt: Attempt) -> Attempt:
    """Return the next attempt of a failed step whose retry is due."""
    reason = retry_reason(attempt.status)
    retries = {**attempt.retries, reason.value: attempt.retries.get(reason, 0) + 1}
    return work.set_attempt(state, next_attempt(work, state, attempt, retries))
