"""Transactions of the engine: retried if possible, and known to be committed or not.

PostgreSQL breaks a deadlock by aborting one transaction, which is then retried. If the connection breaks during a
commit, its outcome is unknown; the id of the transaction, read by its last statement, tells it afterwards
(``pg_xact_status``). A server that crashes may reuse the id of a transaction that it lost: an id is valid only as long
as the same server runs. If the outcome cannot be found out, the caller gets StoreUnavailable and may commit the same
changes again: if they were written, their runs and tasks have changed since they were read, so that nothing is written
twice.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, text

from calve.errors import StoreUnavailable
from calve.store.database import database as databases
from calve.store.database.database import Database
from calve.store.database.notifications import CHANNEL, Notifier

Result = TypeVar("Result")
_AGAIN = frozenset({"40001", "40P01"})
"""PostgreSQL's codes of a serialization failure and of a deadlock."""
# Far more than deadlocks need. Each StartOver adds at least one name to lock, so they end.
_TRIES = 50
_ASK_SECONDS = 0.2
_LAST = text("SELECT pg_current_xact_id_if_assigned()::text")
_LAST_WAKING = text("SELECT pg_current_xact_id_if_assigned()::text FROM pg_notify(:channel, '')").bindparams(
    channel=CHANNEL
)
_SERVER = text(
    "SELECT concat_ws(' ', pg_postmaster_start_time(), string_agg(pid::text, ' ' ORDER BY pid))"
    " FROM pg_stat_activity WHERE datid IS NULL AND usesysid IS NULL"
)
"""Identifies the server by its start time and the pids of its own processes, which change after a crash."""
_OUTCOME = text("SELECT pg_xact_status(CAST(:xid AS xid8))")


@dataclass(slots=True)
class Transaction:
    """One transaction under way."""

    connection: Connection
    is_postgresql: bool
    is_waking: bool = False
    """Whether waiting threads and processes must be notified."""
    xid: str | None = None
    server: str = ""
    """The server that assigned this id."""
    foreseen: set[str] = field(default_factory=set)
    """Names that an earlier try should have locked at the start."""
    param_sets: frozenset[tuple[str, str]] = frozenset()
    """Sets of params known to be stored, with the server that stores them: after a failover, another may lack them."""
    new_param_sets: set[tuple[str, str]] = field(default_factory=set)
    """Sets of params that are stored when this transaction is committed."""

    def has_param_set(self, key: str) -> bool:
        """Tell whether a set of params is stored already."""
        place = (self.server, key)
        return place in self.param_sets or place in self.new_param_sets

    def insert(self, table: Table) -> Any:
        """Return an insert that can have a clause for conflicts, which differs between dialects."""
        if self.is_postgresql:
            from sqlalchemy.dialects import postgresql

            return postgresql.insert(table)
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)


class StartOver(Exception):
    """The transaction must lock more names in the right order: it starts again, with all of them."""


class Transactions:
    """Reads and writes for the engine."""

    def __init__(self, database: Database, notifier: Notifier) -> None:
        self._database = database
        self.notifier = notifier
        self._param_sets: frozenset[tuple[str, str]] = frozenset()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for reading."""
        with self._database.read() as connection:
            yield connection

    @property
    def is_postgresql(self) -> bool:
        """Tell whether the database is PostgreSQL."""
        return self._database.is_postgresql

    def write(self, name: str, work: Callable[[Transaction], Result]) -> Result:
        """Do work in one transaction, and return its result."""
        foreseen: set[str] = set()
        for _ in range(_TRIES - 1):
            try:
                return self._try(name, work, foreseen)
            except StartOver:
                continue
            except StoreUnavailable as error:
                if error.context.get("sqlstate") not in _AGAIN:
                    raise
        return self._try(name, work, foreseen)

    def _try(self, name: str, work: Callable[[Transaction], Result], foreseen: set[str]) -> Result:
        under_way: Transaction | None = None
        try:
            with self._database.write(name) as connection:
                transaction = Transaction(
                    connection, self.is_postgresql, foreseen=foreseen, param_sets=self._param_sets
                )
                if transaction.is_postgresql:
                    transaction.server = _server(connection)
                result = work(transaction)
                if transaction.is_postgresql:
                    # The last statement, because the first write assigns the id. It includes NOTIFY, which the commit
                    # sends.
                    transaction.xid = connection.scalar(_LAST_WAKING if transaction.is_waking else _LAST)
                under_way = transaction
        except StoreUnavailable:
            if under_way is None or under_way.xid is None or not self._is_committed(under_way.xid, under_way.server):
                raise
        if transaction.new_param_sets:
            self._param_sets |= transaction.new_param_sets
        if transaction.is_waking:
            self.notifier.notify()
        return result

    def _is_committed(self, xid: str, server: str) -> bool:
        """Tell whether a transaction was committed although its commit got no answer; False also if this is unknown.

        Raises:
            StoreUnavailable: the database is unavailable.
        """
        until = time.monotonic() + databases.BUSY_SECONDS
        while True:
            try:
                with self._database.read() as connection:
                    status = connection.scalar(_OUTCOME, {"xid": xid})
                    is_same = _server(connection) == server
            except StoreUnavailable:
                status = None
                if time.monotonic() > until:
                    raise
            if status in {"committed", "aborted"}:
                return status == "committed" and is_same
            if time.monotonic() > until:
                return False
            time.sleep(_ASK_SECONDS)


def _server(connection: Connection) -> str:
    """Identify the server of a connection; asked once per connection, because none survives its server."""
    known: str | None = connection.info.get("calve_server")
    if known is None:
        known = connection.info["calve_server"] = str(connection.scalar(_SERVER))
    return known
