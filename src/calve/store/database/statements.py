"""Pieces of SQL statements: namespaces, chunks of values, unique keys."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    false,
    func,
    or_,
    true,
)
from sqlalchemy.exc import (
    IntegrityError,
)


def is_below(workflow_id: ColumnElement[Any], namespaces: Sequence[str]) -> ColumnElement[bool]:
    """Match the workflows below one of the namespaces; the empty namespace contains all.

    Does not use LIKE, which ignores case on SQLite.
    """
    if "" in namespaces:
        return true()
    parts = [func.substr(workflow_id, 1, len(name) + 1) == f"{name}." for name in namespaces]
    return or_(*parts) if parts else false()


Item = TypeVar("Item")
# SQLite allows 32,766 variables in a statement, PostgreSQL 65,535; rows here have a few each.
CHUNK = 5_000
"""The most values in one statement."""


def chunks(items: Sequence[Item], size: int = CHUNK) -> Iterator[Sequence[Item]]:
    """Yield the items in pieces that fit into one statement."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def fits(connection: Connection, statement: Executable) -> bool:
    """Execute a statement unless it violates a unique key; the transaction continues in both cases."""
    try:
        # A savepoint: PostgreSQL refuses every further statement of a transaction in which one failed.
        with connection.begin_nested():
            connection.execute(statement)
    except IntegrityError as error:
        if not _is_unique_clash(error.orig):
            raise
        return False
    return True


def _is_unique_clash(error: Any) -> bool:
    sqlite = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"}
    return getattr(error, "sqlstate", "") == "23505" or getattr(error, "sqlite_errorname", "") in sqlite
