"""Appends events and logs.

PostgreSQL numbers events when they are written, but shows them when they are committed: who has read number 6 could
never see number 5, which came a moment later. So each event carries the number of its transaction, and is shown only
when no older transaction is under way; after a minute it is shown in any case, lest a long transaction of somebody
else, or the numbers of a restored backup, hide it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Select, bindparam, case, delete, func, insert, select, text, union_all
from sqlalchemy.dialects import postgresql, sqlite

from calve.engine.model import Event, LogChunk, LogExtent
from calve.store.engine_rows import event_of, event_row, plain
from calve.store.engine_tables import IS_INNER, event, log_chunk, run
from calve.store.fencing import chunks
from calve.store.transacting import Transaction

_SETTLED = text(
    "(event.xid < (pg_snapshot_xmin(pg_current_snapshot())::text)::bigint"
    " OR event.at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 60000)"
)
_ROOTS = select(run.c.uuid, run.c.root_uuid).where(run.c.uuid.in_(bindparam("uuids", expanding=True)))
_EVENTS = insert(event)
_LOGS = {
    False: sqlite.insert(log_chunk).on_conflict_do_nothing(),
    True: postgresql.insert(log_chunk).on_conflict_do_nothing(),
}
_KEPT = select(log_chunk.c.text).where(
    log_chunk.c.attempt_uuid == bindparam("attempt_uuid"), log_chunk.c.number == bindparam("number")
)

_LAST = select(func.max(log_chunk.c.number)).where(log_chunk.c.attempt_uuid == bindparam("attempt_uuid"))
_DROP = delete(log_chunk).where(
    log_chunk.c.attempt_uuid == bindparam("the_uuid"),
    log_chunk.c.start >= bindparam("begin"),
    log_chunk.c.start + log_chunk.c.size <= bindparam("end"),
)
_EXTENTS = (
    select(
        log_chunk.c.number,
        log_chunk.c.start,
        log_chunk.c.line,
        log_chunk.c.size,
        case((log_chunk.c.size.is_(None), log_chunk.c.text)).label("unsized"),
    )
    .where(log_chunk.c.attempt_uuid == bindparam("attempt_uuid"))
    .order_by(log_chunk.c.number)
)


def append_events(connection: Connection, events: Sequence[Event], roots: Mapping[str, str]) -> None:
    """Append events; ``roots`` has the roots of the runs that were written just now."""
    if not events:
        return
    missing = sorted({each.run_uuid for each in events} - roots.keys())
    found = dict(roots)
    for some in chunks(missing):
        found |= {row.uuid: row.root_uuid for row in connection.execute(_ROOTS, {"uuids": some})}
    connection.execute(_EVENTS, [event_row(each, found.get(each.run_uuid, each.run_uuid)) for each in events])


def read_events(
    connection: Connection, *, after: int, run_uuid: str | None, root_uuid: str | None, limit: int
) -> list[Event]:
    """Return events in order, from the one after ``after``; none will ever come before the last of them."""
    query = select(event).where(event.c.seq > after).order_by(event.c.seq).limit(limit)
    if connection.dialect.name == "postgresql":
        query = query.where(_SETTLED)
    if run_uuid is not None:
        query = query.where(event.c.run_uuid == run_uuid)
    elif root_uuid is not None:
        query = _of_tree(query, root_uuid, limit)
    return [event_of(row) for row in connection.execute(query)]


def _of_tree(query: Select[Any], root_uuid: str, limit: int) -> Select[Any]:
    """Return the first events of a root and of the runs inside it; each part has an index that gives them in order."""
    own = query.where(event.c.run_uuid == root_uuid).subquery()
    inner = query.where(event.c.root_uuid == root_uuid, text(IS_INNER)).subquery()
    both = union_all(select(own), select(inner)).subquery()
    return select(both).order_by(both.c.seq).limit(limit)


def append_logs(transaction: Transaction, logs: Iterable[LogChunk]) -> None:
    """Append pieces of logs; the same piece may come twice, and what has another's number comes last.

    A worker that was taken for dead may still hand in a piece, under a number that its successor has used too.
    """
    for chunk in logs:
        text_ = plain(chunk.text)
        place = {"start": chunk.start, "size": len(text_.encode()), "line": chunk.line}
        row = {"attempt_uuid": chunk.attempt_uuid, "number": chunk.number, "text": text_, **place}
        while transaction.connection.execute(_LOGS[transaction.is_postgresql], row).rowcount != 1:
            if transaction.connection.scalar(_KEPT, row) == row["text"]:
                break
            row["number"] = transaction.connection.scalar(_LAST, row) + 1
        begin, end = chunk.dropped
        if begin < end:
            between = {"the_uuid": chunk.attempt_uuid, "begin": begin, "end": end}
            transaction.connection.execute(_DROP, between)


def read_extents(connection: Connection, attempt_uuid: str) -> list[LogExtent]:
    """Return which pieces of a log are kept; one that says that it begins within another follows it."""
    found: list[LogExtent] = []
    end = line = 0
    for row in connection.execute(_EXTENTS, {"attempt_uuid": attempt_uuid}):
        start = max(end, row.start or 0)
        line = max(line, row.line or 0)
        size = len(row.unsized.encode()) if row.size is None else row.size
        found.append(LogExtent(start, size, row.number, line))
        end = start + size
    return found
