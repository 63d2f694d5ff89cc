"""Which partitions and data files a delete file can concern, so that manifests of others are left unread. Pure.

Whatever cannot be compared with certainty counts as concerned: NaN, values of a promoted column, partition fields of
unknown transforms, a manifest list without summaries.
"""

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from calve.capture.manifests import POSITION_DELETES, Manifest, ManifestEntry, ManifestFile
from calve.capture.source import Source
from calve.capture.values import WHOLE, bound_decoder

PATH_COLUMN = 2147483546
"""The field id of ``file_path`` in position-delete files (Iceberg spec, "Reserved field IDs")."""
METRICS = frozenset({PATH_COLUMN})
_INTEGERS = frozenset({"year", "month", "day", "hour"})
_SURROGATES = "\ud800"
"""Characters from here on: writers differ in how they order them."""
_MOST_TUPLES = 64
"""With more partitions than this, a manifest is compared field by field only."""


class _Unknown:
    """A value that may equal any other."""


_UNKNOWN: Final = _Unknown()
Partition = tuple[Any, ...]


class Partitions:
    """Some partitions of a table, each of a spec."""

    def __init__(self, source: Source, found: Iterable[tuple[int, Iterable[Any]]]) -> None:
        by_spec: dict[int, set[Partition]] = {}
        for spec_id, values in found:
            by_spec.setdefault(spec_id, set()).add(tuple(values))
        self._source = source
        self._specs = {spec_id: _OfSpec(_fields(source, spec_id), values) for spec_id, values in by_spec.items()}

    def may_list(self, row: ManifestFile) -> bool:
        """Tell whether a manifest can list files in one of the partitions."""
        spec = self._specs.get(row.partition_spec_id)
        return spec is not None and spec.may_list(row)

    def may_hold(self, spec_id: int, values: Iterable[Any]) -> bool:
        """Tell whether a partition can be one of them."""
        spec = self._specs.get(spec_id)
        return spec is not None and spec.may_hold(tuple(values))


class _OfSpec:
    """Some partitions of one spec."""

    def __init__(self, fields: "Sequence[_Field | None]", partitions: Iterable[Partition]) -> None:
        self._fields = fields
        found = {self._known(values) for values in partitions}
        self._exact = {values for values in found if _UNKNOWN not in values}
        self._loose = found - self._exact
        self._sides = [_Side(values[place] for values in found) for place in range(len(fields))]

    def may_hold(self, values: Partition) -> bool:
        known = self._known(values)
        if _UNKNOWN not in known:
            return known in self._exact or any(_matches(known, one) for one in self._loose)
        return any(_matches(known, one) for some in (self._exact, self._loose) for one in some)

    def may_list(self, row: ManifestFile) -> bool:
        if row.partitions is None or len(row.partitions) != len(self._fields):
            return True
        extents = [
            None if field is None else field.extent(summary.lower_bound, summary.upper_bound)
            for field, summary in zip(self._fields, row.partitions, strict=True)
        ]
        nulls = [summary.contains_null is not False for summary in row.partitions]
        if not all(map(_Side.may_meet, self._sides, nulls, extents)):
            return False
        found = [*self._exact, *self._loose]
        return len(found) > _MOST_TUPLES or any(all(map(_is_within, one, nulls, extents)) for one in found)

    def _known(self, values: Partition) -> Partition:
        if len(values) != len(self._fields):
            return (_UNKNOWN,) * len(self._fields)
        return tuple(
            _UNKNOWN if field is None else field.value(value) for field, value in zip(self._fields, values, strict=True)
        )


class _Side:
    """The values of one field in some partitions, in order."""

    def __init__(self, values: Iterable[Any]) -> None:
        found = set(values)
        self._is_any = _UNKNOWN in found
        self._has_null = None in found
        self._values = sorted(found - {None, _UNKNOWN})

    def may_meet(self, has_null: bool, extent: tuple[Any, Any] | None) -> bool:  # noqa: FBT001 - called by map
        """Tell whether one of the values can be among those that a summary describes."""
        if self._is_any or (self._has_null and has_null):
            return True
        if extent is None:
            return bool(self._values)
        place = bisect_left(self._values, extent[0])
        return place < len(self._values) and bool(self._values[place] <= extent[1])


def _is_within(value: Any, has_null: bool, extent: tuple[Any, Any] | None) -> bool:  # noqa: FBT001 - called by map
    if value is _UNKNOWN:
        return True
    if value is None:
        return has_null
    return extent is None or bool(extent[0] <= value <= extent[1])


def _matches(one: Partition, other: Partition) -> bool:
    return all(a is _UNKNOWN or b is _UNKNOWN or a == b for a, b in zip(one, other, strict=True))


class _Field:
    """How the values of a partition field are compared."""

    def __init__(self, kind: str) -> None:
        self._is_decimal = kind.startswith("decimal")
        self._type = int if kind in WHOLE else _TYPES.get(kind, bytes)
        # UUIDs and other bytes are equal or not; how their bounds are ordered depends on the writer.
        self._decode: Callable[[bytes], Any] | None = (
            bound_decoder(kind) if self._is_decimal or self._type is not bytes else None
        )

    def value(self, value: Any) -> Any:
        """Return a value of a partition tuple in the form in which it is compared; null stays null."""
        if value is None:
            return None
        # The number of bytes of a decimal depends on the precision, which can be widened.
        known = int.from_bytes(value, "big", signed=True) if self._is_decimal and type(value) is bytes else value
        return known if self._is_comparable(known) else _UNKNOWN

    def extent(self, lower: bytes | None, upper: bytes | None) -> tuple[Any, Any] | None:
        """Return the bounds of a summary; None if they do not say which values there are."""
        if self._decode is None or lower is None or upper is None:
            return None
        try:
            low, high = self._decode(lower), self._decode(upper)
        except (ValueError, struct.error):  # damaged, or written for another type
            return None
        return (low, high) if self._is_comparable(low) and self._is_comparable(high) and low <= high else None

    def _is_comparable(self, value: Any) -> bool:
        if type(value) is not (int if self._is_decimal else self._type) or value != value:  # noqa: PLR0124 - NaN
            return False
        return type(value) is not str or not value or max(value) < _SURROGATES


_TYPES: dict[str, type] = {"string": str, "boolean": bool, "float": float, "double": float}


def _fields(source: Source, spec_id: int) -> list[_Field | None]:
    """Return how each field of a spec is compared; None where that is unknown."""
    return [_field(source, field) for field in source.specs.get(spec_id, ())]


def _field(source: Source, field: Mapping[str, Any]) -> _Field | None:
    transform = str(field.get("transform"))
    if transform in _INTEGERS or transform.startswith("bucket"):
        return _Field("int")
    if transform != "identity" and not transform.startswith("truncate"):
        return None
    kinds = _kinds(source, field.get("source-id"))
    # A date that became a timestamp is written in other units.
    is_one = len({_FAMILIES.get(kind, kind.partition(",")[2] or kind) for kind in kinds}) == 1
    return _Field(next(iter(kinds))) if is_one else None


_FAMILIES = {"int": "whole", "long": "whole", "float": "floating", "double": "floating"}
"""Types between which promotion changes no value; decimals only grow in precision, and keep the scale."""


def _kinds(source: Source, field_id: Any) -> set[str]:
    """Return the types that a column ever had."""
    found = set()
    for schema in (source.schema, *source.schemas.values()):
        left = list(schema["fields"])
        while left:
            field = left.pop()
            if field["id"] == field_id:
                found.add(str(field["type"]))
            elif isinstance(field["type"], dict):
                left += field["type"].get("fields", ())
    return found


class DeleteScope:
    """Tells which delete files can hide rows of some data files, as Iceberg plans scans."""

    def __init__(self, source: Source, data: Iterable[tuple[Manifest, ManifestEntry]]) -> None:
        placed = list(data)
        self.oldest = min((entry.sequence_number for _, entry in placed), default=0)
        """The lowest sequence number of the data files: older deletes do not apply to them."""
        self._source = source
        self._paths = {entry.file_path for _, entry in placed}
        self._ends = (min(self._paths), max(self._paths)) if self._paths else ("", "")
        self._is_ascii = all(path.isascii() for path in self._paths)
        self._partitions = Partitions(
            source, ((manifest.file.partition_spec_id, entry.partition.values()) for manifest, entry in placed)
        )

    def may_list(self, row: ManifestFile) -> bool:
        """Tell whether a delete manifest can list deletes that concern the files."""
        # A manifest has the sequence number of the commit that wrote it: none of its entries can have a larger one.
        if row.sequence_number < self.oldest:
            return False
        return self._is_global(row.partition_spec_id) or self._partitions.may_list(row)

    def may_concern(self, spec_id: int, entry: ManifestEntry) -> bool:
        """Tell whether a delete file can hide rows of one of the files."""
        if entry.sequence_number < self.oldest:
            return False
        if entry.referenced_data_file is not None:
            return entry.referenced_data_file in self._paths
        if entry.content == POSITION_DELETES and not self._is_within(entry):
            return False
        return self._is_global(spec_id) or self._partitions.may_hold(spec_id, entry.partition.values())

    def _is_global(self, spec_id: int) -> bool:
        """Tell whether deletes of a spec concern all partitions: it has none, or has none any longer."""
        return all(field.get("transform") == "void" for field in self._source.specs.get(spec_id, ()))

    def _is_within(self, entry: ManifestEntry) -> bool:
        """Tell whether the bounds of a position-delete file admit the path of one of the files."""
        low, high = ((bounds or {}).get(PATH_COLUMN) for bounds in (entry.lower_bounds, entry.upper_bounds))
        if low is None or high is None or not self._is_ascii:
            return True
        if low == high:
            return low.decode(errors="replace") in self._paths
        return self._ends[0].encode() <= high and self._ends[1].encode() >= low
