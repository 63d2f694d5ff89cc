"""Whatever the expression, it fires as a plain scan of the calendar says, or is refused."""

import contextlib
from datetime import UTC, datetime, timedelta

from hypothesis import given, strategies as st

from calve.definition.schedules import cron_of, predefined_of, zone_of
from calve.definition.schedules.parser import parse
from calve.errors import DefinitionInvalid

_INSTANTS = st.datetimes(datetime(2020, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - see timezones
_ZONES = st.sampled_from(
    ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Africa/Casablanca"]
)


@st.composite
def _fields(draw: st.DrawFn, low: int, high: int) -> str:
    numbers = st.integers(low, high)
    number = numbers.map(str)
    ends = st.tuples(numbers, numbers).map(sorted)
    step = st.integers(1, high).map("*/{}".format)
    part = st.just("*") | step | number | ends.map(lambda pair: f"{pair[0]}-{pair[1]}")
    return ",".join(draw(st.lists(part, min_size=1, max_size=3)))


_EXPRESSIONS = st.tuples(_fields(0, 59), _fields(0, 23), _fields(1, 31), _fields(1, 12), _fields(0, 7)).map(" ".join)


def _has(field: str, number: int, low: int) -> bool:
    """Tell whether a field means a number, in the plainest way."""
    for part in field.split(","):
        begin, _, end = part.partition("-")
        is_star = begin.startswith("*")
        step = int(begin.partition("/")[2] or 1)
        if is_star and (number - low) % step == 0:
            return True
        if not is_star and int(begin) <= number <= int(end or begin):
            return True
    return False


def _fires(expression: str, at: datetime) -> bool:
    minute, hour, day, month, weekday = expression.split()
    is_time = _has(minute, at.minute, 0) and _has(hour, at.hour, 0) and _has(month, at.month, 1)
    is_day = _has(day, at.day, 1)
    # Sunday is 7 as well as 0.
    is_weekday = _has(weekday, at.isoweekday() % 7, 0) or (at.isoweekday() == 7 and _has(weekday, 7, 0))
    if day.startswith("*") or weekday.startswith("*"):
        return is_time and is_day and is_weekday
    return is_time and (is_day or is_weekday)


@given(_EXPRESSIONS, _INSTANTS)
def test_it_fires_as_a_scan_minute_by_minute_says(expression: str, instant: datetime) -> None:
    """For two days; what comes later must not come sooner."""
    start = instant.replace(second=0, microsecond=0)
    minutes = (start + timedelta(minutes=count) for count in range(1, 2 * 24 * 60))
    expected = next((minute for minute in minutes if _fires(expression, minute)), None)
    found = parse(expression).next_after(instant, zone_of(None))
    assert found == expected or (expected is None and (found is None or found >= start + timedelta(days=2)))


@given(_EXPRESSIONS, _INSTANTS, _ZONES, st.timedeltas(timedelta(), timedelta(days=3)))
def test_what_is_next_does_not_depend_on_when_it_is_asked(
    expression: str, instant: datetime, zone: str, later: timedelta
) -> None:
    """As long as it has not come, the next firing stays the same, in every zone."""
    cron = parse(expression)
    found = cron.next_after(instant, zone_of(zone))
    if found is None:
        return
    assert found > instant
    assert cron.next_after(min(instant + later, found - timedelta(microseconds=1)), zone_of(zone)) == found


@given(st.text(alphabet="0123456789*/-,?LW# @dailymonSUN", max_size=40) | st.text())
def test_whatever_the_text_it_is_a_schedule_or_refused(text: str) -> None:
    """By the one error that says so."""
    for read in (cron_of, predefined_of):
        with contextlib.suppress(DefinitionInvalid):
            assert read(text).is_possible()
