"""The period of time of a partition, or of the bounds of a file. Pure. Times are milliseconds."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from calve.capture.manifests import ManifestEntry
from calve.capture.partitions import kind_of, shown_values
from calve.capture.ranges import columns_of
from calve.capture.source import Source
from calve.capture.values import bound_decoder
from calve.errors import RequestInvalid

HOUR, DAY = 3_600_000, 86_400_000
WHOLE_TABLE = "all"
"""The name of the partition of files without partition fields."""
_MINUTE = 60_000
_PER_MS = {"timestamp": 1_000, "timestamptz": 1_000, "timestamp_ns": 1_000_000, "timestamptz_ns": 1_000_000}
"""The number of units of a type in a millisecond."""
_MONTHS = 12


class Partition(NamedTuple):
    """A partition, and the time of its events: from ``start`` to before ``end``."""

    name: str
    start: int | None = None
    """None if the partition is not by time."""
    end: int | None = None

    def is_before(self, time: int) -> bool:
        """Tell whether all its events are before a time."""
        return self.end is not None and self.end <= time


PartitionOf = Callable[[ManifestEntry, int], Partition]
"""Returns the partition of a file, by its entry and the id of its spec."""


def partitions_by_spec(source: Source) -> PartitionOf:
    """Return a function that returns the partition of a file according to its spec."""
    known: dict[tuple[Any, ...], Partition] = {}
    kinds = {spec_id: [kind_of(source, one["source-id"]) for one in spec] for spec_id, spec in source.specs.items()}

    def partition_of(entry: ManifestEntry, spec_id: int) -> Partition:
        key = (spec_id, *entry.partition.values())
        if key not in known:
            known[key] = _partition(source.specs[spec_id], kinds[spec_id], key[1:])
        return known[key]

    return partition_of


def _partition(fields: Sequence[Mapping[str, Any]], kinds: Sequence[str], values: Sequence[Any]) -> Partition:
    shown = shown_values(fields, kinds, values)
    name = "/".join(f"{field}={value}" for field, value in shown.items()) or WHOLE_TABLE
    for field, kind, value in zip(fields, kinds, values, strict=True):
        period = None if value is None else _period(field["transform"], kind, value)
        if period is not None:
            return Partition(name, *period)
    return Partition(name)


def _period(transform: str, kind: str, value: Any) -> tuple[int, int] | None:
    try:
        match transform:
            case "year":
                return _of_month(value * _MONTHS), _of_month((value + 1) * _MONTHS)
            case "month":
                return _of_month(value), _of_month(value + 1)
            case "day":
                return value * DAY, (value + 1) * DAY
            case "hour":
                return value * HOUR, (value + 1) * HOUR
            case "identity":
                return _identity(kind, value)
            case _:
                return None
    except (ValueError, OverflowError):  # no date, or one beyond the calendar
        return None


def _identity(kind: str, value: Any) -> tuple[int, int] | None:
    if kind == "string":  # days are often written out
        start = int(datetime.combine(date.fromisoformat(value), datetime.min.time(), UTC).timestamp() * 1_000)
        return start, start + DAY
    if kind == "date":
        return value * DAY, (value + 1) * DAY
    return (value // _PER_MS[kind], value // _PER_MS[kind] + 1) if kind in _PER_MS else None


def _of_month(months: int) -> int:
    first = datetime(1970 + months // _MONTHS, months % _MONTHS + 1, 1, tzinfo=UTC)
    return int(first.timestamp() * 1_000)


def time_column(source: Source, path: str) -> tuple[int, PartitionOf]:
    """Return the id of a time column, and a function that returns the period of a file by its bounds, to the minute.

    Raises:
        RangeColumnMissing: there is no such column.
        RequestInvalid: it is not a column of times.
    """
    (column,) = columns_of(source, [path])
    if column.kind != "date" and column.kind not in _PER_MS:
        raise RequestInvalid(
            f"{path} is a {column.kind}: lateness needs a date or a timestamp.", table=str(source.name), column=path
        )
    decode, field_id = bound_decoder(column.kind), column.field_id

    def partition_of(entry: ManifestEntry, spec_id: int) -> Partition:  # noqa: ARG001 - bounds do not depend on the spec
        lower, upper = ((bounds or {}).get(field_id) for bounds in (entry.lower_bounds, entry.upper_bounds))
        if lower is None or upper is None:
            return Partition(path)
        first, last = decode(lower), decode(upper)
        if column.kind == "date":
            return Partition(path, first * DAY, (last + 1) * DAY)
        each = _PER_MS[column.kind] * _MINUTE
        return Partition(path, first // each * _MINUTE, (last // each + 1) * _MINUTE)

    return field_id, partition_of
