"""The action map: what people may do with an instance or a step in each status."""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from calve.engine.model.statuses import RunStatus, StepStatus
from calve.errors import ActionRefused


class Action(StrEnum):
    """Something that a person or the engine does to a run or a step."""

    STOP = "STOP"
    KILL = "KILL"
    SKIP = "SKIP"
    RESTART = "RESTART"
    UNBLOCK = "UNBLOCK"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    BYPASS_STEP_DEPENDENCIES = "BYPASS_STEP_DEPENDENCIES"
    TIME_OUT = "TIME_OUT"
    """Requested by the engine when the run or the step, or one around it, has timed out."""
    APPROVE = "APPROVE"
    REJECT = "REJECT"


_CUT = (Action.STOP, Action.KILL)
_CUT_OR_SKIP = (*_CUT, Action.SKIP)
_AGAIN = (Action.RESTART, Action.SKIP)
RUN_ACTIONS: Mapping[RunStatus, tuple[Action, ...]] = {
    RunStatus.CREATED: _CUT,
    RunStatus.IN_PROGRESS: _CUT,
    RunStatus.PAUSED: _CUT,
    RunStatus.FAILED: (Action.RESTART, Action.UNBLOCK),
    RunStatus.TIMED_OUT: (Action.RESTART,),
    RunStatus.STOPPED: (Action.RESTART,),
    RunStatus.SUCCEEDED: (Action.RESTART,),
}
STEP_ACTIONS: Mapping[StepStatus, tuple[Action, ...]] = {
    StepStatus.NOT_CREATED: (),
    StepStatus.CREATED: (Action.PAUSE, *_CUT),
    StepStatus.INITIALIZED: (Action.PAUSE, *_CUT_OR_SKIP),
    StepStatus.PAUSED: (Action.RESUME, *_CUT_OR_SKIP),
    StepStatus.WAITING_FOR_SIGNALS: (*_CUT_OR_SKIP, Action.BYPASS_STEP_DEPENDENCIES),
    StepStatus.EVALUATING_PARAMS: _CUT_OR_SKIP,
    StepStatus.WAITING_FOR_PERMITS: _CUT_OR_SKIP,
    StepStatus.STARTING: _CUT_OR_SKIP,
    StepStatus.RUNNING: _CUT_OR_SKIP,
    StepStatus.FINISHING: _CUT_OR_SKIP,
    StepStatus.DISABLED: (Action.RESTART,),
    StepStatus.UNSATISFIED: (Action.RESTART,),
    StepStatus.SKIPPED: _AGAIN,
    StepStatus.SUCCEEDED: _AGAIN,
    StepStatus.COMPLETED_WITH_ERROR: _AGAIN,
    StepStatus.USER_FAILED: _CUT_OR_SKIP,
    StepStatus.PLATFORM_FAILED: _CUT_OR_SKIP,
    StepStatus.TIMEOUT_FAILED: _CUT_OR_SKIP,
    StepStatus.FATALLY_FAILED: _AGAIN,
    StepStatus.INTERNALLY_FAILED: _AGAIN,
    StepStatus.STOPPED: _AGAIN,
    StepStatus.TIMED_OUT: _AGAIN,
}
"""Maestro's map; a running Approval step also allows APPROVE and REJECT."""


def action_refused(what: str, action: Action, status: str, possible: Iterable[Action]) -> ActionRefused:
    """Return the error for an action that the status does not allow."""
    names = [each.value for each in possible]
    return ActionRefused(
        f"{what} is {status}: {action} is not possible.",
        remedy=f"Possible actions: {', '.join(names)}." if names else "No action is possible in this status.",
        status=status,
        action=action.value,
        possible=names,
    )
