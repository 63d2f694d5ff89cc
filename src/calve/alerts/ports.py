"""What alerts need of others: a store for what is to be sent, and channels that send it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from calve.alerts.model import Message, MessageStatus, StoredMessage
from calve.engine.model import Event, Run, Snapshot, VersionRecord
from calve.engine.statuses import RunStatus


class Happenings(Protocol):
    """What alerts look at; the engine's state is such a thing."""

    def events(self, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Return events in order, from the one after ``after``."""
        ...

    def load(self, run_uuid: str) -> Snapshot | None:
        """Return a run and the newest attempt of each of its steps."""
        ...

    def instances(
        self, *, statuses: Sequence[RunStatus] = (), before: tuple[int, str] | None = None, limit: int = 100
    ) -> list[Run]:
        """Return the latest runs of instances that are no iterations, newest first."""
        ...


class AlertState(Protocol):
    """Keeps messages until they are sent, and how far events have been looked at."""

    def position(self, name: str, first: int | None = None) -> int:
        """Return how far a follower has come; a new one begins at ``first``, or at the newest event."""
        ...

    def take(self, name: str, before: int, after: int, messages: Sequence[Message], now: int) -> None:
        """Move a follower on and keep its messages, both or neither; a message that is known is not kept again.

        Raises:
            Conflict: the follower is no longer where it was.
        """
        ...

    def due(self, now: int, *, without: Sequence[str] = (), limit: int = 100) -> list[StoredMessage]:
        """Return messages that are to be sent, those that wait longest first; none of some channels."""
        ...

    def claim(self, stored: StoredMessage, until: int) -> bool:
        """Take a message in hand until a time: one more try; tell whether nobody else has it."""
        ...

    def sent(self, message_id: str, now: int) -> None:
        """Record that a message was sent."""
        ...

    def failed(self, message_id: str, error: str, due_at: int | None) -> None:
        """Record that a message could not be sent, and when it is tried again; never, if no time is given."""
        ...

    def messages(self, *, status: MessageStatus | None = None, limit: int = 100) -> list[StoredMessage]:
        """Return messages, newest first."""
        ...

    def versions(self, since: int) -> list[VersionRecord]:
        """Return the versions of workflows that were made at a time or later."""
        ...

    def properties(self, workflow_id: str) -> Mapping[str, object]:
        """Return the properties of a workflow; none, if there is no such workflow."""
        ...


class Channel(Protocol):
    """Sends messages."""

    def send(self, message: Message, now: int) -> None:
        """Send a message.

        Raises:
            AlertNotSent: it could not be sent.
        """
        ...
