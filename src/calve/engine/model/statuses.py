"""The statuses of runs and step attempts, and their properties."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class RunStatus(StrEnum):
    """The status of a run."""

    CREATED = "CREATED"
    IN_PROGRESS = "IN_PROGRESS"
    PAUSED = "PAUSED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"

    @property
    def is_terminal(self) -> bool:
        """Tell whether the run has ended."""
        return self in _ENDED


_ENDED = frozenset({RunStatus.SUCCEEDED, RunStatus.FAILED, RunStatus.STOPPED, RunStatus.TIMED_OUT})


class StepStatus(StrEnum):
    """The status of an attempt, in the usual order."""

    NOT_CREATED = "NOT_CREATED"
    CREATED = "CREATED"
    INITIALIZED = "INITIALIZED"
    PAUSED = "PAUSED"
    WAITING_FOR_SIGNALS = "WAITING_FOR_SIGNALS"
    EVALUATING_PARAMS = "EVALUATING_PARAMS"
    WAITING_FOR_PERMITS = "WAITING_FOR_PERMITS"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    FINISHING = "FINISHING"
    DISABLED = "DISABLED"
    UNSATISFIED = "UNSATISFIED"
    SKIPPED = "SKIPPED"
    SUCCEEDED = "SUCCEEDED"
    COMPLETED_WITH_ERROR = "COMPLETED_WITH_ERROR"
    USER_FAILED = "USER_FAILED"
    PLATFORM_FAILED = "PLATFORM_FAILED"
    TIMEOUT_FAILED = "TIMEOUT_FAILED"
    FATALLY_FAILED = "FATALLY_FAILED"
    INTERNALLY_FAILED = "INTERNALLY_FAILED"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"

    @property
    def is_terminal(self) -> bool:
        """Tell whether this attempt has ended."""
        return FLAGS[self].is_terminal

    @property
    def is_complete(self) -> bool:
        """Tell whether the steps after it may start."""
        return FLAGS[self].is_complete

    @property
    def is_retryable(self) -> bool:
        """Tell whether the engine retries it with another attempt."""
        return FLAGS[self].is_retryable

    @property
    def is_final(self) -> bool:
        """Tell whether the step has ended: neither this attempt nor a retry changes it any more."""
        return self.is_terminal and not self.is_retryable

    @property
    def is_restartable(self) -> bool:
        """Tell whether a restart from incomplete steps runs such a step again."""
        return self.is_final and not self.is_complete


@dataclass(frozen=True, slots=True)
class Flags:
    """The properties of a step status."""

    is_terminal: bool = False
    is_complete: bool = False
    is_shown: bool = False
    """Whether a rollup names the steps in this status."""
    is_retryable: bool = False


_WAY = Flags()
_SHOWN = Flags(is_shown=True)
_COMPLETE = Flags(is_terminal=True, is_complete=True)
_RETRYABLE = Flags(is_terminal=True, is_shown=True, is_retryable=True)
_FAILED = Flags(is_terminal=True, is_shown=True)
_CUT = Flags(is_terminal=True)
FLAGS: dict[StepStatus, Flags] = {
    StepStatus.NOT_CREATED: _WAY,
    StepStatus.CREATED: _WAY,
    StepStatus.INITIALIZED: _WAY,
    StepStatus.PAUSED: _SHOWN,
    StepStatus.WAITING_FOR_SIGNALS: _SHOWN,
    StepStatus.EVALUATING_PARAMS: _SHOWN,
    StepStatus.WAITING_FOR_PERMITS: _SHOWN,
    StepStatus.STARTING: _WAY,
    StepStatus.RUNNING: _SHOWN,
    StepStatus.FINISHING: _WAY,
    StepStatus.DISABLED: _COMPLETE,
    StepStatus.UNSATISFIED: _COMPLETE,
    StepStatus.SKIPPED: _COMPLETE,
    StepStatus.SUCCEEDED: _COMPLETE,
    StepStatus.COMPLETED_WITH_ERROR: _COMPLETE,
    StepStatus.USER_FAILED: _RETRYABLE,
    StepStatus.PLATFORM_FAILED: _RETRYABLE,
    StepStatus.TIMEOUT_FAILED: _RETRYABLE,
    StepStatus.FATALLY_FAILED: _FAILED,
    StepStatus.INTERNALLY_FAILED: _FAILED,
    StepStatus.STOPPED: _CUT,
    StepStatus.TIMED_OUT: _CUT,
}
"""Maestro's table."""
HOLDING = frozenset({StepStatus.STARTING, StepStatus.RUNNING, StepStatus.FINISHING})
"""Attempts in these statuses hold their permits."""
_FAILING = frozenset({StepStatus.FATALLY_FAILED, StepStatus.INTERNALLY_FAILED})


def final_status(statuses: Iterable[StepStatus]) -> RunStatus:
    """Return the final status of a run from those of its steps: FAILED > TIMED_OUT > STOPPED > SUCCEEDED."""
    found = set(statuses)
    if found & _FAILING:
        return RunStatus.FAILED
    if StepStatus.TIMED_OUT in found:
        return RunStatus.TIMED_OUT
    if StepStatus.STOPPED in found:
        return RunStatus.STOPPED
    return RunStatus.SUCCEEDED
