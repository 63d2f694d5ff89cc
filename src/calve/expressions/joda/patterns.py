"""Formatters made from patterns such as yyyy-MM-dd. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from calve.expressions.joda.datetimes import DateTime
from calve.expressions.joda.elements import (
    Element,
    Fraction,
    Literal,
    Number,
    Offset,
    TwoDigitYear,
    Word,
    ZoneId,
    ZoneName,
    printed,
)
from calve.expressions.joda.errors import JodaError
from calve.expressions.joda.fields import DateField
from calve.expressions.joda.gregorian import SECOND
from calve.expressions.joda.parsers import Parser, parsed, sequence
from calve.expressions.joda.zones import UTC, Zone

_START_OF_2026 = 1_767_225_600_000
_NOTHING_QUOTED = "'"


@dataclass(frozen=True, slots=True)
class Formatter:
    """Prints and reads date-times by a pattern, in its zone if it has one."""

    elements: tuple[Element, ...]
    zone: Zone | None = None

    def with_zone(self, zone: Zone) -> "Formatter":
        """Return this with a zone to print and to read in."""
        return replace(self, zone=zone)

    def print(self, moment: DateTime | int) -> str:
        """Print a date-time in its zone, or milliseconds in UTC; both in the formatter's zone if it has one."""
        datetime = moment if isinstance(moment, DateTime) else DateTime(moment)
        return printed(self.elements, datetime.millis, self.zone or datetime.zone)

    def parse(self, text: str) -> DateTime:
        """Read a date-time: in the formatter's zone, else in the one that the text names, else in UTC."""
        millis, found = parsed(self._parser(), text, self.zone or UTC)
        return DateTime(millis, self.zone or found.zone)

    def parse_millis(self, text: str) -> int:
        """Read an instant."""
        return parsed(self._parser(), text, self.zone or UTC)[0]

    def _parser(self) -> Parser:
        # Long names of zones are ambiguous. Joda-Time refuses to parse them, but not in a pattern of nothing else.
        if len(self.elements) > 1 and ZoneName(is_short=False) in self.elements:
            raise JodaError("UnsupportedOperationException", "Parsing not supported")
        return sequence(*(element.parse for element in self.elements))


def formatter(pattern: str, *, now: int = _START_OF_2026) -> Formatter:
    """Return the formatter of a pattern, or raise if the pattern is invalid.

    Two-digit years are read as those from 80 years before ``now``, in milliseconds, to 19 years after.
    """
    today = DateTime(now)
    make = _remembered_formatter if len(pattern) <= _LONGEST_REMEMBERED else _formatter
    return make(pattern, today.get(DateField.YEAR), today.get(DateField.WEEKYEAR))


def _formatter(pattern: str, year: int, weekyear: int) -> Formatter:
    if not pattern:
        message = "Invalid pattern specification: Pattern is null or empty"
        raise JodaError("IllegalArgumentException", message)
    pivots = {DateField.YEAR: year - 30, DateField.WEEKYEAR: weekyear - 30}
    tokens = [*_tokens(pattern), ""]
    elements = [_element(token, then, pivots) for token, then in pairwise(tokens) if token != _NOTHING_QUOTED]
    if not elements:
        raise JodaError("UnsupportedOperationException", "Both printing and parsing not supported")
    return Formatter(tuple(elements))


_remembered_formatter = lru_cache(maxsize=256)(_formatter)
_LONGEST_REMEMBERED = 100  # so that hostile patterns fill no memory


def _tokens(pattern: str) -> Iterator[str]:
    """Yield runs of the same letter, and other text behind an apostrophe, without its quotes."""
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if _is_letter(letter):
            end = position
            while pattern[end : end + 1] == letter:
                end += 1
            yield pattern[position:end]
        else:
            text, end = _quoted(pattern, position)
            yield f"'{text}"
        position = end


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


def _quoted(pattern: str, position: int) -> tuple[str, int]:
    """Return the text from a position to the next letter outside of quotes, and where that is."""
    characters = []
    is_quoted = False
    while position < len(pattern):
        character = pattern[position]
        if pattern.startswith("''", position):
            position += 1
            characters.append("'")
        elif character == "'":
            is_quoted = not is_quoted
        elif _is_letter(character) and not is_quoted:
            break
        else:
            characters.append(character)
        position += 1
    return "".join(characters), position


_Maker = Callable[[int], Element]
"""Returns the element of a letter and the number of its repetitions."""


def _number(field: DateField, most_digits: int) -> _Maker:
    return lambda count: Number(field, count, max(count, most_digits))


def _month(count: int) -> Element:
    if count <= 2:
        return Number(DateField.MONTH_OF_YEAR, count, 2)
    return Word(DateField.MONTH_OF_YEAR, is_short=count == 3)


def _offset(count: int) -> Element:
    return Offset(colons=count == 2) if count <= 2 else ZoneId()


_NUMBERS: dict[str, _Maker] = {
    "d": _number(DateField.DAY_OF_MONTH, 2),
    "h": _number(DateField.CLOCKHOUR_OF_HALFDAY, 2),
    "H": _number(DateField.HOUR_OF_DAY, 2),
    "k": _number(DateField.CLOCKHOUR_OF_DAY, 2),
    "K": _number(DateField.HOUR_OF_HALFDAY, 2),
    "m": _number(DateField.MINUTE_OF_HOUR, 2),
    "s": _number(DateField.SECOND_OF_MINUTE, 2),
    "e": _number(DateField.DAY_OF_WEEK, 1),
    "D": _number(DateField.DAY_OF_YEAR, 3),
    "w": _number(DateField.WEEK_OF_WEEKYEAR, 2),
    "C": lambda count: Number(DateField.CENTURY_OF_ERA, count, count, is_signed=True),
    "S": lambda count: Fraction(SECOND, count, min(count, _LONGEST_FRACTION)),
}
_OTHERS: dict[str, _Maker] = {
    "M": _month,
    "G": lambda _: Word(DateField.ERA),
    "a": lambda _: Word(DateField.HALFDAY_OF_DAY),
    "E": lambda count: Word(DateField.DAY_OF_WEEK, is_short=count < 4),
    "z": lambda count: ZoneName(is_short=count < 4),
    "Z": _offset,
}
_YEARS = {"x": DateField.WEEKYEAR, "y": DateField.YEAR, "Y": DateField.YEAR_OF_ERA}
_MAKERS = _NUMBERS | _OTHERS
_LONGEST_YEAR = 9
_LONGEST_FRACTION = 18


def _element(token: str, then: str, pivots: dict[DateField, int]) -> Element:
    """Return the element of a token; what follows tells how many digits a year may have."""
    letter = token[0]
    if letter == "'":
        return Literal(token[1:])
    if field := _YEARS.get(letter):
        is_followed_by_number = then[:1] in _NUMBERS.keys() | _YEARS or then in {"M", "MM"}
        return _year(field, len(token), pivots, is_followed_by_number=is_followed_by_number)
    if make := _MAKERS.get(letter):
        return make(len(token))
    raise JodaError("IllegalArgumentException", f"Illegal pattern component: {token}")


def _year(field: DateField, count: int, pivots: dict[DateField, int], *, is_followed_by_number: bool) -> Element:
    if count == 2:
        field = DateField.WEEKYEAR if field == DateField.WEEKYEAR else DateField.YEAR
        return TwoDigitYear(field, pivots[field], is_lenient=not is_followed_by_number)
    most_digits = count if is_followed_by_number else max(count, _LONGEST_YEAR)
    return Number(field, count, most_digits, is_signed=field != DateField.YEAR_OF_ERA)
