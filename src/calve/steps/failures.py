"""How a step's work fails: raised where it is noticed, an outcome for the engine in the end."""

from collections.abc import Callable

from calve.engine.ports import Outcome, State, StepContext
from calve.errors import CalveError, StepFailed


def fatal(message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure that no retry will cure."""
    return StepFailed(message, remedy=remedy, state=State.FATAL_ERROR)


def of_user(message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure of what the user asked for."""
    return StepFailed(message, remedy=remedy, state=State.USER_ERROR)


def of_platform(message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure of something in between: a network, a server, a machine."""
    return StepFailed(message, remedy=remedy, state=State.PLATFORM_ERROR)


def failed(state: State, message: str, *, remedy: str = "") -> StepFailed:
    """Return a failure that ends in a state."""
    return StepFailed(message, remedy=remedy, state=state)


def of_error(error: CalveError) -> StepFailed:
    """Return what an error of calve's own means for a step: what may pass is tried again, all else is not."""
    if isinstance(error, StepFailed):
        return error
    return (of_platform if error.is_passing else fatal)(error.message, remedy=error.remedy)


def stopped(what: str) -> StepFailed:
    """Return the failure of work that was interrupted; ``settled`` knows whether its time was up."""
    return StepFailed(f"{what} was interrupted.", remedy="", state=State.STOPPED)


def settled(work: Callable[[StepContext], Outcome], context: StepContext) -> Outcome:
    """Carry out work; return its outcome, or that of the failure that it raises."""
    try:
        return work(context)
    except StepFailed as failure:
        state = State(failure.context["state"])
        is_late = state is State.STOPPED and context.timeout is not None and context.timeout <= 0
        return Outcome(State.TIMED_OUT if is_late else state, message=told(failure))


def told(error: CalveError) -> str:
    """Return what an error says, and what to do about it."""
    return f"{error.message} {error.remedy}".rstrip()
