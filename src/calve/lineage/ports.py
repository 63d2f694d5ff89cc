"""The interfaces that lineage needs: sources of events, attempts and captures, and transports for its events."""

from typing import TYPE_CHECKING, Protocol

from calve.capture import StoredCapture
from calve.engine import Attempt, Event, Snapshot

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent


class EventSource(Protocol):
    """Returns events, attempts and runs; the engine's state implements it."""

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Return events in order, from the one after ``after``."""
        ...

    def attempts(self, run_uuid: str, step_id: str | None = None) -> list[Attempt]:
        """Return all attempts of a step in a run, oldest first."""
        ...

    def load(self, run_uuid: str) -> Snapshot | None:
        """Return a run."""
        ...


class LineageState(Protocol):
    """Stores the position of a follower."""

    def position(self, name: str, first: int | None = None) -> int:
        """Return the position of a follower; a new one begins at ``first``, or at the newest event."""
        ...

    def move(self, name: str, before: int, after: int) -> None:
        """Move a follower.

        Raises:
            Conflict: its position changed.
        """
        ...


class KeptCaptures(Protocol):
    """Returns stored captures."""

    def capture(self, capture_id: str) -> StoredCapture:
        """Return a capture.

        Raises:
            CaptureMissing: there is none.
        """
        ...


class Sender(Protocol):
    """Accepts OpenLineage events."""

    def emit(self, event: "RunEvent") -> object:
        """Send an event; any exception means that it was not sent."""
        ...
