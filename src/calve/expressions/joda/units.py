"""The units that are added to a date-time, over local milliseconds. Pure."""

from enum import StrEnum

from calve.expressions.joda import gregorian
from calve.expressions.joda.errors import JodaError
from calve.expressions.joda.fields import RULES, Field
from calve.expressions.joda.gregorian import YEAR_MAX, YEAR_MIN
from calve.expressions.joda.longs import INT_MAX, INT_MIN, int_of, product_of, sum_of


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
        """Tell whether it is time that passes, not dates that change."""
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


def add(local: int, unit: Unit, amount: int) -> int:
    """Add to local milliseconds; an amount below zero subtracts."""
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
    return RULES[Field.YEAR].put(local, total)


def _add_months(local: int, amount: int) -> int:
    this_year, this_month, _ = gregorian.date_of(local)
    years, month = divmod(this_month - 1 + amount, 12)
    year = this_year + years
    # Joda-Time checks the year only where the amount is no int, and lets it wrap where it is.
    if not INT_MIN <= amount <= INT_MAX and not YEAR_MIN <= year <= YEAR_MAX:
        raise JodaError("IllegalArgumentException", f"Magnitude of add amount is too large: {amount}")
    return gregorian.with_month(local, year, month + 1)
