"""Keeps steps from connecting to calve's own state database.

A step that can write to it can make itself administrator; a step that can read it sees the workflows of all users. So
calve checks twice: the URL before it connects, and the tables after it has connected, because another URL may lead to
the same database (through another host name, a proxy, or ATTACH).
"""

import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sqlalchemy import URL, Connection, make_url

from calve.errors import StepFailed
from calve.steps.failures import fatal

SIGN = "calve_version"
"""A table that only a state database has."""
_PORT = 5432
_HERE = frozenset({"127.0.0.1", "::1"})


def refuse_address(url: URL, store: str, project: Path) -> None:
    """Refuse a URL of the state database, however it is written.

    Raises:
        StepFailed: the URL leads to the state database.
    """
    own = make_url(store)
    is_own = _is_same_file(url, own, project) if own.get_backend_name() == "sqlite" else _is_same_server(url, own)
    if is_own:
        raise refusal(url)


def refuse_content(connection: Connection) -> None:
    """Refuse a connection to a state database, or one that has attached it; call this outside a transaction.

    Raises:
        StepFailed: a state database was found.
        SQLAlchemyError: the query failed.
    """
    match connection.dialect.name:
        case "postgresql":
            statements = [f"SELECT 1 FROM pg_catalog.pg_class WHERE relname = '{SIGN}' AND relkind = 'r'"]  # noqa: S608 - a constant
        case "sqlite":
            found = connection.exec_driver_sql("PRAGMA database_list")
            schemas = [str(row[1]).replace('"', '""') for row in found]
            statements = [f"SELECT 1 FROM \"{schema}\".sqlite_master WHERE name = '{SIGN}'" for schema in schemas]  # noqa: S608 - quoted
        case _:
            return
    is_one = any(connection.exec_driver_sql(statement).first() for statement in statements)
    connection.rollback()
    if is_one:
        connection.close()
        raise refusal(connection.engine.url)


def refusal(url: URL) -> StepFailed:
    """Return the failure of a step that connects to a state database."""
    shown = URL.create(url.drivername, None, None, url.host, url.port, url.database).render_as_string()
    return fatal(
        f"{shown} is calve's state database: a step that connects to it could make itself administrator.",
        remedy="Give the step another database. To read its records of workflows, use the REST API.",
    )


def _is_same_file(url: URL, own: URL, project: Path) -> bool:
    if url.get_backend_name() != "sqlite" or not url.database or not own.database:
        return False
    with suppress(OSError, ValueError):
        return (project / _path(url.database)).samefile(own.database)
    return False


def _path(database: str) -> str:
    """Return the path of an SQLite database, given its path or URI."""
    return unquote(urlsplit(database).path) if database.startswith("file:") else database


def _is_same_server(url: URL, own: URL) -> bool:
    if url.get_backend_name() == "sqlite" or _database(url) != _database(own):
        return False
    return bool(_places(url) & _places(own))


def _database(url: URL) -> str:
    given = url.query.get("dbname") or url.query.get("database") or url.database or url.username or ""
    return given if isinstance(given, str) else given[-1]


def _places(url: URL) -> set[tuple[str, int]]:
    """Return the addresses and ports that a URL leads to; a Unix socket counts as the loopback address."""
    hosts = _words(url, "host", url.host) or ["localhost"]
    ports = _words(url, "port", "" if url.port is None else str(url.port)) or [str(_PORT)]
    numbers = [int(port) if port.isdigit() else _PORT for port in ports]
    paired = numbers * len(hosts) if len(numbers) == 1 else [*numbers, *[_PORT] * len(hosts)]
    return {
        (address, port)
        for host, port in zip([*hosts, *_words(url, "hostaddr", "")], [*paired, *numbers], strict=False)
        for address in _addresses(host)
    }


def _words(url: URL, name: str, given: str | None) -> list[str]:
    asked = url.query.get(name, ())
    texts = [asked] if isinstance(asked, str) else list(asked)
    found = [text for one in (texts or [given or ""]) for text in one.split(",")]
    if name == "host":  # SQLAlchemy allows several hosts, each as host:port
        found = [text.rpartition(":")[0] if text.count(":") == 1 else text for text in found]
    return [text for text in found if text]


def _addresses(host: str) -> set[str]:
    if host.startswith(("/", "@")):
        return set(_HERE)
    try:
        found = {str(each[4][0]) for each in socket.getaddrinfo(host.strip("[]"), None)}
    except (OSError, UnicodeError):
        return {host.lower()}
    return {*found, *_HERE} if any(address in _HERE or address.startswith("127.") for address in found) else found
