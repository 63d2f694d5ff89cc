"""How pages write times, sizes and numbers."""

import pytest

from calve.web import formats

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = 1_774_505_520_000


@pytest.mark.parametrize(
    ("then", "text"),
    [
        (NOW, "now"),
        (NOW - 999, "now"),
        (NOW - 2_000, "2 s ago"),
        (NOW - 7 * MINUTE, "7 min ago"),
        (NOW - 26 * HOUR, "1 d ago"),
        (NOW + 23 * MINUTE, "in 23 min"),
        (NOW + 9 * HOUR, "in 9 h"),
    ],
)
def test_a_time_is_reported_by_its_distance(then: int, text: str) -> None:
    """In one unit, rounded down."""
    assert formats.since(then, NOW) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (28, "28 ms"),
        (999.6, "1.0 s"),
        (4_100, "4.1 s"),
        (59_999, "60.0 s"),
        (MINUTE, "1 min"),
        (200_000, "3 min 20 s"),
        (2 * HOUR + 5 * MINUTE, "2 h 5 min"),
        (3 * DAY, "3 d"),
        (3 * DAY + 4 * HOUR + 59 * MINUTE, "3 d 4 h"),
    ],
)
def test_a_duration_has_at_most_two_units(milliseconds: float, text: str) -> None:
    """Parts below the second one are left out."""
    assert formats.duration(milliseconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (812, "812 B"), (1_000, "1.0 kB"), (999_600, "1.0 MB"), (1_100_000_000, "1.1 GB"), (412e9, "412 GB")],
)
def test_sizes_have_decimal_units(count: float, text: str) -> None:
    """As storage is sold and billed."""
    assert formats.size(count) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(12, "12"), (2_060_114, "2,060,114"), (28_800_000, "28.8 M"), (-3_000_000_000, "-3.0 G"), (0.25, "0.25")],
)
def test_long_numbers_are_shortened(count: float, text: str) -> None:
    """From ten million on."""
    assert formats.number(count) == text


def test_times_are_in_utc() -> None:
    """For programs as ISO 8601, for people without seconds."""
    assert formats.moment(NOW) == "2026-03-26T06:12:00Z"
    assert formats.clock(NOW) == "2026-03-26 06:12"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved.", "A column cannot be resolved."),
        ("[TABLE_MISSING]", "[TABLE_MISSING]"),
        ("[a] is no condition", "[a] is no condition"),
        ("x" * 400, "x" * 300 + "…"),
    ],
)
def test_an_error_in_a_list_begins_with_what_it_says(error: str, text: str) -> None:
    """It leaves out the name of Spark's condition, which would fill the line, and the end of a long one."""
    assert formats.cause(error) == text
