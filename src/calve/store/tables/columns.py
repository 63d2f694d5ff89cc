"""The building blocks of tables: columns, types, and indexes."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

metadata = MetaData()


class UtcTime(TypeDecorator[datetime]):
    """A time with a zone: ``timestamptz`` in PostgreSQL; in SQLite, ISO text that sorts."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[datetime] | TypeEngine[str]:
        """Return the column type of the dialect."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(String(32))
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | str | None:
        """Convert a time to UTC; it must have a time zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        value = value.astimezone(UTC)
        return value.isoformat(timespec="microseconds") if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:
        """Read a time, in UTC whatever the time zone of the session."""
        del dialect
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        return value and value.astimezone(UTC)


class Uuid(TypeDecorator[str]):
    """A UUID, stored in 16 bytes instead of 36; any other text is stored as it is, and an empty one as no bytes.

    UUIDs are most of the data of an instance, because each is in several rows and indexes.
    """

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[bytes] | TypeEngine[str]:
        """Return the column type of the dialect; SQLite stores bytes in any column, whatever its type."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        """Convert a text to bytes that sort like the text."""
        del dialect
        if value is None:
            return None
        if _UUID.fullmatch(value):
            return bytes.fromhex(value.replace("-", ""))
        raw = value.encode(errors="surrogatepass")
        return raw + _NOT_UUID if len(raw) == _UUID_BYTES else raw

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> str | None:
        """Read the text."""
        del dialect
        if value is None:
            return None
        if len(value) != _UUID_BYTES:
            return bytes(value).removesuffix(_NOT_UUID).decode(errors="surrogatepass")
        text_ = value.hex()
        return f"{text_[:8]}-{text_[8:12]}-{text_[12:16]}-{text_[16:20]}-{text_[20:]}"


_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UUID_BYTES = 16
_NOT_UUID = b"\xff"
"""Appended to a text that has as many bytes as a UUID; no UTF-8 text ends with this byte."""


def key(name: str, kind: Any = Text) -> Column[Any]:
    """Return a column of the primary key."""
    return Column(name, kind, primary_key=True, autoincrement=False)


def number(name: str) -> Column[Any]:
    """Return a primary key that the database numbers; SQLite does so for INTEGER only."""
    return Column(name, BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


def required(name: str, kind: Any = Text) -> Column[Any]:
    """Return a column that always has a value."""
    return Column(name, kind, nullable=False)


def optional(name: str, kind: Any = Text) -> Column[Any]:
    """Return a column that may be NULL."""
    return Column(name, kind)


_indexes: list[Callable[[], Index]] = []


def index(name: str, table: Table, *columns: str, where: str | None = None, unique: bool = False) -> None:
    """Declare an index; one with a condition contains only the rows that meet it."""

    def add() -> Index:
        condition = None if where is None else text(where)
        chosen = [table.c[column] for column in columns]
        return Index(name, *chosen, unique=unique, sqlite_where=condition, postgresql_where=condition)

    _indexes.append(add)


def add_indexes() -> None:
    """Add the declared indexes to their tables.

    Only needed to create the schema: for a condition, SQLAlchemy loads the dialect of PostgreSQL.
    """
    while _indexes:
        _indexes.pop()()
