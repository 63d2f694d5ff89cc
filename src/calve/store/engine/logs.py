"""Logs of attempts (part of the port ``calve.engine.ports.Instances``): pieces in the database, whole ones in files."""

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from calve.engine import LogChunk, LogExtent
from calve.store.database import Transaction, Transactions, chunks
from calve.store.engine.rows import LOG_CHUNK
from calve.store.tables import log_chunk, log_file

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
    select(log_chunk.c.number, log_chunk.c.start, log_chunk.c.line, log_chunk.c.size)
    .where(log_chunk.c.attempt_uuid == bindparam("attempt_uuid"))
    .order_by(log_chunk.c.number)
)


def append_logs(transaction: Transaction, logs: Iterable[LogChunk]) -> None:
    """Append pieces of logs; skip a piece sent twice, and append a piece whose number is taken as the last one.

    A worker that was considered dead may still send a piece with a number that its successor has used.
    """
    for chunk in logs:
        row = LOG_CHUNK.to_row(chunk)
        row["size"] = len(row["text"].encode())
        while transaction.connection.execute(_LOGS[transaction.is_postgresql], row).rowcount != 1:
            if transaction.connection.scalar(_KEPT, row) == row["text"]:
                break
            row["number"] = transaction.connection.scalar(_LAST, row) + 1
        begin, end = chunk.dropped
        if begin < end:
            between = {"the_uuid": chunk.attempt_uuid, "begin": begin, "end": end}
            transaction.connection.execute(_DROP, between)


class SqlLogs:
    """Stores pieces of logs, and the addresses of the files that contain logs."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def append_log(self, chunk: LogChunk) -> None:
        """Store a piece of an attempt's log; repeating it changes nothing."""
        self._transactions.write("append_log", lambda transaction: append_logs(transaction, [chunk]))

    def log(self, attempt_uuid: str, *, after: int = -1) -> list[LogChunk]:
        """Return an attempt's log, starting after the piece with number ``after``."""
        query = (
            select(log_chunk)
            .where(log_chunk.c.attempt_uuid == attempt_uuid, log_chunk.c.number > after)
            .order_by(log_chunk.c.number)
        )
        with self._transactions.read() as connection:
            return [LOG_CHUNK.from_row(row) for row in connection.execute(query)]

    def log_extents(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the pieces of an attempt's log, in order, without their texts."""
        found: list[LogExtent] = []
        end = line = 0
        with self._transactions.read() as connection:
            rows = connection.execute(_EXTENTS, {"attempt_uuid": attempt_uuid}).all()
        for row in rows:
            start = max(end, row.start)  # a piece that claims to begin within another one follows it
            line = max(line, row.line)
            found.append(LogExtent(start, row.size, row.number, line))
            end = start + row.size
        return found

    def log_texts(self, attempt_uuid: str, numbers: Sequence[int]) -> dict[int, str]:
        """Return the texts of pieces of a log by number; pieces that are no longer kept are missing."""
        query = select(log_chunk.c.number, log_chunk.c.text).where(log_chunk.c.attempt_uuid == attempt_uuid)
        with self._transactions.read() as connection:
            return {
                row.number: row.text
                for some in chunks(numbers)
                for row in connection.execute(query.where(log_chunk.c.number.in_(some)))
            }

    def log_files(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the files that contain an attempt's log, in order."""
        query = select(log_file).where(log_file.c.attempt_uuid == attempt_uuid).order_by(log_file.c.start)
        with self._transactions.read() as connection:
            return [LogExtent(row.start, row.size, address=row.address) for row in connection.execute(query)]

    def keep_log_file(self, attempt_uuid: str, extent: LogExtent) -> None:
        """Record that a file contains a part of an attempt's log; replaces a file that begins at the same offset."""
        row = {"attempt_uuid": attempt_uuid, "start": extent.start, "size": extent.size, "address": extent.address}

        def keep(transaction: Transaction) -> None:
            changed = {name: row[name] for name in ("size", "address")}
            insert = transaction.insert(log_file).values(row)
            transaction.connection.execute(
                insert.on_conflict_do_update(index_elements=["attempt_uuid", "start"], set_=changed)
            )

        self._transactions.write("keep_log_file", keep)
