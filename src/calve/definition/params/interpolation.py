"""References in text: ``$name``, ``${name}`` and ``$$``, replaced once."""

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import Any

from calve.definition.params.json_text import json_scalar, quoted, scalar_text
from calve.definition.params.secrets import Secret, SecretText, joined
from calve.errors import ParamError

SIZE_LIMIT = 750_000
"""How many characters the params of one instance may have, and so any text among them."""


class NotEvaluated(Enum):
    """Stands for the value of a param that has none yet."""

    NOT_EVALUATED = "not evaluated"


NOT_EVALUATED = NotEvaluated.NOT_EVALUATED

# Read from the left, a pair of dollars is one dollar, so what follows it is plain text.
_REFERENCE = re.compile(r"\$(?:(\$)|\{([a-zA-Z][\-_./a-zA-Z0-9]*)\}|([a-zA-Z][_a-zA-Z0-9]*))")
_BRACE = re.compile(rf"{_REFERENCE.pattern}|(?P<brace>\$\{{)")


def references(text: str) -> tuple[str, ...]:
    """Return the names that ``text`` refers to, each once, in order."""
    names = (braced or bare for _, braced, bare in _REFERENCE.findall(text))
    return tuple(dict.fromkeys(name for name in names if name))


def is_reference(text: str) -> bool:
    """Tell whether a text is one reference and nothing else."""
    found = _REFERENCE.fullmatch(text.strip())
    return found is not None and not found[1]


def reference_index(text: str, name: str) -> int | None:
    """Return where ``text`` refers to ``name`` for the first time; None if it does not."""
    return next((found.start() for found in _REFERENCE.finditer(text) if name in found.groups()[1:]), None)


def unresolved_index(text: str) -> int | None:
    """Return where the first ``${`` is that ``interpolate`` leaves in the text, because no name follows it.

    ``$${`` is not meant: it is how to write a ``${`` of one's own.
    """
    return next((found.start() for found in _BRACE.finditer(text) if found["brace"]), None)


def braced_text(text: str, index: int) -> str:
    """Return the ``${…}`` that begins at a character, or the rest of the line where it is not closed."""
    line = text[index:].split("\n", 1)[0]
    return line[: line.find("}") + 1 or len(line)][:60]


def line_and_column(text: str, index: int) -> tuple[int, int]:
    """Return the line and the column of a character of a text; both start at 1."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def escaped(text: str) -> str:
    """Return the text that ``interpolate`` gives back as ``text``."""
    return text.replace("$", "$$")


def interpolate(text: str, values: Mapping[str, Any], limit: int = SIZE_LIMIT) -> str | SecretText:
    """Return ``text`` with the values of what it refers to.

    Raises:
        ParamError: a param is not found or has no value yet, or the text grows beyond the limit.
    """
    return joined(_within_limit(text, _parts(text, values), limit))


def _parts(text: str, values: Mapping[str, Any]) -> Iterator[str | Secret | SecretText]:
    end = 0
    for found in _REFERENCE.finditer(text):
        yield text[end : found.start()]
        end = found.end()
        dollar, braced, bare = found.groups()
        if dollar:
            yield "$"
        else:
            yield rendered(_value(braced or bare, text, values))
    yield text[end:]


def _value(name: str, text: str, values: Mapping[str, Any]) -> Any:
    value = values.get(name)
    if value is None:
        raise ParamError(f"Cannot interpolate [{_line(text, name)}] as param [{name}] is not found", reference=name)
    if value is NOT_EVALUATED:
        raise ParamError(
            f"Cannot interpolate [{_line(text, name)}] as param [{name}] is not evaluated yet", reference=name
        )
    return value


def _line(text: str, name: str) -> str:
    """Return the text, or the line of it that refers to a name, with its number."""
    if "\n" not in text:
        return text
    line, column = line_and_column(text, reference_index(text, name) or 0)
    return f"{text.splitlines()[line - 1].strip()}] at line [{line}] column [{column}"


def _within_limit(
    text: str, parts: Iterator[str | Secret | SecretText], limit: int
) -> Iterator[str | Secret | SecretText]:
    size = 0
    for part in parts:
        size += len(str(part))
        # A few references to long texts, which refer to longer ones, would fill the memory.
        if size > limit:
            raise ParamError(f"[{text[:100]}] becomes longer than [{limit}] characters")
        yield part


def rendered(value: Any) -> str | SecretText:
    """Return a value as it stands in a text: arrays and maps as compact JSON, all else as Java prints it."""
    match value:
        case Secret() | SecretText():
            return joined([value])
        case Mapping() | list() | tuple():
            return joined(_json(value))
        case _:
            return scalar_text(value)


def _json(value: Any) -> Iterator[str | Secret]:
    match value:
        case Secret(name, quotings):
            yield from ('"', Secret(name, quotings + 1), '"')
        case SecretText(parts):
            quoted_parts = (
                quoted(part) if isinstance(part, str) else Secret(part.name, part.quotings + 1) for part in parts
            )
            yield from ('"', *quoted_parts, '"')
        case Mapping():
            yield "{"
            for index, (key, member) in enumerate(value.items()):
                yield f'{"," if index else ""}"{quoted(key)}":'
                yield from _json(member)
            yield "}"
        case list() | tuple():
            yield "["
            for index, member in enumerate(value):
                yield "," if index else ""
                yield from _json(member)
            yield "]"
        case _:
            yield json_scalar(value)


def step_reference(name: str, steps: Collection[str]) -> tuple[str, str] | None:
    """Return the step and the path within its params that a dotted name means, or None if it means no step.

    The ids of steps may hold dots, so the longest one that fits is taken.
    """
    ends = [index for index, character in enumerate(name) if character == "."]
    for end in reversed(ends):
        if name[:end] in steps and name[end + 1 :]:
            return name[:end], name[end + 1 :]
    return None


def walk(members: Mapping[str, Any], path: str) -> Any:
    """Return what a dotted path leads to through nested maps, or None; a name that itself holds dots goes first."""
    if path in members:
        return members[path]
    for end in (index for index, character in enumerate(path) if character == "."):
        inner = members.get(path[:end])
        if isinstance(inner, Mapping):
            found = walk(inner, path[end + 1 :])
            if found is not None:
                return found
    return None
