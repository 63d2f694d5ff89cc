"""Ranges of key values."""

from decimal import Decimal

import pytest

from calve.merging.bounds import (
    Interval,
    KeyRange,
    Value,
    all_hold,
    disjoint,
    is_ordered,
    literal,
    range_of,
    reading,
    union,
)


def test_intervals_that_touch_or_overlap_become_one() -> None:
    """The values covered stay the same."""
    found = [Interval(7, 9), Interval(1, 3), Interval(2, 5), Interval(5, 5)]
    assert disjoint(found) == (Interval(1, 5), Interval(7, 9))


def test_too_many_intervals_are_joined_and_cover_more() -> None:
    """No value is lost, and there are no more than allowed."""
    found = [Interval(at, at) for at in range(0, 50, 2)]
    joined = disjoint(found, most=4)
    assert len(joined) <= 4
    assert all(any(item.low <= at <= item.high for item in joined) for at in range(0, 50, 2))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("type_name", "value", "expected"),
    [
        ("bigint", -5, "-5"),
        ("date", 0, "DATE'1970-01-01'"),
        ("date", -719162, "DATE'0001-01-01'"),
        ("date", -719163, None),
        ("timestamp", 1, "TIMESTAMP'1970-01-01 00:00:00.000001+00:00'"),
        ("timestamp", 2**62, None),
        ("timestamp_ntz", "2024-01-01 00:00:00.5", "TIMESTAMP_NTZ'2024-01-01 00:00:00.5'"),
        ("timestamp_ntz", "+10000-01-01 00:00:00", None),
        ("decimal(10,2)", Decimal("1E+2"), "CAST('100' AS decimal(10,2))"),
        ("string", "Zoë – 1", "'Zoë – 1'"),
        ("string", "it's", None),
        ("string", "a\\", None),
        ("string", "a\n", None),
        ("double", "1", None),
    ],
)
def test_a_value_is_written_only_where_it_reads_back_the_same(
    type_name: str, value: Value, expected: str | None
) -> None:
    """Time zones, quotes and years beyond Python's cannot change what is compared."""
    assert literal(type_name, value) == expected


def test_floats_are_not_ordered_because_of_nan_and_minus_zero() -> None:
    """Their bounds prune nothing, so they cannot prune wrongly."""
    assert not is_ordered("double")
    assert not is_ordered("string collate UNICODE_CI")
    assert is_ordered("decimal(38,0)")


@pytest.mark.parametrize(
    ("type_name", "expected"),
    [
        ("int", "CAST(x AS BIGINT)"),
        ("date", "CAST(unix_date(x) AS BIGINT)"),
        ("timestamp", "unix_micros(x)"),
        ("timestamp_ntz", "CAST(x AS STRING)"),
        ("string", "x"),
    ],
)
def test_values_come_to_python_without_a_time_zone(type_name: str, expected: str) -> None:
    """What is read is a number or a text."""
    assert reading(type_name, "x") == expected


def test_a_bound_that_is_not_known_leaves_the_range_unknown() -> None:
    """A partial range would hide rows."""
    assert range_of("k", "bigint", [(1, 2), (None, 5)]) is None
    assert range_of("k", "string", [("a", "it's")]) is None
    assert range_of("k", "bigint", [(1, 2), (5, 6)]) == KeyRange("k", "bigint", (Interval(1, 2), Interval(5, 6)))


def test_a_range_becomes_a_predicate_and_a_position() -> None:
    """The column's name is quoted."""
    made = KeyRange("a b", "bigint", (Interval(1, 2), Interval(5, 6)))
    assert made.holds("t") == "(t.`a b` BETWEEN 1 AND 2 OR t.`a b` BETWEEN 5 AND 6)"
    assert made.position("s") == "CASE WHEN s.`a b` <= 2 THEN 0 WHEN s.`a b` <= 6 THEN 1 END"
    assert all_hold([made, KeyRange("c", "bigint", ())], "t") == f"{made.holds('t')} AND false"
    assert all_hold([], "t") == "true"


def test_the_union_of_ranges_covers_both() -> None:
    """A column that one of two does not bound is not bounded; a range without intervals is that of no rows."""
    one, other = KeyRange("a", "bigint", (Interval(1, 2),)), KeyRange("a", "bigint", (Interval(9, 9),))
    unbounded = KeyRange("b", "bigint", (Interval(0, 0),))
    assert union((one, unbounded), (other,)) == (KeyRange("a", "bigint", (Interval(1, 2), Interval(9, 9))),)
    assert union((KeyRange("a", "bigint", ()),), (other,)) == (other,)
    assert union((one,), ()) == ()
