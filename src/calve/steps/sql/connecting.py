"""A connection for one call of the SQL step: made, watched for interruption, and closed."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from calve.engine.ports import StepContext
from calve.errors import StepFailed
from calve.steps.failures import fatal, of_platform, of_user, stopped

_CONNECT_SECONDS = 10
_TIMEOUTS = {
    "postgresql": {"connect_timeout": _CONNECT_SECONDS},
    "mysql": {"connect_timeout": _CONNECT_SECONDS},
    "mariadb": {"connect_timeout": _CONNECT_SECONDS},
    "sqlite": {"timeout": 30},
}
_LOOK_SECONDS = 0.1
_PASSING = ("08", "40", "53", "55P03", "57P", "58", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_FULL")
"""How the codes of errors begin that have nothing to do with the statement: the connection, locks, resources."""


def parse(url: str, project: Path) -> URL:
    """Read a URL; the file of an SQLite that has a relative path is in the project.

    Raises:
        StepFailed: it is none.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # what they say may hold the password
        raise fatal("sql.url is not a database URL.", remedy="Write DIALECT://USER:PASSWORD@HOST/DATABASE.") from None
    file = parsed.database
    is_path = parsed.get_backend_name() == "sqlite" and file and file != ":memory:" and not file.startswith("file:")
    return parsed.set(database=str(project / str(file))) if is_path else parsed


@contextmanager
def connected(url: URL, context: StepContext, *, in_transaction: bool) -> Iterator[Connection]:
    """Give a connection: one transaction that any error rolls back, or one that commits each statement.

    Raises:
        StepFailed: the database does not answer, a statement fails, or the step was interrupted.
    """
    engine = _engine(url, in_transaction=in_transaction)
    try:
        with _connection(engine, url) as connection, _cancelled_on_interruption(connection, context):
            if in_transaction:
                with translated(url, context, "The transaction"), connection.begin():
                    yield connection
            else:
                yield connection
    finally:
        engine.dispose()


@contextmanager
def translated(url: URL, context: StepContext, what: str) -> Iterator[None]:
    """Turn an error of a database into a failure of what was done, without values and passwords."""
    try:
        yield
    except SQLAlchemyError as error:
        raise stopped(what) if context.is_interrupted() else _failure(error, url, what) from None


def _failure(error: SQLAlchemyError, url: URL, what: str) -> StepFailed:
    if not isinstance(error, DBAPIError):
        return of_user(f"{what}: {_scrubbed(str(error), url)}")
    origin: Any = error.orig
    code = str(getattr(origin, "sqlstate", None) or getattr(origin, "sqlite_errorname", None) or "")
    kind = of_platform if error.connection_invalidated or code.startswith(_PASSING) else of_user
    return kind(f"{what}: {_scrubbed(str(origin), url)}")


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
        hint = "pip install 'calve[postgres]'." if backend == "postgresql" else "Install it beside calve."
        message = f"There is no driver for {url.drivername} here: {_scrubbed(str(error), url)}."
        raise fatal(message, remedy=hint) from None
    if backend == "sqlite" and in_transaction:
        event.listen(engine, "connect", _leave_begin_to_us)
        event.listen(engine, "begin", _begin)
    return engine if in_transaction else engine.execution_options(isolation_level="AUTOCOMMIT")


def _leave_begin_to_us(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins no transaction for CREATE and the like


def _begin(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


@contextmanager
def _connection(engine: Engine, url: URL) -> Iterator[Connection]:
    try:
        connection = engine.connect()
    except SQLAlchemyError as error:
        shown = URL.create(url.drivername, url.username, None, url.host, url.port, url.database).render_as_string()
        reason = str(error.orig) if isinstance(error, DBAPIError) else str(error)
        raise of_platform(f"The database {shown} does not answer: {_scrubbed(reason, url)}.") from None
    with connection:
        yield connection


@contextmanager
def _cancelled_on_interruption(connection: Connection, context: StepContext) -> Iterator[None]:
    """Cancel whatever runs on the connection once the step is to end, again and again until it has."""
    driver = connection.connection.driver_connection
    over = threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            if context.is_interrupted():
                with suppress(Exception):  # it may be over in the same moment; what runs is told by what it raises
                    _cancel(driver)

    watcher = threading.Thread(target=watch, name="calve-sql-cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _cancel(driver: Any) -> None:
    """Cancel a statement as the driver can, or cut the connection."""
    if isinstance(driver, sqlite3.Connection):
        driver.interrupt()
    elif hasattr(driver, "cancel"):
        driver.cancel()
    else:
        driver.close()
