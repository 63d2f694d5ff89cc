"""Opens captures: who has to give way to whom, and from where checkpoints may be moved."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, Row, and_, select

from calve.capture.model import Move, Status
from calve.errors import ConcurrentCapture
from calve.store import tables
from calve.store.capture_rows import close, find_capture, is_of_key
from calve.store.rows import move_json
from calve.store.standing import standing


def demand_new_key(connection: Connection, row: Row[Any]) -> None:
    """Refuse a capture whose key another has that counts.

    Raises:
        ConcurrentCapture: there is one.
    """
    same = None if row.key is None else find_capture(connection, is_of_key(row.consumer, row.key))
    if same is not None:
        raise _key_taken(row, same)


def make_way(connection: Connection, row: Row[Any], *, supersede: bool | str) -> None:
    """Abandon the capture that the consumer has open, if there is one and it may be superseded.

    Raises:
        ConcurrentCapture: it may not, or it has the same key.
    """
    columns = tables.capture.c
    is_rival = and_(columns.consumer == row.consumer, columns.status == Status.OPEN.value)
    rival = connection.execute(select(tables.capture).where(is_rival).with_for_update()).one_or_none()
    if rival is None:
        return
    if row.key is not None and rival.key == row.key:  # opened since the key was looked for
        raise _key_taken(row, rival)
    if supersede is not True and supersede != rival.id:
        age = _age(row.created_at - rival.created_at)
        raise ConcurrentCapture(
            f"{row.consumer} has another capture open: {rival.id}, begun {age} ago.",
            remedy=f"Commit or abandon {rival.id}, or pass --supersede to abandon it.",
            capture_id=rival.id,
            consumer=row.consumer,
            created_at=rival.created_at.isoformat(),
        )
    close(connection, rival, Status.ABANDONED, max(row.created_at, rival.created_at))


def stamp(connection: Connection, consumer: str, move: Move) -> dict[str, Any]:
    """Return a move as the capture's row keeps it, with the position from which it may be carried out.

    Raises:
        ConcurrentCapture: the checkpoint is not where the move begins.
    """
    found = standing(connection, consumer, move.table)
    if found.version != move.expected_version:
        raise ConcurrentCapture(
            found.difference(move.expected_version),
            remedy="Take a new capture.",
            **found.context(move.expected_version),
        )
    return move_json(move, found.position)


def _key_taken(row: Row[Any], by: Row[Any]) -> ConcurrentCapture:
    return ConcurrentCapture(
        f"{row.consumer} has a capture for {row.key!r} already: {by.id}, {by.status}.",
        remedy="Use that capture, or ask under another key.",
        capture_id=by.id,
        key=row.key,
    )


def _age(age: timedelta) -> str:
    """Say a time span in its largest unit."""
    seconds = max(0, int(age.total_seconds()))
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"
