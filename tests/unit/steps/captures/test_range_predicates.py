"""Ranges become a condition that no changed row escapes."""

from typing import Any

import pytest

from calve.steps.captures.outputs import predicate

FLAGS = {"exact": True, "has_nulls": False, "has_nans": False, "empty": False}


def told(kind: str, lower: object, upper: object, **flags: bool) -> dict[str, Any]:
    """Return a range as a capture reports it."""
    return {"type": kind, "lower": lower, "upper": upper, **FLAGS, **flags}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (told("int", 1, 5), "`c` BETWEEN 1 AND 5"),
        (told("long", 5, 5), "`c` = 5"),
        (told("long", None, 5), "`c` <= 5"),
        (told("long", 5, None), "`c` >= 5"),
        (told("long", None, None), "true"),
        (told("long", None, None, has_nulls=True), "true"),
        (told("date", "2026-03-01", "2026-03-05"), "`c` BETWEEN DATE '2026-03-01' AND DATE '2026-03-05'"),
        (told("timestamp", "2026-03-01 00:00:00", None), "`c` >= TIMESTAMP_NTZ '2026-03-01 00:00:00'"),
        (told("timestamptz", None, "2026-03-01 00:00:00+00:00"), "`c` <= TIMESTAMP '2026-03-01 00:00:00+00:00'"),
        (told("string", "it's", "a\\b"), "`c` BETWEEN 'it\\'s' AND 'a\\\\b'"),
        (told("boolean", False, True), "`c` BETWEEN false AND true"),
        (told("double", 1.5, 2), "`c` BETWEEN CAST('1.5' AS DOUBLE) AND CAST('2.0' AS DOUBLE)"),
        (told("float", float("-inf"), 0.0), "`c` BETWEEN CAST('-inf' AS DOUBLE) AND CAST('0.0' AS DOUBLE)"),
        (
            told("decimal(9,2)", "1.20", "3.00"),
            "`c` BETWEEN CAST('1.20' AS DECIMAL(9,2)) AND CAST('3.00' AS DECIMAL(9,2))",
        ),
        (told("binary", "00ff", None), "`c` >= X'00ff'"),
        (told("fixed[2]", "00ff", None), "`c` >= X'00ff'"),
        (told("uuid", "f79c3e09", "f79c3e10"), "true"),
        (told("long", 1, 2, has_nulls=True), "(`c` BETWEEN 1 AND 2 OR `c` IS NULL)"),
        (told("double", None, 2.0, has_nans=True), "(`c` <= CAST('2.0' AS DOUBLE) OR isnan(`c`))"),
        (told("double", None, None, empty=True, has_nans=True, has_nulls=True), "(`c` IS NULL OR isnan(`c`))"),
        (told("long", None, None, empty=True), "false"),
        ({"lower": 1, "upper": 2, **FLAGS}, "true"),
    ],
)
def test_a_range_is_a_condition_on_its_column(found: dict[str, Any], expected: str) -> None:
    """In literals of the column's own type; what is not known, or cannot be spelt, excludes nothing."""
    assert predicate({"c": found}) == expected


def test_several_columns_must_all_fit() -> None:
    """Nested ones by their path; one of which nothing is known says nothing."""
    ranges = {"a.b": told("long", 1, 2, has_nulls=True), "c": told("long", None, None), "d`": told("long", 3, 3)}
    assert predicate(ranges) == "(`a`.`b` BETWEEN 1 AND 2 OR `a`.`b` IS NULL) AND `d``` = 3"
    assert predicate({}) == "true"
