"""What a scalar without quotes means: the core schema of YAML 1.2, within what JSON can hold. Pure."""

import re
from dataclasses import dataclass
from math import isfinite

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_BOOLEANS_OF_YAML_1_1 = frozenset({"yes", "no", "on", "off"})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_OCTAL_OR_HEXADECIMAL = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_MAY_BE_A_NUMBER = frozenset("-+.0123456789")

_LONG = range(-(2**63), 2**63)
_LONGEST_NUMBER = 400
"""Characters; every 64-bit number is written with fewer, and every float can be."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a scalar has no value."""

    code: str
    message: str
    hint: str


def resolve(text: str) -> bool | int | float | str | Unfit | None:
    """Return the value of a scalar that is written without quotes."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _MAY_BE_A_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return _number(text, 10)
    if _OCTAL_OR_HEXADECIMAL.fullmatch(text):
        return _number(text, 0)
    if _FLOAT.fullmatch(text):
        return _number(text, None)
    if _NOT_FINITE.fullmatch(text):
        return Unfit("not_finite", f"{text} is no number that can be stored", "quote it if text is meant")
    return text


def looks_boolean(text: str) -> bool:
    """Tell whether older readers of YAML take this text for true or false."""
    return text.lower() in _BOOLEANS_OF_YAML_1_1


def _number(text: str, base: int | None) -> int | float | Unfit:
    # The length comes first: reading a number takes more than linear time.
    if len(text) > _LONGEST_NUMBER:
        return _unfit(f"the number {text[:20]}… has {len(text)} characters, which is too many")
    number = float(text) if base is None else int(text, base)
    fits = isfinite(number) if isinstance(number, float) else number in _LONG
    return number if fits else _unfit(f"the number {text} does not fit in 64 bits")


def _unfit(message: str) -> Unfit:
    return Unfit("number_too_large", message, "quote it if text is meant")
