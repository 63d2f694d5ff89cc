"""How the end of a runtime call decides the status of an attempt, and whether it is retried. Pure."""

from collections.abc import Mapping
from typing import assert_never

from calve.definition.model import FailureMode
from calve.definition.params import ParsedRetryPolicy, RetryReason
from calve.engine.model import Action, RunStatus, StepStatus
from calve.engine.ports import State

_REASONS = {
    StepStatus.USER_FAILED: RetryReason.ERROR,
    StepStatus.PLATFORM_FAILED: RetryReason.PLATFORM,
    StepStatus.TIMEOUT_FAILED: RetryReason.TIMEOUT,
}
_ENDS = {
    Action.STOP: StepStatus.STOPPED,
    Action.KILL: StepStatus.FATALLY_FAILED,
    Action.SKIP: StepStatus.SKIPPED,
    Action.TIME_OUT: StepStatus.TIMED_OUT,
}
_RUN_ENDS = {
    Action.STOP: RunStatus.STOPPED,
    Action.KILL: RunStatus.FAILED,
    Action.TIME_OUT: RunStatus.TIMED_OUT,
}


def status_after(state: State, retries: Mapping[str, int], policy: ParsedRetryPolicy) -> StepStatus:
    """Return the status of an attempt whose work ended in a state: a retryable one while it has retries left."""
    match state:
        case State.DONE:
            return StepStatus.SUCCEEDED
        case State.USER_ERROR:
            return _or_fatal(StepStatus.USER_FAILED, retries, policy, StepStatus.FATALLY_FAILED)
        case State.PLATFORM_ERROR | State.INFRASTRUCTURE_ERROR:
            return _or_fatal(StepStatus.PLATFORM_FAILED, retries, policy, StepStatus.FATALLY_FAILED)
        case State.TIMED_OUT:
            return _or_fatal(StepStatus.TIMEOUT_FAILED, retries, policy, StepStatus.TIMED_OUT)
        case State.FATAL_ERROR:
            return StepStatus.FATALLY_FAILED
        case State.STOPPED:
            return StepStatus.STOPPED
        case State.CONTINUE:
            raise ValueError("work that continues has not ended")
        case _:
            assert_never(state)


def _or_fatal(
    status: StepStatus, retries: Mapping[str, int], policy: ParsedRetryPolicy, otherwise: StepStatus
) -> StepStatus:
    reason = _REASONS[status]
    return status if policy.can_retry(reason, retries.get(reason, 0)) else otherwise


def retry_delay(state: State, reason: RetryReason, retries: int, policy: ParsedRetryPolicy) -> int:
    """Return the seconds until the next attempt of work that ended in a state, after that many retries.

    The first retry after a failure of the infrastructure is immediate, unless the policy names the delay.
    """
    if state is not State.INFRASTRUCTURE_ERROR or policy.of(reason).is_delay_given:
        return policy.delay(reason, retries)
    return policy.delay(reason, retries - 1) if retries else 0


def retry_reason(status: StepStatus) -> RetryReason:
    """Return the retry reason of an attempt in a retryable status."""
    return _REASONS[status]


def status_by_action(action: Action) -> StepStatus | None:
    """Return the status in which an action ends an attempt; None if it ends none."""
    return _ENDS.get(action)


def run_status_by_action(action: Action) -> RunStatus | None:
    """Return the status in which an action ends a run; None if that follows from its steps."""
    return _RUN_ENDS.get(action)


def with_failure_mode(status: StepStatus, mode: FailureMode | None) -> StepStatus:
    """Return the status under a failure mode, which can ignore a fatal failure but nothing else."""
    if status is StepStatus.FATALLY_FAILED and mode is FailureMode.IGNORE_FAILURE:
        return StepStatus.COMPLETED_WITH_ERROR
    return status
