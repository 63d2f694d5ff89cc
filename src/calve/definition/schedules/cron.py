"""When a cron expression fires, correct across daylight saving time. Pure: time is an argument."""

from bisect import bisect_right
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

SATURDAY, SUNDAY = 6, 7
"""As ISO 8601 counts the days of a week."""


@dataclass(frozen=True, slots=True)
class LastDay:
    """The last day of the month, or some days before it (``L``, ``L-3``)."""

    before: int = 0


@dataclass(frozen=True, slots=True)
class NearestWeekday:
    """The day from Monday to Friday that is nearest, within the month (``15W``, ``LW``)."""

    day: int | LastDay


@dataclass(frozen=True, slots=True)
class NthWeekday:
    """A weekday for the n-th time in the month (``6#3``)."""

    weekday: int
    n: int


@dataclass(frozen=True, slots=True)
class LastWeekday:
    """A weekday for the last time in the month (``6L``)."""

    weekday: int


DayRule = int | LastDay | NearestWeekday
"""A rule of the field for days; a number is the day itself."""
WeekdayRule = int | NthWeekday | LastWeekday
"""A rule of the field for weekdays; a number is the weekday itself, Sunday is 0."""


def day_of(rule: DayRule, year: int, month: int) -> int | None:
    """Return the day of a month that a rule selects; None if the month has no such day."""
    last = monthrange(year, month)[1]
    match rule:
        case int() as day:
            return day if day <= last else None
        case LastDay(before):
            return last - before if before < last else None
    found = day_of(rule.day, year, month)
    return None if found is None else _nearest(found, year, month, last)


def days_of(rule: WeekdayRule, year: int, month: int) -> range:
    """Return the days of a month that a weekday rule selects."""
    match rule:
        case int() as weekday:
            return _each(weekday, year, month)
        case NthWeekday(weekday, n):
            return _each(weekday, year, month)[n - 1 : n]
    return _each(rule.weekday, year, month)[-1:]


def _each(weekday: int, year: int, month: int) -> range:
    # The calendar's week begins on Monday.
    begins, last = monthrange(year, month)
    return range(1 + (weekday - begins - 1) % 7, last + 1, 7)


def _nearest(day: int, year: int, month: int, last: int) -> int:
    weekday = date(year, month, day).isoweekday()
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < last else day - 2
    return day


_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


def first_after(
    instant: datetime, day: date, times: tuple[int, ...], zone: ZoneInfo, *, is_every_hour: bool
) -> datetime | None:
    """Return the first of a day's times after an instant; None if there is none."""
    midnight = datetime.combine(day, time())
    offset = _steady_offset(midnight, zone)
    if offset is None:
        firings = (
            firing
            for seconds in times
            for firing in _firings(midnight + timedelta(seconds=seconds), zone, is_every_hour=is_every_hour)
        )
        return min((firing for firing in firings if firing > instant), default=None)
    begin = (midnight - offset).replace(tzinfo=UTC)
    place = bisect_right(times, (instant - begin).total_seconds())
    return begin + timedelta(seconds=times[place]) if place < len(times) else None


def _steady_offset(midnight: datetime, zone: ZoneInfo) -> timedelta | None:
    """Return the day's offset from UTC; None if it changes during the day."""
    ends = (midnight, midnight + _DAY)
    offsets = {_offset(end, zone, fold=fold) for end in ends for fold in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _firings(local: datetime, zone: ZoneInfo, *, is_every_hour: bool) -> Iterator[datetime]:
    earlier, later = _offset(local, zone, fold=0), _offset(local, zone, fold=1)
    first, second = (local - earlier).replace(tzinfo=UTC), (local - later).replace(tzinfo=UTC)
    if earlier >= later:
        yield first
        if is_every_hour:
            # The same as the first, unless the local time occurs twice.
            yield second
    elif not is_every_hour:
        yield _end_of_gap(second, first, zone)


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the moment between two instants at which the clocks go forward."""
    old = before.astimezone(zone).utcoffset()
    while after - before > _SECOND:
        middle = before + (after - before) // 2
        middle = middle.replace(microsecond=0)
        before, after = (middle, after) if middle.astimezone(zone).utcoffset() == old else (before, middle)
    return after


def _offset(local: datetime, zone: ZoneInfo, *, fold: int) -> timedelta:
    return local.replace(tzinfo=zone, fold=fold).utcoffset() or timedelta()


_ALL_CALENDARS = range(2000, 2028)
"""These years include every combination of the weekday of 1 January and leap year or not."""
_LONGEST_WAIT = 41
"""Years: 29 February on a given weekday may be 40 years away, across a century that is not a leap year."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression: the values that each field selects."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[DayRule]
    months: frozenset[int]
    weekdays: frozenset[WeekdayRule]
    years: frozenset[int] | None = None
    """None means all years."""
    is_either_day: bool = False
    """Whether a day must match only one of days and weekdays; otherwise it must match both."""
    is_every_hour: bool = False
    """Whether the hour is a wildcard: such a schedule fires every hour that passes, others at a fixed local time."""

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the first firing after an instant, in UTC; None if there is none.

        When the clocks go forward, a fixed time that is skipped fires at the first moment after the gap, and
        a wildcard hour does not fire for the hour that does not exist. When the clocks go back, a fixed time
        fires the first time only, and a wildcard hour fires both times.
        """
        local = instant.astimezone(zone).date()
        for day in self._dates(local - _DAY):
            found = self._first(day, instant, zone)
            if found:
                # If the clocks go back around midnight, the next day can begin before this one ends.
                following = self._first(day + _DAY, instant, zone) if self._is_on(day + _DAY) else None
                return min(found, following) if following else found
        return None

    def minimum_gap(self) -> timedelta | None:
        """Return the shortest time between two firings, ignoring clock changes; None if it fires at most once."""
        times = _times(self)
        by_day = min((timedelta(seconds=later - earlier) for earlier, later in pairwise(times)), default=None)
        over_night = _DAY - timedelta(seconds=times[-1] - times[0])
        if by_day is not None and by_day <= over_night:
            return by_day
        nights = self._fewest_nights()
        by_night = None if nights is None else over_night + (nights - 1) * _DAY
        return min((gap for gap in (by_day, by_night) if gap is not None), default=None)

    def is_possible(self) -> bool:
        """Tell whether there is any day on which it fires."""
        return any(self._days(year, month) for year in self._calendars() for month in self.months)

    def _calendars(self) -> list[int]:
        return sorted(self.years) if self.years is not None else list(_ALL_CALENDARS)

    def _fewest_nights(self) -> int | None:
        """Return the fewest nights between two days on which it fires; None if there is only one such day."""
        start = date(min(self._calendars()), 1, 1)
        fewest = None
        for earlier, later in pairwise(self._dates(start)):
            nights = (later - earlier).days
            if nights == 1:
                return nights
            fewest = min(nights, fewest or nights)
        return fewest

    def _first(self, day: date, instant: datetime, zone: ZoneInfo) -> datetime | None:
        return first_after(instant, day, _times(self), zone, is_every_hour=self.is_every_hour)

    def _is_on(self, day: date) -> bool:
        is_year = self.years is None or day.year in self.years
        return is_year and day.month in self.months and day.day in self._days(day.year, day.month)

    def _dates(self, start: date) -> Iterator[date]:
        """Yield the days from ``start`` on which it fires, until they repeat."""
        years = range(start.year, min(start.year + _LONGEST_WAIT, date.max.year))
        for year in years if self.years is None else sorted(self.years):
            for month in sorted(self.months):
                if (year, month) >= (start.year, start.month):
                    found = (date(year, month, day) for day in self._days(year, month))
                    yield from (day for day in found if day >= start)

    def _days(self, year: int, month: int) -> list[int]:
        by_day = {day for rule in self.days if (day := day_of(rule, year, month))}
        by_weekday = {day for rule in self.weekdays for day in days_of(rule, year, month)}
        return sorted(by_day | by_weekday if self.is_either_day else by_day & by_weekday)


@lru_cache(maxsize=1024)
def _times(cron: Cron) -> tuple[int, ...]:
    """Return the times of day at which it fires, in seconds since midnight."""
    return tuple(
        hour * 3600 + minute * 60 + second
        for hour in sorted(cron.hours)
        for minute in sorted(cron.minutes)
        for second in sorted(cron.seconds)
    )
