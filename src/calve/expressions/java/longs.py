"""Whole numbers of 64 bits that wrap around, and of 32 bits where a method wants an ``int``."""

import unicodedata

MAX = 2**63 - 1
MIN = -(2**63)
INT_MAX = 2**31 - 1
INT_MIN = -(2**31)


def wrap(number: int) -> int:
    """Return ``number`` as 64 bits hold it."""
    return ((number - MIN) & 0xFFFF_FFFF_FFFF_FFFF) + MIN


def to_int(number: int) -> int:
    """Return the low 32 bits of ``number``."""
    return ((number - INT_MIN) & 0xFFFF_FFFF) + INT_MIN


def divide(left: int, right: int) -> int:
    """Return the quotient, cut towards zero; ``right`` is not 0."""
    quotient = abs(left) // abs(right)
    return wrap(quotient if (left < 0) == (right < 0) else -quotient)


def remainder(left: int, right: int) -> int:
    """Return what a division leaves, with the sign of ``left``; ``right`` is not 0."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def parse_long(text: str, low: int = MIN, high: int = MAX) -> int | None:
    """Return the number that ``text`` is in decimal digits of any script, or None."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    # Twenty digits are beyond 64 bits unless they lead with zeros, which int() takes at leisure.
    if not digits or not all(unicodedata.decimal(digit, None) is not None for digit in digits):
        return None
    significant = digits.lstrip("0")
    if len(significant) > 40:
        return None
    number = int(significant or "0")
    if text[0] == "-":
        number = -number
    return number if low <= number <= high else None
