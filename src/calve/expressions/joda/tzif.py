"""The rules of time zones, read from the files of the tzdata package, not from those of the system.

A file holds transitions, and a last line in POSIX form that defines later transitions, such as PST8PDT,M3.2.0,M11.1.0
(RFC 8536).
"""

import re
import struct
from dataclasses import dataclass, replace
from importlib.resources import files

from calve.expressions.java import LONG_MIN, wrap
from calve.expressions.joda import gregorian
from calve.expressions.joda.gregorian import DAY, HOUR, MINUTE, SECOND

_HEADER = struct.Struct(">20x6I")
_TYPE = struct.Struct(">iBB")
_LISTED_UNTIL = gregorian.day_number(2100, 1, 1) * DAY


@dataclass(frozen=True, slots=True)
class Period:
    """A time with one offset, from ``start`` to the start of the next."""

    start: int
    offset: int
    is_daylight: bool


@dataclass(frozen=True, slots=True)
class YearlyChange:
    """A yearly clock change: the month, the week, the weekday and the local time."""

    month: int
    week: int
    """From 1; 5 is the last."""
    weekday: int
    """From 0, Sunday."""
    time: int
    offset_before: int
    offset: int
    is_daylight: bool

    def in_year(self, year: int) -> int:
        """Return the local time of the change in a year."""
        first = gregorian.day_number(year, self.month, 1)
        day = 1 + (self.weekday - (first + 4)) % 7 + (self.week - 1) * 7
        if day > gregorian.days_in_month(year, self.month):
            day -= 7
        return wrap((first + day - 1) * DAY + self.time)

    def next_after(self, millis: int) -> int:
        """Return the next change after an instant, or that instant if there is none.

        At the end of the range longs wrap, so the next change is in the very first year.
        """
        local = wrap(millis + self.offset_before)
        start = self.in_year(gregorian.year_of(local))
        if start <= local:
            year = gregorian.year_of(start) + 1
            if year > gregorian.YEAR_MAX:
                return millis
            start = self.in_year(year)
        return wrap(start - self.offset_before)

    def last_until(self, millis: int) -> int:
        """Return the last change up to an instant."""
        local = millis + self.offset_before
        start = self.in_year(gregorian.year_of(local))
        if start > local:
            start = self.in_year(gregorian.year_of(local) - 1)
        return start - self.offset_before


Yearly = tuple[YearlyChange, YearlyChange]
"""The two changes of a year in their order; in the south the first one ends daylight saving."""


@dataclass(frozen=True, slots=True)
class ZoneRules:
    """All periods until 2100, and the yearly changes after that."""

    periods: tuple[Period, ...]
    """The first one starts at the first millisecond."""
    yearly: Yearly | None


# Where daylight saving is negative in the tz database, Joda-Time uses the least offset that a rule allows as the
# standard offset while the rule applies, even if clocks never show it. Zone: the first day, and the offset in hours.
_STANDARD_BY_LEAST: dict[str, tuple[tuple[tuple[int, int, int], int], ...]] = {
    "Africa/Casablanca": (((1913, 10, 26), -1), ((1984, 3, 16), 1), ((1985, 12, 31), -1), ((2018, 10, 28), 0)),
    "Africa/El_Aaiun": (((1976, 4, 14), -1), ((2018, 10, 28), 0)),
    "Africa/Windhoek": (((1990, 3, 20), 1),),
    "Europe/Dublin": (((1968, 10, 26), 0),),
}


def rules_of(zone_id: str) -> ZoneRules:
    """Read the rules of a zone that is known to exist."""
    content = files("tzdata").joinpath("zoneinfo", *zone_id.split("/")).read_bytes()
    periods, footer = _read(content)
    yearly = _yearly_changes(footer)
    while yearly and LONG_MIN < periods[-1].start < _LISTED_UNTIL:
        start = start_after(yearly, periods[-1].start)
        change = change_at(yearly, start)
        periods.append(Period(start, change.offset, change.is_daylight))
    for date, standard in _STANDARD_BY_LEAST.get(zone_id, ()):
        since = gregorian.day_number(*date) * DAY
        periods = [
            replace(period, is_daylight=period.offset != standard * HOUR) if period.start >= since else period
            for period in periods
        ]
    return ZoneRules(tuple(periods), yearly)


def known_ids() -> frozenset[str]:
    """Return all ids of the tzdata package except Factory, which means that no zone is set."""
    return frozenset(files("tzdata").joinpath("zones").read_text().split()) - {"Factory"}


def _read(content: bytes) -> tuple[list[Period], str]:
    """Return a file's periods and its last line."""
    utc_count, standard_count, leap_count, time_count, type_count, char_count = _HEADER.unpack_from(content)
    # The first block has 32-bit times, for old readers.
    start = _HEADER.size + time_count * 5 + type_count * 6 + char_count + leap_count * 8 + standard_count + utc_count
    utc_count, standard_count, leap_count, time_count, type_count, char_count = _HEADER.unpack_from(content, start)
    start += _HEADER.size
    times = struct.unpack_from(f">{time_count}q", content, start)
    indexes = content[start + time_count * 8 : start + time_count * 9]
    start += time_count * 9
    types = list(_TYPE.iter_unpack(content[start : start + type_count * _TYPE.size]))
    end = start + type_count * _TYPE.size + char_count + leap_count * 12 + standard_count + utc_count
    starts = (LONG_MIN, *(time * SECOND for time in times))
    periods = [
        Period(time, types[index][0] * SECOND, bool(types[index][1]))
        for time, index in zip(starts, (0, *indexes), strict=True)
    ]
    return periods, content[end:].decode().strip()


_NAME = r"(?:<[^>]+>|[A-Za-z]+)"
_OFFSET = r"[+-]?\d+(?::\d+)*"
_CHANGE = r"M(\d+)\.(\d)\.(\d)(?:/([^,]+))?"
_FOOTER = re.compile(f"{_NAME}({_OFFSET}){_NAME}({_OFFSET})?,{_CHANGE},{_CHANGE}")


def _yearly_changes(footer: str) -> Yearly | None:
    """Return the two changes that a last line describes, None if the offset does not change."""
    match = _FOOTER.fullmatch(footer)
    if match is None:
        return None
    standard_text, daylight_text, *changes = match.groups()
    standard = -_clock_time(standard_text)
    daylight = -_clock_time(daylight_text) if daylight_text else standard + HOUR
    first = _yearly_change(changes[:4], standard, daylight)
    second = _yearly_change(changes[4:], daylight, standard)
    return (first, second) if first.month < second.month else (second, first)


def _yearly_change(parts: list[str | None], before: int, after: int) -> YearlyChange:
    month, week, weekday, time = parts
    return YearlyChange(
        month=int(month or 0),
        week=int(week or 0),
        weekday=int(weekday or 0),
        time=_clock_time(time or "2"),
        offset_before=before,
        offset=after,
        is_daylight=after > before,
    )


def _clock_time(text: str) -> int:
    """Return the milliseconds of [±]h[:mm[:ss]]."""
    parts = text.lstrip("+-").split(":")
    millis = sum(int(part) * unit for part, unit in zip(parts, (HOUR, MINUTE, SECOND), strict=False))
    return -millis if text.startswith("-") else millis


def change_at(yearly: Yearly, millis: int) -> YearlyChange:
    """Return the change that is in force at a millisecond after the listed periods."""
    # Joda-Time remembers changes by chunks of 2**32 milliseconds and looks for them from a chunk's start. In the very
    # last years, where it finds no next change, this decides what it says.
    start = millis - millis % 2**32
    while start < (following := start_after(yearly, start)) <= millis:
        start = following
    spring, autumn = yearly
    # Of the two, the one whose next change is later is in force.
    return spring if spring.next_after(start) > autumn.next_after(start) else autumn


def start_after(yearly: Yearly, millis: int) -> int:
    """Return the next change after a millisecond, or that millisecond if there is none."""
    starts = (change.next_after(millis) for change in yearly)
    # One before 1970 that comes after another since then has wrapped.
    return min(start if start >= 0 or millis <= 0 else millis for start in starts)


def start_until(yearly: Yearly, millis: int) -> int:
    """Return the last change up to a millisecond."""
    return max(change.last_until(millis) for change in yearly)
