"""Failures of steps: raised where they are detected, and turned into an outcome by ``settled``."""

from collections.abc import Callable

from calve.engine import Outcome, State, StepContext
from calve.errors import CalveError, StepFailed


def fatal(message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure for which a retry is pointless."""
    return StepFailed(message, remedy=remedy, state=State.FATAL_ERROR)


def user_error(message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure of the user's code or data; it counts as an error retry."""
    return StepFailed(message, remedy=remedy, state=State.USER_ERROR)


def platform_error(message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure of the platform, such as a network, a server or a machine; it counts as a platform retry."""
    return StepFailed(message, remedy=remedy, state=State.PLATFORM_ERROR)


def infrastructure_error(message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure of the platform that is likely to be over: the first retry is immediate."""
    return StepFailed(message, remedy=remedy, state=State.INFRASTRUCTURE_ERROR)


def conflict(message: str) -> StepFailed:
    """Return a failure of the infrastructure because another writer was faster: the work can be repeated at once."""
    return StepFailed(message, remedy="", state=State.INFRASTRUCTURE_ERROR, is_conflict=True)


def is_conflict(failure: StepFailed) -> bool:
    """Return whether the step failed because another writer was faster."""
    return bool(failure.context.get("is_conflict"))


def failed(state: State, message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure with a given state."""
    return StepFailed(message, remedy=remedy, state=state)


def failure_of(error: CalveError) -> StepFailed:
    """Turn an error of calve into a failure of the step; only temporary errors are retried."""
    if isinstance(error, StepFailed):
        return error
    return (infrastructure_error if error.is_passing else fatal)(error.message, remedy=error.remedy)


def interrupted(what: str) -> StepFailed:
    """Return the failure of an interrupted step; ``settled`` turns it into a timeout if the time limit has passed."""
    return StepFailed(f"{what} was interrupted.", remedy="", state=State.STOPPED)


def settled(work: Callable[[StepContext], Outcome], context: StepContext) -> Outcome:
    """Run a step; return its outcome, or the outcome of the failure that it raises."""
    try:
        return work(context)
    except StepFailed as failure:
        state = State(failure.context["state"])
        is_late = state is State.STOPPED and context.timeout is not None and context.timeout <= 0
        return Outcome(State.TIMED_OUT if is_late else state, message=message_of(failure))


def message_of(error: CalveError) -> str:
    """Return the message of an error, followed by its remedy."""
    return f"{error.message} {error.remedy}".rstrip()
