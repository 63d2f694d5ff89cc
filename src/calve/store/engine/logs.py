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
    """Append pieces of logs; a piece may be sent twice, and a piece with the number of another one is appended last.

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
    """Keeps the logs of attempts, and knows which files hold them."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def append_log(self, chunk: LogChunk) -> None:
        """Keep a piece of an attempt's log; the same piece may come twice."""
        self._transactions.write("append_log", lambda transaction: append_logs(transaction, [chunk]))

    def log(self, attempt_uuid: str, *, after: int = -1) -> list[LogChunk]:
        """Return an attempt's log from the piece after number ``after``."""
        query = (
            select(log_chunk)
            .where(log_chunk.c.attempt_uuid == attempt_uuid, log_chunk.c.number > after)
            .order_by(log_chunk.c.number)
        )
        with self._transactions.read() as connection:
            return [LOG_CHUNK.from_row(row) for row in connection.execute(query)]

    def log_extents(self, attempt_uuid: str) -> list[LogExtent]:
        """Return which pieces of an attempt's log are kept, in order, without their texts."""
        found: list[LogExtent] = []
        end = line = 0
        with self._transactions.read() as connection:
            rows = connection.execute(_EXTENTS, {"attempt_uuid": attempt_uuid}).all()
        for row in rows:
            start = max(end, row.start)  # a piece that says that it begins within another follows it
            line = max(line, row.line)
            found.append(LogExtent(start, row.size, row.number, line))
            end = start + row.size
        return found

    def log_texts(self, attempt_uuid: str, numbers: Sequence[int]) -> dict[int, str]:
        """Return the texts of pieces of a log by number, but for those that are not kept any longer."""
        query = select(log_chunk.c.number, log_chunk.c.text).where(log_chunk.c.attempt_uuid == attempt_uuid)
        with self._transactions.read() as connection:
            return {
                row.number: row.text
                for some in chunks(numbers)
                for row in connection.execute(query.where(log_chunk.c.number.in_(some)))
            }

    def log_files(self, attempt_uuid: str) -> list[LogExtent]:
        """Return the files that hold an attempt's log, in order."""
        query = select(log_file).where(log_file.c.attempt_uuid == attempt_uuid).order_by(log_file.c.start)
        with self._transactions.read() as connection:
            return [LogExtent(row.start, row.size, address=row.address) for row in connection.execute(query)]

    def keep_log_file(self, attempt_uuid: str, extent: LogExtent) -> None:
        """Record that a file contains a part of an attempt's log, replacing one that starts at the same place."""
        row = {"attempt_uuid": attempt_uuid, "start": extent.start, "size": extent.size, "address": extent.address}

        def keep(transaction: Transaction) -> None:
            changed = {name: row[name] for name in ("size", "address")}
            insert = transaction.insert(log_file).values(row)
            transaction.connection.execute(
                insert.on_conflict_do_update(index_elements=["attempt_uuid", "start"], set_=changed)
            )

        self._transactions.write("keep_log_file", keep)
