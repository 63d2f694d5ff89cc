"""Ranges: a promise that no changed value lies outside, kept whatever the statistics of the files are."""

import json
import struct
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.unit.capture.tables import SCHEMA, Table, entry, manifest_file, write_entries

from calve.capture import avro
from calve.capture.manifests import Manifest
from calve.capture.ranges import Column, Range, RangeBuilder, columns_of, ranges_of, unbounded
from calve.errors import RangeColumnMissing, RequestInvalid

LONG = Column("id", 1, "long", None)
DOUBLE = Column("x", 1, "double", None)
TEXT = Column("s", 1, "string", 16)


def _long(value: int) -> bytes:
    return struct.pack("<q", value)


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


def _file(
    lower: bytes | None, upper: bytes | None, *, values: int | None = 10, nulls: int | None = 0, nans: int | None = None
) -> Any:
    """Return a file with bounds and counts of column 1, each of which may be missing."""
    return entry(
        value_counts=None if values is None else {1: values},
        null_value_counts=None if nulls is None else {1: nulls},
        nan_value_counts=None if nans is None else {1: nans},
        lower_bounds=None if lower is None else {1: lower},
        upper_bounds=None if upper is None else {1: upper},
    )


def _range(column: Column, *files: Any, exact: bool = True, **options: Any) -> Range:
    builder = RangeBuilder(column, has_name_mapping=options.pop("has_name_mapping", False))
    for file in files:
        builder.add(file, **options)
    return builder.range(exact=exact)


@given(st.lists(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1), max_size=5))
def test_a_range_holds_every_value_and_nothing_more(files: list[list[int | None]]) -> None:
    """From the statistics of any files, exactly the least and the greatest value, and whether there are nulls."""
    entries = []
    for rows in files:
        values = [row for row in rows if row is not None]
        low, high = (_long(min(values)), _long(max(values))) if values else (None, None)
        entries.append(_file(low, high, values=len(rows), nulls=rows.count(None)))
    found = _range(LONG, *entries)
    everything = [row for rows in files for row in rows]
    values = [row for row in everything if row is not None]
    assert (found.lower, found.upper) == ((min(values), max(values)) if values else (None, None))
    assert (found.has_nulls, found.empty, found.exact) == (None in everything, not values, True)


@given(st.lists(st.sampled_from(["both", "lower", "upper", "none"]), min_size=1, max_size=5))
def test_a_missing_bound_unbounds_its_side(kinds: list[str]) -> None:
    """Each side on its own; a partial range is never told."""
    files = [
        _file(
            _long(number) if kind in {"both", "lower"} else None,
            _long(number + 5) if kind in {"both", "upper"} else None,
        )
        for number, kind in enumerate(kinds)
    ]
    found = _range(LONG, *files)
    assert (found.lower is None) == any(kind in {"upper", "none"} for kind in kinds)
    assert (found.upper is None) == any(kind in {"lower", "none"} for kind in kinds)
    assert found.exact == all(kind == "both" for kind in kinds)
    assert not found.empty


def test_missing_counts_are_not_taken_for_zero() -> None:
    """Without counts there may be nulls, and a file without bounds may hold anything."""
    assert _range(LONG, _file(_long(1), _long(2), values=None, nulls=None)).has_nulls
    found = _range(LONG, _file(None, None, values=None, nulls=None))
    assert (found.lower, found.upper, found.empty, found.has_nulls) == (None, None, False, True)
    found = _range(LONG, _file(None, None, values=10, nulls=None))
    assert not found.empty


def test_files_of_nulls_and_nans_bound_nothing_and_widen_nothing() -> None:
    """They say that there are such rows, and leave the range to the others."""
    nulls, nans = _file(None, None, nulls=10), _file(None, None, nans=10)
    both = _file(None, None, nulls=4, nans=6)
    value = _file(_double(1.5), _double(2.5), nans=0)
    for files in ([nulls, value], [value, nans], [both, value]):
        found = _range(DOUBLE, *files)
        assert (found.lower, found.upper, found.empty) == (1.5, 2.5, False)
    assert _range(DOUBLE, nulls) == Range("double", None, None, exact=True, has_nulls=True, has_nans=False, empty=True)
    assert _range(DOUBLE, nans) == Range("double", None, None, exact=True, has_nulls=False, has_nans=True, empty=True)
    assert _range(DOUBLE, both, value).has_nans


def test_nans_that_nobody_counted_may_be_there() -> None:
    """Only floating columns have them, and a file of nulls has none."""
    assert _range(DOUBLE, _file(_double(1), _double(2))).has_nans
    assert not _range(DOUBLE, _file(_double(1), _double(2), nans=0)).has_nans
    assert not _range(DOUBLE, _file(None, None, nulls=10)).has_nans
    assert not _range(LONG, _file(_long(1), _long(2))).has_nans


def test_nan_is_no_bound() -> None:
    """Old writers put it where a bound belongs; nothing follows from it."""
    found = _range(DOUBLE, _file(_double(1), _double(float("nan")), nans=1), _file(_double(3), _double(4), nans=0))
    assert (found.lower, found.upper, found.exact) == (1.0, None, False)


def test_negative_zero_and_infinity_are_bounds() -> None:
    """They compare like other values."""
    found = _range(DOUBLE, _file(_double(-0.0), _double(float("inf")), nans=0))
    assert (str(found.lower), found.upper) == ("-0.0", float("inf"))


def test_an_empty_file_changes_nothing() -> None:
    """No row, no value, no null."""
    found = _range(LONG, entry(record_count=0), _file(_long(1), _long(1)))
    assert (found.lower, found.upper, found.has_nulls, found.exact) == (1, 1, False, True)


@given(st.text(max_size=40), st.text(max_size=40))
def test_cut_strings_widen_and_say_so(first: str, second: str) -> None:
    """A lower bound is a prefix, an upper one is incremented behind the cut: the promise holds, exactness does not."""
    low, high = min(first, second), max(first, second)
    upper = _incremented(high)
    found = _range(TEXT, _file(low[:16].encode(), None if upper is None else upper.encode()))
    assert found.lower <= low
    assert found.upper is None or found.upper >= high
    if len(low) > 16 or len(high) > 16:
        assert not found.exact
    if len(low) < 16 and len(high) < 16:
        assert found.exact


def _incremented(text: str) -> str | None:
    """Return an upper bound of sixteen characters as Iceberg cuts it; None where none is that long."""
    if len(text) <= 16:
        return text
    for place in reversed(range(16)):
        following = ord(text[place]) + 1
        following = 0xE000 if following == 0xD800 else following
        if following <= 0x10FFFF:
            return text[:place] + chr(following)
    return None


def test_a_string_of_the_last_character_has_no_upper_bound() -> None:
    """Nothing that short is greater, so the writer gives none, and that side is open."""
    highest = "\U0010ffff" * 20
    assert _incremented(highest) is None
    found = _range(TEXT, _file(highest[:16].encode(), None))
    assert (found.lower, found.upper, found.exact) == ("\U0010ffff" * 16, None, False)


@pytest.mark.parametrize(
    ("mode", "cut_at"),
    [(None, 16), ("truncate(4)", 4), ("truncate(40)", 16), ("full", None), ("counts", 16)],
)
def test_how_long_bounds_are_is_a_property(mode: str | None, cut_at: int | None) -> None:
    """A longer cut set today says nothing of files of yesterday."""
    for key in ("write.metadata.metrics.column.v", "write.metadata.metrics.default"):
        source = Table().source(properties={key: mode} if mode else {})
        assert columns_of(source, ["v"])[0].cut_at == cut_at
    assert columns_of(source, ["id"])[0].cut_at is None


def test_bounds_of_a_promoted_column_compare() -> None:
    """Short ones from before the promotion, long ones from after it."""
    old, new = struct.pack("<i", -5), _long(2**40)
    found = _range(LONG, _file(old, old), _file(new, new))
    assert (found.lower, found.upper) == (-5, 2**40)
    decimal = Column("d", 1, "decimal(20,2)", None)
    found = _range(decimal, _file(b"\xff", b"\x01"), _file((10**15).to_bytes(8, "big"), (10**15).to_bytes(8, "big")))
    assert found.as_json()["lower"] == "-0.01"
    assert found.as_json()["upper"] == "10000000000000.00"


def test_files_from_before_a_column_hold_nulls() -> None:
    """Unless the column has a default, or may be found by its name after all."""
    before = entry()
    found = _range(LONG, before, written_with_column=False)
    assert (found.empty, found.has_nulls) == (True, True)
    default = Column("id", 1, "long", None, default=7)
    found = _range(default, before, written_with_column=False)
    assert (found.lower, found.upper, found.empty) == (None, None, False)
    mapped = _range(LONG, before, written_with_column=False, has_name_mapping=True)
    assert (mapped.lower, mapped.empty) == (None, False)
    known = _range(LONG, _file(_long(3), _long(3)), written_with_column=False)
    assert (known.lower, known.has_nulls) == (3, False)


def test_the_manifest_says_which_columns_its_files_may_have() -> None:
    """Its own schema, not the table's of today."""
    older = {"type": "struct", "fields": [SCHEMA["fields"][0]]}  # type: ignore[index]
    raw = write_entries([])
    manifest = Manifest(manifest_file(), raw).keeping([_file(_long(1), _long(2))])
    source = Table().source()
    columns = columns_of(source, ["id", "v"])
    told = ranges_of(source, columns, [manifest], exact=True)
    assert (told["id"].lower, told["v"].empty, told["v"].lower) == (1, False, None)
    header = avro.read_container(raw).header | {"schema": json.dumps(older).encode()}
    without = Manifest(manifest_file(), avro.write_container(header, b"", 0)).keeping([_file(_long(1), _long(2))])
    told = ranges_of(source, columns, [without], exact=True)
    assert (told["id"].lower, told["v"].empty, told["v"].has_nulls) == (1, True, True)
    mapped = Table().source(properties={"schema.name-mapping.default": "[]"})
    assert not ranges_of(mapped, columns, [without], exact=True)["v"].empty


NESTED = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "Point", "type": {"type": "struct", "fields": [{"id": 2, "name": "x", "type": "int"}]}},
        {"id": 3, "name": "list", "type": {"type": "list", "element-id": 4, "element": "int"}},
        {"id": 5, "name": "json", "type": "variant"},
        {"id": 6, "name": "id", "type": "fixed[4]", "initial-default": "00"},
    ],
}


def test_columns_are_found_by_path_whatever_the_case() -> None:
    """Leaves of structs have ranges; lists, maps and variants have none."""
    source = Table().source(schemas=[NESTED])
    (column,) = columns_of(source, ["point.X"])
    assert (column.path, column.field_id, column.kind) == ("point.X", 2, "int")
    assert columns_of(source, ["id"])[0].default == "00"
    for missing in ("Point", "list", "list.element", "json", "nothing"):
        with pytest.raises(RangeColumnMissing, match=missing) as told:
            columns_of(source, [missing])
        assert "Point.x, id" in told.value.remedy


def _some(lower: int | None, upper: int | None, **flags: Any) -> Range:
    return Range("long", lower, upper, **{"exact": True, "has_nulls": False, "has_nans": False, "empty": False} | flags)


SIDES = st.none() | st.integers(-9, 9)
RANGES = st.builds(_some, SIDES, SIDES, exact=st.booleans(), has_nulls=st.booleans()) | st.just(
    _some(None, None, empty=True)
)


@given(RANGES, RANGES, RANGES)
def test_unions_can_be_taken_in_any_order(first: Range, second: Range, third: Range) -> None:
    """Over several tables: the smallest range that holds all; unbounded stays so, and empty adds nothing."""
    assert first.union(second) == second.union(first)
    assert first.union(second).union(third) == first.union(second.union(third))
    both = first.union(second)
    for one in (first, second):
        if not one.empty:
            assert both.lower is None or (one.lower is not None and both.lower <= one.lower)
            assert both.upper is None or (one.upper is not None and both.upper >= one.upper)


def test_ranges_of_different_types_have_no_union() -> None:
    """An int and a long are alike; a date and a string are not."""
    number = _range(Column("n", 1, "int", None), _file(struct.pack("<i", 1), struct.pack("<i", 1)))
    assert number.union(_some(5, 6)).upper == 6
    with pytest.raises(RequestInvalid, match="string"):
        number.union(_range(TEXT, _file(b"a", b"b")))


def test_a_change_of_which_nothing_is_known_is_unbounded() -> None:
    """Every value, nulls and NaNs too."""
    told = unbounded(DOUBLE).as_json()
    flags = {"exact": False, "has_nulls": True, "has_nans": True, "empty": False}
    assert told == {"type": "double", "lower": None, "upper": None, **flags}
