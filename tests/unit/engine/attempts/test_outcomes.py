"""What the end of a call means."""

import pytest

from calve.definition.model import FailureMode
from calve.definition.params import ParsedRetryPolicy
from calve.engine import Action, RunStatus, State, StepStatus
from calve.engine.attempts import run_status_by_action, status_after, status_by_action, with_failure_mode

S = StepStatus
POLICY = ParsedRetryPolicy()


@pytest.mark.parametrize(
    ("state", "retries", "status"),
    [
        (State.DONE, {}, S.SUCCEEDED),
        (State.USER_ERROR, {}, S.USER_FAILED),
        (State.USER_ERROR, {"error": 1}, S.USER_FAILED),
        (State.USER_ERROR, {"error": 2}, S.FATALLY_FAILED),
        (State.PLATFORM_ERROR, {"platform": 9}, S.PLATFORM_FAILED),
        (State.PLATFORM_ERROR, {"platform": 10}, S.FATALLY_FAILED),
        (State.INFRASTRUCTURE_ERROR, {"platform": 9}, S.PLATFORM_FAILED),
        (State.INFRASTRUCTURE_ERROR, {"platform": 10}, S.FATALLY_FAILED),
        (State.TIMED_OUT, {}, S.TIMED_OUT),
        (State.FATAL_ERROR, {}, S.FATALLY_FAILED),
        (State.STOPPED, {}, S.STOPPED),
    ],
)
def test_a_failure_is_retryable_while_tries_are_left(state: State, retries: dict[str, int], status: StepStatus) -> None:
    """Then it is fatal; a timeout has a status of its own."""
    assert status_after(state, retries, POLICY) is status


def test_work_that_continues_has_not_ended() -> None:
    """To ask is a mistake of the engine."""
    with pytest.raises(ValueError, match="continues"):
        status_after(State.CONTINUE, {}, POLICY)


@pytest.mark.parametrize("status", list(StepStatus))
@pytest.mark.parametrize("mode", [None, *FailureMode])
def test_only_a_fatal_failure_can_be_ignored(status: StepStatus, mode: FailureMode | None) -> None:
    """Everything else stays what it is."""
    is_ignored = status is S.FATALLY_FAILED and mode is FailureMode.IGNORE_FAILURE
    assert with_failure_mode(status, mode) is (S.COMPLETED_WITH_ERROR if is_ignored else status)


def test_four_actions_end_an_attempt_and_three_a_run() -> None:
    """The others change its way."""
    assert {action: status_by_action(action) for action in Action if status_by_action(action)} == {
        Action.STOP: S.STOPPED,
        Action.KILL: S.FATALLY_FAILED,
        Action.SKIP: S.SKIPPED,
        Action.TIME_OUT: S.TIMED_OUT,
    }
    assert {action: run_status_by_action(action) for action in Action if run_status_by_action(action)} == {
        Action.STOP: RunStatus.STOPPED,
        Action.KILL: RunStatus.FAILED,
        Action.TIME_OUT: RunStatus.TIMED_OUT,
    }
