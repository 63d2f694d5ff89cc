"""Offsets from UTC as text: ±hh:mm, ±hh:mm:ss.SSS and the like. Pure."""

from calve.expressions.joda.errors import invalid_format
from calve.expressions.joda.gregorian import HOUR, MINUTE, SECOND


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

    An end below zero is the complement of the position where the text stops making sense.
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
    """Return how many digits stand at a position."""
    count = 0
    for character in text[position : position + at_most]:
        if not "0" <= character <= "9":
            break
        count += 1
    return count


def parsed_offset(text: str) -> int:
    """Return the offset that a whole text is, or raise where it is none."""
    end, offset = offset_in(text, 0)
    if end == len(text):
        return offset
    raise invalid_format(text, max(end, ~end))
