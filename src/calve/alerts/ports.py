"""The ports of alerts: a source of events, a store for messages, and channels that send them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from calve.alerts.model import Message, MessageStatus, StoredMessage
from calve.engine import Ancestor, Event, Run, RunStatus, Snapshot, VersionRecord


class EventSource(Protocol):
    """Returns events and runs; the engine's state implements it."""

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Return events in order, starting after event number ``after``."""
        ...

    def load(self, run_uuid: str) -> Snapshot | None:
        """Return a run and the newest attempt of each of its steps."""
        ...

    def ancestors(self, run_uuid: str) -> list[Ancestor]:
        """Return the attempts that contain a run, outermost first."""
        ...

    def instances(
        self, *, statuses: Sequence[RunStatus] = (), before: tuple[int, str] | None = None, limit: int = 100
    ) -> list[Run]:
        """Return the latest runs of instances, without those of iterations, newest first."""
        ...


class AlertState(Protocol):
    """Stores messages until they are sent, and the positions of followers."""

    def position(self, name: str, first: int | None = None) -> int:
        """Return the position of a follower; a new one begins at ``first``, or at the newest event."""
        ...

    def take(self, name: str, before: int, after: int, messages: Sequence[Message], now: int) -> None:
        """Move a follower and store its messages in one transaction; a known message is not stored again.

        Raises:
            Conflict: the position of the follower changed.
        """
        ...

    def due(self, now: int, *, without: Sequence[str] = (), limit: int = 100) -> list[StoredMessage]:
        """Return messages that are due, the longest waiting first, except those for the channels in ``without``."""
        ...

    def claim(self, stored: StoredMessage, until: int) -> bool:
        """Claim a message until a time, and count an attempt; return False if another process has claimed it."""
        ...

    def sent(self, message_id: str, now: int) -> None:
        """Record that a message was sent."""
        ...

    def failed(self, message_id: str, error: str, due_at: int | None) -> None:
        """Record that a message could not be sent, and when to try again; None: never."""
        ...

    def messages(self, *, status: MessageStatus | None = None, limit: int = 100) -> list[StoredMessage]:
        """Return messages, newest first."""
        ...

    def versions(self, since: int) -> list[VersionRecord]:
        """Return the versions of workflows created at a time or later."""
        ...

    def properties(self, workflow_id: str) -> Mapping[str, object]:
        """Return the properties of a workflow; empty if it does not exist."""
        ...


class Channel(Protocol):
    """Sends messages."""

    def send(self, message: Message, now: int) -> None:
        """Send a message.

        Raises:
            AlertNotSent: it could not be sent.
        """
        ...
