"""Checkpoints in SQL, as they are read and as people move them; ``standing`` says why a move is safe."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import select

from calve.capture.model import Adoption, Move, StoredCheckpoint
from calve.errors import CheckpointMissing
from calve.lake import TableName
from calve.store import tables
from calve.store.database import Database
from calve.store.rows import checkpoint_of, is_of, is_of_consumer, log_entry_of
from calve.store.standing import advance, moved, standing


class SqlCheckpoints:
    """Keeps where consumers stand."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def checkpoint(self, consumer: str, table: TableName) -> StoredCheckpoint | None:
        """Return where a consumer stands in a table."""
        query = select(tables.checkpoint).where(is_of(tables.checkpoint, consumer, table))
        with self._database.read() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else checkpoint_of(row)

    def checkpoints(self, consumer: str | None = None) -> list[StoredCheckpoint]:
        """Return every checkpoint, or one consumer's, ordered by consumer and table."""
        query = select(tables.checkpoint).where(is_of_consumer(tables.checkpoint, consumer))
        with self._database.read() as connection:
            found = [checkpoint_of(row) for row in connection.execute(query)]
        return sorted(found, key=lambda stored: (stored.consumer, stored.table))

    def set_checkpoint(self, consumer: str, move: Move, *, reason: str, now: datetime) -> StoredCheckpoint:
        """Move a checkpoint by hand and record why; captures that are open will not commit any more.

        Raises:
            ConcurrentCommit: the version is no longer the expected one.
        """
        with self._database.write("set_checkpoint") as connection:
            found = standing(connection, consumer, move.table)
            is_unmoved = found.version == move.expected_version
            if not (is_unmoved and advance(connection, found, move.to, reason=reason, now=now)):
                raise moved(connection, consumer, move)
        return StoredCheckpoint(consumer, move.table, move.to, found.position + 1, now, reason)

    def position(self, consumer: str, table: TableName) -> int:
        """Return how often a checkpoint has moved, resets too."""
        with self._database.read() as connection:
            return standing(connection, consumer, table).position

    def adopt(self, consumer: str, adoptions: Sequence[Adoption], *, reason: str, now: datetime) -> None:
        """Move checkpoints to later positions, all or none, and record why.

        Raises:
            ConcurrentCommit: a version is no longer the expected one, or a position has been passed.
        """
        with self._database.write("adopt") as connection:
            for each in adoptions:
                found = standing(connection, consumer, each.move.table)
                is_as_read = found.version == each.move.expected_version and found.position < each.version
                before = replace(found, position=each.version - 1)  # the moves between were lost with the state
                if not (is_as_read and advance(connection, before, each.move.to, reason=reason, now=now)):
                    raise moved(connection, consumer, each.move)

    def reset_checkpoint(self, consumer: str, table: TableName, *, reason: str, now: datetime) -> None:
        """Forget a checkpoint and record why; captures that are open will not commit any more.

        Raises:
            CheckpointMissing: there is none.
        """
        with self._database.write("reset_checkpoint") as connection:
            is_reset = False
            while not is_reset:
                found = standing(connection, consumer, table)
                if found.version == 0:
                    raise CheckpointMissing(
                        f"{consumer} has no checkpoint in {table}.", consumer=consumer, table=str(table)
                    )
                is_reset = advance(connection, found, None, reason=reason, now=now)

    def checkpoint_log(self, consumer: str | None = None) -> list[dict[str, Any]]:
        """Return every move of a checkpoint as plain JSON, oldest first.

        Each has seq, at, consumer, table, version, reason, before and after; ``after`` is None for a reset.
        """
        query = select(tables.checkpoint_log).where(is_of_consumer(tables.checkpoint_log, consumer))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(tables.checkpoint_log.c.seq)).all()
        return [log_entry_of(row) for row in rows]
