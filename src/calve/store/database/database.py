"""One database, two dialects: how calve connects, and the only place that commits transactions."""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    QueuePool,
    create_engine,
    event,
    func,
    make_url,
    select,
)
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
    TimeoutError as PoolTimeout,
)

from calve.errors import EnvironmentUnfit, SettingsInvalid, StoreDamaged, StoreError, StoreLost, StoreUnavailable
from calve.failpoints import reach
from calve.folders import close_to_others, is_refusal, not_writable
from calve.store.database.locks import FileLock

BUSY_SECONDS = 30
CONNECT_SECONDS = 10
READERS = 4
"""Read-only connections to a SQLite file, besides the writer: reads do not wait for the disk of a write."""
IDLE_SECONDS = 1.0
"""A connection that was idle for this long is tested before it is used again."""
_POSTGRESQL = {
    "connect_timeout": CONNECT_SECONDS,
    # A process that stops in the middle of a transaction must not block others with its locks.
    "options": "-c idle_in_transaction_session_timeout=10s",
    # Detects a host that is gone after about 25 seconds.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""Connection parameters, unless the URL sets them."""
SCHEMA_LOCK = 0x63616C7665
"""The advisory lock of PostgreSQL for changes of the schema: "calve" in ASCII."""
_COMING_BACK = frozenset({"57P01", "57P02", "57P03"})
"""PostgreSQL's codes of a server that is shutting down, has crashed, or does not accept connections yet."""
_NOT_YET = re.compile(
    "connection refused|no such file or directory|the database system is|server closed the connection|"
    "connection reset|timeout expired|connection timeout|terminating connection|temporary failure in name resolution",
    re.IGNORECASE,
)
"""Messages of a server that is restarting; a wrong password or a missing database has others."""


class Database:
    """A SQLite or PostgreSQL database.

    A process has one connection to write to a SQLite file and a few to read from it, or a pool of connections to
    PostgreSQL. Safety rests on unique keys, row locks and compare-and-set. Of the isolation level it only requires that
    a statement sees what was committed before it began.
    """

    def __init__(self, url: str) -> None:
        parsed = _parse(url)
        self.shown = URL.create(
            parsed.get_backend_name(), parsed.username, None, parsed.host, parsed.port, parsed.database
        ).render_as_string()
        """The URL without its password and options."""
        hidden = (parsed.password, parsed.query.get("password"), parsed.query.get("sslpassword"))
        self._secrets = [str(secret) for secret in hidden if secret]
        self.is_postgresql = parsed.get_backend_name() == "postgresql"
        self.file = None if self.is_postgresql else _file(parsed)
        """The SQLite file, if there is one."""
        self._lock = FileLock(None if self.file is None else self.file.with_name(f"{self.file.name}-lock"))
        with self._translated():
            self._engine = _postgresql(parsed) if self.is_postgresql else _sqlite_writer(parsed, self.file, self._lock)
            self._reading = self._readers(parsed)

    def _readers(self, url: URL) -> Engine:
        """Return the engine for reads, without explicit transactions."""
        # AUTOCOMMIT saves the BEGIN and COMMIT round trips of each read; a statement sees the same either way
        # (decision 0017).
        if self.is_postgresql:
            return self._engine.execution_options(isolation_level="AUTOCOMMIT")
        if self.file is None:  # only its one connection sees a database in memory
            return self._engine
        readers = _sqlite(url.set(database=str(self.file)), READERS)
        event.listen(readers, "connect", _prepare_reader)
        return readers

    def close(self) -> None:
        """Close every connection; the last one to a SQLite file moves the write-ahead log into the file."""
        with ExitStack() as stack:
            # A process that holds the lock for so long has the file open, so no connection here is the last one.
            with suppress(OSError):
                stack.enter_context(self._lock.held(BUSY_SECONDS))
            self._reading.dispose()
            self._engine.dispose()
        self._lock.close()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a connection for reading; each statement sees what was committed before it began."""
        with self._translated(), self._reading.connect() as connection:
            yield connection

    @contextmanager
    def write(self, name: str) -> Iterator[Connection]:
        """Open one transaction: committed at the end, rolled back after any error.

        The failpoints ``store.<name>.before_commit`` and ``.after_commit`` enclose the commit.
        """
        with (
            # In this order: the lock is the process's, so a thread must not hold it while it waits for the connection
            # (decision 0012).
            self._translated(),
            self._engine.connect() as connection,
            self._lock.held(BUSY_SECONDS),  # threads have queued up for the one connection already
            connection.begin(),
        ):
            if not self.is_postgresql:  # the driver does not begin it; this locks before the first read
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            reach(f"store.{name}.before_commit")
        reach(f"store.{name}.after_commit")

    def listener(self, channel: str) -> Any:
        """Return a connection of PostgreSQL's driver that listens to the channel; the caller must close it."""
        with self._translated():
            pooled = self._engine.connect()
            try:
                pooled.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql(f"LISTEN {channel}")
            except SQLAlchemyError:
                pooled.close()
                raise
            connection: Any = pooled.connection.driver_connection  # before detach, after which it is None
            pooled.detach()
        return connection

    def check_whole(self) -> None:
        """Check a SQLite file for damage.

        Raises:
            StoreDamaged: it is damaged.
        """
        with self.read() as connection:
            found = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if found != "ok":
            raise StoreDamaged(
                f"The state database {self.shown} is damaged: {found}.",
                remedy="Restore a backup: captures continue from what their targets hold. Keep this file until then.",
                store=self.shown,
            )

    def watch(self) -> Callable[[], None]:
        """Return a check that raises StoreLost once the SQLite file has been deleted or replaced.

        Otherwise, the process would write to an unlinked file, whose changes are lost when the process ends.
        """
        if self.file is None:
            return lambda: None
        file, before = self.file, _identity(self.file)

        def check() -> None:
            if _identity(file) != before:
                raise StoreLost(
                    f"The state database {file} was deleted or replaced while this process was using it.",
                    remedy="Changes since then are lost. Restore the file if you need it, and start again.",
                    file=str(file),
                )

        return check

    def lock_schema(self, connection: Connection) -> None:
        """Lock the schema until the transaction ends; SQLite has only one writer anyway."""
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(SCHEMA_LOCK)))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Convert errors of the database into calve's errors, without SQL, values or passwords."""
        try:
            yield
        except (OperationalError, InterfaceError, PoolTimeout, OSError) as error:
            if self.file is not None and _is_refused(error):
                known = getattr(error, "errno", None)
                refused = OSError(known, self._reason(error), getattr(error, "filename", None) or str(self.file))
                told = not_writable("The state database", refused.filename, refused, "home, or store.url")
                raise StoreUnavailable(told.message, remedy=told.remedy, store=self.shown) from None
            raise StoreUnavailable(
                f"The state database {self.shown} does not answer: {self._reason(error)}",
                remedy="Check store.url, and that the database is running and accepts your credentials.",
                store=self.shown,
                **(_state_of(error) if self.is_postgresql else {}),
            ) from None
        except SQLAlchemyError as error:
            raise StoreError(
                f"The state database {self.shown} failed: {self._reason(error)}", store=self.shown
            ) from None

    def _reason(self, error: Exception) -> str:
        known = error.strerror if isinstance(error, OSError) and error.strerror else error
        said = " ".join(str(error.orig if isinstance(error, DBAPIError) else known).split())
        for secret in self._secrets:
            said = said.replace(secret, "***")
        return said


def _is_refused(error: Exception) -> bool:
    """Tell whether a file cannot be opened or written, so that trying again is useless."""
    name = str(getattr(getattr(error, "orig", None), "sqlite_errorname", ""))
    return is_refusal(error) or name.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM"))


def _state_of(error: Exception) -> dict[str, Any]:
    """Return PostgreSQL's code of an error, if it has one, and whether the database may recover without help."""
    code = getattr(getattr(error, "orig", None), "sqlstate", None)
    # A failed connection has no code.
    is_passing = code in _COMING_BACK if code is not None else bool(_NOT_YET.search(str(error)))
    return ({} if code is None else {"sqlstate": code}) | ({"is_passing": True} if is_passing else {})


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _parse(url: str) -> URL:
    remedy = "Write sqlite:///PATH or postgresql://USER:PASSWORD@HOST:PORT/DATABASE."
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # their messages may contain the password
        raise SettingsInvalid("store.url is not a database URL.", remedy=remedy) from None
    match parsed.drivername.partition("+")[0]:
        case "sqlite":
            return parsed.set(drivername="sqlite")
        case "postgresql" | "postgres":
            return parsed.set(drivername="postgresql+psycopg")
        case other:
            raise SettingsInvalid(f"store.url: {other!r} is not supported.", remedy=remedy)


def _postgresql(url: URL) -> Engine:
    arguments = {name: value for name, value in _POSTGRESQL.items() if name not in url.query}
    try:
        engine = create_engine(
            # READ COMMITTED is enough: writes rely on unique keys, row locks and compare-and-set (decision 0006).
            url,
            connect_args=arguments,
            isolation_level="READ COMMITTED",
            pool_size=20,
            hide_parameters=True,
        )
    except ModuleNotFoundError:
        raise EnvironmentUnfit(
            "The driver for PostgreSQL is not installed.", remedy="pip install 'calve[postgres]'"
        ) from None
    event.listen(engine, "checkin", _note_use)
    event.listen(engine, "checkout", _ping_if_idle)
    return engine


def _note_use(_connection: Any, record: Any) -> None:
    record.info["calve_used"] = time.monotonic()


def _ping_if_idle(connection: Any, record: Any, _proxy: Any) -> None:
    """Test a connection that was idle for a while.

    Raises:
        DisconnectionError: the connection is broken, so that the pool opens another one.
    """
    if time.monotonic() - record.info.get("calve_used", float("inf")) < IDLE_SECONDS:
        return
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except Exception as error:
        raise DisconnectionError from error


def _file(url: URL) -> Path | None:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        return None
    return Path(url.database).absolute()  # the process may change its working directory later


def _sqlite_writer(url: URL, file: Path | None, lock: FileLock) -> Engine:
    if file is not None:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(file)
        url = url.set(database=str(file))
    engine = _sqlite(url, 1)

    def prepare(connection: sqlite3.Connection, _record: Any) -> None:
        with lock.held(BUSY_SECONDS):  # the switch to the write-ahead log is a write
            _prepare_sqlite(connection, _record)

    event.listen(engine, "connect", prepare)
    return engine


def _make_private(file: Path) -> None:
    """Make the database readable only by its owner; SQLite gives its other files the same permissions."""
    with suppress(
        FileExistsError
    ):  # an existing file is not opened: closing it would drop the locks that this process holds on it
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    suffixes = ("", "-wal", "-shm", "-journal", "-lock", "-scheduler")
    close_to_others(*(file.with_name(f"{file.name}{suffix}") for suffix in suffixes))


def _sqlite(url: URL, connections: int) -> Engine:
    return create_engine(
        url,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
        poolclass=QueuePool,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=BUSY_SECONDS,
        hide_parameters=True,
    )


def _prepare_reader(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None
    connection.execute("PRAGMA query_only = ON")


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # the driver's own BEGIN comes too late; write() begins transactions
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")  # a commit survives a power cut
    until = time.monotonic() + BUSY_SECONDS
    while True:  # the busy timeout does not apply to the switch to WAL
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
