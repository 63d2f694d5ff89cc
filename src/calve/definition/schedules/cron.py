"""When a cron expression fires, right across changes of the clocks. Pure: time is an argument."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

from calve.definition.schedules.days import DayRule, WeekdayRule, day_of, days_of
from calve.definition.schedules.firing import first_after

_ALL_CALENDARS = range(2000, 2028)
"""Every pair of a weekday for 1 January and a leap day or none occurs in these years."""
_LONGEST_WAIT = 41
"""Years: 29 February on a given weekday may have to wait 40 years, over a century that is no leap year."""
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Cron:
    """The sets that the fields of an expression mean."""

    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[DayRule]
    months: frozenset[int]
    weekdays: frozenset[WeekdayRule]
    years: frozenset[int] | None = None
    """All of them if none."""
    is_either_day: bool = False
    """Whether a day that fits either field will do; otherwise it must fit both."""
    is_every_hour: bool = False
    """Whether the hour is a wildcard: such a schedule follows the clock, others mean a fixed time of the day."""

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the first firing after an instant, in UTC, or none if there is no more.

        Where the clocks go forward, a fixed time that is skipped fires at the first moment after the gap, and
        a wildcard hour does not fire for the hour that does not exist. Where the clocks go back, a fixed time
        fires the first time only, and a wildcard hour fires both times.
        """
        local = instant.astimezone(zone).date()
        for day in self._dates(local - _DAY):
            found = self._first(day, instant, zone)
            if found:
                # Around midnight a clock that goes back can make the next day begin before this one ends.
                following = self._first(day + _DAY, instant, zone) if self._is_on(day + _DAY) else None
                return min(found, following) if following else found
        return None

    def minimum_gap(self) -> timedelta | None:
        """Return the shortest time between two firings, changes of the clocks aside; none if it fires once at most."""
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
        """Return how many nights at least lie between two days on which it fires."""
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
        """Yield the days from ``start`` on which it fires, until none can follow that is not like one before."""
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
    """Return the times of a day at which it fires, as seconds since midnight."""
    return tuple(
        hour * 3600 + minute * 60 + second
        for hour in sorted(cron.hours)
        for minute in sorted(cron.minutes)
        for second in sorted(cron.seconds)
    )
