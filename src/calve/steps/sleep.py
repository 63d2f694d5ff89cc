"""The Sleep step: waits, without holding a worker."""

from calve.definition.step_types.simple import SLEEP
from calve.engine.ports import Clock, Outcome, State, StepContext
from calve.steps.configs import fields
from calve.steps.failures import settled

_WAKE = "sleep_until"


class Sleep:
    """Keeps the moment to wake up at, and asks to be called again then."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def execute(self, context: StepContext) -> Outcome:
        """Wait for what is left of the time."""
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
