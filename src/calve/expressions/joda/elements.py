"""The elements of date-time formats: each prints a piece of a text and reads it back."""

from dataclasses import dataclass
from functools import cache
from typing import Protocol

from calve.expressions.java import INT_MAX
from calve.expressions.joda.errors import JodaError, is_long
from calve.expressions.joda.fields import RULES, DateField, Rule, counter
from calve.expressions.joda.gregorian import padded
from calve.expressions.joda.parsers import Found
from calve.expressions.joda.zones import UTC, Zone, available_ids, offset_in, printed_offset, zone_for_id

_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_WORDS: dict[DateField, tuple[str, ...]] = {
    DateField.ERA: ("BC", "AD"),
    DateField.HALFDAY_OF_DAY: ("AM", "PM"),
    DateField.MONTH_OF_YEAR: _MONTHS,
    DateField.DAY_OF_WEEK: _DAYS,
}
_LONGEST_ABBREVIATION = 3


def text_of(field: DateField, value: int) -> str:
    """Return the name of a month, day, era or half of the day, else the number."""
    words = _WORDS.get(field)
    return words[value - RULES[field].lowest] if words else str(value)


def short_text_of(field: DateField, value: int) -> str:
    """Return the abbreviated name of a value."""
    return text_of(field, value)[:_LONGEST_ABBREVIATION]


def _spellings(field: DateField) -> dict[str, int]:
    """Return every accepted spelling of a field's words: long and short, as written, lower and upper case."""
    found: dict[str, int] = {}
    for value, word in enumerate(_WORDS[field], RULES[field].lowest):
        for text in (word, word[:_LONGEST_ABBREVIATION]):
            found |= dict.fromkeys((text, text.lower(), text.upper()), value)
    return found


SPELLINGS: dict[DateField, dict[str, int]] = {field: _spellings(field) for field in _WORDS}
SPELLINGS[DateField.ERA] |= {"BCE": 0, "bce": 0, "CE": 1, "ce": 1}


@dataclass(frozen=True, slots=True)
class Moment:
    """What to print: the local time, its offset and its zone."""

    local: int
    offset: int
    zone: Zone


class Element(Protocol):
    """A piece of a format."""

    def printed(self, moment: Moment) -> str:
        """Return its text."""
        ...

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Parse it: see ``Parser``."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """A text that stands for itself, read in any case."""

    text: str

    def printed(self, _moment: Moment) -> str:
        """Return the text."""
        return self.text

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read the text."""
        end = position + len(self.text)
        return (end if _folded(text[position:end]) == _folded(self.text) else ~position), found


def _folded(text: str) -> str:
    """Return a text as Java compares it in any case: character by character, so that ß is not SS."""
    if text.isascii():
        return text.lower()
    return "".join(map(_folded_character, text))


def _folded_character(character: str) -> str:
    upper = character.upper() if len(character.upper()) == 1 else character
    return upper.lower() if len(upper.lower()) == 1 else upper


@dataclass(frozen=True, slots=True)
class Number:
    """A field as a number."""

    field: DateField
    digits: int
    """The fewest digits to print."""
    most_digits: int
    """The most digits to parse, without the sign."""
    is_signed: bool = False

    def printed(self, moment: Moment) -> str:
        """Return the number."""
        return padded(RULES[self.field].get(moment.local), self.digits)

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read a number."""
        start = position
        if self.is_signed and text[position : position + 1] in {"-", "+"} and self.most_digits > 1:
            start += 1
        end = _end_of_digits(text, start, start + self.most_digits)
        if end == start:
            return ~position, found
        return end, found.with_value(self.field, _int_in(text, position, end))


def _end_of_digits(text: str, start: int, limit: int) -> int:
    """Return the end of the digits that start at a position."""
    end = start
    limit = min(limit, len(text))
    while end < limit and "0" <= text[end] <= "9":
        end += 1
    return end


def _int_in(text: str, start: int, end: int) -> int:
    """Parse a number, or raise if it does not fit in 32 bits."""
    sign = text[start] if text[start] in "+-" else ""
    digits = text[start + len(sign) : end].lstrip("0") or "0"
    # Python refuses to convert thousands of digits, and Java more than ten.
    value = int(digits) if len(digits) <= 10 else INT_MAX + 2
    if value > INT_MAX + (sign == "-"):
        shown = text[start + (sign == "+") : end]
        raise JodaError("NumberFormatException", f'For input string: "{shown}"')
    return -value if sign == "-" else value


@dataclass(frozen=True, slots=True)
class TwoDigitYear:
    """A year by its last two digits, in the hundred years around a pivot."""

    field: DateField
    pivot: int
    is_lenient: bool
    """Whether a year with another number of digits is parsed as it is."""

    def printed(self, moment: Moment) -> str:
        """Return the two digits."""
        return f"{abs(RULES[self.field].get(moment.local)) % 100:02}"

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read two digits, or any year."""
        if self.is_lenient:
            start = position
            while text[start : start + 1] == "+":
                start += 1
            end = _end_of_digits(text, start + (text[start : start + 1] == "-"), len(text))
            if end == start:
                return ~start, found
            if start > position or end - position != 2 or text[start] == "-":
                return self._parse_any_year(text, start, end, found)
        return self._parse_two_digits(text, position, found)

    def _parse_any_year(self, text: str, start: int, end: int, found: Found) -> tuple[int, Found]:
        if text[start:end] != "-":
            return end, found.with_value(self.field, _int_in(text, start, end))
        # Joda-Time takes whatever follows a lone minus for a digit, without reading on behind it.
        following = text[end : end + 1]
        return (end, found.with_value(self.field, ord("0") - ord(following))) if following else (~start, found)

    def _parse_two_digits(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        end = _end_of_digits(text, position, position + 2)
        if end < position + 2:
            return ~position, found
        first = self.pivot - 50
        return end, found.with_value(self.field, first + (int(text[position:end]) - first) % 100)


@dataclass(frozen=True, slots=True)
class Word:
    """A field as a word."""

    field: DateField
    is_short: bool = False

    def printed(self, moment: Moment) -> str:
        """Return the word."""
        value = RULES[self.field].get(moment.local)
        return short_text_of(self.field, value) if self.is_short else text_of(self.field, value)

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read the longest word that fits, abbreviated or not."""
        spellings = SPELLINGS[self.field]
        longest = max(map(len, spellings))
        for end in range(min(len(text), position + longest), position, -1):
            if (value := spellings.get(text[position:end])) is not None:
                return end, found.with_value(self.field, value)
        return ~position, found


@dataclass(frozen=True, slots=True)
class Fraction:
    """The fraction of a second, minute or hour, as digits after a decimal point."""

    of: int
    digits: int
    """The fewest digits to print."""
    most_digits: int

    def printed(self, moment: Moment) -> str:
        """Return the digits that fit in a long."""
        rest = moment.local % self.of
        if rest == 0:
            return "0" * self.digits
        digits = min(self.most_digits, 15)
        text = str(rest * 10**digits // self.of).rjust(digits, "0")
        return text[: self.digits] + text[self.digits :].rstrip("0")

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read digits; what is less than a millisecond is dropped."""
        end = _end_of_digits(text, position, position + self.most_digits)
        if end == position:
            return ~position, found
        value, weight = 0, self.of
        for digit in text[position:end]:
            value += int(digit) * weight
            weight //= 10
        return end, found.with_value_of(_fraction_rule(self.of), value // 10)


@cache
def _fraction_rule(of: int) -> Rule:
    """Return the rule of the milliseconds of a unit; Joda-Time names them millisOfSecond for every unit."""
    return counter(DateField.MILLIS_OF_SECOND, 1, of)


@dataclass(frozen=True, slots=True)
class Offset:
    """The offset from UTC; Z is always parsed as zero."""

    colons: bool
    zero: str | None = None
    """The text of the offset zero."""
    at_most_minutes: bool = True

    def printed(self, moment: Moment) -> str:
        """Return the offset."""
        if moment.offset == 0 and self.zero is not None:
            return self.zero
        return printed_offset(moment.offset, colons=self.colons, at_most_minutes=self.at_most_minutes)

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read an offset, with or without colons."""
        if text[position : position + 1] in {"Z", "z"}:
            return position + 1, found.with_offset(0)
        end, offset = offset_in(text, position)
        return (end, found.with_offset(offset)) if end >= 0 else (end, found)


_ZONES_BY_NAME = {
    "UT": "UTC",
    "UTC": "UTC",
    "GMT": "UTC",
    "EST": "America/New_York",
    "EDT": "America/New_York",
    "CST": "America/Chicago",
    "CDT": "America/Chicago",
    "MST": "America/Denver",
    "MDT": "America/Denver",
    "PST": "America/Los_Angeles",
    "PDT": "America/Los_Angeles",
}


@dataclass(frozen=True, slots=True)
class ZoneName:
    """The name of the zone."""

    is_short: bool

    def printed(self, moment: Moment) -> str:
        """Return the name at that time."""
        millis = moment.local - moment.offset
        return moment.zone.short_name_at(millis) if self.is_short else moment.zone.name_at(millis)

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read one of the few abbreviations that mean one zone."""
        for length in (3, 2):
            if zone_id := _ZONES_BY_NAME.get(text[position : position + length]):
                return position + length, found.with_zone(zone_for_id(zone_id))
        return ~position, found


@dataclass(frozen=True, slots=True)
class ZoneId:
    """The zone's id."""

    def printed(self, moment: Moment) -> str:
        """Return the id."""
        return moment.zone.id

    def parse(self, text: str, position: int, found: Found) -> tuple[int, Found]:
        """Read the longest id that fits; a slash near the start means that the id has one."""
        has_slash = "/" in text[position : position + _LONGEST_AREA]
        for length in _id_lengths(has_slash=has_slash):
            zone_id = text[position : position + length]
            if zone_id in available_ids() and ("/" in zone_id) == has_slash:
                return position + len(zone_id), found.with_zone(zone_for_id(zone_id))
        return ~position, found


_LONGEST_AREA = len("Antarctica/")


@cache
def _id_lengths(*, has_slash: bool) -> tuple[int, ...]:
    lengths = {len(zone_id) for zone_id in available_ids() if ("/" in zone_id) == has_slash}
    return tuple(sorted(lengths, reverse=True))


def printed(elements: tuple[Element, ...], millis: int, zone: Zone) -> str:
    """Print an instant in a zone, in UTC if its local time overflows."""
    offset = zone.offset_at(millis)
    if not is_long(millis + offset):
        zone, offset = UTC, 0
    moment = Moment(millis + offset, offset, zone)
    return "".join([element.printed(moment) for element in elements])
