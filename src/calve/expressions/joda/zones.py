"""Time zones: offsets at instants, and the instants of local times. Pure but for reading their rules once."""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache, lru_cache

from calve.expressions.joda import tzif
from calve.expressions.joda.errors import InstantMissing, JodaError
from calve.expressions.joda.gregorian import HOUR, printed_local
from calve.expressions.joda.longs import LONG_MAX, LONG_MIN, is_long, wrapped
from calve.expressions.joda.offsets import parsed_offset, printed_offset
from calve.expressions.joda.tzif import Period, Yearly, YearlyChange
from calve.expressions.joda.zone_names import lines_of, names_of

# Java's longs wrap here; a local time this far from 1970 whose instant has the other sign did.
_NEAR_ZERO = 7 * 24 * HOUR


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone; its id says which."""

    id: str
    _starts: tuple[int, ...] = field(repr=False, compare=False)
    _periods: tuple[Period, ...] = field(repr=False, compare=False)
    _yearly: Yearly | None = field(repr=False, compare=False)

    def offset_at(self, millis: int) -> int:
        """Return how many milliseconds clocks are ahead of UTC at an instant."""
        return self._period_at(millis).offset

    def name_at(self, millis: int) -> str:
        """Return what people call the time at an instant, such as Pacific Standard Time."""
        return self._names_at(millis)[0]

    def short_name_at(self, millis: int) -> str:
        """Return how people abbreviate the time at an instant, such as PST."""
        return self._names_at(millis)[1]

    def to_local(self, millis: int) -> int:
        """Return what clocks show at an instant."""
        local = millis + self.offset_at(millis)
        if is_long(local):
            return local
        raise JodaError("ArithmeticException", "Adding time zone offset caused overflow")

    def instant_of(self, local: int) -> int:
        """Return the instant when clocks show a local time: the earlier of two, or raise where there is none."""
        if local in {LONG_MIN, LONG_MAX}:
            return local
        offset = self.offset_at_local(local)
        millis = wrapped(local - offset)
        if local > _NEAR_ZERO and millis < 0:
            return LONG_MAX
        if local < -_NEAR_ZERO and millis > 0:
            return LONG_MIN
        if self.offset_at(millis) != offset:
            raise self.gap_at(local)
        return millis

    def nearest_instant_of(self, local: int, near: int | None = None) -> int:
        """Return the instant when clocks show a local time, in a gap the one that is as much later as the gap is long.

        Of two instants it is the one with the offset that clocks have at ``near``.
        """
        if near is not None:
            offset = self.offset_at(near)
            millis = wrapped(local - offset)
            if self.offset_at(millis) == offset:
                return millis
        first = self.offset_at(local)
        offset = self.offset_at(wrapped(local - first))
        if offset != first and first < 0 and self._is_gap(local, first, offset):
            offset = first
        return self.instant_at_offset(local, offset)

    @staticmethod
    def instant_at_offset(local: int, offset: int) -> int:
        """Return the instant of a local time with an offset."""
        millis = local - offset
        if is_long(millis):
            return millis
        raise JodaError("ArithmeticException", "Subtracting time zone offset caused overflow")

    def offset_at_local(self, local: int) -> int:
        """Return the offset when clocks show a local time: the earlier of two, in a gap the one after it."""
        first = self.offset_at(local)
        millis = wrapped(local - first)
        offset = self.offset_at(millis)
        if offset != first:
            return first if first < offset and self._is_gap(local, first, offset) else offset
        if first >= 0:
            before = self.previous_transition(millis)
            # The difference wraps in the last years, and they have the offset before the last change then.
            if before < millis and wrapped(millis - before) <= (earlier := self.offset_at(before)) - first:
                return earlier
        return offset

    def _is_gap(self, local: int, first: int, second: int) -> bool:
        """Tell whether the instants of a local time by two offsets have a change of clocks between them."""
        return self._transition_after(wrapped(local - first)) != self._transition_after(wrapped(local - second))

    def _transition_after(self, millis: int) -> int:
        following = self.next_transition(millis)
        return LONG_MAX if following == millis else following

    def earlier_instant(self, millis: int) -> int:
        """Return the first of two instants at which clocks show the same, given any of them."""
        # Joda-Time looks three hours around, enough for every overlap there was.
        before = wrapped(millis - 3 * HOUR)
        overlap = self.offset_at(before) - self.offset_at(wrapped(millis + 3 * HOUR))
        change = self.next_transition(before)
        return millis - overlap if overlap > 0 and change <= millis < change + overlap else millis

    def next_transition(self, millis: int) -> int:
        """Return the first instant after another at which clocks change, that one itself if they never do."""
        index = bisect_right(self._starts, millis)
        if index < len(self._starts):
            return self._starts[index]
        return tzif.start_after(self._yearly, millis) if self._yearly else millis

    def previous_transition(self, millis: int) -> int:
        """Return the last instant before clocks changed last, the given one if they never did."""
        index = bisect_right(self._starts, millis)
        if index == len(self._starts) and self._yearly:
            return tzif.start_until(self._yearly, millis) - 1
        start = self._starts[index - 1]
        return start - 1 if start > LONG_MIN else millis

    def gap_at(self, local: int) -> InstantMissing:
        """Return the error of a local time that clocks never show."""
        return InstantMissing(
            "IllegalInstantException",
            "Illegal instant due to time zone offset transition (daylight savings time 'gap'): "
            f"{printed_local(local)} ({self.id})",
        )

    def _period_at(self, millis: int) -> Period | YearlyChange:
        index = bisect_right(self._starts, millis)
        if index == len(self._starts) and self._yearly:
            return tzif.change_at(self._yearly, millis)
        return self._periods[index - 1]

    def _names_at(self, millis: int) -> tuple[str, str]:
        period = self._period_at(millis)
        offset_text = printed_offset(period.offset)
        return names_of(self.id, is_daylight=period.is_daylight) or (offset_text, offset_text)


def fixed_zone(offset: int, zone_id: str | None = None) -> Zone:
    """Return the zone whose clocks are always as far ahead of UTC."""
    if offset == 0 and zone_id is None:
        return UTC
    period = Period(LONG_MIN, offset, is_daylight=False)
    return Zone(zone_id or printed_offset(offset), (LONG_MIN,), (period,), None)


UTC = fixed_zone(0, "UTC")

_ALSO_UTC = frozenset({"UTC", "UT", "Z"})
_PREFIXES_OF_OFFSETS = ("UTC", "GMT", "UT", "")


def zone_for_id(zone_id: str) -> Zone:
    """Return the zone of an id: a name of the tz database, UTC, ±hh:mm or UTC±hh:mm; raise if it is none."""
    if zone_id in _ALSO_UTC:
        return UTC
    if zone_id in available_ids():
        return _named_zone(_aliases().get(zone_id, zone_id))
    for prefix in _PREFIXES_OF_OFFSETS:
        rest = zone_id.removeprefix(prefix)
        if zone_id.startswith(prefix) and rest.startswith(("+", "-")):
            return fixed_zone(parsed_offset(rest))
    raise JodaError("IllegalArgumentException", f"The datetime zone id '{zone_id}' is not recognised")


@cache
def available_ids() -> frozenset[str]:
    """Return every name of the tz database."""
    # An id is looked up here before it becomes a path, so no id can name a file elsewhere.
    return tzif.known_ids()


@cache
def _aliases() -> dict[str, str]:
    table = {}
    for line in lines_of("aliases.txt"):
        zone_id, *aliases = line.split()
        table.update(dict.fromkeys(aliases, zone_id))
    return table


@lru_cache(maxsize=1024)  # more than there are names
def _named_zone(zone_id: str) -> Zone:
    rules = tzif.rules_of(zone_id)
    return Zone(zone_id, tuple(period.start for period in rules.periods), rules.periods, rules.yearly)
