r"""Sets of characters: classes in brackets, ``\d`` and its like, and the properties that ``\p`` names."""

import re
import unicodedata
from collections.abc import Callable
from typing import TypeAlias

CharSet: TypeAlias = Callable[[str], bool]

LINE_ENDS = frozenset("\n\r\u0085\u2028\u2029")
_DIGITS = frozenset("0123456789")
_WORD = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_SPACE = frozenset(" \t\n\x0b\f\r")
_HORIZONTAL = frozenset(" \t\xa0\u1680\u180e\u202f\u205f\u3000") | frozenset(map(chr, range(0x2000, 0x200B)))
_VERTICAL = frozenset("\n\x0b\f\r\u0085\u2028\u2029")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ALPHA = _WORD - _DIGITS - {"_"}


def is_word(character: str) -> bool:
    r"""Tell whether ``\b`` sees a character as part of a word."""
    return character in _WORD or (not character.isascii() and character.isalnum())


def one(character: str) -> CharSet:
    """Return the set of one character."""
    return character.__eq__


def any_of(characters: frozenset[str]) -> CharSet:
    """Return the set of some characters."""
    return characters.__contains__


def negated(inner: CharSet) -> CharSet:
    """Return the set of all other characters."""
    return lambda character: not inner(character)


def union(sets: list[CharSet]) -> CharSet:
    """Return the set of what is in any of these."""
    return lambda character: any(inner(character) for inner in sets)


def intersection(left: CharSet, right: CharSet) -> CharSet:
    """Return the set of what is in both."""
    return lambda character: left(character) and right(character)


def between(first: str, last: str) -> CharSet:
    """Return the set of a range, both ends included."""
    return lambda character: first <= character <= last


def any_case(inner: CharSet) -> CharSet:
    """Return the set with its ASCII letters in either case."""

    def test(character: str) -> bool:
        return inner(character) or (character in _ALPHA and inner(character.swapcase()))

    return test


SHORTHANDS: dict[str, CharSet] = {
    "d": any_of(_DIGITS),
    "w": any_of(_WORD),
    "s": any_of(_SPACE),
    "h": any_of(_HORIZONTAL),
    "v": any_of(_VERTICAL),
}
SHORTHANDS |= {letter.upper(): negated(inner) for letter, inner in SHORTHANDS.items()}

_PROPERTIES: dict[str, CharSet] = {
    "Lower": between("a", "z"),
    "Upper": between("A", "Z"),
    "ASCII": between("\x00", "\x7f"),
    "Alpha": any_of(_ALPHA),
    "Digit": any_of(_DIGITS),
    "Alnum": any_of(_ALPHA | _DIGITS),
    "Punct": any_of(_PUNCTUATION),
    "Graph": between("!", "~"),
    "Print": between(" ", "~"),
    "Blank": any_of(frozenset(" \t")),
    "Cntrl": lambda character: character < " " or character == "\x7f",
    "XDigit": any_of(frozenset("0123456789abcdefABCDEF")),
    "Space": any_of(_SPACE),
    "LC": lambda character: unicodedata.category(character) in {"Lu", "Ll", "Lt"},
    "IsAlphabetic": str.isalpha,
    "IsLetter": str.isalpha,
    "IsDigit": str.isdecimal,
    "IsUppercase": str.isupper,
    "IsLowercase": str.islower,
    "IsWhite_Space": str.isspace,
}
_WITHOUT_CASE = {"Lower": "Alpha", "Upper": "Alpha", "Lu": "LC", "Ll": "LC", "Lt": "LC"}
_CATEGORIES = frozenset(
    re.findall("[A-Z][a-z]?", "LLuLlLtLmLoMMnMcMeNNdNlNoPPcPdPsPePiPfPoSSmScSkSoZZsZlZpCCcCfCsCoCn")
)


def property_named(name: str, *, any_case: bool) -> CharSet | None:
    r"""Return the set that ``\p{name}`` stands for, or None if we know none of that name."""
    if any_case:
        name = _WITHOUT_CASE.get(name, name)
    if name in _PROPERTIES:
        return _PROPERTIES[name]
    category = name.removeprefix("Is")
    if category not in _CATEGORIES:
        return None
    return lambda character: unicodedata.category(character).startswith(category)
