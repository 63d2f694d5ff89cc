"""Captures in SQL, from their beginning until what they left is collected; ``standing`` says why a commit is safe."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, or_, select

from calve.capture.model import Artifacts, Move, Status, StoredCapture
from calve.capture.superseded import superseded_by
from calve.errors import CaptureClosed, CaptureMissing, ConcurrentCapture
from calve.store import tables
from calve.store.capture_rows import change_of, close, find_capture, is_of_key, one_capture
from calve.store.checkpoints import SqlCheckpoints
from calve.store.database import fits
from calve.store.opening import demand_new_key, make_way, stamp
from calve.store.rows import artifacts_json, capture_of, is_of_consumer, move_of
from calve.store.standing import advance, moved, standing


class SqlCaptureState(SqlCheckpoints):
    """Keeps checkpoints and captures (the port is ``calve.capture.ports.CaptureState``)."""

    def begin(
        self, capture_id: str, consumer: str, key: str | None, artifacts: Artifacts, now: datetime
    ) -> StoredCapture:
        """Record that a capture is about to be written, and everything it may leave behind.

        Raises:
            ConcurrentCapture: there is a capture of that id.
        """
        newest = _last_number(consumer)
        values: dict[str, Any] = {
            "id": capture_id,
            "consumer": consumer,
            "key": key,
            "status": Status.WRITING.value,
            "created_at": now,
            "moves": [],
            "artifacts": artifacts_json(artifacts),
            "document": {},
        }
        with self._database.write("begin") as connection:
            is_begun = False
            while not is_begun:
                number = connection.scalars(newest).one() + 1
                is_begun = fits(connection, insert(tables.capture).values(**values, number=number))
                if not is_begun and find_capture(connection, tables.capture.c.id == capture_id):
                    raise ConcurrentCapture(f"There is a capture {capture_id} already.", capture_id=capture_id)
            return capture_of(one_capture(connection, capture_id))

    def open(
        self, capture_id: str, moves: Sequence[Move], document: dict[str, Any], *, supersede: bool | str
    ) -> StoredCapture:
        """Make a written capture the consumer's open one.

        ``supersede`` abandons the capture that the consumer has open, in the same transaction; an id, only that
        one. It counts as closed when this one was begun.

        Raises:
            CaptureMissing: there is none of that id.
            ConcurrentCapture: the consumer has another capture open, a capture of the same key is there
                already, a checkpoint is no longer at the expected version, or this capture was closed or
                collected.
        """
        with self._database.write("open") as connection:
            row = one_capture(connection, capture_id, lock=True)
            if row.status != Status.WRITING or row.collected_at is not None:
                state = "collected as garbage" if row.status == Status.WRITING else row.status
                raise ConcurrentCapture(
                    f"Capture {capture_id} cannot be opened: it is {state} already.",
                    remedy="Take a new capture.",
                    capture_id=capture_id,
                )
            is_open = False
            while not is_open:
                demand_new_key(connection, row)
                make_way(connection, row, supersede=supersede)
                # Only now: the rival that had to give way may have committed while we waited for it.
                stamped = [stamp(connection, row.consumer, move) for move in moves]
                values = {"status": Status.OPEN.value, "moves": stamped, "document": document}
                is_open = fits(connection, change_of(row, values))
            return capture_of(one_capture(connection, capture_id))

    def commit(self, capture_id: str, now: datetime) -> StoredCapture:
        """Move all checkpoints of an open capture and close it, all or nothing; repeating it changes nothing.

        Raises:
            CaptureMissing: there is none of that id, or it is still being written.
            CaptureClosed: it was abandoned.
            ConcurrentCommit: a checkpoint was moved or reset since the capture was opened.
        """
        with self._database.write("commit") as connection:
            row = one_capture(connection, capture_id, lock=True)
            match Status(row.status):
                case Status.WRITING:
                    raise CaptureMissing(f"Capture {capture_id} is still being written.", capture_id=capture_id)
                case Status.ABANDONED:
                    raise _given_up(connection, row)
                case Status.OPEN:
                    for raw in row.moves:
                        _carry_out(connection, row, raw, now)
                    close(connection, row, Status.COMMITTED, now)
                case Status.COMMITTED:
                    pass
            return capture_of(one_capture(connection, capture_id))

    def abandon(self, capture_id: str, now: datetime) -> StoredCapture:
        """Give a capture up; repeating it changes nothing.

        One that is still being written can never be opened then, and its key is free for another.

        Raises:
            CaptureMissing: there is none of that id.
            CaptureClosed: it was committed.
        """
        with self._database.write("abandon") as connection:
            row = one_capture(connection, capture_id, lock=True)
            match Status(row.status):
                case Status.COMMITTED:
                    raise _closed(row)
                case Status.WRITING | Status.OPEN:
                    close(connection, row, Status.ABANDONED, now)
                case Status.ABANDONED:
                    pass
            return capture_of(one_capture(connection, capture_id))

    def capture(self, capture_id: str) -> StoredCapture:
        """Return one capture.

        Raises:
            CaptureMissing: there is none of that id.
        """
        with self._database.read() as connection:
            return capture_of(one_capture(connection, capture_id))

    def capture_by_key(self, consumer: str, key: str) -> StoredCapture | None:
        """Return the consumer's capture of that key; one that was given up has left its key free."""
        with self._database.read() as connection:
            row = find_capture(connection, is_of_key(consumer, key))
        return None if row is None else capture_of(row)

    def open_capture(self, consumer: str) -> StoredCapture | None:
        """Return the capture that a consumer has open."""
        columns = tables.capture.c
        with self._database.read() as connection:
            row = find_capture(connection, and_(columns.consumer == consumer, columns.status == Status.OPEN.value))
        return None if row is None else capture_of(row)

    def last_number(self, consumer: str) -> int:
        """Return the number of a consumer's newest capture; 0 where it has none."""
        with self._database.read() as connection:
            return connection.scalars(_last_number(consumer)).one()

    def captures(self, consumer: str | None = None) -> list[StoredCapture]:
        """Return all captures but those being written, or one consumer's, newest first."""
        columns = tables.capture.c
        query = select(tables.capture).where(
            is_of_consumer(tables.capture, consumer), columns.status != Status.WRITING.value
        )
        # Within a consumer the number tells, whatever the clocks did.
        newest_first = () if consumer is not None else (columns.created_at.desc(), columns.consumer)
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(*newest_first, columns.number.desc()))
            return [capture_of(row) for row in rows]

    def garbage(self, written_before: datetime) -> list[StoredCapture]:
        """Return captures, closed or crashed (begun before a time), whose artifacts are not collected yet.

        Abandon a crashed one before its artifacts are deleted: its writer may be alive, and open it.
        """
        columns = tables.capture.c
        is_crashed = and_(columns.status == Status.WRITING.value, columns.created_at < written_before)
        is_closed = columns.status.in_([Status.COMMITTED.value, Status.ABANDONED.value])
        query = select(tables.capture).where(columns.collected_at.is_(None), or_(is_closed, is_crashed))
        with self._database.read() as connection:
            rows = connection.execute(query.order_by(columns.created_at, columns.consumer, columns.number))
            return [capture_of(row) for row in rows]

    def mark_collected(self, capture_id: str, now: datetime) -> None:
        """Record that a capture's artifacts are gone; repeating it changes nothing.

        Raises:
            CaptureMissing: there is none of that id.
            ConcurrentCapture: it is open.
        """
        with self._database.write("mark_collected") as connection:
            row = one_capture(connection, capture_id, lock=True)
            if row.status == Status.OPEN:
                raise ConcurrentCapture(
                    f"Capture {capture_id} is open: its artifacts are in use.",
                    remedy="Commit or abandon it first.",
                    capture_id=capture_id,
                )
            if row.collected_at is None:
                connection.execute(change_of(row, {"collected_at": now}))


def _last_number(consumer: str) -> Select[int]:
    columns = tables.capture.c
    return select(func.coalesce(func.max(columns.number), 0)).where(columns.consumer == consumer)


def _carry_out(connection: Connection, row: Row[Any], raw: dict[str, Any], now: datetime) -> None:
    move = move_of(raw)
    found = standing(connection, row.consumer, move.table)
    is_unmoved = found.position == raw["position"]
    if not (is_unmoved and advance(connection, found, move.to, reason=row.id, now=now)):
        raise moved(connection, row.consumer, move)


def _closed(row: Row[Any]) -> CaptureClosed:
    return CaptureClosed(
        f"Capture {row.id} was {row.status} at {row.closed_at.isoformat()}.",
        capture_id=row.id,
        status=row.status,
    )


def _given_up(connection: Connection, row: Row[Any]) -> CaptureClosed:
    """Return the error that a capture was abandoned, which names the one that took its place."""
    others = connection.execute(select(tables.capture).where(_is_newer(row)))
    found = superseded_by(capture_of(row), [capture_of(other) for other in others])
    error = _closed(row)
    newer = "" if found.newer_id is None else f" {found.message[0].upper()}{found.message[1:]}"
    return CaptureClosed(f"{error.message}{newer}", remedy=found.remedy(), **error.context)


def _is_newer(row: Row[Any]) -> ColumnElement[bool]:
    columns = tables.capture.c
    return and_(columns.consumer == row.consumer, columns.number > row.number, columns.status != Status.WRITING.value)
