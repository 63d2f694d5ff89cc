r"""Escapes: ``\uXXXX`` anywhere in the source, and the short ones inside a string literal."""

import re

from calve.errors import ExpressionInvalid

_BACKSLASHES = re.compile(r"\\+")
_SHORT = {"b": "\b", "n": "\n", "t": "\t", "f": "\f", "r": "\r", "\\": "\\", '"': '"', "'": "'"}
_HEX = frozenset("0123456789abcdefABCDEF")


def unescape_source(source: str) -> tuple[str, ExpressionInvalid | None]:
    r"""Return ``source`` with every ``\uXXXX`` replaced, as far as that goes, and what is wrong where it ends.

    After an even number of backslashes a ``u`` is just a ``u``.
    """
    if "\\u" not in source:
        return source, None
    parts: list[str] = []
    at = 0
    while found := _BACKSLASHES.search(source, at):
        end = found.end()
        if len(found.group()) % 2 == 0 or not source.startswith("u", end):
            parts.append(source[at:end])
            at = end
            continue
        parts.append(source[at : end - 1])
        while source.startswith("u", end):
            end += 1
        digits = source[end : end + 4]
        if len(digits) < 4 or not _HEX.issuperset(digits):
            line, column = source.count("\n", 0, end) + 1, end - source.rfind("\n", 0, end)
            return "".join(parts), ExpressionInvalid(
                f"Invalid escape character at line {line} column {column}.", kind="Error", line=line, column=column
            )
        parts.append(chr(int(digits, 16)))
        at = end + 4
    parts.append(source[at:])
    return "".join(parts), None


def unquote(literal: str, line: int, column: int) -> str:
    """Return what a string literal stands for; octal escapes are in the grammar, but not in the language."""
    if "\\" not in literal:
        return literal[1:-1]
    parts: list[str] = []
    characters = iter(literal[1:-1])
    for character in characters:
        if character != "\\":
            parts.append(character)
            continue
        short = _SHORT.get(next(characters))
        if short is None:
            raise ExpressionInvalid(
                f"Invalid escaped literal string: {literal}",
                kind="IllegalArgumentException",
                line=line,
                column=column,
            )
        parts.append(short)
    return "".join(parts)
