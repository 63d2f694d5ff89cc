"""The literals of params: what they refer to, and what they give."""

from collections.abc import Iterator, Mapping
from typing import Any

from calve.definition.model.params import (
    MapParam,
    Param,
    SecretParam,
    StringArrayParam,
    StringMapParam,
    StringParam,
)
from calve.definition.params.interpolation import interpolate, references
from calve.definition.params.secrets import Secret, restored
from calve.errors import ParamError

KEPT = "kept"
"""The key in a param's ``meta`` of a text with secrets that was evaluated before: shown, it would lose them."""


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
    """Return what a literal gives, with the values of what it refers to; a MAP's members are not evaluated here.

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
    """Return what a literal gives that refers to nothing, with the members of a MAP.

    Raises:
        ParamError: it does refer to something.
    """
    if isinstance(param, MapParam) and param.value is not None:
        return {name: final_value(member) for name, member in param.value.items()}
    return evaluate_literal(param, {})


def as_written(param: Param) -> Any:
    """Return the value of a literal as it is written, references and all.

    Raises:
        ParamError: it is no literal.
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
            raise ParamError(f"The key [{name}] holds a secret; only a value can")
        value = interpolate(text, values)
        if name in evaluated:
            raise ParamError(f"There is a duplicate key with values [{evaluated[name]}] and [{value}]", key=name)
        evaluated[name] = value
    return evaluated
