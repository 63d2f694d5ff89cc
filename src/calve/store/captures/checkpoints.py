"""Checkpoints in SQL, and the one way to move them.

A checkpoint's *position* counts all of its moves, including resets: it is the version of the newest row in its
log, and only grows. Its *version* is the position of the move that set it, and 0 after a reset. So version
0 means that there is no checkpoint, but not since when: a capture therefore stores the position at which it
was opened, and its commit requires that position. Every move takes the next position in the log, whose unique
key lets only one move take it. Moves before a capture was opened do not matter, as long as the version
is the one from which it was planned.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from sqlalchemy import ColumnElement, Connection, Row, Table, and_, delete, insert, select

from calve.capture import Adoption, Checkpoint, Move, Status, StoredCapture, StoredCheckpoint
from calve.errors import CheckpointMissing, ConcurrentCommit
from calve.lake import TableName
from calve.store.captures.rows import CHECKPOINT, columns_of, is_about, is_of_consumer, table_of
from calve.store.database import Database, fits
from calve.store.tables import checkpoint, checkpoint_log


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a consumer's checkpoint in a table, from the log."""

    consumer: str
    table: TableName
    position: int = 0
    version: int = 0
    checkpoint: dict[str, Any] | None = None

    @classmethod
    def read(cls, connection: Connection, consumer: str, table: TableName) -> Self:
        """Read the position in one statement."""
        log = checkpoint_log.c
        newest = select(log.version, log.after).where(_is_of(checkpoint_log, consumer, table))
        row = connection.execute(newest.order_by(log.version.desc()).limit(1)).one_or_none()
        if row is None:
            return cls(consumer, table)
        return cls(consumer, table, row.version, 0 if row.after is None else row.version, row.after)

    def difference(self, expected_version: int) -> str:
        """Describe how the checkpoint differs from the expected version."""
        whose = f"The checkpoint of {self.consumer} in {self.table}"
        if self.version == expected_version:
            return f"{whose} was set and reset since the capture was opened."
        return f"{whose} is at version {self.version}, not {expected_version} as expected."

    def context(self, expected_version: int) -> dict[str, Any]:
        """Return the context of an error about this difference."""
        return {
            "consumer": self.consumer,
            "table": str(self.table),
            "expected": expected_version,
            "actual": self.version,
        }


class SqlCheckpoints:
    """Stores the checkpoints of consumers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def checkpoint(self, consumer: str, table: TableName) -> StoredCheckpoint | None:
        """Return the checkpoint of a consumer in a table."""
        query = select(checkpoint).where(_is_of(checkpoint, consumer, table))
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else CHECKPOINT.from_row(row)

    def checkpoints(self, consumer: str | None = None) -> list[StoredCheckpoint]:
        """Return every checkpoint, or one consumer's, ordered by consumer and table."""
        query = select(checkpoint).where(is_of_consumer(checkpoint, consumer))
        with self._database.read() as connection:
            found = [CHECKPOINT.from_row(row) for row in connection.execute(query)]
        return sorted(found, key=lambda stored: (stored.consumer, stored.table))

    def checkpoints_of(self, table: TableName) -> list[StoredCheckpoint]:
        """Return the checkpoints of a table, by consumer."""
        query = select(checkpoint).where(is_about(checkpoint, table)).order_by(checkpoint.c.consumer)
        with self._database.read() as connection:
            return [CHECKPOINT.from_row(row) for row in connection.execute(query)]

    def set_checkpoint(self, consumer: str, move: Move, *, reason: str, now: datetime) -> StoredCheckpoint:
        """Move a checkpoint by hand and record why; open captures can then no longer commit.

        Raises:
            ConcurrentCommit: the version is no longer the expected one.
        """
        with self._database.write("set_checkpoint") as connection:
            found = Position.read(connection, consumer, move.table)
            is_unmoved = found.version == move.expected_version
            if not (is_unmoved and advance(connection, found, move.to, reason=reason, now=now)):
                raise moved(connection, consumer, move)
        return StoredCheckpoint(consumer, move.table, move.to, found.position + 1, now, reason)

    def position(self, consumer: str, table: TableName) -> int:
        """Return how often a checkpoint has moved, including resets."""
        with self._database.read() as connection:
            return Position.read(connection, consumer, table).position

    def adopt(self, consumer: str, adoptions: Sequence[Adoption], *, reason: str, now: datetime) -> None:
        """Move checkpoints to later positions, all or none, and record why.

        Raises:
            ConcurrentCommit: a version is no longer the expected one, or a position has been passed.
        """
        with self._database.write("adopt") as connection:
            for each in adoptions:
                found = Position.read(connection, consumer, each.move.table)
                is_as_read = found.version == each.move.expected_version and found.position < each.version
                before = replace(found, position=each.version - 1)  # the moves between were lost with the state
                if not (is_as_read and advance(connection, before, each.move.to, reason=reason, now=now)):
                    raise moved(connection, consumer, each.move)

    def reset_checkpoint(self, consumer: str, table: TableName, *, reason: str, now: datetime) -> None:
        """Delete a checkpoint and record why; open captures can then no longer commit.

        Raises:
            CheckpointMissing: the checkpoint does not exist.
        """
        with self._database.write("reset_checkpoint") as connection:
            is_reset = False
            while not is_reset:
                found = Position.read(connection, consumer, table)
                if found.version == 0:
                    raise CheckpointMissing(
                        f"{consumer} has no checkpoint in {table}.", consumer=consumer, table=str(table)
                    )
                is_reset = advance(connection, found, None, reason=reason, now=now)

    def checkpoint_log(self, consumer: str | None = None) -> list[dict[str, Any]]:
        """Return every move of a checkpoint as plain JSON, oldest first.

        Each has seq, at, consumer, table, version, reason, before and after; ``after`` is None for a reset.
        """
        return self._log(is_of_consumer(checkpoint_log, consumer))

    def moves_of(self, capture: StoredCapture) -> list[dict[str, Any]]:
        """Return the moves made by the commit of a capture, as ``checkpoint_log`` does."""
        is_its = and_(checkpoint_log.c.reason == capture.capture_id, is_of_consumer(checkpoint_log, capture.consumer))
        return self._log(is_its) if capture.status is Status.COMMITTED else []

    def _log(self, condition: ColumnElement[bool]) -> list[dict[str, Any]]:
        query = select(checkpoint_log).where(condition).order_by(checkpoint_log.c.seq)
        with self._database.read() as connection:
            return [_log_entry(row) for row in connection.execute(query)]


def advance(connection: Connection, before: Position, to: Checkpoint | None, *, reason: str, now: datetime) -> bool:
    """Move or delete a checkpoint; return False, without a change, if another move took the position."""
    after = None if to is None else to.as_json()
    entry = {
        "consumer": before.consumer,
        **columns_of(before.table),
        "version": before.position + 1,
        "at": now,
        "reason": reason,
        "before": before.checkpoint,
        "after": after,
    }
    # The compare-and-set of decision 0006: the insert that gets this position moves the checkpoint.
    if not fits(connection, insert(checkpoint_log).values(entry)):
        return False
    # Delete and insert instead of an update, because there may be no row yet.
    connection.execute(delete(checkpoint).where(_is_of(checkpoint, before.consumer, before.table)))
    if to is not None:
        stored = StoredCheckpoint(before.consumer, before.table, to, before.position + 1, now, reason)
        connection.execute(insert(checkpoint).values(CHECKPOINT.to_row(stored)))
    return True


def moved(connection: Connection, consumer: str, move: Move) -> ConcurrentCommit:
    """Return the error for a checkpoint that is not at the start of a move."""
    found = Position.read(connection, consumer, move.table)
    return ConcurrentCommit(found.difference(move.expected_version), **found.context(move.expected_version))


def _is_of(columns: Table, consumer: str, table: TableName) -> ColumnElement[bool]:
    return and_(columns.c.consumer == consumer, is_about(columns, table))


def _log_entry(row: Row[Any]) -> dict[str, Any]:
    return {
        "seq": row.seq,
        "at": row.at.isoformat(),
        "consumer": row.consumer,
        "table": str(table_of(row)),
        "version": row.version,
        "reason": row.reason,
        "before": row.before,
        "after": row.after,
    }
