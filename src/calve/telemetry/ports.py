"""What telemetry needs of others: a store that tells how things stand, and what has happened."""

from typing import Protocol

from calve.telemetry.model import Happened, Standing


class TelemetryState(Protocol):
    """Tells how things stand, in time that does not follow how much is stored."""

    def newest(self) -> int:
        """Return the number of the newest event."""
        ...

    def standing(self, now: int) -> Standing:
        """Return how things stand."""
        ...

    def happened(self, after: int, limit: int = 5_000) -> Happened:
        """Return what has happened after an event, at most so many events of it."""
        ...
