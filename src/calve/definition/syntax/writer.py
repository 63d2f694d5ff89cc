"""Write plain values as readable YAML and JSON that reads back as the same values. Pure."""

import json
import re
from collections.abc import Mapping
from typing import Any

from calve.definition.syntax import looks_boolean, resolve

_FLOW_WIDTH = 80
"""Characters; a list of scalars up to this length is written on one line."""
_LONGEST_IMPLICIT_KEY = 1000
"""Characters; YAML allows 1024 between the start of a key and its colon."""

# What the reader refuses unless it is escaped: control characters, lone surrogates, and special line breaks.
_ESCAPED = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_SAFE_START = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`=<~]")
_UNSAFE_INSIDE = re.compile(r"[\t\n]|:(?=\s|$)|\s#")
_UNSAFE_IN_FLOW = re.compile(r"[,?:\[\]{}]")
# Numbers, times and dates to other YAML readers, though not to ours.
_LIKE_NUMBER = re.compile(r"[-+.0-9][-+.0-9_:a-fA-FxoTZ ]*")
_SHORT_BOOLEANS = frozenset("yYnN")
_INDENT = "  "


def to_json(value: Any, *, indent: int | None = None) -> str:
    """Return a value as JSON, on one line unless ``indent`` says otherwise."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    # Only characters inside texts need escaping.
    return _ESCAPED.sub(_escape, written)


def to_yaml(value: Any) -> str:
    """Return a value as YAML in block style, its keys in their order."""
    head, below = _written(value)
    lines = [head, *below] if head else [line.removeprefix(_INDENT) for line in below]
    return "\n".join(lines) + "\n"


def _written(value: Any) -> tuple[str, list[str]]:
    """Return what follows a key on its line, and the lines below it."""
    match value:
        case Mapping():
            entries = [line for key, item in value.items() for line in _entry(key, item)]
            return ("", _indented(entries)) if entries else ("{}", [])
        case list() | tuple():
            if flow := _in_flow(value):
                return flow, []
            return "", _indented([line for item in value for line in _after("- ", item)])
        case str() if _is_literal(value):
            return _literal(value)
        case _:
            return _scalar(value), []


def _entry(key: Any, value: Any) -> list[str]:
    written = _text(key)
    if len(written) > _LONGEST_IMPLICIT_KEY:
        return [f"? {written}", *_after(": ", value)]
    head, below = _written(value)
    return [f"{written}: {head}" if head else f"{written}:", *below]


def _after(indicator: str, value: Any) -> list[str]:
    head, below = _written(value)
    if head:
        return [indicator + head, *below]
    # The first nested line moves up: the indicator is as wide as an indent.
    return [indicator + below[0].removeprefix(_INDENT), *below[1:]]


def _indented(lines: list[str]) -> list[str]:
    return [_INDENT + line if line else "" for line in lines]


def _in_flow(items: list[Any] | tuple[Any, ...]) -> str:
    """Return a short list of scalars on one line; empty for any other list."""
    if any(isinstance(item, Mapping | list | tuple) or (isinstance(item, str) and "\n" in item) for item in items):
        return ""
    written = f"[{', '.join(_scalar(item, in_flow=True) for item in items)}]"
    return written if len(written) <= _FLOW_WIDTH else ""


def _is_literal(text: str) -> bool:
    """Tell whether a text can be a literal block, in which some blanks would be misread."""
    first, *more = text.split("\n")
    has_odd_blanks = not first.strip() or first[0] in " \t" or any(line and not line.strip() for line in more)
    return bool(more) and not has_odd_blanks and not _ESCAPED.search(text)


def _literal(text: str) -> tuple[str, list[str]]:
    if not text.endswith("\n"):
        return "|-", _indented(text.split("\n"))
    return ("|+" if text.endswith("\n\n") else "|"), _indented(text.split("\n")[:-1])


def _scalar(value: Any, *, in_flow: bool = False) -> str:
    match value:
        case str():
            return _text(value, in_flow=in_flow)
        case float():
            # With a point, because some YAML readers take 1e+22 for a text.
            return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(value, allow_nan=False))
        case None | bool() | int():
            return json.dumps(value)
        case _:
            raise TypeError(f"{type(value).__name__} cannot be written as YAML")


def _text(text: str, *, in_flow: bool = False) -> str:
    if "\n" in text or "\t" in text or _ESCAPED.search(text):
        return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))
    is_plain = (
        _SAFE_START.match(text)
        and not _UNSAFE_INSIDE.search(text)
        and text == text.strip()
        and not (in_flow and _UNSAFE_IN_FLOW.search(text))
        and not _means_something_else(text)
    )
    return text if is_plain else "'" + text.replace("'", "''") + "'"


def _means_something_else(text: str) -> bool:
    is_text = isinstance(resolve(text), str)
    return not is_text or looks_boolean(text) or text in _SHORT_BOOLEANS or bool(_LIKE_NUMBER.fullmatch(text))


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
