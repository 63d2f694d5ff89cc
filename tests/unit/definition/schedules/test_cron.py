"""A schedule fires at the right moments, also where clocks change."""

from datetime import UTC, datetime, timedelta

import pytest

from calve.definition.schedules import Interval, zone_of
from calve.definition.schedules.parser import parse
from calve.errors import DefinitionInvalid


def _firings(text: str, zone: str, start: str, count: int) -> list[str]:
    """Return the first firings after a local time, as local times with their offset."""
    where = zone_of(zone)
    instant: datetime | None = datetime.fromisoformat(start).replace(tzinfo=where).astimezone(UTC)
    found = []
    for _ in range(count):
        assert instant is not None
        instant = parse(text).next_after(instant, where)
        found.append("never" if instant is None else instant.astimezone(where).strftime("%Y-%m-%d %H:%M%z"))
    return found


def test_a_firing_comes_after_the_instant_not_at_it() -> None:
    """So that the last firing leads to the next; it is given in UTC."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    daily = parse("0 12 * * *")
    assert daily.next_after(noon - timedelta(microseconds=1), zone_of(None)) == noon
    assert daily.next_after(noon, zone_of(None)) == noon + timedelta(days=1)
    found = daily.next_after(noon, zone_of("Asia/Tokyo"))
    assert found is not None
    assert found.tzinfo is UTC
    assert found == datetime(2026, 1, 2, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 13 * 5", ["2026-02-06", "2026-02-13", "2026-02-20"]),
        ("0 0 */2 * 5", ["2026-02-13", "2026-02-27", "2026-03-13"]),
        ("0 0 31 * *", ["2026-03-31", "2026-05-31", "2026-07-31"]),
        ("0 0 29 2 *", ["2028-02-29", "2032-02-29", "2036-02-29"]),
        ("0 0 0 L * ?", ["2026-02-28", "2026-03-31", "2026-04-30"]),
        ("0 0 0 L-30 * ?", ["2026-03-01", "2026-05-01", "2026-07-01"]),
        ("0 0 0 LW * ?", ["2026-02-27", "2026-03-31", "2026-04-30"]),
        ("0 0 0 L-28W 2,3 ?", ["2026-03-03", "2027-03-03", "2028-02-01"]),
        ("0 0 0 15W * ?", ["2026-02-16", "2026-03-16", "2026-04-15"]),
        ("0 0 0 1W 8 ?", ["2026-08-03", "2027-08-02", "2028-08-01"]),
        ("0 0 0 31W 1,5 ?", ["2026-05-29", "2027-01-29", "2027-05-31"]),
        ("0 0 0 ? * 6L", ["2026-02-27", "2026-03-27", "2026-04-24"]),
        ("0 0 0 ? * MON#5", ["2026-03-30", "2026-06-29", "2026-08-31"]),
        ("0 0 0 1 1 ? 2025,2027-2028", ["2027-01-01", "2028-01-01", "never"]),
        ("0 0 0 1 3,1 ? 2026", ["2026-03-01", "never"]),
    ],
)
def test_days_are_found_over_months_and_years(text: str, expected: list[str]) -> None:
    """From the first of February 2026 on."""
    found = _firings(text, "UTC", "2026-02-01T00:00", len(expected))
    assert [firing[:10] for firing in found] == expected


def test_a_fixed_time_that_is_skipped_fires_right_after_the_gap() -> None:
    """In New York the clocks went from 2:00 to 3:00 on 8 March 2026."""
    assert _firings("30 2 * * *", "America/New_York", "2026-03-07T12:00", 2) == [
        "2026-03-08 03:00-0400",
        "2026-03-09 02:30-0400",
    ]


def test_several_times_that_are_skipped_fire_once() -> None:
    """They all mean the first moment after the gap."""
    assert _firings("0,20,40 2,3 * * *", "America/New_York", "2026-03-08T00:00", 3) == [
        "2026-03-08 03:00-0400",
        "2026-03-08 03:20-0400",
        "2026-03-08 03:40-0400",
    ]


def test_a_wildcard_hour_does_not_fire_for_an_hour_that_does_not_exist() -> None:
    """The clock goes from 1:59 to 3:00, and so does the schedule."""
    for text in ("30 * * * *", "0 30 0/1 * * ?"):
        assert _firings(text, "America/New_York", "2026-03-08T01:00", 3) == [
            "2026-03-08 01:30-0500",
            "2026-03-08 03:30-0400",
            "2026-03-08 04:30-0400",
        ]


def test_a_fixed_time_that_is_repeated_fires_the_first_time_only() -> None:
    """In New York the clocks went from 2:00 to 1:00 on 1 November 2026."""
    assert _firings("30 1 * * *", "America/New_York", "2026-11-01T00:00", 2) == [
        "2026-11-01 01:30-0400",
        "2026-11-02 01:30-0500",
    ]


def test_a_wildcard_hour_fires_both_times() -> None:
    """Every hour is an hour."""
    assert _firings("30 * * * *", "America/New_York", "2026-11-01T00:00", 4) == [
        "2026-11-01 00:30-0400",
        "2026-11-01 01:30-0400",
        "2026-11-01 01:30-0500",
        "2026-11-01 02:30-0500",
    ]


def test_midnight_may_be_skipped() -> None:
    """In Beirut the clocks went from 0:00 to 1:00 on 29 March 2026."""
    assert _firings("0 0 * * *", "Asia/Beirut", "2026-03-28T12:00", 2) == [
        "2026-03-29 01:00+0300",
        "2026-03-30 00:00+0300",
    ]


def test_a_whole_day_may_be_skipped() -> None:
    """Samoa had no 30 December 2011: what was due fires when the next day begins, which is one firing for both."""
    assert _firings("0 0 * * *", "Pacific/Apia", "2011-12-28T12:00", 3) == [
        "2011-12-29 00:00-1000",
        "2011-12-31 00:00+1400",
        "2012-01-01 00:00+1400",
    ]


def test_a_clock_may_go_back_over_midnight() -> None:
    """In Newfoundland the clocks went from 0:01 to 23:01 of the day before, on 7 November 2010."""
    assert _firings("0,30 * * * *", "America/St_Johns", "2010-11-06T23:00", 5) == [
        "2010-11-06 23:30-0230",
        "2010-11-07 00:00-0230",
        "2010-11-06 23:30-0330",
        "2010-11-07 00:00-0330",
        "2010-11-07 00:30-0330",
    ]


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("*/15 * * * *", timedelta(minutes=15)),
        ("0,59 * * * *", timedelta(minutes=1)),
        ("50 23 * * 1-5", timedelta(days=1)),
        ("0,10 0,23 * * 1", timedelta(minutes=10)),
        ("5 0,23 * * 1,2", timedelta(hours=1)),
        ("5 0,23 * * 1,4", timedelta(hours=23)),
        ("0 0 * * 1", timedelta(days=7)),
        ("0 0 1 * *", timedelta(days=28)),
        ("0 0 0 1 1 ? 2026,2030", timedelta(days=1461)),
        ("0 0 0 1 1 ? 2026", None),
    ],
)
def test_the_shortest_gap_is_exact(text: str, gap: timedelta | None) -> None:
    """Within a day, over night, or over years."""
    assert parse(text).minimum_gap() == gap


def test_an_interval_needs_no_memory() -> None:
    """Its firings are counted from the start of 1970."""
    every = Interval(timedelta(minutes=90))
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert every.next_after(noon, zone_of("Asia/Tokyo")) == noon + timedelta(minutes=90)
    assert every.next_after(noon - timedelta(seconds=1), zone_of(None)) == noon
    assert every.minimum_gap() == timedelta(minutes=90)


def test_a_time_zone_is_known_by_its_name() -> None:
    """UTC if there is none."""
    assert zone_of("US/Pacific").key == "US/Pacific"
    assert zone_of(None).key == "UTC"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Europe/Berln", "did you mean Europe/Berlin?"),
        ("us/pacific", "did you mean US/Pacific?"),
        ("Tokyo", "did you mean Asia/Tokyo?"),
        ("../../etc/passwd", ""),
        ("Factory", ""),
        ("", ""),
    ],
)
def test_an_unknown_time_zone_is_refused_with_the_nearest_name(name: str, remedy: str) -> None:
    """Only names are looked up, never paths."""
    with pytest.raises(DefinitionInvalid, match="there is no time zone") as raised:
        zone_of(name)
    assert raised.value.remedy == remedy
