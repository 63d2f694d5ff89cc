"""Floating-point numbers as Java reads, writes and computes them."""

import math
import re

from calve.expressions.java.longs import MAX, MIN

_DECIMAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEXADECIMAL = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*\.?[0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?")
_SPACE = "".join(map(chr, range(33)))


def parse_double(text: str) -> float | None:
    """Return the number that ``text`` is, or None."""
    trimmed = text.strip(_SPACE)
    if _DECIMAL.fullmatch(trimmed):
        # float() knows "Infinity" and "NaN" by the same names, but not the suffix.
        return float(trimmed if trimmed[-1] in "yN" else trimmed.rstrip("fFdD"))
    found = _HEXADECIMAL.fullmatch(trimmed)
    if found is None or found.group(2) in {"", "."}:
        return None
    sign, digits, exponent = found.groups()
    try:
        return float.fromhex(f"{sign}0x{digits}p{exponent}")
    except OverflowError:
        return -math.inf if sign == "-" else math.inf


def double_text(number: float) -> str:
    """Return ``number`` as Java writes it: plain from 10^-3 up to 10^7, scientific elsewhere."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    sign, digits, point = decimal_digits(number)
    if digits == "0":
        return f"{sign}0.0"
    if -3 < point <= 7:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        whole = digits[:point].ljust(point, "0")
        return f"{sign}{whole}.{digits[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def decimal_digits(number: float) -> tuple[str, str, int]:
    """Return the sign, the fewest digits that tell ``number`` apart, and the power of ten: 0.digits * 10^power."""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or "0") - (len(whole + fraction) - len(digits))
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    digits = digits.rstrip("0")
    return (sign, digits, point) if digits else (sign, "0", 1)


def divide(left: float, right: float) -> float:
    """Return the quotient, which a division by zero has too."""
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder(left: float, right: float) -> float:
    """Return what a division leaves, with the sign of ``left``."""
    if math.isinf(left) or math.isnan(left) or not right or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def power(left: float, right: float) -> float:
    """Return ``left`` to the power of ``right``; unlike C, NaN wherever an infinite power has no limit."""
    if math.isnan(right) or (abs(left) == 1.0 and math.isinf(right)):
        return math.nan
    try:
        return math.pow(left, right)
    except OverflowError:
        return -math.inf if left < 0 and right % 2 == 1 else math.inf
    except ValueError:
        # Zero to a negative power is infinite; a root of a negative number is none.
        if left:
            return math.nan
        return math.copysign(math.inf, left) if right % 2 == 1 else math.inf


def to_long(number: float) -> int:
    """Return ``number`` cut to a whole number of 64 bits; too large a one becomes the largest."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return MAX if number > 0 else MIN
    return max(MIN, min(MAX, int(number)))
