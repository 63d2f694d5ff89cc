"""Values as text: as Java prints them, and as its JSON library writes them."""

import re
from typing import Any

from calve.expressions.java import double_text

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')


def scalar_text(value: bool | float | str) -> str:  # noqa: FBT001 - a value, not a flag
    """Return a scalar as Java prints it: ``true``, ``3.0``, ``1.0E10``."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case _:
            return str(value)


def quoted(text: str) -> str:
    """Return ``text`` as it is written between the quotes of a JSON string."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found.group(), f"\\u{ord(found.group()):04X}"), text)


def json_scalar(value: Any) -> str:
    """Return a scalar as compact JSON; a number that JSON has no way to write becomes a string."""
    match value:
        case None:
            return "null"
        case str():
            return f'"{quoted(value)}"'
        case float() if value != value or value in {float("inf"), float("-inf")}:  # noqa: PLR0124 - NaN alone differs from itself
            return f'"{double_text(value)}"'
        case _:
            return scalar_text(value)
