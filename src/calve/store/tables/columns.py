"""What tables are made of: columns, types, and indexes."""

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
        """Turn a time to UTC; one without a zone is a mistake."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value} has no time zone")
        value = value.astimezone(UTC)
        return value.isoformat(timespec="microseconds") if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | str | None, dialect: Dialect) -> datetime | None:
        """Read the time, in UTC whatever the zone of the session."""
        del dialect
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        return value and value.astimezone(UTC)


class Uuid(TypeDecorator[str]):
    """A UUID, kept in 16 bytes instead of 36; any other text is kept as it is, and none as no bytes.

    They are most of what an instance leaves behind, as each is in several rows and indexes.
    """

    impl = LargeBinary
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[bytes] | TypeEngine[str]:
        """Return the column type of the dialect; SQLite keeps bytes in any column, whatever its name."""
        if dialect.name == "sqlite":
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(LargeBinary())

    def process_bind_param(self, value: str | None, dialect: Dialect) -> bytes | None:
        """Turn a text to bytes that sort as it does."""
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
"""Ends a text of as many bytes as a UUID has; no text ends so."""


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
    """Declare an index; one with a condition holds only the rows that meet it."""

    def add() -> Index:
        condition = None if where is None else text(where)
        chosen = [table.c[column] for column in columns]
        return Index(name, *chosen, unique=unique, sqlite_where=condition, postgresql_where=condition)

    _indexes.append(add)


def add_indexes() -> None:
    """Add the declared indexes to their tables.

    Only who makes the schema needs them: SQLAlchemy loads the dialect of PostgreSQL for a condition.
    """
    while _indexes:
        _indexes.pop()()
