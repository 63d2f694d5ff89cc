"""ISO 8601 as Joda-Time prints and reads it. Pure."""

from calve.expressions.joda.elements import Element, Fraction, Literal, Number, Offset, printed
from calve.expressions.joda.fields import Field
from calve.expressions.joda.gregorian import HOUR, MINUTE, SECOND
from calve.expressions.joda.parsing import Found, Parser, one_of, optional, parsed, sequence
from calve.expressions.joda.zones import Zone, fixed_zone

_YEAR = Number(Field.YEAR, 4, 9, is_signed=True)
_MONTH = Number(Field.MONTH_OF_YEAR, 2, 2)
_DAY = Number(Field.DAY_OF_MONTH, 2, 2)
_HOUR = Number(Field.HOUR_OF_DAY, 2, 2)
_MINUTE = Number(Field.MINUTE_OF_HOUR, 2, 2)
_SECOND = Number(Field.SECOND_OF_MINUTE, 2, 2)
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
        Number(Field.WEEKYEAR, 4, 9, is_signed=True).parse,
        Literal("-W").parse,
        Number(Field.WEEK_OF_WEEKYEAR, 2, 2).parse,
        optional(sequence(_DASH.parse, Number(Field.DAY_OF_WEEK, 1, 1).parse)),
    )
    ordinal_date = sequence(_YEAR.parse, _DASH.parse, Number(Field.DAY_OF_YEAR, 3, 3).parse)
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
