"""The proleptic Gregorian calendar over local milliseconds, in the years that fit in a long. Pure.

Local milliseconds are what a clock shows, counted from 1970-01-01T00:00 on that clock.
"""

import calendar
from datetime import date

from calve.expressions.java import LONG_MAX, LONG_MIN, wrap
from calve.expressions.joda.errors import out_of_range

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
HALFDAY = 12 * HOUR
DAY = 24 * HOUR
WEEK = 7 * DAY
# Average lengths: only their order and ratio to shorter units matter.
MONTH = 2_629_746_000
YEAR = 31_556_952_000
CENTURY = 100 * YEAR

YEAR_MIN = -292_275_054
YEAR_MAX = 292_278_993

_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAYS_IN_400_YEARS = 146_097
_DAY_OF_1970 = date(1970, 1, 1).toordinal()
_FIRST_DAY_END = LONG_MIN + DAY - 1


def days_in_year(year: int) -> int:
    """Return 365 or 366."""
    return 366 if calendar.isleap(year) else 365


def days_in_month(year: int, month: int) -> int:
    """Return how many days a month has."""
    return 29 if month == 2 and calendar.isleap(year) else _DAYS_IN_MONTH[month - 1]


# The calendar repeats after 400 years, so a year that Python's dates do not reach is looked up in the first cycle.


def day_number(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date."""
    cycle, place = divmod(year - 1, 400)
    return cycle * _DAYS_IN_400_YEARS + date(place + 1, month, 1).toordinal() + day - 1 - _DAY_OF_1970


def date_of_day(number: int) -> tuple[int, int, int]:
    """Return year, month and day of the month, given the days since 1970-01-01."""
    cycle, place = divmod(number + _DAY_OF_1970 - 1, _DAYS_IN_400_YEARS)
    found = date.fromordinal(place + 1)
    return cycle * 400 + found.year, found.month, found.day


def date_of(local: int) -> tuple[int, int, int]:
    """Return year, month and day of the month."""
    return date_of_day(local // DAY)


def year_of(local: int) -> int:
    """Return the year; the one before year 1 is year 0."""
    return date_of_day(local // DAY)[0]


def day_of_year(local: int) -> int:
    """Return the day of the year, from 1."""
    number = local // DAY
    return number - day_number(date_of_day(number)[0], 1, 1) + 1


def day_of_week(local: int) -> int:
    """Return the day of the week, from 1, Monday, to 7, Sunday."""
    # Joda-Time goes back almost a day to round down, which wraps on the very first one.
    number = local // DAY if local >= _FIRST_DAY_END else wrap(local - DAY + 1) // DAY
    return (number + 3) % 7 + 1


def with_date(local: int, year: int, month: int, day: int) -> int:
    """Return the same time of day on another date."""
    return wrap(day_number(year, month, day) * DAY + local % DAY)


def with_month(local: int, year: int, month: int) -> int:
    """Return the same day and time in another month, its last day if it has no such day."""
    day = min(date_of(local)[2], days_in_month(year, month))
    return with_date(local, year, month, day)


def with_year(local: int, year: int) -> int:
    """Return the same day and time in another year, 28 February where it has no 29."""
    return with_month(local, year, date_of(local)[1])


def start_of_year(year: int) -> int:
    """Return the first millisecond of a year, wrapped like a long where the year starts out of reach."""
    return wrap(day_number(year, 1, 1) * DAY)


def start_of_weekyear(weekyear: int) -> int:
    """Return the first millisecond of the Monday that starts the first ISO week of a year."""
    january_1 = start_of_year(weekyear)
    weekday = day_of_week(january_1)
    return wrap(january_1 + (8 - weekday if weekday > 4 else 1 - weekday) * DAY)


def weeks_in_year(weekyear: int) -> int:
    """Return 52 or 53."""
    return wrap(start_of_weekyear(weekyear + 1) - start_of_weekyear(weekyear)) // WEEK


def week_of(local: int) -> int:
    """Return the ISO week of its weekyear, from 1."""
    # Where the year before or after is out of reach, the comparisons go wrong just as Joda-Time's do.
    year = year_of(local)
    first = start_of_weekyear(year)
    if local < first:
        return weeks_in_year(year - 1)
    return 1 if local >= start_of_weekyear(year + 1) else (local - first) // WEEK + 1


def weekyear_of(local: int) -> int:
    """Return the year that the ISO week belongs to."""
    week = week_of(local)
    if week == 1:
        return year_of(wrap(local + WEEK))
    return year_of(wrap(local - 2 * WEEK)) if week > 51 else year_of(local)


def with_weekyear(local: int, weekyear: int) -> int:
    """Return the same week, day of the week and time in another weekyear, week 52 if it has no 53."""
    week = min(week_of(local), weeks_in_year(weekyear_of(local)), weeks_in_year(weekyear))
    near = with_year(local, weekyear)
    near_weekyear = weekyear_of(near)
    near = wrap(near + ((near_weekyear < weekyear) - (near_weekyear > weekyear)) * WEEK)
    near = wrap(near + (week - week_of(near)) * WEEK)
    return wrap(near + (day_of_week(local) - day_of_week(near)) * DAY)


def local_of(year: int, month: int, day: int, millis_of_day: int) -> int:
    """Return the local milliseconds of a date and time, clamped to the range of a long.

    The years that are only partly in this range are accepted, too.
    """
    if not YEAR_MIN - 1 <= year <= YEAR_MAX + 1:
        raise out_of_range("year", year, YEAR_MIN - 1, YEAR_MAX + 1)
    if not 1 <= month <= 12:
        raise out_of_range("monthOfYear", month, 1, 12)
    midnight = day_number(year, month, day) * DAY
    last = days_in_month(year, month)
    # Joda-Time counts back from the next day where midnight is out of reach.
    wanted = day + 1 if midnight < LONG_MIN and 1 <= day <= last else day
    if not 1 <= wanted <= last:
        raise out_of_range("dayOfMonth", wanted, 1, last, f": year: {year} month: {month}")
    return max(LONG_MIN, min(LONG_MAX, midnight + millis_of_day))


def printed_local(local: int) -> str:
    """Write local milliseconds as yyyy-MM-ddTHH:mm:ss.SSS."""
    year, month, day = date_of(local)
    return f"{padded(year, 4)}-{month:02}-{day:02}T{printed_time(local % DAY)}"


def printed_time(millis_of_day: int) -> str:
    """Write a time of day as HH:mm:ss.SSS."""
    seconds, millis = divmod(millis_of_day, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour:02}:{minute:02}:{second:02}.{millis:03}"


def padded(value: int, digits: int) -> str:
    """Write a number with leading zeros; the sign does not count as a digit."""
    return f"{value:0{digits}}" if value >= 0 else f"-{-value:0{digits}}"
