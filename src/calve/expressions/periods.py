"""Durations in English words, such as ``2 days, 3 hours and 1 minute``."""

import re

from calve.expressions.failures import illegal_argument, number_format, unsupported
from calve.expressions.java.longs import INT_MAX, INT_MIN

_MILLIS = {
    "week": 604_800_000,
    "day": 86_400_000,
    "hour": 3_600_000,
    "minute": 60_000,
    "second": 1_000,
    "millisecond": 1,
}
_UNITS = ("year", "month", *_MILLIS)
_PART = re.compile(r"([+-]?[0-9]{1,10}) (year|month|week|day|hour|minute|second|millisecond)s?(?![a-z])", re.IGNORECASE)
_SEPARATOR = re.compile(r",? and |, ?| ", re.IGNORECASE)


def millis_in_words(text: str) -> int:
    """Return the milliseconds of a duration in words.

    Raises:
        ExpressionFailed: the text is none, or months or years are in it, which are not all as long.
    """
    total, at, rank = 0, 0, -1
    if not text:
        return 0
    while found := _PART.match(text, at):
        unit = found.group(2).lower()
        if _UNITS.index(unit) <= rank:
            break
        rank = _UNITS.index(unit)
        amount = int(found.group(1))
        if not INT_MIN <= amount <= INT_MAX:
            raise number_format(f'For input string: "{amount}"')
        if unit not in _MILLIS and amount:
            raise unsupported(f"Cannot convert to Duration as this period contains {unit}s and {unit}s vary in length")
        total += amount * _MILLIS.get(unit, 0)
        at = found.end()
        if at == len(text):
            return total
        separator = _SEPARATOR.match(text, at)
        if separator is None:
            break
        at = separator.end()
    raise illegal_argument(f'Invalid format: "{text[:100]}"')
