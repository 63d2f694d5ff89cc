"""Ranges of key values, as metadata and aggregates give them, and the predicates made of them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from calve.texts import quoted

Value = int | Decimal | str
MOST_INTERVALS = 100  # a predicate of more ranges costs more to evaluate than it saves

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_PLAIN_TEXT = re.compile(r"(?!.*\$\{)[^'\\\x00-\x1f\x7f]*")  # Spark replaces ${…} in any text
_ISO_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Interval:
    """All values from ``low`` to ``high``, both included."""

    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The values that a column can have: those within the intervals, which are sorted and do not overlap."""

    column: str
    type: str
    intervals: tuple[Interval, ...]

    def holds(self, alias: str) -> str:
        """Return the predicate that the column of ``alias`` is in the range."""
        name = f"{alias}.{quoted(self.column)}"
        each = [f"{name} BETWEEN {self._text(item.low)} AND {self._text(item.high)}" for item in self.intervals]
        return f"({' OR '.join(each)})" if each else "false"

    def position(self, alias: str) -> str:
        """Return the expression for the number of the interval that holds a value of the range."""
        name = f"{alias}.{quoted(self.column)}"
        cases = [f"WHEN {name} <= {self._text(item.high)} THEN {at}" for at, item in enumerate(self.intervals)]
        return f"CASE {' '.join(cases)} END"

    def _text(self, value: Value) -> str:
        text = literal(self.type, value)
        if text is None:
            raise ValueError(f"{value!r} cannot be written as {self.type}")
        return text


def is_ordered(type_name: str) -> bool:
    """Tell whether calve compares values of a type as Spark and Iceberg do; floats, with NaN and -0.0, are left out."""
    return type_name in _INTEGERS | {"date", "timestamp", "timestamp_ntz", "string"} or type_name.startswith("decimal(")


def reading(type_name: str, sql: str) -> str:
    """Return the expression that brings a value to Python without conversion between time zones."""
    match type_name:
        case "date":
            return f"CAST(unix_date({sql}) AS BIGINT)"
        case "timestamp":
            return f"unix_micros({sql})"
        case "timestamp_ntz":
            return f"CAST({sql} AS STRING)"
        case _:
            return f"CAST({sql} AS BIGINT)" if type_name in _INTEGERS else sql


def literal(type_name: str, value: Value) -> str | None:
    """Return the value in SQL; None if it cannot be written safely and readably."""
    match type_name, value:
        case "date", int():
            return _shown(date(1970, 1, 1), timedelta(days=1), value, "DATE'{}'")
        case "timestamp", int():
            return _shown(_EPOCH, timedelta(microseconds=1), value, "TIMESTAMP'{}'")
        case "timestamp_ntz", str():
            return f"TIMESTAMP_NTZ'{value}'" if _ISO_TIMESTAMP.fullmatch(value) else None
        case "string", str():
            return f"'{value}'" if _PLAIN_TEXT.fullmatch(value) else None
        case _, int():
            return str(value)
        case _, Decimal():
            return f"CAST('{value:f}' AS {type_name})"
        case _:
            return None


def _shown(epoch: date, unit: timedelta, count: int, template: str) -> str | None:
    try:
        return template.format(epoch + unit * count)
    except OverflowError:  # a year that Python does not know
        return None


def disjoint(found: Iterable[Interval], most: int = MOST_INTERVALS) -> tuple[Interval, ...]:
    """Return disjoint, sorted intervals that cover the same values; if they are too many, neighbours are joined."""
    merged: list[Interval] = []
    for item in sorted(found, key=lambda interval: interval.low):
        if merged and item.low <= merged[-1].high:  # type: ignore[operator]  # a column has values of one type
            merged[-1] = Interval(merged[-1].low, max(merged[-1].high, item.high))
        else:
            merged.append(item)
    width = -(-len(merged) // most) or 1
    return tuple(
        Interval(group[0].low, group[-1].high)
        for group in (merged[at : at + width] for at in range(0, len(merged), width))
    )


def range_of(column: str, type_name: str, found: Sequence[tuple[Value | None, Value | None]]) -> KeyRange | None:
    """Return the range of a column within the given bounds; None if one of them is unknown."""
    intervals: list[Interval] = []
    for low, high in found:
        if low is None or high is None or literal(type_name, low) is None or literal(type_name, high) is None:
            return None
        intervals.append(Interval(low, high))
    return KeyRange(column, type_name, disjoint(intervals))


def all_hold(ranges: Iterable[KeyRange], alias: str) -> str:
    """Return the predicate that every column is in its range."""
    return " AND ".join(item.holds(alias) for item in ranges) or "true"


def union(some: Sequence[KeyRange], others: Sequence[KeyRange]) -> tuple[KeyRange, ...]:
    """Return the ranges of two sets of rows together, for columns that are bounded in both."""
    by_column = {item.column: item for item in others}
    return tuple(
        KeyRange(item.column, item.type, disjoint((*item.intervals, *by_column[item.column].intervals)))
        for item in some
        if item.column in by_column
    )
