"""References in texts (``$name``, ``${name}``, and ``$$`` for a dollar sign), and the literals that contain them."""

import re
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from typing import Any

from calve.definition.model import MapParam, Param, SecretParam, StringArrayParam, StringMapParam, StringParam
from calve.definition.params.casts import scalar_text
from calve.definition.params.secrets import Secret, SecretText, joined, restored
from calve.errors import ParamError
from calve.expressions.java import json_escaped, json_scalar

SIZE_LIMIT = 750_000
"""The most characters of all params of one instance, and so of any text among them."""


class NotEvaluated(Enum):
    """The result of a param that is not evaluated yet."""

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
    """Return the index of the first reference to ``name``; None if there is none."""
    return next((found.start() for found in _REFERENCE.finditer(text) if name in found.groups()[1:]), None)


def unresolved_index(text: str) -> int | None:
    """Return the index of the first ``${`` that ``interpolate`` leaves in the text, because no name follows it.

    ``$${`` does not count: it is an escaped ``${``.
    """
    return next((found.start() for found in _BRACE.finditer(text) if found["brace"]), None)


def braced_text(text: str, index: int) -> str:
    """Return the ``${…}`` that begins at an index, or the rest of the line if it is not closed."""
    line = text[index:].split("\n", 1)[0]
    return line[: line.find("}") + 1 or len(line)][:60]


def line_and_column(text: str, index: int) -> tuple[int, int]:
    """Return the line and the column of a character of a text; both start at 1."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def escaped(text: str) -> str:
    """Return a text that ``interpolate`` turns into ``text``."""
    return text.replace("$", "$$")


def interpolate(text: str, values: Mapping[str, Any], limit: int = SIZE_LIMIT) -> str | SecretText:
    """Return ``text`` with its references replaced by values.

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
    """Return the text, or of several lines the one that refers to a name, with its number."""
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
        # References to long texts, which refer to longer ones, would fill the memory.
        if size > limit:
            raise ParamError(f"[{text[:100]}] becomes longer than [{limit}] characters")
        yield part


def rendered(value: Any) -> str | SecretText:
    """Return a value as text: arrays and maps as compact JSON, anything else as Java prints it."""
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
                json_escaped(part) if isinstance(part, str) else Secret(part.name, part.quotings + 1) for part in parts
            )
            yield from ('"', *quoted_parts, '"')
        case Mapping():
            yield "{"
            for index, (key, member) in enumerate(value.items()):
                yield f'{"," if index else ""}"{json_escaped(key)}":'
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
    """Return the step and the path within its params in a dotted name; None if it names no step.

    The ids of steps may contain dots, so the longest one that fits wins.
    """
    ends = [index for index, character in enumerate(name) if character == "."]
    for end in reversed(ends):
        if name[:end] in steps and name[end + 1 :]:
            return name[:end], name[end + 1 :]
    return None


def walk(members: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path of nested maps; None if there is none. A name with dots wins."""
    if path in members:
        return members[path]
    for end in (index for index, character in enumerate(path) if character == "."):
        inner = members.get(path[:end])
        if isinstance(inner, Mapping):
            found = walk(inner, path[end + 1 :])
            if found is not None:
                return found
    return None


KEPT = "kept"
"""The key in ``meta`` for the stored result of a text with secrets, which its shown value lacks."""


def literal_references(param: Param) -> tuple[str, ...]:
    """Return the names that the texts of a literal refer to, each once."""
    names = (name for _, text in _own_texts(param, "") for name in references(text))
    return tuple(dict.fromkeys(names))


def literal_texts(param: Param, field: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a literal, and of its members if it is a MAP, each with its field: ``spark.audit[0]``."""
    if isinstance(param, MapParam):
        for name, member in (param.value or {}).items():
            yield from literal_texts(member, f"{field}.{name}")
    else:
        yield from _own_texts(param, field)


def _own_texts(param: Param, field: str) -> Iterator[tuple[str, str]]:
    if KEPT in (param.meta or {}):
        return
    match param:
        case StringParam(value=str(text)):
            yield field, text
        case StringArrayParam(value=list(texts)):
            yield from ((f"{field}[{index}]", text) for index, text in enumerate(texts))
        case StringMapParam(value=dict(members)):
            for key, text in members.items():
                yield f"{field}.{key}", key
                yield f"{field}.{key}", text
        case _:
            pass


def evaluate_literal(param: Param, values: Mapping[str, Any]) -> Any:
    """Return the value of a literal with its references replaced; the members of a MAP are not evaluated here.

    Raises:
        ParamError: something that it refers to is missing, or two keys become one.
    """
    if param.meta and KEPT in param.meta:
        return restored(param.meta[KEPT])
    match param:
        case StringParam(value=str(text)):
            return interpolate(text, values)
        case StringArrayParam(value=list(texts)):
            return [interpolate(text, values) for text in texts]
        case StringMapParam(value=dict(members)):
            return _members(members, values)
        case SecretParam(value=str(name)):
            return Secret(name)
        case _:
            return param.value


def final_value(param: Param) -> Any:
    """Return the value of a literal without references, including the members of a MAP.

    Raises:
        ParamError: it contains a reference.
    """
    if isinstance(param, MapParam) and param.value is not None:
        return {name: final_value(member) for name, member in param.value.items()}
    return evaluate_literal(param, {})


def as_written(param: Param) -> Any:
    """Return the value of a literal as written, with its references.

    Raises:
        ParamError: it is not a literal.
    """
    match param:
        case MapParam(value=dict(members)):
            return {name: as_written(member) for name, member in members.items()}
        case SecretParam(value=str(name)):
            return Secret(name)
        case _ if param.is_literal and param.value is not None:
            return param.value
        case _:
            raise ParamError("An output must be a literal")


def _members(members: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    evaluated: dict[str, Any] = {}
    for key, text in members.items():
        name = interpolate(key, values)
        if not isinstance(name, str):
            raise ParamError(f"The key [{name}] holds a secret; only values can")
        value = interpolate(text, values)
        if name in evaluated:
            raise ParamError(f"There is a duplicate key with values [{evaluated[name]}] and [{value}]", key=name)
        evaluated[name] = value
    return evaluated
