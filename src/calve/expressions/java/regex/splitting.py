"""Cutting a text where a pattern matches."""

from collections.abc import Iterator

from calve.expressions.java.budget import Budget
from calve.expressions.java.regex.matching import Groups, compile_pattern

_OBJECT_SIZE = 32


def matches(budget: Budget, text: str, pattern: str) -> Iterator[Groups]:
    """Yield every match, from the left, none inside another; raise if the pattern is none."""
    compiled = compile_pattern(pattern)
    start = search_start = 0
    while start <= len(text):
        found = compiled.find(budget, text, start, search_start)
        if found is None:
            return
        yield found
        search_start = found[1]
        start = found[1] + (1 if found[0] == found[1] else 0)


def split(budget: Budget, text: str, pattern: str, limit: int) -> list[str]:
    """Return the parts of ``text``: at most ``limit`` if that is above 0; with 0, without empty ones at the end."""
    parts: list[str] = []
    at = 0
    for start, end, *_ in matches(budget, text, pattern):
        if 0 < limit <= len(parts) + 1:
            break
        if end == 0:
            # Nothing was found before the first character, so there is no empty part before it.
            continue
        parts.append(text[at:start])
        at = end
        budget.check_room(len(parts) * _OBJECT_SIZE)
    if at == 0 and not parts:
        return [text]
    parts.append(text[at:])
    if limit == 0:
        while parts and not parts[-1]:
            parts.pop()
    return parts
