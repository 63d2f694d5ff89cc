"""The rows of captures: found, held and changed inside a transaction."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Update, and_, select, update

from calve.capture import no_capture
from calve.capture.model import Status
from calve.store import tables


def one_capture(connection: Connection, capture_id: str, *, lock: bool = False) -> Row[Any]:
    """Return a capture's row; ``lock`` keeps it from everybody else until the transaction ends.

    Raises:
        CaptureMissing: there is none of that id.
    """
    query = select(tables.capture).where(tables.capture.c.id == capture_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise no_capture(capture_id)
    return row


def find_capture(connection: Connection, condition: ColumnElement[bool]) -> Row[Any] | None:
    """Return the row of the one capture of which a condition holds."""
    return connection.execute(select(tables.capture).where(condition)).one_or_none()


def is_of_key(consumer: str, key: str) -> ColumnElement[bool]:
    """Tell the capture that a consumer's key stands for; one that was given up has left it free."""
    columns = tables.capture.c
    live = columns.status.in_([Status.OPEN.value, Status.COMMITTED.value])
    return and_(columns.consumer == consumer, columns.key == key, live)


def close(connection: Connection, row: Row[Any], status: Status, now: datetime) -> None:
    """Close a capture."""
    connection.execute(change_of(row, {"status": status.value, "closed_at": now}))


def change_of(row: Row[Any], values: dict[str, Any]) -> Update:
    """Return the statement that changes a capture's row."""
    return update(tables.capture).where(tables.capture.c.id == row.id).values(values)
