"""The Sleep step: waits without occupying a worker."""

from calve.definition.step_types import SLEEP
from calve.engine import Clock, Outcome, State, StepContext
from calve.steps.config import fields
from calve.steps.failures import settled

_WAKE = "sleep_until"


class Sleep:
    """Stores the time to wake up at, and asks the engine to call again then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def execute(self, context: StepContext) -> Outcome:
        """Wait for the rest of the time."""
        return settled(self._wait, context)

    def terminate(self, context: StepContext) -> None:
        """Do nothing: nothing is under way."""

    def _wait(self, context: StepContext) -> Outcome:
        now = self._clock()
        wake = context.artifacts.get(_WAKE)
        if wake is None:
            wake = now + fields(context, SLEEP)["sleep_seconds"] * 1000
        if wake <= now:
            return Outcome(State.DONE)
        return Outcome(State.CONTINUE, artifacts={_WAKE: wake}, poll_after=(wake - now) / 1000)
