"""Made-up events: what their SQL says."""

from datetime import date

from calve.demo.events import PAYLOAD, Shape, day


def test_days_count_from_the_first() -> None:
    """Day 0 is the first of January."""
    assert day(0) == date(2026, 1, 1)
    assert day(31) == date(2026, 2, 1)


def test_a_day_brings_those_in_time_copies_and_late_ones() -> None:
    """Of 1,000 events a day, 10 come twice and 30 are late."""
    assert Shape(1_000, 0.03).deliveries == 1_040


def test_arrivals_of_days_do_not_overlap() -> None:
    """Each day draws its events from numbers of its own."""
    shape = Shape(1_000, 0.03)
    assert "range(0, 2080, 1, 4)" in shape.arrivals(0, 2)
    assert "range(2080, 3120, 1, 2)" in shape.arrivals(2, 1)


def test_the_payload_is_one_expression_of_few_literals() -> None:
    """Neighbouring literals are one, so that Spark has little to glue."""
    assert "' '" not in PAYLOAD.replace("' build", "")
    assert PAYLOAD.startswith('concat(\'{"schema":"playback.v7",')
    assert PAYLOAD.count("''") == 0


def test_no_dollar_is_in_the_sql() -> None:
    """It is passed as a param, in which a dollar would begin a reference."""
    assert "$" not in Shape(1_000, 0.03).arrivals(0, 1)
