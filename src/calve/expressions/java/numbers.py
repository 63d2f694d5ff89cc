"""Whole numbers of 64 and 32 bits that wrap around, and floating-point numbers as Java reads and writes them."""

import math
import re
import unicodedata

LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)
INT_MAX = 2**31 - 1
INT_MIN = -(2**31)


def wrap(number: int) -> int:
    """Return ``number`` wrapped to 64 bits, like a Java long."""
    if LONG_MIN <= number <= LONG_MAX:
        return number
    return ((number - LONG_MIN) & 0xFFFF_FFFF_FFFF_FFFF) + LONG_MIN


def to_int(number: int) -> int:
    """Return the low 32 bits of ``number``."""
    return ((number - INT_MIN) & 0xFFFF_FFFF) + INT_MIN


def divide_longs(left: int, right: int) -> int:
    """Return the quotient, truncated towards zero; ``right`` is not 0."""
    quotient = abs(left) // abs(right)
    return wrap(quotient if (left < 0) == (right < 0) else -quotient)


def remainder_of_longs(left: int, right: int) -> int:
    """Return the remainder, with the sign of ``left``; ``right`` is not 0."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def parse_long(text: str, low: int = LONG_MIN, high: int = LONG_MAX) -> int | None:
    """Parse decimal digits of any script; return None if ``text`` is not such a number."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    # Leading zeros are dropped, as int() refuses thousands of digits.
    if not digits or not all(unicodedata.decimal(digit, None) is not None for digit in digits):
        return None
    significant = digits.lstrip("0")
    if len(significant) > 40:
        return None
    number = int(significant or "0")
    if text[0] == "-":
        number = -number
    return number if low <= number <= high else None


_DECIMAL = re.compile(r"[+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?)")
_HEXADECIMAL = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]*\.?[0-9a-fA-F]*)[pP]([+-]?[0-9]+)[fFdD]?")
_SPACE = "".join(map(chr, range(33)))


def parse_double(text: str) -> float | None:
    """Parse a floating-point number; return None if ``text`` is not one."""
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
    """Return the sign, the fewest digits that identify ``number``, and the power of ten: 0.digits * 10^power."""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or "0") - (len(whole + fraction) - len(digits))
    sign = "-" if math.copysign(1.0, number) < 0 else ""
    digits = digits.rstrip("0")
    return (sign, digits, point) if digits else (sign, "0", 1)


def divide_doubles(left: float, right: float) -> float:
    """Return the quotient; a division by zero gives an infinity or NaN."""
    if right:
        return left / right
    if not left or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder_of_doubles(left: float, right: float) -> float:
    """Return the remainder, with the sign of ``left``."""
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
        # Zero to a negative power is infinite; a root of a negative number is NaN.
        if left:
            return math.nan
        return math.copysign(math.inf, left) if right % 2 == 1 else math.inf


def double_to_long(number: float) -> int:
    """Return ``number`` truncated to 64 bits; a number out of range becomes the nearest in range."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return LONG_MAX if number > 0 else LONG_MIN
    return max(LONG_MIN, min(LONG_MAX, int(number)))
