"""Which days of a month a schedule means. Pure."""

from calendar import monthrange
from dataclasses import dataclass
from datetime import date

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
    """Return the day of a month that a rule means, or none if the month has no such day."""
    last = monthrange(year, month)[1]
    match rule:
        case int() as day:
            return day if day <= last else None
        case LastDay(before):
            return last - before if before < last else None
    found = day_of(rule.day, year, month)
    return None if found is None else _nearest(found, year, month, last)


def days_of(rule: WeekdayRule, year: int, month: int) -> range:
    """Return the days of a month on which a weekday's rule falls."""
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
