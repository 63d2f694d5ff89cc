"""Iceberg's single values: bounds and partition tuples, decoded for comparing and showing. Pure."""

import operator
import re
import struct
import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MICROS = 86_400_000_000

_INT, _LONG = struct.Struct("<i"), struct.Struct("<q")
_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")
# 38 digits, the most that Iceberg allows, fit into 16 bytes.
_LONGEST_DECIMAL = 16
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

WHOLE = frozenset({"int", "long", "date", "time", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
"""Types whose bounds are whole numbers."""
CUT = frozenset({"string", "binary"})
"""Types whose bounds writers may truncate."""
BOUNDED = WHOLE | CUT | {"boolean", "float", "double", "uuid"}


def is_bounded(kind: Any) -> bool:
    """Tell whether files have bounds for a type: all primitive types except the newest ones."""
    return isinstance(kind, str) and (kind in BOUNDED or kind.startswith(("decimal", "fixed")))


def bound_decoder(kind: str) -> Callable[[bytes], Any]:
    """Return a function that decodes a bound to a value that compares like the column.

    A promoted column keeps its old, shorter bounds, which the length shows.
    """
    if kind in WHOLE:
        days = {"timestamp": DAY_MICROS, "timestamp_ns": DAY_MICROS * 1000}.get(kind, 1)  # promoted from a date
        return lambda raw: _LONG.unpack(raw)[0] if len(raw) == 8 else _INT.unpack(raw)[0] * days
    if kind in {"float", "double"}:
        return lambda raw: _DOUBLE.unpack(raw)[0] if len(raw) == 8 else _FLOAT.unpack(raw)[0]
    if kind.startswith("decimal"):
        return _decimal
    if kind == "boolean":
        return lambda raw: raw != b"\0"
    if kind == "string":
        return lambda raw: raw.decode()
    return bytes


def _decimal(raw: bytes) -> int:
    if len(raw) > _LONGEST_DECIMAL:
        raise ValueError(f"a decimal has {len(raw)} bytes")
    return int.from_bytes(raw, "big", signed=True)


def can_be_shown(kind: str, value: Any) -> bool:
    """Tell whether a decoded value can be written: Python's calendar ends with the year 9999."""
    try:
        to_json(kind, value)
    except (OverflowError, ValueError):
        return False
    return True


def to_json(kind: str, value: Any) -> Any:
    """Return a decoded value as in JSON and SQL literals."""
    if value is None or isinstance(value, bool):
        return value
    if kind in _SHOW:
        return _SHOW[kind](value)
    if decimal := _DECIMAL.fullmatch(kind):
        number = _decimal(value) if isinstance(value, bytes) else int(value)
        return str(Decimal(number).scaleb(-int(decimal[2])))
    if kind == "uuid":
        return str(value if isinstance(value, uuid.UUID) else uuid.UUID(bytes=value))
    return value.hex() if isinstance(value, bytes) else value


def partition_to_json(transform: str, source_kind: str, value: Any) -> Any:
    """Return a partition value as Iceberg's metadata tables show it; a time beyond Python's calendar is a number."""
    try:
        return None if value is None else _partition_to_json(transform, source_kind, value)
    except OverflowError:
        return value


def _partition_to_json(transform: str, source_kind: str, value: Any) -> Any:
    match transform:
        case "year":
            return str(1970 + value)
        case "month":
            return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
        case "day":
            return to_json("date", value)
        case "hour":
            return f"{(EPOCH + timedelta(hours=value)):%Y-%m-%d-%H}"
        case _ if transform.startswith("bucket"):
            return operator.index(value)
        case _:
            return to_json(source_kind, value)


def _date(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _time(micros: int) -> str:
    return (datetime.min + timedelta(microseconds=micros)).time().isoformat()  # noqa: DTZ901 - a time has no zone


def _timestamp(micros: int) -> str:
    return (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None).isoformat(sep=" ")


def _nanos(nanos: int) -> str:
    seconds, rest = divmod(nanos, 1_000_000_000)
    return f"{_timestamp(seconds * 1_000_000)}.{rest:09d}"


_SHOW: dict[str, Callable[[Any], str]] = {
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": lambda micros: _timestamp(micros) + "+00:00",
    "timestamp_ns": _nanos,
    "timestamptz_ns": lambda nanos: _nanos(nanos) + "+00:00",
}
