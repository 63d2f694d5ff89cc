"""What lineage needs of others: events, attempts and captures to tell of, and somebody who takes what is told."""

from typing import TYPE_CHECKING, Protocol

from calve.capture.model import StoredCapture
from calve.engine.model import Attempt, Event, Snapshot

if TYPE_CHECKING:
    from openlineage.client.event_v2 import RunEvent


class Happenings(Protocol):
    """What lineage looks at; the engine's state is such a thing."""

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
    """Keeps how far events have been told."""

    def position(self, name: str, first: int | None = None) -> int:
        """Return how far a follower has come; a new one begins at ``first``, or at the newest event."""
        ...

    def move(self, name: str, before: int, after: int) -> None:
        """Move a follower on.

        Raises:
            Conflict: it is no longer where it was.
        """
        ...


class KeptCaptures(Protocol):
    """Keeps captures."""

    def capture(self, capture_id: str) -> StoredCapture:
        """Return a capture.

        Raises:
            CaptureMissing: there is none.
        """
        ...


class Sender(Protocol):
    """Takes events of OpenLineage."""

    def emit(self, event: "RunEvent") -> object:
        """Hand an event on; whatever is raised means that it was not."""
        ...
