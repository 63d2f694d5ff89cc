"""Parse a date-time: collect the fields in a text, and compute the instant that they mean. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from calve.expressions.java import wrap
from calve.expressions.joda.errors import JodaError, invalid_format
from calve.expressions.joda.fields import RULES, DateField, Rule, put_year_to_parse
from calve.expressions.joda.gregorian import DAY, MONTH
from calve.expressions.joda.zones import Zone

_RULES_TO_PARSE = RULES | {DateField.YEAR: replace(RULES[DateField.YEAR], put=put_year_to_parse)}
_YEAR_UNSAID = 2000


@dataclass(frozen=True, slots=True)
class Value:
    """The parsed value of a field, and the values before it."""

    rule: Rule
    value: int
    before: "Value | None"


@dataclass(frozen=True, slots=True)
class Found:
    """What was parsed so far."""

    zone: Zone
    """The zone in the text, else the default one."""
    offset: int | None = None
    last: Value | None = None
    """The last value, linked to those before, so that adding one to thousands is cheap."""

    def with_value(self, field: DateField, value: int) -> "Found":
        """Return this with the value of a field."""
        return self.with_value_of(_RULES_TO_PARSE[field], value)

    def with_value_of(self, rule: Rule, value: int) -> "Found":
        """Return this with the value of a field that has a rule of its own."""
        return Found(self.zone, self.offset, Value(rule, value, self.last))

    def with_offset(self, offset: int) -> "Found":
        """Return this with an offset."""
        return Found(self.zone, offset, self.last)

    def with_zone(self, zone: Zone) -> "Found":
        """Return this with a zone."""
        return Found(zone, self.offset, self.last)


Parser = Callable[[str, int, Found], tuple[int, Found]]
"""Parses a text from a position on; returns where it ended and what was found so far.

A negative end is the complement of the position where the text is invalid.
"""


def parsed(parser: Parser, text: str, zone: Zone) -> tuple[int, Found]:
    """Parse a whole text; return its instant, in a zone unless the text names another, and what was found."""
    end, found = parser(text, 0, Found(zone))
    if end < len(text):
        raise invalid_format(text, max(end, ~end))
    return _instant_of(found, text), found


def _instant_of(found: Found, text: str) -> int:
    local = _local_of(found, text)
    if found.offset is not None:
        return wrap(local - found.offset)
    offset = found.zone.offset_at_local(local)
    millis = wrap(local - offset)
    if found.zone.offset_at(millis) != offset:
        message = f'Cannot parse "{text}": Illegal instant due to time zone offset transition ({found.zone.id})'
        raise JodaError("IllegalInstantException", message)
    return millis


def _local_of(found: Found, text: str) -> int:
    values = _greatest_first(found)
    # The day of a month or year means nothing without the year.
    if values and DAY <= values[0].rule.unit <= MONTH:
        values = _greatest_first(found.with_value(DateField.YEAR, _YEAR_UNSAID))
    local = 0
    try:
        for said in values:
            local = said.rule.floor(said.rule.put(local, said.value))
        # Again, as a greater field may have moved a smaller one: the first week can start in the year before.
        for said in values:
            local = said.rule.put(local, said.value)
    except JodaError as error:
        raise JodaError(error.kind, f'Cannot parse "{text}": {error.message}') from error
    return values[-1].rule.floor(local) if values else local


def _greatest_first(found: Found) -> list[Value]:
    in_order = [*_backwards(found.last)][::-1]
    return sorted(in_order, key=lambda said: (-said.rule.span, -said.rule.unit))


def _backwards(value: Value | None) -> Iterator[Value]:
    while value is not None:
        yield value
        value = value.before


def sequence(*parsers: Parser) -> Parser:
    """Return a parser that runs parsers one after the other."""

    def parse(text: str, position: int, found: Found) -> tuple[int, Found]:
        for parser in parsers:
            position, found = parser(text, position, found)
            if position < 0:
                break
        return position, found

    return parse


def one_of(*parsers: Parser) -> Parser:
    """Return a parser that takes the longest result of several."""

    def parse(text: str, position: int, found: Found) -> tuple[int, Found]:
        best, best_found, furthest = position, found, position
        for parser in parsers:
            end, then = parser(text, position, found)
            if end > best:
                best, best_found = end, then
            furthest = max(furthest, ~end)
        return (best, best_found) if best > position else (~furthest, found)

    return parse


def optional(*parsers: Parser) -> Parser:
    """Return a parser that takes the longest result of several, or nothing."""
    parse_one = one_of(*parsers)

    def parse(text: str, position: int, found: Found) -> tuple[int, Found]:
        end, then = parse_one(text, position, found)
        return (end, then) if end >= 0 else (position, found)

    return parse
