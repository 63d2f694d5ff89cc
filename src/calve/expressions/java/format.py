"""``String.format`` as Java does it: flags, widths and precisions, and an error for every way to get them wrong."""

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from calve.expressions.java.budget import Budget
from calve.expressions.java.hash_map import string_hash
from calve.expressions.java.numbers import INT_MAX, decimal_digits, double_text

_SPECIFIER = re.compile(r"%([0-9]+\$)?([-#+ 0,(<]*)([0-9]+)?(\.[0-9]+)?([tT])?([a-zA-Z%])")
_CONVERSIONS = frozenset("bBhHsScCdoxXeEgGfaAn%")
_EXACT = Context(prec=1_200, rounding=ROUND_HALF_UP)
_DEFAULT_PRECISION = 6


class FormatFailed(ValueError):
    """The format is invalid, or does not fit an argument; ``kind`` is the name of Java's exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Shown:
    """An argument of which only the text matters."""

    text: str


@dataclass(frozen=True, slots=True)
class _Specifier:
    """One ``%…`` of a format."""

    index: int
    flags: str
    width: int | None
    precision: int | None
    conversion: str
    text: str

    @property
    def letter(self) -> str:
        return self.conversion.lower()

    @property
    def is_upper(self) -> bool:
        return self.conversion.isupper()


def format_java(budget: Budget, pattern: str, arguments: list[Any]) -> str:
    """Return the formatted text; whole numbers up to 32 bits are Integers.

    Raises:
        FormatFailed: the format is invalid, or does not fit an argument.
    """
    parts: list[str] = []
    size = 0
    for part in _formatted(budget, list(_read(pattern)), arguments):
        size += 2 * len(part)
        budget.check_room(size)
        parts.append(part)
    return "".join(parts)


def _read(pattern: str) -> Iterator[str | _Specifier]:
    at = 0
    while (percent := pattern.find("%", at)) >= 0:
        yield pattern[at:percent]
        found = _SPECIFIER.match(pattern, percent)
        if found is None:
            raise FormatFailed(
                "UnknownFormatConversionException", f"Conversion = '{pattern[percent + 1 : percent + 2] or '%'}'"
            )
        yield _specifier(found)
        at = found.end()
    yield pattern[at:]


def _specifier(found: re.Match[str]) -> _Specifier:
    position, flags, width, precision, date, conversion = found.groups()
    index = 0
    if position is not None:
        index = _small(position[:-1]) or 0
        if index == 0:
            raise FormatFailed(
                "IllegalFormatArgumentIndexException", f"Illegal format argument index = {position[:20]}"
            )
    for flag in flags:
        if flags.count(flag) > 1:
            raise FormatFailed("DuplicateFormatFlagsException", f"Flags = '{flag}'")
    wide = None if width is None else _checked_small(width, "IllegalFormatWidthException")
    precise = None if precision is None else _checked_small(precision[1:], "IllegalFormatPrecisionException")
    if date is not None or conversion not in _CONVERSIONS:
        raise FormatFailed("UnknownFormatConversionException", f"Conversion = '{date or ''}{conversion}'")
    specifier = _Specifier(-1 if "<" in flags else index, flags, wide, precise, conversion, found.group())
    _check(specifier)
    return specifier


def _small(digits: str) -> int | None:
    significant = digits.lstrip("0") or "0"
    return int(significant) if len(significant) <= 10 and int(significant) <= INT_MAX else None


def _checked_small(digits: str, kind: str) -> int:
    number = _small(digits)
    if number is None:
        raise FormatFailed(kind, str(-(2**31)))
    return number


def _check(specifier: _Specifier) -> None:
    match specifier.letter:
        case "b" | "h":
            _check_flags(specifier, "#")
            _check_width(specifier, "-")
            _check_flags(specifier, "+ 0,(")
        case "s":
            _check_width(specifier, "-")
            _check_flags(specifier, "+ 0,(")
        case "c":
            _check_no_precision(specifier)
            _check_flags(specifier, "#+ 0,(")
            _check_width(specifier, "-")
        case "d" | "o" | "x":
            _check_number(specifier)
            _check_no_precision(specifier)
            _check_flags(specifier, "#" if specifier.letter == "d" else ",")
        case "%" | "n":
            _check_text(specifier)
        case letter:
            _check_number(specifier)
            _check_flags(specifier, {"f": "", "a": "(,", "e": ",", "g": "#"}[letter])


def _check_number(specifier: _Specifier) -> None:
    _check_width(specifier, "-0")
    flags = specifier.flags
    if ("+" in flags and " " in flags) or ("-" in flags and "0" in flags):
        raise FormatFailed("IllegalFormatFlagsException", f"Flags = '{flags}'")


def _check_text(specifier: _Specifier) -> None:
    _check_no_precision(specifier)
    if specifier.letter == "n":
        if specifier.width is not None:
            raise FormatFailed("IllegalFormatWidthException", str(specifier.width))
        if specifier.flags:
            raise FormatFailed("IllegalFormatFlagsException", f"Flags = '{specifier.flags}'")
    elif specifier.flags not in {"", "-"}:
        raise FormatFailed("IllegalFormatFlagsException", f"Flags = '{specifier.flags}'")
    _check_width(specifier, "-")


def _check_no_precision(specifier: _Specifier) -> None:
    if specifier.precision is not None:
        raise FormatFailed("IllegalFormatPrecisionException", str(specifier.precision))


def _check_width(specifier: _Specifier, flags: str) -> None:
    if specifier.width is None and any(flag in specifier.flags for flag in flags):
        raise FormatFailed("MissingFormatWidthException", specifier.text)


def _check_flags(specifier: _Specifier, bad: str) -> None:
    for flag in bad:
        if flag in specifier.flags:
            raise FormatFailed(
                "FormatFlagsConversionMismatchException", f"Conversion = {specifier.letter}, Flags = {flag}"
            )


def _formatted(budget: Budget, parts: list[str | _Specifier], arguments: list[Any]) -> Iterator[str]:
    ordinary = last = -1
    for part in parts:
        if isinstance(part, str):
            yield part
            continue
        budget.check_room(2 * max(part.width or 0, part.precision or 0))
        if part.letter in "%n":
            yield "\n" if part.letter == "n" else _justified("%", part)
            continue
        if part.index == 0:
            ordinary += 1
            last = ordinary
        elif part.index > 0:
            last = part.index - 1
        if not 0 <= last < len(arguments):
            raise FormatFailed("MissingFormatArgumentException", f"Format specifier '{part.text}'")
        yield _print(part, arguments[last])


def _justified(text: str, specifier: _Specifier) -> str:
    width = specifier.width or 0
    return text.ljust(width) if "-" in specifier.flags else text.rjust(width)


def _print(specifier: _Specifier, value: Any) -> str:
    match specifier.letter:
        case "s":
            _check_flags(specifier, "#")
            return _text(specifier, _shown(value))
        case "b":
            return _text(specifier, "false" if value is None else _shown(value) if isinstance(value, bool) else "true")
        case "h":
            return _text(specifier, "null" if value is None else f"{_hash(value):x}")
        case "c":
            return _text(specifier, "null" if value is None else _character(specifier, value))
        case "d" | "o" | "x":
            if value is None:
                return _text(specifier, "null")
            if isinstance(value, bool) or not isinstance(value, int):
                raise _wrong_class(specifier, value)
            return _justified(_integer(specifier, value), specifier)
        case _:
            if value is None:
                return _text(specifier, "null")
            if not isinstance(value, float):
                raise _wrong_class(specifier, value)
            return _justified(_floating(specifier, value), specifier)


def _wrong_class(specifier: _Specifier, value: Any) -> FormatFailed:
    name = {str: "String", bool: "Boolean", int: "Integer", float: "Double"}.get(type(value), "Object")
    return FormatFailed("IllegalFormatConversionException", f"{specifier.conversion} != java.lang.{name}")


def _shown(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case Shown():
            return value.text
        case _:
            return str(value)


def _text(specifier: _Specifier, text: str) -> str:
    if specifier.precision is not None:
        text = text[: specifier.precision]
    return _justified(text.upper() if specifier.is_upper else text, specifier)


def _hash(value: Any) -> int:
    """Return the hash that Java has for a simple value, without a sign."""
    match value:
        case bool():
            return 1231 if value else 1237
        case int():
            return (value ^ (value >> 32) if value > INT_MAX else value) & 0xFFFFFFFF
        case float():
            bits = int.from_bytes(struct.pack(">d", math.nan if math.isnan(value) else value), "big")
            return (bits ^ (bits >> 32)) & 0xFFFFFFFF
        case _:
            return string_hash(_shown(value))


def _character(specifier: _Specifier, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or value > INT_MAX:
        raise _wrong_class(specifier, value)
    if not 0 <= value <= 0x10FFFF:
        raise FormatFailed("IllegalFormatCodePointException", f"Code point = 0x{value & 0xFFFFFFFF:x}")
    return chr(value)


def _integer(specifier: _Specifier, value: int) -> str:
    if specifier.letter == "d":
        return _signed(specifier, value < 0, str(abs(value)), "", "")
    _check_flags(specifier, "( +")
    unsigned = value if value >= 0 else value + 2**32
    digits = f"{unsigned:o}" if specifier.letter == "o" else f"{unsigned:x}"
    prefix = "" if "#" not in specifier.flags else "0" if specifier.letter == "o" else "0x"
    if "0" in specifier.flags:
        digits = digits.rjust((specifier.width or 0) - len(prefix), "0")
    return (prefix + digits).upper() if specifier.is_upper else prefix + digits


def _signed(specifier: _Specifier, negative: bool, whole: str, fraction: str, exponent: str) -> str:  # noqa: FBT001
    """Put sign, thousands separators and leading zeros around the digits of a number."""
    flags = specifier.flags
    if negative:
        opening, closing = ("(", ")") if "(" in flags else ("-", "")
    else:
        opening, closing = "+" if "+" in flags else " " if " " in flags else "", ""
    if "," in flags:
        whole = _grouped(whole)
    magnitude = whole + fraction
    if "0" in flags:
        taken = len(opening) + len(closing) + len(exponent)
        magnitude = magnitude.rjust((specifier.width or 0) - taken, "0")
    return f"{opening}{magnitude}{exponent}{closing}"


def _grouped(whole: str) -> str:
    head = len(whole) % 3
    groups = [whole[:head]] if head else []
    return ",".join(groups + [whole[at : at + 3] for at in range(head, len(whole), 3)])


def _floating(specifier: _Specifier, value: float) -> str:
    if math.isnan(value):
        return "NAN" if specifier.is_upper else "NaN"
    negative = math.copysign(1.0, value) < 0
    if math.isinf(value):
        word = "INFINITY" if specifier.is_upper else "Infinity"
        plain = _Specifier(0, specifier.flags.replace("0", "").replace(",", ""), None, None, "f", "")
        return _signed(plain, negative, word, "", "")
    precision = _DEFAULT_PRECISION if specifier.precision is None else specifier.precision
    match specifier.letter:
        case "f":
            whole, fraction, exponent = *_fixed(value, precision), ""
        case "e":
            whole, fraction, exponent = _scientific(value, precision)
        case "g":
            whole, fraction, exponent = _general(value, precision or 1)
        case _:
            raise FormatFailed("UnknownFormatConversionException", f"Conversion = '{specifier.conversion}'")
    if fraction:
        fraction = f".{fraction}"
    elif "#" in specifier.flags:
        fraction = "."
    text = _signed(specifier, negative, whole, fraction, exponent)
    return text.upper() if specifier.is_upper else text


def _decimal(value: float) -> Decimal:
    """Return the shortest decimal that identifies a number, which is what Java rounds."""
    _, digits, point = decimal_digits(value)
    return Decimal(f"0.{digits}E{point}")


def _fixed(value: float, precision: int) -> tuple[str, str]:
    # Beyond this many digits there are only zeros.
    known = min(precision, 350)
    text = f"{_decimal(value).quantize(Decimal(1).scaleb(-known), context=_EXACT):f}"
    whole, _, fraction = text.partition(".")
    return whole, fraction.ljust(precision, "0")


def _scientific(value: float, precision: int) -> tuple[str, str, str]:
    if not value:
        return "0", "0" * precision, "e+00"
    _, digits, point = decimal_digits(value)
    known = min(precision, 350)
    rounded = Decimal(f"{digits[0]}.{digits[1:]}").quantize(Decimal(1).scaleb(-known), context=_EXACT)
    exponent = point - 1
    if rounded >= 10:
        rounded, exponent = rounded / 10, exponent + 1
        rounded = rounded.quantize(Decimal(1).scaleb(-known), context=_EXACT)
    whole, _, fraction = f"{rounded:f}".partition(".")
    return whole, fraction.ljust(precision, "0"), f"e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def _general(value: float, precision: int) -> tuple[str, str, str]:
    if not value:
        return "0", "0" * (precision - 1), ""
    _, _, exponent_text = _scientific(value, precision - 1)
    exponent = int(exponent_text[1:])
    if -4 <= exponent < precision:
        return *_fixed(value, precision - exponent - 1), ""
    return _scientific(value, precision - 1)
