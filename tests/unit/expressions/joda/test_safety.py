"""Whatever comes in, a value or a JodaError comes out, and soon."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from calve.expressions.joda import DateField, DateTime, JodaError, Unit, days_between, formatter, zone_for_id

LONGS = st.integers(-(2**63), 2**63 - 1)
ZONES = st.sampled_from(["UTC", "America/Los_Angeles", "Pacific/Apia", "+05:30", "Australia/Sydney", "Asia/Tokyo"])
DATETIMES = st.builds(lambda millis, zone_id: DateTime(millis, zone_for_id(zone_id)), LONGS, ZONES)
LETTERS = st.text("GCYxwEeyDMdaKhHkmsSzZ'-/: bé", max_size=12)
TEXTS = st.text("0123456789-+:.,/ TWZzaApPmMUTCGBD'é", max_size=20)


@given(DATETIMES, st.sampled_from(Unit), st.integers(-(2**70), 2**70))
def test_moving_gives_a_date_time_or_an_error(start: DateTime, unit: Unit, amount: int) -> None:
    """Its instant is a long."""
    with suppress(JodaError):
        assert -(2**63) <= start.plus(unit, amount).millis < 2**63


@given(DATETIMES, st.sampled_from(DateField), st.integers(-(2**31), 2**31 - 1))
def test_changing_a_field_gives_a_date_time_or_an_error(start: DateTime, field: DateField, value: int) -> None:
    """Texts and extremes of it too."""
    with suppress(JodaError):
        assert -(2**63) <= start.with_field(field, value).millis < 2**63
    for ask in (DateTime.at_start_of_day, lambda it: it.property(field).with_minimum()):
        with suppress(JodaError):
            assert -(2**63) <= ask(start).millis < 2**63
    with suppress(JodaError):
        assert -(2**63) <= start.property(field).with_maximum().millis < 2**63
    with suppress(JodaError):
        assert start.property(field).as_text()


@given(DATETIMES, DATETIMES)
def test_days_between_are_an_int_or_an_error(start: DateTime, end: DateTime) -> None:
    """In both directions the same number, but for the sign, where the zone is the same."""
    with suppress(JodaError):
        assert days_between(start, end) == -days_between(end.in_zone(start.zone), start)


@given(LETTERS, TEXTS, DATETIMES, ZONES)
def test_patterns_and_texts_give_a_result_or_an_error(
    pattern: str, text: str, datetime: DateTime, zone_id: str
) -> None:
    """What a pattern printed it can often read."""
    with suppress(JodaError):
        made = formatter(pattern).with_zone(zone_for_id(zone_id))
        printed = made.print(datetime)
        for each in (text, printed):
            with suppress(JodaError):
                made.parse(each)


@given(st.text(max_size=30) | TEXTS)
def test_texts_and_ids_give_a_result_or_an_error(text: str) -> None:
    """Of any characters."""
    for ask in (DateTime.parse, zone_for_id, formatter):
        with suppress(JodaError):
            ask(text)


@given(DATETIMES)
def test_what_is_printed_is_what_is_read(datetime: DateTime) -> None:
    """The instant comes back, unless its text names a year or an offset that is out of reach."""
    with suppress(JodaError):
        assert DateTime.parse(str(datetime)).millis == datetime.millis


@pytest.mark.parametrize(
    "ask",
    [
        lambda: formatter("d-" * 5000).parse("1-" * 5000),
        lambda: formatter("y" * 10_000).parse("1" * 10_000),
        lambda: formatter("yy").parse("9" * 10_000),
        lambda: formatter("'" * 10_000).print(0),
        lambda: formatter("S" * 10_000).print(1),
        lambda: formatter("ZZZ" + "-ZZZ" * 2000).parse("UTC-" * 2000),
        lambda: DateTime.parse("2" * 10_000),
        lambda: zone_for_id("+" + "0" * 10_000),
        lambda: zone_for_id("../" * 3000),
        lambda: DateTime(0).plus(Unit.YEARS, 10**4000),
        lambda: DateTime(0).plus(Unit.MONTHS, -(10**4000)),
        lambda: DateTime(0).plus(Unit.DAYS, 10**4000),
        lambda: DateTime(0).with_field(DateField.YEAR, 10**4000),
    ],
)
def test_hostile_input_is_dealt_with(ask: Callable[[], object]) -> None:
    """Thousands of letters or digits are understood or refused."""
    with suppress(JodaError):
        ask()
