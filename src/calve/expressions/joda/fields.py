"""The fields and units of a date-time, over local milliseconds."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from calve.expressions.java import INT_MAX, INT_MIN, LONG_MIN, wrap
from calve.expressions.joda import gregorian
from calve.expressions.joda.errors import JodaError, int_of, out_of_range, product_of, sum_of
from calve.expressions.joda.gregorian import (
    CENTURY,
    DAY,
    HALFDAY,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEK,
    YEAR,
    YEAR_MAX,
    YEAR_MIN,
)

FOREVER = 2**70
"""A length greater than that of any unit."""


class DateField(StrEnum):
    """A field, by Joda-Time's name."""

    ERA = "era"
    CENTURY_OF_ERA = "centuryOfEra"
    YEAR_OF_ERA = "yearOfEra"
    YEAR_OF_CENTURY = "yearOfCentury"
    YEAR = "year"
    WEEKYEAR = "weekyear"
    MONTH_OF_YEAR = "monthOfYear"
    WEEK_OF_WEEKYEAR = "weekOfWeekyear"
    DAY_OF_YEAR = "dayOfYear"
    DAY_OF_MONTH = "dayOfMonth"
    DAY_OF_WEEK = "dayOfWeek"
    HALFDAY_OF_DAY = "halfdayOfDay"
    HOUR_OF_HALFDAY = "hourOfHalfday"
    CLOCKHOUR_OF_HALFDAY = "clockhourOfHalfday"
    CLOCKHOUR_OF_DAY = "clockhourOfDay"
    HOUR_OF_DAY = "hourOfDay"
    MINUTE_OF_DAY = "minuteOfDay"
    MINUTE_OF_HOUR = "minuteOfHour"
    SECOND_OF_DAY = "secondOfDay"
    SECOND_OF_MINUTE = "secondOfMinute"
    MILLIS_OF_DAY = "millisOfDay"
    MILLIS_OF_SECOND = "millisOfSecond"


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of a field: its unit and span, its range, and how to get, set and round it."""

    unit: int
    """The average length of its unit, in milliseconds."""
    span: int
    """The average length after which it starts again, in milliseconds."""
    lowest: int
    highest: Callable[[int], int]
    get: Callable[[int], int]
    put: Callable[[int, int], int]
    """Sets the value; raises if it is out of range."""
    floor: Callable[[int], int]
    """Returns the first millisecond with the same value of this field and of all greater ones."""


def put_year_to_parse(local: int, year: int) -> int:
    """Set the year; the two years that are only partly in range are allowed."""
    return gregorian.with_year(local, checked("year", year, YEAR_MIN - 1, YEAR_MAX + 1))


def checked(name: str, value: int, lowest: int, highest: int) -> int:
    """Return a value, or raise if it is out of range."""
    if lowest <= value <= highest:
        return value
    raise out_of_range(name, value, lowest, highest)


def floor_to(unit: int) -> Callable[[int], int]:
    """Return a function that rounds local milliseconds down to a unit."""
    return lambda local: wrap(local - local % unit)


def counter(field: DateField, unit: int, span: int) -> Rule:
    """Return the rule of a field of the time of day."""
    count = span // unit

    def put(local: int, value: int) -> int:
        checked(field, value, 0, count - 1)
        return wrap(local + (value - local // unit % count) * unit)

    return Rule(unit, span, 0, lambda _: count - 1, lambda local: local // unit % count, put, floor_to(unit))


def _clock(field: DateField, hours: Rule) -> Rule:
    """Return the rule of an hour as a clock shows it: 12 or 24 instead of 0."""
    count = hours.highest(0) + 1

    def put(local: int, value: int) -> int:
        return hours.put(local, checked(field, value, 1, count) % count)

    return Rule(hours.unit, hours.span, 1, lambda _: count, lambda local: hours.get(local) or count, put, hours.floor)


def _day(field: DateField, span: int, highest: Callable[[int], int], get: Callable[[int], int]) -> Rule:
    """Return the rule of a field that counts days."""

    def put(local: int, value: int) -> int:
        checked(field, value, 1, highest(local))
        return wrap(local + (value - get(local)) * DAY)

    return Rule(DAY, span, 1, highest, get, put, floor_to(DAY))


def _days_in_month_at(local: int) -> int:
    year, month, _ = gregorian.date_of(local)
    return gregorian.days_in_month(year, month)


def _put_month(local: int, month: int) -> int:
    checked(DateField.MONTH_OF_YEAR, month, 1, 12)
    return gregorian.with_month(local, gregorian.year_of(local), month)


def _floor_month(local: int) -> int:
    year, month, _ = gregorian.date_of(local)
    return wrap(gregorian.day_number(year, month, 1) * DAY)


def _put_week(local: int, week: int) -> int:
    # Joda-Time looks at the year only for a week that not every year has.
    checked(DateField.WEEK_OF_WEEKYEAR, week, 1, 52 if week <= 52 else _weeks_at(local))
    return wrap(local + (week - gregorian.week_of(local)) * WEEK)


def _weeks_at(local: int) -> int:
    return gregorian.weeks_in_year(gregorian.weekyear_of(local))


def _floor_week(local: int) -> int:
    return wrap(local - (local + 3 * DAY) % WEEK)


def _put_year(local: int, year: int) -> int:
    return gregorian.with_year(local, checked(DateField.YEAR, year, YEAR_MIN, YEAR_MAX))


def _floor_year(local: int) -> int:
    return gregorian.start_of_year(gregorian.year_of(local))


def _put_weekyear(local: int, weekyear: int) -> int:
    # Joda-Time checks the absolute value, and the least int has none: its error names that int.
    checked(DateField.WEEKYEAR, weekyear if weekyear == INT_MIN else abs(weekyear), YEAR_MIN, YEAR_MAX)
    return gregorian.with_weekyear(local, weekyear)


def _floor_weekyear(local: int) -> int:
    monday = _floor_week(local)
    return wrap(monday - (gregorian.week_of(monday) - 1) * WEEK)


def _year_of_era(local: int) -> int:
    year = gregorian.year_of(local)
    return year if year > 0 else 1 - year


def _put_year_of_era(local: int, value: int) -> int:
    checked(DateField.YEAR_OF_ERA, value, 1, YEAR_MAX)
    return _put_year(local, value if gregorian.year_of(local) > 0 else 1 - value)


def _unsigned_year(local: int) -> int:
    """Return the year without its sign, which centuries are computed from, unlike the year of the era."""
    return abs(gregorian.year_of(local))


def _put_unsigned_year(local: int, value: int) -> int:
    checked(DateField.YEAR_OF_ERA, value, 0, YEAR_MAX)
    return _put_year(local, value if gregorian.year_of(local) >= 0 else -value)


def _put_century(local: int, value: int) -> int:
    checked(DateField.CENTURY_OF_ERA, value, 0, YEAR_MAX // 100)
    return _put_unsigned_year(local, value * 100 + _unsigned_year(local) % 100)


def _put_year_of_century(local: int, value: int) -> int:
    checked(DateField.YEAR_OF_CENTURY, value, 0, 99)
    return _put_unsigned_year(local, _unsigned_year(local) // 100 * 100 + value)


def _floor_century(local: int) -> int:
    return _floor_year(_put_unsigned_year(local, _unsigned_year(local) // 100 * 100))


def _era(local: int) -> int:
    return 1 if gregorian.year_of(local) > 0 else 0


def _put_era(local: int, value: int) -> int:
    if checked(DateField.ERA, value, 0, 1) == _era(local):
        return local
    return gregorian.with_year(local, -gregorian.year_of(local))


def _floor_era(local: int) -> int:
    return gregorian.day_number(1, 1, 1) * DAY if _era(local) else LONG_MIN


_HOUR_OF_DAY = counter(DateField.HOUR_OF_DAY, HOUR, DAY)
_HOUR_OF_HALFDAY = counter(DateField.HOUR_OF_HALFDAY, HOUR, HALFDAY)

RULES: dict[DateField, Rule] = {
    DateField.ERA: Rule(FOREVER, FOREVER, 0, lambda _: 1, _era, _put_era, _floor_era),
    DateField.CENTURY_OF_ERA: Rule(
        CENTURY,
        FOREVER,
        0,
        lambda _: YEAR_MAX // 100,
        lambda local: _unsigned_year(local) // 100,
        _put_century,
        _floor_century,
    ),
    DateField.YEAR_OF_ERA: Rule(YEAR, FOREVER, 1, lambda _: YEAR_MAX, _year_of_era, _put_year_of_era, _floor_year),
    DateField.YEAR_OF_CENTURY: Rule(
        YEAR, CENTURY, 0, lambda _: 99, lambda local: _unsigned_year(local) % 100, _put_year_of_century, _floor_year
    ),
    DateField.YEAR: Rule(YEAR, FOREVER, YEAR_MIN, lambda _: YEAR_MAX, gregorian.year_of, _put_year, _floor_year),
    DateField.WEEKYEAR: Rule(
        YEAR, FOREVER, YEAR_MIN, lambda _: YEAR_MAX, gregorian.weekyear_of, _put_weekyear, _floor_weekyear
    ),
    DateField.MONTH_OF_YEAR: Rule(
        MONTH, YEAR, 1, lambda _: 12, lambda local: gregorian.date_of(local)[1], _put_month, _floor_month
    ),
    DateField.WEEK_OF_WEEKYEAR: Rule(WEEK, YEAR, 1, _weeks_at, gregorian.week_of, _put_week, _floor_week),
    DateField.DAY_OF_YEAR: _day(
        DateField.DAY_OF_YEAR,
        YEAR,
        lambda local: gregorian.days_in_year(gregorian.year_of(local)),
        gregorian.day_of_year,
    ),
    DateField.DAY_OF_MONTH: _day(
        DateField.DAY_OF_MONTH, MONTH, _days_in_month_at, lambda local: gregorian.date_of(local)[2]
    ),
    DateField.DAY_OF_WEEK: _day(DateField.DAY_OF_WEEK, WEEK, lambda _: 7, gregorian.day_of_week),
    DateField.HALFDAY_OF_DAY: counter(DateField.HALFDAY_OF_DAY, HALFDAY, DAY),
    DateField.HOUR_OF_HALFDAY: _HOUR_OF_HALFDAY,
    DateField.CLOCKHOUR_OF_HALFDAY: _clock(DateField.CLOCKHOUR_OF_HALFDAY, _HOUR_OF_HALFDAY),
    DateField.CLOCKHOUR_OF_DAY: _clock(DateField.CLOCKHOUR_OF_DAY, _HOUR_OF_DAY),
    DateField.HOUR_OF_DAY: _HOUR_OF_DAY,
    DateField.MINUTE_OF_DAY: counter(DateField.MINUTE_OF_DAY, MINUTE, DAY),
    DateField.MINUTE_OF_HOUR: counter(DateField.MINUTE_OF_HOUR, MINUTE, HOUR),
    DateField.SECOND_OF_DAY: counter(DateField.SECOND_OF_DAY, SECOND, DAY),
    DateField.SECOND_OF_MINUTE: counter(DateField.SECOND_OF_MINUTE, SECOND, MINUTE),
    DateField.MILLIS_OF_DAY: counter(DateField.MILLIS_OF_DAY, 1, DAY),
    DateField.MILLIS_OF_SECOND: counter(DateField.MILLIS_OF_SECOND, 1, SECOND),
}


class Unit(StrEnum):
    """A unit, by Joda-Time's name."""

    YEARS = "years"
    MONTHS = "months"
    WEEKS = "weeks"
    DAYS = "days"
    HOURS = "hours"
    MINUTES = "minutes"
    SECONDS = "seconds"
    MILLIS = "millis"

    @property
    def is_of_clock(self) -> bool:
        """Return whether it is elapsed time, not a change of the date."""
        return self in _OF_CLOCK


_OF_CLOCK = frozenset({Unit.HOURS, Unit.MINUTES, Unit.SECONDS, Unit.MILLIS})


_LENGTHS = {
    Unit.WEEKS: gregorian.WEEK,
    Unit.DAYS: gregorian.DAY,
    Unit.HOURS: gregorian.HOUR,
    Unit.MINUTES: gregorian.MINUTE,
    Unit.SECONDS: gregorian.SECOND,
    Unit.MILLIS: 1,
}


def moved_by(local: int, unit: Unit, amount: int) -> int:
    """Add an amount of a unit to local milliseconds; a negative amount subtracts."""
    if unit is Unit.YEARS:
        return _add_years(local, amount)
    if unit is Unit.MONTHS:
        return _add_months(local, amount)
    return sum_of(local, product_of(amount, _LENGTHS[unit]))


def _add_years(local: int, amount: int) -> int:
    year = gregorian.year_of(local)
    total = year + int_of(amount)
    if not INT_MIN <= total <= INT_MAX:
        raise JodaError("ArithmeticException", f"The calculation caused an overflow: {year} + {amount}")
    return RULES[DateField.YEAR].put(local, total)


def _add_months(local: int, amount: int) -> int:
    this_year, this_month, _ = gregorian.date_of(local)
    years, month = divmod(this_month - 1 + amount, 12)
    year = this_year + years
    # Joda-Time checks the year only if the amount is not an int, and lets it wrap if it is.
    if not INT_MIN <= amount <= INT_MAX and not YEAR_MIN <= year <= YEAR_MAX:
        raise JodaError("IllegalArgumentException", f"Magnitude of add amount is too large: {amount}")
    return gregorian.with_month(local, year, month + 1)
