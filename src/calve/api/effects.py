"""Waiting for what was asked of a step."""

import time

from calve.engine import Action, Address, StepStatus
from calve.engine.addresses import find
from calve.engine.model import Attempt
from calve.engine.ports import Instances
from calve.errors import ActionPending

SECONDS = 5.0
_OFTEN = 0.05
_LEAVING = {
    Action.BYPASS_STEP_DEPENDENCIES: StepStatus.WAITING_FOR_SIGNALS,
    Action.RESUME: StepStatus.PAUSED,
}
"""Actions that let a step leave a state; all others end it."""


def wait_for_effect(instances: Instances, address: Address, action: Action, seconds: float = SECONDS) -> None:
    """Wait until an action has taken effect.

    Raises:
        ActionPending: it has not, in all that time; it will.
    """
    end = time.monotonic() + seconds
    while not _is_done(find(instances, address).attempt, action):
        if time.monotonic() >= end:
            raise ActionPending(f"{action} of {address} is recorded, and has not taken effect yet.")
        time.sleep(_OFTEN)


def _is_done(attempt: Attempt | None, action: Action) -> bool:
    if attempt is None:
        return True
    if action in _LEAVING:
        return attempt.status is not _LEAVING[action]
    return attempt.status.is_terminal
