"""Captures in SQL, until their artifacts are deleted; ``checkpoints`` explains why a commit is safe."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, func, insert, or_, select, update

from calve.capture import Artifacts, Move, Status, StoredCapture, no_capture
from calve.errors import CaptureClosed, CaptureMissing, ConcurrentCapture
from calve.store.captures.checkpoints import Position, SqlCheckpoints, advance, moved
from calve.store.captures.rows import CAPTURE, is_of_consumer
from calve.store.database import fits
from calve.store.tables import capture

_columns = capture.c


class SqlCaptureState(SqlCheckpoints):
    """Stores checkpoints and captures (the port is ``calve.capture.ports.CaptureState``)."""

    def begin(
        self, capture_id: str, consumer: str, key: str | None, artifacts: Artifacts, now: datetime
    ) -> StoredCapture:
        """Record that a capture is about to be written, and all artifacts that it may leave.

        Raises:
            ConcurrentCapture: a capture with this id exists.
        """
        new = StoredCapture(capture_id, consumer, 0, key, Status.WRITING, now, None, (), artifacts)
        row = CAPTURE.to_row(new)
        newest = _last_number(consumer)
        with self._database.write("begin") as connection:
            is_begun = False
            # Two captures may read the same newest number: the unique key lets one have it, and the other tries again.
            while not is_begun:
                row["number"] = connection.scalars(newest).one() + 1
                is_begun = fits(connection, insert(capture).values(row))
                if not is_begun and _find(connection, _columns.id == capture_id) is not None:
                    raise ConcurrentCapture(f"There is a capture {capture_id} already.", capture_id=capture_id)
            return _one(connection, capture_id)

    def open(
        self, capture_id: str, moves: Sequence[Move], document: dict[str, Any], *, supersede: bool | str
    ) -> StoredCapture:
        """Make a written capture the consumer's open one.

        ``supersede`` abandons the consumer's open capture in the same transaction; an id abandons only the capture
        with that id. The abandoned capture counts as closed when this one was begun.

        Raises:
            CaptureMissing: no capture has this id.
            ConcurrentCapture: the consumer has another open capture, a capture with the same key exists already,
                a checkpoint is no longer at the expected version, or this capture was closed or collected.
        """
        with self._database.write("open") as connection:
            # Locks the row: ``gc`` may be about to abandon a capture that took too long to write.
            new = _one(connection, capture_id, lock=True)
            if new.status is not Status.WRITING or new.collected_at is not None:
                state = "collected as garbage" if new.status is Status.WRITING else new.status
                raise ConcurrentCapture(
                    f"Capture {capture_id} cannot be opened: it is {state} already.",
                    remedy="Take a new capture.",
                    capture_id=capture_id,
                )
            is_open = False
            # The unique index on open captures decides, not the checks: another process may open one in between
            # (decision 0005).
            while not is_open:
                _demand_new_key(connection, new)
                _close_open_one(connection, new, supersede=supersede)
                # Only now: the superseded capture may have committed while this transaction waited for its row.
                placed = tuple(_placed(connection, new.consumer, move) for move in moves)
                values = {"status": Status.OPEN.value, "moves": CAPTURE.written("moves", placed), "document": document}
                is_open = fits(connection, update(capture).where(_columns.id == capture_id).values(values))
            return _one(connection, capture_id)

    def commit(self, capture_id: str, now: datetime) -> StoredCapture:
        """Move all checkpoints of an open capture and close it, all or nothing; repeating it changes nothing.

        Raises:
            CaptureMissing: no capture has this id, or it is still being written.
            CaptureClosed: it was abandoned.
            ConcurrentCommit: a checkpoint was moved or reset since the capture was opened.
        """
        with self._database.write("commit") as connection:
            found = _one(connection, capture_id, lock=True)
            match found.status:
                case Status.WRITING:
                    raise CaptureMissing(f"Capture {capture_id} is still being written.", capture_id=capture_id)
                case Status.ABANDONED:
                    raise _abandoned(connection, found)
                case Status.OPEN:
                    for move in found.moves:
                        _carry_out(connection, found, move, now)
                    _close(connection, found, Status.COMMITTED, now)
                case Status.COMMITTED:
                    pass
            return _one(connection, capture_id)

    def abandon(self, capture_id: str, now: datetime) -> StoredCapture:
        """Abandon a capture; repeating it changes nothing.

        A capture that is still being written can then never be opened, and its key can be used again.

        Raises:
            CaptureMissing: no capture has this id.
            CaptureClosed: it was committed.
        """
        with self._database.write("abandon") as connection:
            found = _one(connection, capture_id, lock=True)
            match found.status:
                case Status.COMMITTED:
                    raise _closed(found)
                case Status.WRITING | Status.OPEN:
                    _close(connection, found, Status.ABANDONED, now)
                case Status.ABANDONED:
                    pass
            return _one(connection, capture_id)

    def capture(self, capture_id: str) -> StoredCapture:
        """Return one capture.

        Raises:
            CaptureMissing: no capture has this id.
        """
        with self._database.read() as connection:
            return _one(connection, capture_id)

    def capture_by_key(self, consumer: str, key: str) -> StoredCapture | None:
        """Return the capture of a consumer with a key, unless it was abandoned."""
        with self._database.read() as connection:
            return _find(connection, _is_of_key(consumer, key))

    def open_capture(self, consumer: str) -> StoredCapture | None:
        """Return the open capture of a consumer."""
        with self._database.read() as connection:
            return _find(connection, _is_open(consumer))

    def open_captures(self) -> list[StoredCapture]:
        """Return all open captures."""
        return self._captures(select(capture).where(_columns.status == Status.OPEN.value))

    def latest_capture(self, consumer: str) -> StoredCapture | None:
        """Return the newest capture of a consumer that was not abandoned."""
        counting = _columns.status.in_([Status.OPEN.value, Status.COMMITTED.value])
        query = select(capture).where(_columns.consumer == consumer, counting).order_by(_columns.number.desc())
        return next(iter(self._captures(query.limit(1))), None)

    def last_number(self, consumer: str) -> int:
        """Return the number of a consumer's newest capture; 0 if it has none."""
        with self._database.read() as connection:
            return connection.scalars(_last_number(consumer)).one()

    def captures(self, consumer: str | None = None) -> list[StoredCapture]:
        """Return all captures, or one consumer's, newest first, without those that are being written."""
        return self._captures(_newest_first(consumer))

    def captures_after(self, capture_id: str | None, consumer: str | None, limit: int) -> list[StoredCapture]:
        """Return a page of captures, newest first, after one of them; empty if that one is not among them."""
        query = _newest_first(consumer).limit(limit)
        if capture_id is None:
            return self._captures(query)
        with self._database.read() as connection:
            last = _find(connection, _columns.id == capture_id)
        if last is None or consumer not in {None, last.consumer}:
            return []
        is_older = and_(_columns.consumer == last.consumer, _columns.number < last.number)
        if consumer is None:
            is_later_consumer = or_(_columns.consumer > last.consumer, is_older)
            is_at_once = and_(_columns.created_at == last.created_at, is_later_consumer)
            is_older = or_(_columns.created_at < last.created_at, is_at_once)
        return self._captures(query.where(is_older))

    def garbage(self, written_before: datetime) -> list[StoredCapture]:
        """Return captures, closed or crashed (begun before a time), whose artifacts are not deleted yet.

        Abandon a crashed one before deleting its artifacts: its writer may still be alive, and open it.
        """
        is_crashed = and_(_columns.status == Status.WRITING.value, _columns.created_at < written_before)
        is_closed = _columns.status.in_([Status.COMMITTED.value, Status.ABANDONED.value])
        query = select(capture).where(_columns.collected_at.is_(None), or_(is_closed, is_crashed))
        return self._captures(query.order_by(_columns.created_at, _columns.consumer, _columns.number))

    def mark_collected(self, capture_id: str, now: datetime) -> None:
        """Record that a capture's artifacts were deleted; repeating it changes nothing.

        Raises:
            CaptureMissing: no capture has this id.
            ConcurrentCapture: the capture is open.
        """
        with self._database.write("mark_collected") as connection:
            found = _one(connection, capture_id, lock=True)
            if found.status is Status.OPEN:
                raise ConcurrentCapture(
                    f"Capture {capture_id} is open: its artifacts are in use.",
                    remedy="Commit or abandon it first.",
                    capture_id=capture_id,
                )
            if found.collected_at is None:
                connection.execute(update(capture).where(_columns.id == capture_id).values(collected_at=now))

    def _captures(self, query: Select[Any]) -> list[StoredCapture]:
        with self._database.read() as connection:
            return [CAPTURE.from_row(row) for row in connection.execute(query)]


def _one(connection: Connection, capture_id: str, *, lock: bool = False) -> StoredCapture:
    """Return a capture; ``lock`` locks its row until the transaction ends.

    Raises:
        CaptureMissing: no capture has this id.
    """
    found = _find(connection, _columns.id == capture_id, lock=lock)
    if found is None:
        raise no_capture(capture_id)
    return found


def _find(connection: Connection, condition: ColumnElement[bool], *, lock: bool = False) -> StoredCapture | None:
    """Return the one capture that meets a condition."""
    query = select(capture).where(condition)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    return None if row is None else CAPTURE.from_row(row)


def _newest_first(consumer: str | None) -> Select[Any]:
    query = select(capture).where(is_of_consumer(capture, consumer), _columns.status != Status.WRITING.value)
    # Within a consumer, the number decides, because clocks may differ.
    before = () if consumer is not None else (_columns.created_at.desc(), _columns.consumer)
    return query.order_by(*before, _columns.number.desc())


def _is_of_key(consumer: str, key: str) -> ColumnElement[bool]:
    """Match the capture of a consumer with a key, unless it was abandoned."""
    live = _columns.status.in_([Status.OPEN.value, Status.COMMITTED.value])
    return and_(_columns.consumer == consumer, _columns.key == key, live)


def _is_open(consumer: str) -> ColumnElement[bool]:
    return and_(_columns.consumer == consumer, _columns.status == Status.OPEN.value)


def _last_number(consumer: str) -> Select[int]:
    return select(func.coalesce(func.max(_columns.number), 0)).where(_columns.consumer == consumer)


def _close(connection: Connection, found: StoredCapture, status: Status, now: datetime) -> None:
    values = {"status": status.value, "closed_at": now}
    connection.execute(update(capture).where(_columns.id == found.capture_id).values(values))


def _demand_new_key(connection: Connection, new: StoredCapture) -> None:
    """Refuse a capture if an open or committed one has its key.

    Raises:
        ConcurrentCapture: another capture has the key.
    """
    same = None if new.key is None else _find(connection, _is_of_key(new.consumer, new.key))
    if same is not None:
        raise _key_taken(new, same)


def _close_open_one(connection: Connection, new: StoredCapture, *, supersede: bool | str) -> None:
    """Abandon the consumer's open capture, if it has one that may be superseded.

    Raises:
        ConcurrentCapture: it may not be superseded, or it has the same key.
    """
    other = _find(connection, _is_open(new.consumer), lock=True)
    if other is None:
        return
    if new.key is not None and other.key == new.key:  # opened since the check of the key
        raise _key_taken(new, other)
    if supersede is not True and supersede != other.capture_id:
        age = _age(new.created_at - other.created_at)
        raise ConcurrentCapture(
            f"{new.consumer} has another capture open: {other.capture_id}, started {age} ago.",
            remedy=f"Commit or abandon {other.capture_id}, or pass --supersede to abandon it.",
            capture_id=other.capture_id,
            consumer=new.consumer,
            created_at=other.created_at.isoformat(),
        )
    _close(connection, other, Status.ABANDONED, max(new.created_at, other.created_at))


def _placed(connection: Connection, consumer: str, move: Move) -> Move:
    """Return a move with the position at which it may be performed.

    Raises:
        ConcurrentCapture: the checkpoint is not at the start of the move.
    """
    found = Position.read(connection, consumer, move.table)
    if found.version != move.expected_version:
        raise ConcurrentCapture(
            found.difference(move.expected_version),
            remedy="Take a new capture.",
            **found.context(move.expected_version),
        )
    return replace(move, position=found.position)


def _carry_out(connection: Connection, found: StoredCapture, move: Move, now: datetime) -> None:
    before = Position.read(connection, found.consumer, move.table)
    is_unmoved = before.position == move.position
    if not (is_unmoved and advance(connection, before, move.to, reason=found.capture_id, now=now)):
        raise moved(connection, found.consumer, move)


def _key_taken(new: StoredCapture, by: StoredCapture) -> ConcurrentCapture:
    return ConcurrentCapture(
        f"{new.consumer} has a capture for {new.key!r} already: {by.capture_id}, {by.status}.",
        remedy="Use that capture, or ask under another key.",
        capture_id=by.capture_id,
        key=new.key,
    )


def _closed(found: StoredCapture) -> CaptureClosed:
    at = "" if found.closed_at is None else f" at {found.closed_at.isoformat()}"
    return CaptureClosed(
        f"Capture {found.capture_id} was {found.status}{at}.",
        capture_id=found.capture_id,
        status=found.status.value,
    )


def _abandoned(connection: Connection, found: StoredCapture) -> CaptureClosed:
    """Return the error for an abandoned capture, which names the one that superseded it."""
    # Imported here, because its module reads manifests, which no other method here needs.
    from calve.capture import superseded_by

    is_newer = (
        _columns.consumer == found.consumer,
        _columns.number > found.number,
        _columns.status != Status.WRITING.value,
    )
    others = [CAPTURE.from_row(row) for row in connection.execute(select(capture).where(*is_newer))]
    by = superseded_by(found, others)
    error = _closed(found)
    newer = "" if by.newer_id is None else f" {by.message[0].upper()}{by.message[1:]}"
    return CaptureClosed(f"{error.message}{newer}", remedy=by.remedy(), **error.context)


def _age(age: timedelta) -> str:
    """Return a time span in its largest unit."""
    seconds = max(0, int(age.total_seconds()))
    for unit, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name}"
    return f"{seconds} s"
