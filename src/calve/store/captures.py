"""Checkpoints and captures in SQL; ``standing`` says why a commit is safe."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Update, and_, func, insert, or_, select, update

from calve.capture.model import Adoption, Artifacts, Move, Status, StoredCapture, StoredCheckpoint
from calve.errors import (
    CaptureClosed,
    CaptureMissing,
    CheckpointMissing,
    ConcurrentCapture,
    ConcurrentCommit,
)
from calve.lake import TableName
from calve.store import tables
from calve.store.database import Database, fits
from calve.store.rows import (
    artifacts_json,
    capture_of,
    checkpoint_of,
    is_of,
    is_of_consumer,
    log_entry_of,
    move_json,
    move_of,
)
from calve.store.standing import Standing, advance, standing


class SqlCaptureState:
    """Keeps checkpoints and captures (the port is ``calve.capture.ports.CaptureState``)."""

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
                raise _moved(connection, consumer, move)
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
                    raise _moved(connection, consumer, each.move)

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
                if not is_begun and _find(connection, tables.capture.c.id == capture_id):
                    raise ConcurrentCapture(f"There is a capture {capture_id} already.", capture_id=capture_id)
            return capture_of(_one(connection, capture_id))

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
            row = _one(connection, capture_id, lock=True)
            if row.status != Status.WRITING or row.collected_at is not None:
                state = "collected as garbage" if row.status == Status.WRITING else row.status
                raise ConcurrentCapture(
                    f"Capture {capture_id} cannot be opened: it is {state} already.",
                    remedy="Take a new capture.",
                    capture_id=capture_id,
                )
            is_open = False
            while not is_open:
                _demand_new_key(connection, row)
                _make_way(connection, row, supersede=supersede)
                # Only now: the rival that had to give way may have committed while we waited for it.
                stamped = [_stamp(connection, row.consumer, move) for move in moves]
                values = {"status": Status.OPEN.value, "moves": stamped, "document": document}
                is_open = fits(connection, _update(row, values))
            return capture_of(_one(connection, capture_id))

    def commit(self, capture_id: str, now: datetime) -> StoredCapture:
        """Move all checkpoints of an open capture and close it, all or nothing; repeating it changes nothing.

        Raises:
            CaptureMissing: there is none of that id, or it is still being written.
            CaptureClosed: it was abandoned.
            ConcurrentCommit: a checkpoint was moved or reset since the capture was opened.
        """
        with self._database.write("commit") as connection:
            row = _one(connection, capture_id, lock=True)
            match Status(row.status):
                case Status.WRITING:
                    raise CaptureMissing(f"Capture {capture_id} is still being written.", capture_id=capture_id)
                case Status.ABANDONED:
                    raise _closed(row)
                case Status.OPEN:
                    for raw in row.moves:
                        _carry_out(connection, row, raw, now)
                    _close(connection, row, Status.COMMITTED, now)
                case Status.COMMITTED:
                    pass
            return capture_of(_one(connection, capture_id))

    def abandon(self, capture_id: str, now: datetime) -> StoredCapture:
        """Give a capture up; repeating it changes nothing.

        One that is still being written can never be opened then, and its key is free for another.

        Raises:
            CaptureMissing: there is none of that id.
            CaptureClosed: it was committed.
        """
        with self._database.write("abandon") as connection:
            row = _one(connection, capture_id, lock=True)
            match Status(row.status):
                case Status.COMMITTED:
                    raise _closed(row)
                case Status.WRITING | Status.OPEN:
                    _close(connection, row, Status.ABANDONED, now)
                case Status.ABANDONED:
                    pass
            return capture_of(_one(connection, capture_id))

    def capture(self, capture_id: str) -> StoredCapture:
        """Return one capture.

        Raises:
            CaptureMissing: there is none of that id.
        """
        with self._database.read() as connection:
            return capture_of(_one(connection, capture_id))

    def capture_by_key(self, consumer: str, key: str) -> StoredCapture | None:
        """Return the consumer's capture of that key; one that was given up has left its key free."""
        with self._database.read() as connection:
            row = _find(connection, _is_of_key(consumer, key))
        return None if row is None else capture_of(row)

    def open_capture(self, consumer: str) -> StoredCapture | None:
        """Return the capture that a consumer has open."""
        columns = tables.capture.c
        with self._database.read() as connection:
            row = _find(connection, and_(columns.consumer == consumer, columns.status == Status.OPEN.value))
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
            row = _one(connection, capture_id, lock=True)
            if row.status == Status.OPEN:
                raise ConcurrentCapture(
                    f"Capture {capture_id} is open: its artifacts are in use.",
                    remedy="Commit or abandon it first.",
                    capture_id=capture_id,
                )
            if row.collected_at is None:
                connection.execute(_update(row, {"collected_at": now}))


def _last_number(consumer: str) -> Select[int]:
    columns = tables.capture.c
    return select(func.coalesce(func.max(columns.number), 0)).where(columns.consumer == consumer)


def _stamp(connection: Connection, consumer: str, move: Move) -> dict[str, Any]:
    """Return a move as the capture's row keeps it, with the position from which it may be carried out."""
    found = standing(connection, consumer, move.table)
    if found.version != move.expected_version:
        raise ConcurrentCapture(
            found.difference(move.expected_version), remedy="Take a new capture.", **_versions(move, found)
        )
    return move_json(move, found.position)


def _carry_out(connection: Connection, row: Row[Any], raw: dict[str, Any], now: datetime) -> None:
    move = move_of(raw)
    found = standing(connection, row.consumer, move.table)
    is_unmoved = found.position == raw["position"]
    if not (is_unmoved and advance(connection, found, move.to, reason=row.id, now=now)):
        raise _moved(connection, row.consumer, move)


def _moved(connection: Connection, consumer: str, move: Move) -> ConcurrentCommit:
    found = standing(connection, consumer, move.table)
    return ConcurrentCommit(found.difference(move.expected_version), **_versions(move, found))


def _versions(move: Move, found: Standing) -> dict[str, Any]:
    return {
        "consumer": found.consumer,
        "table": str(found.table),
        "expected": move.expected_version,
        "actual": found.version,
    }


def _demand_new_key(connection: Connection, row: Row[Any]) -> None:
    same = None if row.key is None else _find(connection, _is_of_key(row.consumer, row.key))
    if same is not None:
        raise _key_taken(row, same)


def _key_taken(row: Row[Any], by: Row[Any]) -> ConcurrentCapture:
    return ConcurrentCapture(
        f"{row.consumer} has a capture for {row.key!r} already: {by.id}, {by.status}.",
        remedy="Use that capture, or ask under another key.",
        capture_id=by.id,
        key=row.key,
    )


def _make_way(connection: Connection, row: Row[Any], *, supersede: bool | str) -> None:
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
    _close(connection, rival, Status.ABANDONED, max(row.created_at, rival.created_at))


def _age(age: timedelta) -> str:
    """Say a time span in its largest unit."""
    seconds = max(0, int(age.total_seconds()))
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"


def _close(connection: Connection, row: Row[Any], status: Status, now: datetime) -> None:
    connection.execute(_update(row, {"status": status.value, "closed_at": now}))


def _closed(row: Row[Any]) -> CaptureClosed:
    return CaptureClosed(
        f"Capture {row.id} was {row.status} at {row.closed_at.isoformat()}.",
        capture_id=row.id,
        status=row.status,
    )


def _is_of_key(consumer: str, key: str) -> ColumnElement[bool]:
    columns = tables.capture.c
    live = columns.status.in_([Status.OPEN.value, Status.COMMITTED.value])
    return and_(columns.consumer == consumer, columns.key == key, live)


def _find(connection: Connection, condition: ColumnElement[bool]) -> Row[Any] | None:
    return connection.execute(select(tables.capture).where(condition)).one_or_none()


def _one(connection: Connection, capture_id: str, *, lock: bool = False) -> Row[Any]:
    """Return a capture's row; ``lock`` keeps it from everybody else until the transaction ends."""
    query = select(tables.capture).where(tables.capture.c.id == capture_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise CaptureMissing(f"There is no capture {capture_id!r}.", capture_id=capture_id)
    return row


def _update(row: Row[Any], values: dict[str, Any]) -> Update:
    return update(tables.capture).where(tables.capture.c.id == row.id).values(values)
