"""What capture requires of others: a store for checkpoints, a clock, and ids."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from calve.capture.model import Adoption, Artifacts, Move, StoredCapture, StoredCheckpoint
from calve.lake import TableName

Clock = Callable[[], datetime]
"""The time, with a zone."""

NewId = Callable[[], str]
"""A new random name of lower-case letters and digits."""


class CaptureState(Protocol):
    """Stores checkpoints and captures; every method is one transaction."""

    def checkpoint(self, consumer: str, table: TableName) -> StoredCheckpoint | None:
        """Return a consumer's checkpoint in a table."""
        ...

    def checkpoints(self, consumer: str | None = None) -> list[StoredCheckpoint]:
        """Return every checkpoint, or one consumer's, ordered by consumer and table."""
        ...

    def set_checkpoint(self, consumer: str, move: Move, *, reason: str, now: datetime) -> StoredCheckpoint:
        """Move a checkpoint by hand and record why.

        Raises:
            ConcurrentCommit: the version is no longer the expected one.
        """
        ...

    def reset_checkpoint(self, consumer: str, table: TableName, *, reason: str, now: datetime) -> None:
        """Delete a checkpoint and record why.

        Raises:
            CheckpointMissing: there is none.
        """
        ...

    def position(self, consumer: str, table: TableName) -> int:
        """Return how often a checkpoint has moved, resets included."""
        ...

    def adopt(self, consumer: str, adoptions: Sequence[Adoption], *, reason: str, now: datetime) -> None:
        """Move checkpoints to later positions, all or none, and record why; open captures can no longer be committed.

        Raises:
            ConcurrentCommit: a version is no longer the expected one, or a position has been passed.
        """
        ...

    def checkpoint_log(self, consumer: str | None = None) -> list[dict[str, Any]]:
        """Return every move of a checkpoint, oldest first: seq, at, consumer, table, reason, before, after."""
        ...

    def moves_of(self, capture: StoredCapture) -> list[dict[str, Any]]:
        """Return the moves that the commit of a capture made, in the same form."""
        ...

    def begin(
        self, capture_id: str, consumer: str, key: str | None, artifacts: Artifacts, now: datetime
    ) -> StoredCapture:
        """Record that a capture is about to be written, and everything that it may create."""
        ...

    def open(
        self, capture_id: str, moves: Sequence[Move], document: dict[str, Any], *, supersede: bool | str
    ) -> StoredCapture:
        """Make a written capture the consumer's open one.

        ``supersede`` abandons the consumer's open capture in the same transaction; with an id, only that one.

        Raises:
            ConcurrentCapture: the consumer has another capture open, a capture of the same key is there already,
                or a checkpoint is no longer at the expected version.
        """
        ...

    def commit(self, capture_id: str, now: datetime) -> StoredCapture:
        """Move all checkpoints of an open capture and close it, all or nothing; repeating it changes nothing.

        Raises:
            CaptureMissing: it does not exist, or is still being written.
            CaptureClosed: it was abandoned.
            ConcurrentCommit: a checkpoint moved since the capture was opened.
        """
        ...

    def abandon(self, capture_id: str, now: datetime) -> StoredCapture:
        """Abandon an open capture; repeating it changes nothing.

        Raises:
            CaptureMissing: it does not exist.
            CaptureClosed: it was committed.
        """
        ...

    def capture(self, capture_id: str) -> StoredCapture:
        """Return one capture.

        Raises:
            CaptureMissing: it does not exist.
        """
        ...

    def capture_by_key(self, consumer: str, key: str) -> StoredCapture | None:
        """Return the consumer's open or committed capture with that key; abandoned ones do not count."""
        ...

    def captures(self, consumer: str | None = None) -> list[StoredCapture]:
        """Return all captures except those being written, or one consumer's, newest first."""
        ...

    def captures_after(self, capture_id: str | None, consumer: str | None, limit: int) -> list[StoredCapture]:
        """Return some of these captures: the newest, or those after the given one; none if that one is missing."""
        ...

    def open_capture(self, consumer: str) -> StoredCapture | None:
        """Return the open capture of a consumer."""
        ...

    def last_number(self, consumer: str) -> int:
        """Return the number of a consumer's newest capture; 0 if it has none."""
        ...

    def garbage(self, written_before: datetime) -> list[StoredCapture]:
        """Return closed captures, and crashed ones that started before a time, whose artifacts are not collected yet.

        Abandon a crashed one before removing its artifacts: its writer may be alive, and could still open it.
        """
        ...

    def mark_collected(self, capture_id: str, now: datetime) -> None:
        """Record that a capture's artifacts are gone."""
        ...
