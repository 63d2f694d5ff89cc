"""Where checkpoints stand, and the one way to move them.

A checkpoint's *position* counts every move of it, resets too: it is the version of the newest row in its
log, and never goes back. Its *version* is the position of the move that put it where it is, and 0 after a
reset. So 0 says "there is none", but not since when: a capture therefore remembers the position at which it
was opened, and its commit demands that very position. Whoever moves a checkpoint takes the next place in its
log; the log's unique key lets only one have it. What happened before a capture was opened does not matter, as
long as the version is the one it was planned from.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from calve.capture.model import Checkpoint, Move
from calve.errors import ConcurrentCommit
from calve.lake import TableName
from calve.store import tables
from calve.store.database import fits
from calve.store.rows import dotted, is_of


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a consumer stands in a table, by the log."""

    consumer: str
    table: TableName
    position: int = 0
    version: int = 0
    checkpoint: dict[str, Any] | None = None

    def difference(self, expected_version: int) -> str:
        """Say how this is not what was expected."""
        whose = f"The checkpoint of {self.consumer} in {self.table}"
        if self.version == expected_version:
            return f"{whose} was set and reset since the capture was opened."
        return f"{whose} is at version {self.version}, not {expected_version} as expected."

    def context(self, expected_version: int) -> dict[str, Any]:
        """Return what an error that says so carries."""
        return {
            "consumer": self.consumer,
            "table": str(self.table),
            "expected": expected_version,
            "actual": self.version,
        }


def standing(connection: Connection, consumer: str, table: TableName) -> Standing:
    """Read where a consumer stands in a table, in one statement."""
    log = tables.checkpoint_log
    newest = select(log.c.version, log.c.after).where(is_of(log, consumer, table)).order_by(log.c.version.desc())
    row = connection.execute(newest.limit(1)).one_or_none()
    if row is None:
        return Standing(consumer, table)
    return Standing(consumer, table, row.version, 0 if row.after is None else row.version, row.after)


def advance(connection: Connection, before: Standing, to: Checkpoint | None, *, reason: str, now: datetime) -> bool:
    """Move a checkpoint, or forget it; False, and nothing done, where it is not there any more."""
    place = {
        "consumer": before.consumer,
        "catalog": before.table.catalog,
        "table_name": dotted(before.table),
        "version": before.position + 1,
    }
    after = None if to is None else to.as_json()
    entry = {**place, "at": now, "reason": reason, "before": before.checkpoint, "after": after}
    if not fits(connection, insert(tables.checkpoint_log).values(entry)):
        return False
    connection.execute(delete(tables.checkpoint).where(is_of(tables.checkpoint, before.consumer, before.table)))
    if after is not None:
        row = {**place, "checkpoint": after, "moved_at": now, "moved_by": reason}
        connection.execute(insert(tables.checkpoint).values(row))
    return True


def moved(connection: Connection, consumer: str, move: Move) -> ConcurrentCommit:
    """Return the error that a checkpoint is not where a move was to begin."""
    found = standing(connection, consumer, move.table)
    return ConcurrentCommit(found.difference(move.expected_version), **found.context(move.expected_version))
