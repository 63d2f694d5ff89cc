"""What is true of each status."""

from itertools import combinations_with_replacement

import pytest

from calve.engine.model import FLAGS, RunStatus, StepStatus, final_status

S = StepStatus


def test_the_flags_are_maestros() -> None:
    """Terminal, complete, shown in a rollup, retryable."""
    shown = {
        status.value: "".join(
            letter
            for letter, is_so in zip(
                "TCOR", (flags.is_terminal, flags.is_complete, flags.is_shown, flags.is_retryable), strict=True
            )
            if is_so
        )
        for status, flags in FLAGS.items()
    }
    assert shown == {
        "NOT_CREATED": "",
        "CREATED": "",
        "INITIALIZED": "",
        "PAUSED": "O",
        "WAITING_FOR_SIGNALS": "O",
        "EVALUATING_PARAMS": "O",
        "WAITING_FOR_PERMITS": "O",
        "STARTING": "",
        "RUNNING": "O",
        "FINISHING": "",
        "DISABLED": "TC",
        "UNSATISFIED": "TC",
        "SKIPPED": "TC",
        "SUCCEEDED": "TC",
        "COMPLETED_WITH_ERROR": "TC",
        "USER_FAILED": "TOR",
        "PLATFORM_FAILED": "TOR",
        "TIMEOUT_FAILED": "TOR",
        "FATALLY_FAILED": "TO",
        "INTERNALLY_FAILED": "TO",
        "STOPPED": "T",
        "TIMED_OUT": "T",
    }


def test_a_step_can_be_restarted_that_is_over_and_not_complete() -> None:
    """One that will be tried again is not over."""
    assert {status for status in StepStatus if status.is_restartable} == {
        S.FATALLY_FAILED,
        S.INTERNALLY_FAILED,
        S.STOPPED,
        S.TIMED_OUT,
    }


def test_a_run_is_over_in_four_statuses() -> None:
    """PAUSED is none of them."""
    assert [status for status in RunStatus if status.is_terminal] == [
        status
        for status in RunStatus
        if status in {RunStatus.FAILED, RunStatus.SUCCEEDED, RunStatus.STOPPED, RunStatus.TIMED_OUT}
    ]


@pytest.mark.parametrize(
    "pair", list(combinations_with_replacement([S.FATALLY_FAILED, S.TIMED_OUT, S.STOPPED, S.SUCCEEDED], 2))
)
def test_the_worst_step_says_how_a_run_ends(pair: tuple[StepStatus, StepStatus]) -> None:
    """FAILED before TIMED_OUT before STOPPED before SUCCEEDED."""
    ends = {S.FATALLY_FAILED: RunStatus.FAILED, S.TIMED_OUT: RunStatus.TIMED_OUT, S.STOPPED: RunStatus.STOPPED}
    assert final_status(pair) is ends.get(pair[0], RunStatus.SUCCEEDED)
    assert final_status(reversed(pair)) is final_status(pair)


def test_nothing_to_do_is_a_success() -> None:
    """A run without steps ends well, and so does one whose failures are ignored."""
    assert final_status([]) is RunStatus.SUCCEEDED
    assert final_status([S.COMPLETED_WITH_ERROR, S.UNSATISFIED, S.SKIPPED]) is RunStatus.SUCCEEDED
    assert final_status([S.INTERNALLY_FAILED]) is RunStatus.FAILED
