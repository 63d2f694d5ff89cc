"""Which values of a column changed, according to the bounds in the manifest entry of every file. Pure.

A range is a guarantee: no changed row is outside it. So a file without statistics makes it unbounded, a bound that a
writer truncated widens it, and removed rows count as much as new ones.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

from calve.capture.manifests import Manifest, ManifestEntry
from calve.capture.source import Source
from calve.capture.values import CUT, bound_decoder, can_be_shown, is_bounded, to_json
from calve.errors import RangeColumnMissing, RequestInvalid
from calve.lake import decoding

NAME_MAPPING = "schema.name-mapping.default"
_DEFAULT_CUT = 16


@dataclass(frozen=True, slots=True)
class Column:
    """A column whose range is requested."""

    path: str
    field_id: int
    kind: str
    cut_at: int | None
    """Bounds with this many characters may be truncated; None: they are complete."""
    default: Any = None
    """The value in rows that were written before the column existed."""


@dataclass(frozen=True, slots=True)
class Range:
    """The values of one column that changed, both ends included.

    A side that is None is unbounded, unless the range is ``empty``: then no changed row has a value at all.
    """

    kind: str
    lower: Any
    upper: Any
    exact: bool
    has_nulls: bool
    has_nans: bool
    empty: bool

    def as_json(self) -> dict[str, Any]:
        """Return the range as plain JSON, with values spelled as SQL literals."""
        return {
            "type": self.kind,
            "lower": to_json(self.kind, self.lower),
            "upper": to_json(self.kind, self.upper),
            "exact": self.exact,
            "has_nulls": self.has_nulls,
            "has_nans": self.has_nans,
            "empty": self.empty,
        }

    def union(self, other: "Range") -> "Range":
        """Return the smallest range that includes both."""
        if self.kind != other.kind and not {self.kind, other.kind} <= {"int", "long"}:
            raise RequestInvalid(
                f"a range column has type {self.kind} in one table and {other.kind} in another.",
                remedy="Capture the tables separately, or name columns of one type.",
            )
        first, second = (self, other) if not self.empty else (other, self)
        if second.empty:
            lower, upper = first.lower, first.upper
        else:
            lower = None if None in {first.lower, second.lower} else min(first.lower, second.lower)
            upper = None if None in {first.upper, second.upper} else max(first.upper, second.upper)
        return Range(
            kind=first.kind,
            lower=lower,
            upper=upper,
            exact=self.exact and other.exact,
            has_nulls=self.has_nulls or other.has_nulls,
            has_nans=self.has_nans or other.has_nans,
            empty=self.empty and other.empty,
        )


def columns_of(source: Source, paths: Iterable[str]) -> list[Column]:
    """Return the columns that a user named, nested ones by their dotted path.

    Raises:
        RangeColumnMissing: a column does not exist; the message names those that do.
    """
    leaves = dict(_leaves(source.schema["fields"]))
    columns = []
    for path in paths:
        field = leaves.get(path) or {name.lower(): leaf for name, leaf in leaves.items()}.get(path.lower())
        if field is None:
            raise RangeColumnMissing(
                f"{source.name} has no column {path!r} to take a range of.",
                remedy=f"Columns with a range: {', '.join(leaves) or 'none'}.",
                table=str(source.name),
                column=path,
            )
        columns.append(
            Column(path, field["id"], field["type"], _cut_at(source, path, field), field.get("initial-default"))
        )
    return columns


def _leaves(fields: Sequence[Mapping[str, Any]], prefix: str = "") -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Yield the columns that can have bounds, by path: primitives, and those inside structs."""
    for field in fields:
        path, kind = prefix + field["name"], field["type"]
        if is_bounded(kind):
            yield path, field
        elif isinstance(kind, dict) and kind["type"] == "struct":
            yield from _leaves(kind["fields"], path + ".")


def _cut_at(source: Source, path: str, field: Mapping[str, Any]) -> int | None:
    if field["type"] not in CUT:
        return None
    properties = source.properties
    mode = properties.get(
        f"write.metadata.metrics.column.{path}",
        properties.get("write.metadata.metrics.default", "truncate(16)"),
    )
    if mode == "full":
        return None
    # a length set later says nothing of files written before: never trust a longer one
    length = mode.removeprefix("truncate(").removesuffix(")")
    return min(_DEFAULT_CUT, int(length)) if length.isdecimal() and len(length) < 9 else _DEFAULT_CUT


class RangeBuilder:
    """Computes the range of one column from files, one by one."""

    def __init__(self, column: Column, *, has_name_mapping: bool) -> None:
        self._column = column
        self._decode = bound_decoder(column.kind)
        self._is_floating = column.kind in {"float", "double"}
        self._has_name_mapping = has_name_mapping
        self._lowers: list[Any] = []
        self._uppers: list[Any] = []
        self._no_lower = self._no_upper = self._has_nulls = self._has_nans = False

    def add(self, entry: ManifestEntry, *, written_with_column: bool = True) -> None:
        """Widen the range by one file."""
        if entry.record_count == 0:
            return
        fid = self._column.field_id
        values = (entry.value_counts or {}).get(fid)
        nulls = (entry.null_value_counts or {}).get(fid)
        known_nans = (entry.nan_value_counts or {}).get(fid)
        nans = known_nans or 0
        lower, upper = self._bound(entry.lower_bounds), self._bound(entry.upper_bounds)
        # Files without ids are read by name mapping: that the manifest's schema lacks the column then proves nothing.
        if not written_with_column and values is None and not self._has_name_mapping:
            self._add_default()
            return
        self._has_nulls |= nulls is None or nulls > 0
        # a writer that does not count NaNs may have written some
        self._has_nans |= nans > 0 or (self._is_floating and known_nans is None and nulls != values)
        if lower is None and upper is None and values is not None and nulls is not None and nulls + nans >= values:
            return  # nothing but nulls and NaNs: no value to bound
        self._no_lower |= lower is None
        self._no_upper |= upper is None
        if lower is not None:
            self._lowers.append(lower)
        if upper is not None:
            self._uppers.append(upper)

    def _bound(self, bounds: Mapping[int, bytes] | None) -> Any:
        """Return a file's bound; NaN, which old writers used as a bound, means that there is none."""
        raw = (bounds or {}).get(self._column.field_id)
        value = None if raw is None else self._decode(raw)
        return None if self._is_floating and value is not None and isnan(value) else value

    def _add_default(self) -> None:
        """Count a file from before the column existed: its rows have the default, or null."""
        if self._column.default is None:
            self._has_nulls = True
        else:  # the default is JSON, not bytes; too rare to be worth a parser
            self._no_lower = self._no_upper = True

    def range(self, *, exact: bool) -> Range:
        """Return the range of all files so far; ``exact`` if they contain only changed rows."""
        kind = self._column.kind
        lower = None if self._no_lower or not self._lowers else min(self._lowers)
        upper = None if self._no_upper or not self._uppers else max(self._uppers)
        # what has no spelling, such as the year 290000, bounds nothing
        is_spelled = can_be_shown(kind, lower), can_be_shown(kind, upper)
        lower, upper = lower if is_spelled[0] else None, upper if is_spelled[1] else None
        bounded = not (self._no_lower or self._no_upper) and all(is_spelled)
        cut_at = self._column.cut_at
        is_cut = cut_at is not None and any(len(bound) >= cut_at for bound in (lower, upper) if bound is not None)
        return Range(
            kind=kind,
            lower=lower,
            upper=upper,
            exact=exact and bounded and not is_cut,
            has_nulls=self._has_nulls,
            has_nans=self._has_nans,
            empty=bounded and not self._lowers and not self._uppers,
        )


def ranges_of(source: Source, columns: Iterable[Column], files: Iterable[Manifest], *, exact: bool) -> dict[str, Range]:
    """Return the range of each column over some files, whose metrics have been read."""
    has_mapping = NAME_MAPPING in source.properties
    builders = {column: RangeBuilder(column, has_name_mapping=has_mapping) for column in columns}
    for manifest in files if builders else ():
        known = manifest.field_ids()
        with decoding(manifest.file.manifest_path):
            for column, builder in builders.items():
                for entry in manifest.entries():
                    builder.add(entry, written_with_column=column.field_id in known)
    return {column.path: builder.range(exact=exact) for column, builder in builders.items()}


def unbounded(column: Column) -> Range:
    """Return the range of an unknown change."""
    return Range(column.kind, None, None, exact=False, has_nulls=True, has_nans=True, empty=False)
