"""Time zones: offsets at instants, the instants of local times, and the text of ids, offsets and names."""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files

from calve.expressions.java import LONG_MAX, LONG_MIN, wrap
from calve.expressions.joda import tzif
from calve.expressions.joda.errors import InstantMissing, JodaError, invalid_format, is_long
from calve.expressions.joda.gregorian import HOUR, MINUTE, SECOND, printed_local
from calve.expressions.joda.tzif import Period, Yearly, YearlyChange


def printed_offset(offset: int, *, colons: bool = True, at_most_minutes: bool = False) -> str:
    """Write an offset with hours and minutes, and with seconds and milliseconds where it has some."""
    sign = "+" if offset >= 0 else "-"
    hours, rest = divmod(abs(offset), HOUR)
    minutes, rest = divmod(rest, MINUTE)
    text = f"{sign}{hours:02}{':' if colons else ''}{minutes:02}"
    if at_most_minutes or not rest:
        return text
    seconds, millis = divmod(rest, SECOND)
    return f"{text}:{seconds:02}" + (f".{millis:03}" if millis else "")


def offset_in(text: str, position: int) -> tuple[int, int]:
    """Read an offset from a text; return where it ends and what it is.

    A negative end is the complement of the position where the text is invalid.
    """
    sign = text[position : position + 1]
    if len(text) - position <= 1 or sign not in {"-", "+"}:
        return ~position, 0
    end, offset = _unsigned_offset(text, position + 1)
    return end, -offset if sign == "-" else offset


def _unsigned_offset(text: str, position: int) -> tuple[int, int]:
    hours = _two_digits(text, position, 23)
    if hours is None:
        return ~position, 0
    offset = hours * HOUR
    position += 2
    colons = text[position : position + 1] == ":"
    for unit in (MINUTE, SECOND):
        start = _next_part(text, position, ":" if colons else "")
        if start is None:
            return position, offset
        value = _two_digits(text, start, 59)
        if value is None:
            return ~start, 0
        offset += value * unit
        position = start + 2
    start = _next_part(text, position, ".," if colons else "")
    if start is None:
        return position, offset
    count = _digits(text, start, 3)
    if count == 0:
        return ~start, 0
    return start + count, offset + int(text[start : start + count].ljust(3, "0"))


def _next_part(text: str, position: int, separators: str) -> int | None:
    """Return where the next part of an offset starts, None if there is none.

    With separators one of them announces a part, else a digit does.
    """
    if separators:
        return position + 1 if text[position : position + 1] and text[position] in separators else None
    return position if _digits(text, position, 1) else None


def _two_digits(text: str, position: int, highest: int) -> int | None:
    if _digits(text, position, 2) < 2:
        return None
    value = int(text[position : position + 2])
    return value if value <= highest else None


def _digits(text: str, position: int, at_most: int) -> int:
    """Return the number of digits at a position."""
    count = 0
    for character in text[position : position + at_most]:
        if not "0" <= character <= "9":
            break
        count += 1
    return count


def parsed_offset(text: str) -> int:
    """Parse a whole text as an offset, or raise."""
    end, offset = offset_in(text, 0)
    if end == len(text):
        return offset
    raise invalid_format(text, max(end, ~end))


Names = tuple[str, str]
"""A name and its abbreviation."""


def names_of(zone_id: str, *, is_daylight: bool) -> Names | None:
    """Return the name and the abbreviation of a zone's time, None if it has none."""
    found = _names().get(zone_id.removeprefix("Etc/"))
    return found and found[is_daylight]


@cache
def _names() -> dict[str, tuple[Names, Names]]:
    table = {}
    for line in lines_of("zone_names.txt"):
        standard, standard_short, daylight, daylight_short, zones = line.split("|")
        names = ((standard, standard_short), (daylight, daylight_short))
        table.update(dict.fromkeys(zones.split(), names))
    return table


def lines_of(name: str) -> list[str]:
    """Return the lines of a table that comes with this package, without comments."""
    text = files("calve.expressions.joda").joinpath("data", name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if not line.startswith("#")]


# Java's longs wrap here; a local time this far from 1970 whose instant has the other sign did.
_NEAR_ZERO = 7 * 24 * HOUR


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone, identified by its id."""

    id: str
    _starts: tuple[int, ...] = field(repr=False, compare=False)
    _periods: tuple[Period, ...] = field(repr=False, compare=False)
    _yearly: Yearly | None = field(repr=False, compare=False)

    def offset_at(self, millis: int) -> int:
        """Return how many milliseconds clocks are ahead of UTC at an instant."""
        return self._period_at(millis).offset

    def name_at(self, millis: int) -> str:
        """Return the name of the time at an instant, such as Pacific Standard Time."""
        return self._names_at(millis)[0]

    def short_name_at(self, millis: int) -> str:
        """Return the abbreviation of the time at an instant, such as PST."""
        return self._names_at(millis)[1]

    def to_local(self, millis: int) -> int:
        """Return the local time of an instant."""
        local = millis + self.offset_at(millis)
        if is_long(local):
            return local
        raise JodaError("ArithmeticException", "Adding time zone offset caused overflow")

    def instant_of(self, local: int) -> int:
        """Return the instant of a local time: the earlier of two; raise if it is in a gap."""
        if local in {LONG_MIN, LONG_MAX}:
            return local
        offset = self.offset_at_local(local)
        millis = wrap(local - offset)
        if local > _NEAR_ZERO and millis < 0:
            return LONG_MAX
        if local < -_NEAR_ZERO and millis > 0:
            return LONG_MIN
        if self.offset_at(millis) != offset:
            raise self.gap_at(local)
        return millis

    def nearest_instant_of(self, local: int, near: int | None = None) -> int:
        """Return the instant of a local time; in a gap, the instant that is later by the length of the gap.

        Of two instants it is the one with the offset at ``near``.
        """
        if near is not None:
            offset = self.offset_at(near)
            millis = wrap(local - offset)
            if self.offset_at(millis) == offset:
                return millis
        first = self.offset_at(local)
        offset = self.offset_at(wrap(local - first))
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
        """Return the offset at a local time: the earlier of two; in a gap, the one after it."""
        first = self.offset_at(local)
        millis = wrap(local - first)
        offset = self.offset_at(millis)
        if offset != first:
            return first if first < offset and self._is_gap(local, first, offset) else offset
        if first >= 0:
            before = self.previous_transition(millis)
            # The difference wraps in the last years, and they have the offset before the last change then.
            if before < millis and wrap(millis - before) <= (earlier := self.offset_at(before)) - first:
                return earlier
        return offset

    def _is_gap(self, local: int, first: int, second: int) -> bool:
        """Return whether a transition is between the instants of a local time at two offsets."""
        return self._transition_after(wrap(local - first)) != self._transition_after(wrap(local - second))

    def _transition_after(self, millis: int) -> int:
        following = self.next_transition(millis)
        return LONG_MAX if following == millis else following

    def earlier_instant(self, millis: int) -> int:
        """Return the earlier of two instants with the same local time, given either."""
        # Joda-Time looks at three hours before and after, enough for every known overlap.
        before = wrap(millis - 3 * HOUR)
        overlap = self.offset_at(before) - self.offset_at(wrap(millis + 3 * HOUR))
        change = self.next_transition(before)
        return millis - overlap if overlap > 0 and change <= millis < change + overlap else millis

    def next_transition(self, millis: int) -> int:
        """Return the next transition after an instant, or that instant if there is none."""
        index = bisect_right(self._starts, millis)
        if index < len(self._starts):
            return self._starts[index]
        return tzif.start_after(self._yearly, millis) if self._yearly else millis

    def previous_transition(self, millis: int) -> int:
        """Return the millisecond before the last transition, or the given one if there is none."""
        index = bisect_right(self._starts, millis)
        if index == len(self._starts) and self._yearly:
            return tzif.start_until(self._yearly, millis) - 1
        start = self._starts[index - 1]
        return start - 1 if start > LONG_MIN else millis

    def gap_at(self, local: int) -> InstantMissing:
        """Return the error of a local time in a gap."""
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
    """Return the zone of a fixed offset."""
    if offset == 0 and zone_id is None:
        return UTC
    period = Period(LONG_MIN, offset, is_daylight=False)
    return Zone(zone_id or printed_offset(offset), (LONG_MIN,), (period,), None)


UTC = fixed_zone(0, "UTC")

_ALSO_UTC = frozenset({"UTC", "UT", "Z"})
_PREFIXES_OF_OFFSETS = ("UTC", "GMT", "UT", "")


def zone_for_id(zone_id: str) -> Zone:
    """Return the zone of an id: a name of the tz database, UTC, ±hh:mm or UTC±hh:mm; raise if it is unknown."""
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
