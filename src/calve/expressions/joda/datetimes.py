"""Date-times: an instant in a zone, what expressions do with it, and its text in ISO 8601."""

from dataclasses import dataclass
from typing import Self

from calve.expressions.java import LONG_MAX, LONG_MIN, wrap
from calve.expressions.joda import gregorian
from calve.expressions.joda.elements import Element, Fraction, Literal, Number, Offset, printed, text_of
from calve.expressions.joda.errors import InstantMissing, difference_of, int_of, quotient_of
from calve.expressions.joda.fields import RULES, DateField, Unit, checked, moved_by
from calve.expressions.joda.gregorian import DAY, HOUR, MINUTE, SECOND
from calve.expressions.joda.parsers import Found, Parser, one_of, optional, parsed, sequence
from calve.expressions.joda.zones import UTC, Zone, fixed_zone

_YEAR = Number(DateField.YEAR, 4, 9, is_signed=True)
_MONTH = Number(DateField.MONTH_OF_YEAR, 2, 2)
_DAY = Number(DateField.DAY_OF_MONTH, 2, 2)
_HOUR = Number(DateField.HOUR_OF_DAY, 2, 2)
_MINUTE = Number(DateField.MINUTE_OF_HOUR, 2, 2)
_SECOND = Number(DateField.SECOND_OF_MINUTE, 2, 2)
_OFFSET = Offset(colons=True, zero="Z", at_most_minutes=False)
_DASH = Literal("-")
_COLON = Literal(":")
_T = Literal("T")

_PRINTED: tuple[Element, ...] = (
    *(_YEAR, _DASH, _MONTH, _DASH, _DAY, _T, _HOUR, _COLON, _MINUTE, _COLON, _SECOND),
    *(Literal("."), Fraction(SECOND, 3, 9), _OFFSET),
)


def _date() -> Parser:
    calendar_date = sequence(
        _YEAR.parse,
        optional(sequence(_DASH.parse, _MONTH.parse, optional(sequence(_DASH.parse, _DAY.parse)))),
    )
    week_date = sequence(
        Number(DateField.WEEKYEAR, 4, 9, is_signed=True).parse,
        Literal("-W").parse,
        Number(DateField.WEEK_OF_WEEKYEAR, 2, 2).parse,
        optional(sequence(_DASH.parse, Number(DateField.DAY_OF_WEEK, 1, 1).parse)),
    )
    ordinal_date = sequence(_YEAR.parse, _DASH.parse, Number(DateField.DAY_OF_YEAR, 3, 3).parse)
    return one_of(calendar_date, week_date, ordinal_date)


def _time() -> Parser:
    def fraction_of(unit: int) -> Parser:
        return sequence(one_of(Literal(".").parse, Literal(",").parse), Fraction(unit, 1, 9).parse)

    seconds = sequence(_COLON.parse, _SECOND.parse, optional(fraction_of(SECOND)))
    minutes = sequence(_COLON.parse, _MINUTE.parse, optional(seconds, fraction_of(MINUTE)))
    return sequence(_HOUR.parse, optional(minutes, fraction_of(HOUR)))


def _date_time() -> Parser:
    time, offset = _time(), optional(_OFFSET.parse)
    return one_of(
        sequence(_T.parse, time, offset),
        sequence(_date(), optional(sequence(_T.parse, optional(time), offset))),
    )


_PARSER = _date_time()


def iso_text(millis: int, zone: Zone) -> str:
    """Print an instant in a zone, such as 2021-03-14T01:30:00.000-08:00."""
    return printed(_PRINTED, millis, zone)


def instant_in(text: str, zone: Zone) -> tuple[int, Zone]:
    """Read an instant and the zone of its offset; without an offset it is local to a zone."""
    millis, found = parsed(_PARSER, text, zone)
    return millis, _zone_of(found)


def _zone_of(found: Found) -> Zone:
    return found.zone if found.offset is None else fixed_zone(found.offset)


@dataclass(frozen=True, slots=True)
class DateTime:
    """An instant, in milliseconds since 1970 UTC, and its time zone."""

    millis: int
    zone: Zone = UTC

    def __post_init__(self) -> None:
        """Use UTC for the first and the last millisecond: in other zones their local time would overflow."""
        if self.millis in {LONG_MIN, LONG_MAX}:
            object.__setattr__(self, "zone", UTC)

    @classmethod
    def of(
        cls, year: int, month: int, day: int, hour: int, minute: int, second: int, milli: int, zone: Zone = UTC
    ) -> Self:
        """Return the date-time of a local date and time: the earlier of two; raise if it is in a gap."""
        checked("hourOfDay", hour, 0, 23)
        checked("minuteOfHour", minute, 0, 59)
        checked("secondOfMinute", second, 0, 59)
        checked("millisOfSecond", milli, 0, 999)
        time = hour * HOUR + minute * MINUTE + second * SECOND + milli
        return cls(zone.instant_of(gregorian.local_of(year, month, day, time)), zone)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ISO 8601, in the zone of its offset, in UTC if it has none: ``DateTime.parse(text)``."""
        return cls(*instant_in(text, UTC))

    @classmethod
    def of_text(cls, text: str, zone: Zone = UTC) -> Self:
        """Read ISO 8601, in a zone whatever its offset: ``new DateTime(text, zone)``."""
        return cls(instant_in(text, zone)[0], zone)

    def __str__(self) -> str:
        return iso_text(self.millis, self.zone)

    def in_zone(self, zone: Zone) -> "DateTime":
        """Return the same instant in another zone."""
        return DateTime(self.millis, zone)

    def get(self, field: DateField) -> int:
        """Return the value of a field."""
        return RULES[field].get(self.zone.to_local(self.millis))

    def with_field(self, field: DateField, value: int) -> "DateTime":
        """Return this with another value of a field; raise if the value is out of range or in a gap."""
        local = RULES[field].put(self.zone.to_local(self.millis), value)
        changed = self._at_local(local)
        if self.zone != UTC and changed.get(field) != value:
            message = f"Value {value} for {field} is not supported: {self.zone.gap_at(local)}"
            raise InstantMissing("IllegalFieldValueException", message)
        return changed

    def plus(self, unit: Unit, amount: int) -> "DateTime":
        """Add an amount of a unit: elapsed time, or dates at the same time of day."""
        if amount == 0:
            return self
        local = moved_by(self.zone.to_local(self.millis), unit, amount)
        if unit.is_of_clock:
            # Elapsed time is added at the offset of the start.
            return DateTime(wrap(local - self.zone.offset_at(self.millis)), self.zone)
        return DateTime(self.zone.instant_at_offset(local, self.zone.offset_at_local(local)), self.zone)

    def at_start_of_day(self) -> "DateTime":
        """Return the first instant of the local day, which is not midnight where clocks skip it."""
        local = self.zone.to_local(self.millis)
        # Joda-Time starts from six o'clock, which is hardly ever in a gap or an overlap.
        morning = self.zone.nearest_instant_of(wrap(local - local % DAY + 6 * HOUR))
        start = self.zone.to_local(morning)
        start = wrap(start - start % DAY)
        midnight = DateTime(self.zone.nearest_instant_of(start, near=morning), self.zone)
        return DateTime(midnight.zone.earlier_instant(midnight.millis), midnight.zone)

    def property(self, field: DateField) -> "Property":
        """Return a field together with this date-time."""
        return Property(self, field)

    def _at_local(self, local: int) -> "DateTime":
        """Return this at another local time, with the same offset if clocks show it twice."""
        return DateTime(self.zone.nearest_instant_of(local, near=self.millis), self.zone)


@dataclass(frozen=True, slots=True)
class Property:
    """A field of a date-time."""

    datetime: DateTime
    field: DateField

    def get(self) -> int:
        """Return the field's value."""
        return self.datetime.get(self.field)

    def as_text(self) -> str:
        """Return the field's value in US English."""
        return text_of(self.field, self.get())

    def with_minimum(self) -> DateTime:
        """Return the date-time with the least value of the field, after the gap if that is in one."""
        try:
            return self.datetime.with_field(self.field, RULES[self.field].lowest)
        except InstantMissing:
            zone = self.datetime.zone
            return DateTime(zone.next_transition(self.datetime.millis - DAY), zone)

    def with_maximum(self) -> DateTime:
        """Return the date-time with the greatest value of the field, before the gap if that is in one."""
        zone = self.datetime.zone
        highest = RULES[self.field].highest(zone.to_local(self.datetime.millis))
        try:
            return self.datetime.with_field(self.field, highest)
        except InstantMissing:
            return DateTime(zone.previous_transition(self.datetime.millis + DAY), zone)


def days_between(start: DateTime, end: DateTime) -> int:
    """Return the whole days from one date-time to another, by the clocks of the first one's zone."""
    zone = start.zone
    elapsed = difference_of(zone.to_local(end.millis), zone.to_local(start.millis))
    return int_of(quotient_of(elapsed, DAY))
