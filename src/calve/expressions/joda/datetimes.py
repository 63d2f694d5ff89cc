"""Date-times: an instant in a zone, and all that expressions do with it. Pure."""

from dataclasses import dataclass
from typing import Self

from calve.expressions.joda import gregorian, units
from calve.expressions.joda.errors import InstantMissing
from calve.expressions.joda.fields import RULES, Field, checked
from calve.expressions.joda.gregorian import DAY, HOUR, MINUTE, SECOND
from calve.expressions.joda.iso import instant_in, iso_text
from calve.expressions.joda.longs import LONG_MAX, LONG_MIN, difference_of, int_of, quotient_of, wrapped
from calve.expressions.joda.texts import text_of
from calve.expressions.joda.units import Unit
from calve.expressions.joda.zones import UTC, Zone


@dataclass(frozen=True, slots=True)
class DateTime:
    """An instant, in milliseconds since 1970 UTC, and the zone to see it in."""

    millis: int
    zone: Zone = UTC

    def __post_init__(self) -> None:
        """See the first and the last millisecond there are in UTC: elsewhere their local time is out of reach."""
        if self.millis in {LONG_MIN, LONG_MAX}:
            object.__setattr__(self, "zone", UTC)

    @classmethod
    def of(
        cls, year: int, month: int, day: int, hour: int, minute: int, second: int, milli: int, zone: Zone = UTC
    ) -> Self:
        """Return the date-time when clocks of a zone show a date and time: the earlier of two, or raise if never."""
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

    def get(self, field: Field) -> int:
        """Return the value of a field."""
        return RULES[field].get(self.zone.to_local(self.millis))

    def with_field(self, field: Field, value: int) -> "DateTime":
        """Return this with another value of a field; raise if there is no such value or clocks never show it."""
        local = RULES[field].put(self.zone.to_local(self.millis), value)
        changed = self._at_local(local)
        if self.zone != UTC and changed.get(field) != value:
            message = f"Value {value} for {field} is not supported: {self.zone.gap_at(local)}"
            raise InstantMissing("IllegalFieldValueException", message)
        return changed

    def plus(self, unit: Unit, amount: int) -> "DateTime":
        """Return this moved by an amount of a unit: of time that passes, or of dates at the same time of day."""
        if amount == 0:
            return self
        local = units.add(self.zone.to_local(self.millis), unit, amount)
        if unit.is_of_clock:
            # Time passes with the offset that it started with.
            return DateTime(wrapped(local - self.zone.offset_at(self.millis)), self.zone)
        return DateTime(self.zone.instant_at_offset(local, self.zone.offset_at_local(local)), self.zone)

    def at_start_of_day(self) -> "DateTime":
        """Return the first instant of the local day, which is not midnight where clocks skip it."""
        local = self.zone.to_local(self.millis)
        # Back from six o'clock, which hardly any clock has ever skipped or shown twice.
        morning = self.zone.nearest_instant_of(wrapped(local - local % DAY + 6 * HOUR))
        start = self.zone.to_local(morning)
        start = wrapped(start - start % DAY)
        midnight = DateTime(self.zone.nearest_instant_of(start, near=morning), self.zone)
        return DateTime(midnight.zone.earlier_instant(midnight.millis), midnight.zone)

    def property(self, field: Field) -> "Property":
        """Return a field together with this date-time."""
        return Property(self, field)

    def _at_local(self, local: int) -> "DateTime":
        """Return this at another local time, with the same offset if clocks show it twice."""
        return DateTime(self.zone.nearest_instant_of(local, near=self.millis), self.zone)


@dataclass(frozen=True, slots=True)
class Property:
    """A field of a date-time."""

    datetime: DateTime
    field: Field

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
