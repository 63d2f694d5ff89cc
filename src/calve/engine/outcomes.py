"""What the end of a call means for an attempt: its status, and whether another attempt follows. Pure."""

from collections.abc import Mapping
from typing import assert_never

from calve.definition.model.steps import FailureMode
from calve.definition.params import ParsedRetryPolicy, RetryReason
from calve.engine.actions import Action
from calve.engine.ports import State
from calve.engine.statuses import RunStatus, StepStatus

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


def end_of(state: State, retries: Mapping[str, int], policy: ParsedRetryPolicy) -> StepStatus:
    """Return the status in which an attempt ends whose work ended like this; a retryable one while tries are left."""
    match state:
        case State.DONE:
            return StepStatus.SUCCEEDED
        case State.USER_ERROR:
            return _or_fatal(StepStatus.USER_FAILED, retries, policy, StepStatus.FATALLY_FAILED)
        case State.PLATFORM_ERROR:
            return _or_fatal(StepStatus.PLATFORM_FAILED, retries, policy, StepStatus.FATALLY_FAILED)
        case State.TIMED_OUT:
            return _or_fatal(StepStatus.TIMEOUT_FAILED, retries, policy, StepStatus.TIMED_OUT)
        case State.FATAL_ERROR:
            return StepStatus.FATALLY_FAILED
        case State.STOPPED:
            return StepStatus.STOPPED
        case State.CONTINUE:
            raise ValueError("work that goes on has not ended")
        case _:
            assert_never(state)


def _or_fatal(
    status: StepStatus, retries: Mapping[str, int], policy: ParsedRetryPolicy, otherwise: StepStatus
) -> StepStatus:
    reason = _REASONS[status]
    return status if policy.can_retry(reason, retries.get(reason, 0)) else otherwise


def reason_of(status: StepStatus) -> RetryReason:
    """Return for which of the three reasons an attempt in a retryable status is tried again."""
    return _REASONS[status]


def ended_by(action: Action) -> StepStatus | None:
    """Return the status in which an action ends an attempt; None if it ends none."""
    return _ENDS.get(action)


def run_ended_by(action: Action) -> RunStatus | None:
    """Return the status in which an action ends a run; None if that follows from its steps."""
    return _RUN_ENDS.get(action)


def with_mode(status: StepStatus, mode: FailureMode | None) -> StepStatus:
    """Return the status after the failure mode had its say: a fatal failure may be ignored, nothing else."""
    if status is StepStatus.FATALLY_FAILED and mode is FailureMode.IGNORE_FAILURE:
        return StepStatus.COMPLETED_WITH_ERROR
    return status
