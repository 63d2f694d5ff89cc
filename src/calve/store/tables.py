"""The tables of the state database; ``migrations`` makes them, and a test compares the two."""

import re
from datetime import UTC, datetime

from sqlalchemy import (
    JSON,
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
    UniqueConstraint,
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


checkpoint = Table(
    "checkpoint",
    metadata,
    Column("consumer", Text, primary_key=True),
    Column("catalog", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("checkpoint", JSON, nullable=False),
    Column("moved_at", UtcTime, nullable=False),
    Column("moved_by", Text, nullable=False),
)
"""Where every consumer stands; always what the newest row of the log says."""

checkpoint_log = Table(
    "checkpoint_log",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("at", UtcTime, nullable=False),
    Column("consumer", Text, nullable=False),
    Column("catalog", Text, nullable=False),
    Column("table_name", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    Column("before", JSON(none_as_null=True)),
    Column("after", JSON(none_as_null=True)),
    UniqueConstraint("consumer", "catalog", "table_name", "version", name="checkpoint_log_place"),
    sqlite_autoincrement=True,
)
"""Every move of a checkpoint, resets too. ``checkpoint_log_place`` is the compare-and-set of all of them."""

capture = Table(
    "capture",
    metadata,
    Column("id", Text, primary_key=True),
    Column("consumer", Text, nullable=False),
    Column("number", Integer, nullable=False),
    Column("key", Text),
    Column("status", Text, nullable=False),
    Column("created_at", UtcTime, nullable=False),
    Column("closed_at", UtcTime),
    Column("collected_at", UtcTime),
    Column("moves", JSON, nullable=False),
    Column("artifacts", JSON, nullable=False),
    Column("document", JSON, nullable=False),
    UniqueConstraint("consumer", "number", name="capture_number"),
)


delivery_branch = Table(
    "delivery_branch",
    metadata,
    Column("branch", Text, primary_key=True),
    Column("catalog", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
    Column("stream", Text, nullable=False),
    Column("capture_id", Text),
    Column("run", Text, nullable=False),
    Column("part", Text, nullable=False),
    Column("attempt", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("staged_at", UtcTime, nullable=False),
    Column("changed_at", UtcTime, nullable=False),
    Column("table_uuid", Text),
    Column("base_snapshot_id", BigInteger),
    Column("branch_snapshot_id", BigInteger),
)
"""Every branch of a target, from before it is made until long after its end; of held ones, also where it began."""

delivery_target = Table(
    "delivery_target",
    metadata,
    Column("stream", Text, primary_key=True),
    Column("catalog", Text, primary_key=True),
    Column("table_name", Text, primary_key=True),
    Column("table_uuid", Text, nullable=False),
    Column("delivered_at", UtcTime, nullable=False),
)
"""Which table every stream delivered to last, under each name."""


def _partial(name: str, *columns: str, where: str, unique: bool) -> Index:
    condition = text(where)
    return Index(
        name,
        *(capture.c[column] for column in columns),
        unique=unique,
        sqlite_where=condition,
        postgresql_where=condition,
    )


_partial("capture_open", "consumer", where="status = 'open'", unique=True)
_partial("capture_key", "consumer", "key", where="key IS NOT NULL AND status IN ('open', 'committed')", unique=True)
_partial("capture_uncollected", "created_at", where="collected_at IS NULL", unique=False)
Index("delivery_branch_capture", delivery_branch.c.capture_id)
