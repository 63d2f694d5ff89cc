"""The database connection of a SQL step: opens it, cancels its statements on interruption, and closes it."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, ExceptionContext, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from calve.engine import State
from calve.steps.failures import failed, fatal, interrupted
from calve.steps.processes import ForkContext
from calve.steps.retries import Evidence, Kind, state_of
from calve.steps.sql.error_positions import in_postgresql, in_sqlite
from calve.steps.sql.state_database import refuse_content
from calve.steps.sql.statements import Statement

_CONNECT_SECONDS = 10
_TIMEOUTS = {
    "postgresql": {"connect_timeout": _CONNECT_SECONDS},
    "mysql": {"connect_timeout": _CONNECT_SECONDS},
    "mariadb": {"connect_timeout": _CONNECT_SECONDS},
    "sqlite": {"timeout": 30},
}
_LOOK_SECONDS = 0.1
_CURSOR = "calve_cursor"
"""The attribute of a driver's exception that stores the name of the server-side cursor, if there was one."""
Told = Callable[[str, int | None], str]
"""Returns the error message for a statement, given the database's message and the position, if known."""


def parse(url: str, project: Path) -> URL:
    """Parse a database URL; the relative path of an SQLite file is resolved against the project.

    Raises:
        StepFailed: it is not a valid URL.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the message may contain the password
        raise fatal("sql.url is not a database URL.", remedy="Write DIALECT://USER:PASSWORD@HOST/DATABASE.") from None
    file = parsed.database
    is_path = parsed.get_backend_name() == "sqlite" and file and file != ":memory:" and not file.startswith("file:")
    return parsed.set(database=str(project / str(file))) if is_path else parsed


@contextmanager
def connected(url: URL, context: ForkContext, *, in_transaction: bool) -> Iterator[Connection]:
    """Yield a connection: in one transaction that any error rolls back, or one that commits each statement.

    Raises:
        StepFailed: the database does not answer, a statement fails, or the step was interrupted.
    """
    engine = _engine(url, in_transaction=in_transaction)
    try:
        with _connection(engine, url) as connection, _cancelled_on_interruption(connection, context):
            if in_transaction:
                with translated(url, context, lambda message, _: f"The transaction: {message}"), connection.begin():
                    yield connection
            else:
                yield connection
    finally:
        engine.dispose()


@contextmanager
def translated(url: URL, context: ForkContext, told: Told, statement: Statement | None = None) -> Iterator[None]:
    """Turn a database error into a failure of the step whose message contains no values or passwords."""
    try:
        yield
    except SQLAlchemyError as error:
        if context.is_interrupted():
            raise interrupted("The statement") from None
        said = _scrubbed(_said(error), url)
        raise failed(_state(error), told(said, None if statement is None else _position(error, statement))) from None


def _said(error: SQLAlchemyError) -> str:
    """Return the database's error message, without the excerpt of the statement that PostgreSQL adds."""
    origin: Any = error.orig if isinstance(error, DBAPIError) else error
    diagnosis = getattr(origin, "diag", None)
    if diagnosis is None or not diagnosis.message_primary:
        return str(origin)
    parts = (diagnosis.message_primary, diagnosis.message_detail, diagnosis.message_hint)
    return " ".join(part if part.endswith(".") else f"{part}." for part in parts if part)


def _state(error: SQLAlchemyError) -> State:
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return State.INFRASTRUCTURE_ERROR
    return state_of(_evidence(error))


def _evidence(error: SQLAlchemyError) -> Iterator[Evidence]:
    origin: Any = error.orig if isinstance(error, DBAPIError) else error
    if state := getattr(origin, "sqlstate", None):
        yield Kind.SQLSTATE, str(state)
    elif name := getattr(origin, "sqlite_errorname", None):
        yield Kind.SQLITE, str(name)
    else:
        yield Kind.DRIVER, type(error).__name__


def _position(error: SQLAlchemyError, statement: Statement) -> int | None:
    """Return the position of an error in the statement; None if the database does not report it."""
    if not isinstance(error, DBAPIError):
        return None
    origin: Any = error.orig
    if hasattr(origin, "sqlite_errorname"):
        return in_sqlite(statement.sql, str(origin))
    position = getattr(getattr(origin, "diag", None), "statement_position", None)
    if position is None or error.statement is None:
        return None
    cursor = getattr(origin, _CURSOR, None)
    declaration = f'DECLARE "{cursor}" CURSOR FOR ' if cursor else ""
    return in_postgresql(statement, error.statement, int(position) - len(declaration))


def _note_cursor(context: ExceptionContext) -> None:
    """Remember the name of a server-side cursor: PostgreSQL's error positions count its DECLARE too."""
    name = getattr(getattr(context.execution_context, "cursor", None), "name", None)
    if name:
        setattr(context.original_exception, _CURSOR, name)


def _scrubbed(text: str, url: URL) -> str:
    said = " ".join(text.split())
    for secret in (url.password, url.query.get("password"), url.query.get("sslpassword")):
        said = said.replace(str(secret), "***") if secret else said
    return said


def _engine(url: URL, *, in_transaction: bool) -> Engine:
    backend = url.get_backend_name()
    given = {key: value for key, value in _TIMEOUTS.get(backend, {}).items() if key not in url.query}
    try:
        engine = create_engine(url, connect_args=given, poolclass=NullPool, hide_parameters=True)
    except (NoSuchModuleError, ModuleNotFoundError, ArgumentError) as error:
        hint = "pip install 'calve[postgres]'." if backend == "postgresql" else "Install it together with calve."
        message = f"There is no driver for {url.drivername} here: {_scrubbed(str(error), url)}."
        raise fatal(message, remedy=hint) from None
    event.listen(engine, "handle_error", _note_cursor)
    if backend == "sqlite" and in_transaction:
        event.listen(engine, "connect", _leave_begin_to_us)
        event.listen(engine, "begin", _begin)
    return engine if in_transaction else engine.execution_options(isolation_level="AUTOCOMMIT")


def _leave_begin_to_us(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # by itself, sqlite3 does not begin a transaction before CREATE and other DDL


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


@contextmanager
def _connection(engine: Engine, url: URL) -> Iterator[Connection]:
    try:
        connection = engine.connect()
        refuse_content(connection)
    except SQLAlchemyError as error:
        shown = URL.create(url.drivername, url.username, None, url.host, url.port, url.database).render_as_string()
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        state = state_of([*_evidence(error), (Kind.SIGN_IN, reason)], State.INFRASTRUCTURE_ERROR)
        what = "refuses the connection" if state is State.FATAL_ERROR else "does not answer"
        raise failed(state, f"The database {shown} {what}: {_scrubbed(reason, url).rstrip('.')}.") from None
    with connection:
        yield connection


@contextmanager
def _cancelled_on_interruption(connection: Connection, context: ForkContext) -> Iterator[None]:
    """Cancel the running statement when the step is interrupted, and repeat that until the block ends."""
    driver = connection.connection.driver_connection
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if context.is_interrupted():
                with suppress(Exception):  # the statement may just have ended; if not, it raises its own error
                    _cancel(driver)

    watcher = threading.Thread(target=watch, name="calve-sql-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _cancel(driver: Any) -> None:
    """Cancel the running statement if the driver can, otherwise close the connection."""
    if isinstance(driver, sqlite3.Connection):
        driver.interrupt()
    elif hasattr(driver, "cancel"):
        driver.cancel()
    else:
        driver.close()
