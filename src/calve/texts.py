"""Validation of text, which must be Unicode without NUL and lone surrogates; and names quoted for SQL. Pure.

JSON and Python strings can contain half of a surrogate pair, but UTF-8 cannot: such a value could be stored, but not
shown. PostgreSQL cannot store NUL. So calve refuses both in its input.
"""

import re
from collections.abc import Mapping
from typing import Any

from calve.errors import RequestInvalid

_NO_CHARACTER = re.compile("[\0\ud800-\udfff]")
_CLEAR_KEY = re.compile(r"[\w-]+")
_NUMBERS = frozenset({int, float, bool})
_SHOWN = 100


def check_text(value: Any, place: str = "") -> None:
    """Refuse a JSON value with an invalid character in a string or a key.

    Args:
        value: the value to check.
        place: the path of the value, such as ``run_params``.

    Raises:
        RequestInvalid: it has one; the message names the place.
    """
    fault = text_fault(value, place)
    if fault is not None:
        raise RequestInvalid(fault, remedy="Remove it, or write the whole character.")


def text_fault(value: Any, place: str = "") -> str | None:
    """Return a sentence about the first invalid character in a JSON value; None if there is none."""
    pending: list[tuple[Any, str]] = [(value, place)]
    while pending:  # without recursion, because the value may be nested as deeply as the JSON parser allows
        one, where = pending.pop()
        match one:
            case str():
                if found := _found(one):
                    return f"{where or 'The text'} holds {found}."
            case Mapping():
                for key, item in one.items():
                    if isinstance(key, str) and (found := _found(key)):
                        return f"A key in {where or 'the document'} holds {found}."
                    pending.append((item, _path(where, str(key))))
            case list() | tuple():
                pending += [
                    (item, f"{where}[{index}]")
                    for index, item in enumerate(one)
                    if type(item) not in _NUMBERS  # most long lists contain only numbers
                ]
            case _:
                pass
    return None


def only_text(text: str) -> str:
    """Return a text with its invalid characters replaced, for messages that are stored without validation."""
    return text if text.isascii() and "\0" not in text else _NO_CHARACTER.sub("\ufffd", text)


def quoted(*parts: str) -> str:
    """Return the parts of a name as one, quoted for Spark SQL."""
    return ".".join(f"`{part.replace('`', '``')}`" for part in parts)


def _found(text: str) -> str | None:
    found = None if text.isprintable() else _NO_CHARACTER.search(text)
    if found is None:
        return None
    return "\\u0000 (NUL)" if found[0] == "\0" else f"\\u{ord(found[0]):04x}, half of a surrogate pair"


def _path(place: str, key: str) -> str:
    if len(key) > _SHOWN or not _CLEAR_KEY.fullmatch(key):
        return f"{place}[{key[:_SHOWN]!r}]"
    return f"{place}.{key}" if place else key
