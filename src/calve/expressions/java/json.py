"""JSON as Jackson writes it."""

import math
import re
from typing import Any

from calve.expressions.java.budget import Budget
from calve.expressions.java.hash_map import hash_order
from calve.expressions.java.numbers import double_text

_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def json_text(budget: Budget, content: Any) -> str:
    """Return plain content as JSON; the keys of a map come in the order of a Java hash map."""
    parts: list[str] = []
    size = 0
    for part in _parts(content):
        size += 2 * len(part)
        budget.check_room(size)
        parts.append(part)
    return "".join(parts)


def _parts(content: Any) -> Any:
    match content:
        case dict():
            yield "{"
            keys = list(content)
            for place, index in enumerate(hash_order(keys)):
                yield f"{',' if place else ''}{_quoted(keys[index])}:"
                yield from _parts(content[keys[index]])
            yield "}"
        case list():
            yield "["
            for place, element in enumerate(content):
                yield "," if place else ""
                yield from _parts(element)
            yield "]"
        case _:
            yield json_scalar(content)


def json_scalar(content: Any) -> str:
    """Return a scalar as JSON; a number that JSON has no way to write becomes a string."""
    match content:
        case None:
            return "null"
        case bool():
            return "true" if content else "false"
        case int():
            return str(content)
        case float():
            return double_text(content) if math.isfinite(content) else f'"{double_text(content)}"'
        case _:
            return _quoted(str(content))


def _quoted(text: str) -> str:
    return f'"{json_escaped(text)}"'


def json_escaped(text: str) -> str:
    """Return a text as it is written between the quotes of a JSON string."""
    return _ESCAPED.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"
