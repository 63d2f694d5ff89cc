"""Search with Java's regular expressions in bounded time: split a text, or replace every match."""

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from calve.expressions.java.budget import Budget
from calve.expressions.java.regex.sets import PatternInvalid
from calve.expressions.java.regex.syntax import LAST_END, UNSURE, translate

if TYPE_CHECKING:
    import regex

_OBJECT_SIZE = 32
_DIGITS = frozenset("0123456789")
_SPECIAL = re.compile(r"[$\\]")

_Match: TypeAlias = tuple[int, int, tuple[str | None, ...]]
"""The start and end of a match, and the texts of its groups."""


class _Pattern:
    """A translated pattern, compiled when it first searches."""

    def __init__(self, pattern: str) -> None:
        self.translation = translate(pattern)

    def matches(self, budget: Budget, text: str) -> Iterator[_Match]:
        """Yield all matches from left to right, without overlaps."""
        if self.translation.is_ascii_only and not text.isascii():
            raise PatternInvalid("A reference to a group in either case is supported in ASCII text only")
        budget.check_search(len(text) * self.translation.weight)
        start = end = 0
        while start <= len(text):
            found = budget.search((self._first if start == end else self._later).search, text, start)
            if found is None:
                return
            end = found.end()
            yield found.start(), end, found.groups()
            start = end + (found.start() == end)

    @cached_property
    def _first(self) -> "regex.Pattern[str]":
        return _compiled(self.translation.source.replace(LAST_END, r"\G"))

    @cached_property
    def _later(self) -> "regex.Pattern[str]":
        """The pattern for a search that starts after the end of the last match, as it does after an empty match."""
        if LAST_END not in self.translation.source:
            return self._first
        return _compiled(self.translation.source.replace(LAST_END, "(?!)"))


def _compiled(source: str) -> "regex.Pattern[str]":
    import regex  # it takes a while to load, and few expressions need it

    try:
        return regex.compile(source, regex.VERSION1)
    except regex.error as error:
        raise PatternInvalid(f"The pattern is not supported: {error}") from error


_pattern = lru_cache(maxsize=128)(_Pattern)


def split(budget: Budget, text: str, pattern: str, limit: int) -> list[str]:
    """Return the parts of ``text``: at most ``limit`` if that is above 0; with 0, without empty ones at the end."""
    compiled = _pattern(pattern)
    literal = compiled.translation.literal
    if literal is not None:
        budget.check_room(text.count(literal) * _OBJECT_SIZE)
        parts = text.split(literal, limit - 1 if limit > 0 else -1)
    else:
        parts = _split(budget, text, compiled, limit)
    if limit == 0 and len(parts) > 1:
        while parts and not parts[-1]:
            parts.pop()
    return parts


def _split(budget: Budget, text: str, pattern: _Pattern, limit: int) -> list[str]:
    parts: list[str] = []
    at = 0
    for start, end, _ in pattern.matches(budget, text):
        if 0 < limit <= len(parts) + 1:
            break
        if end == 0:
            # Nothing was found before the first character, so there is no empty part before it.
            continue
        parts.append(text[at:start])
        at = end
        budget.check_room(len(parts) * _OBJECT_SIZE)
    return [*parts, text[at:]]


def replace_all(budget: Budget, text: str, pattern: str, replacement: str | None) -> str:
    r"""Return ``text`` with every match replaced; ``$1`` and ``${name}`` are groups, ``\`` takes the next as is."""
    compiled = _pattern(pattern)
    literal = compiled.translation.literal
    if literal is not None and replacement is not None and not _SPECIAL.search(replacement):
        budget.check_room(2 * text.count(literal) * len(replacement))
        return text.replace(literal, replacement)
    parts: list[str] = []
    at = size = 0
    for start, end, groups in compiled.matches(budget, text):
        if replacement is None:
            raise PatternInvalid("the replacement is null")
        for part in (text[at:start], *_expanded(compiled, replacement, (text[start:end], *groups))):
            size += 2 * len(part)
            parts.append(part)
        at = end
        budget.check_room(size)
    parts.append(text[at:])
    return "".join(parts)


def _expanded(pattern: _Pattern, replacement: str, groups: tuple[str | None, ...]) -> Iterator[str]:
    at = 0
    while found := _SPECIAL.search(replacement, at):
        yield replacement[at : found.start()]
        at = found.end()
        if found.group() == "$":
            number, at = _group_number(pattern, replacement, at)
            yield groups[number] or ""
        elif at < len(replacement):
            yield replacement[at]
            at += 1
        else:
            raise PatternInvalid("character to be escaped is missing")
    yield replacement[at:]


def _group_number(pattern: _Pattern, replacement: str, at: int) -> tuple[int, int]:
    """Return the number of the group that a reference names, and where the reference ends."""
    known = pattern.translation
    if replacement.startswith("{", at):
        end = replacement.find("}", at)
        name = replacement[at + 1 : end]
        if end < 0 or name not in known.names:
            raise PatternInvalid(f"No group with name {{{name[:100]}}}")
        number, at = known.names[name], end + 1
    else:
        end = at + 1
        if replacement[at:end] not in _DIGITS:
            raise PatternInvalid("Illegal group reference")
        # More digits belong to it as long as there are that many groups.
        while replacement[end : end + 1] in _DIGITS and int(replacement[at : end + 1]) <= known.groups:
            end += 1
        number, at = int(replacement[at:end]), end
        if number > known.groups:
            raise PatternInvalid(f"No group {number}")
    if number in known.unsure:
        raise PatternInvalid(UNSURE)
    return number, at
