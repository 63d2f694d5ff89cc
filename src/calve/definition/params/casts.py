"""Casts of values to the types of params, with Maestro's messages."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from calve.definition.model import ParamType
from calve.definition.params.secrets import Secret, SecretText
from calve.errors import ParamError
from calve.expressions.java import double_text, parse_long

NESTING = 64
"""The maximum nesting depth of maps."""

_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,10})?")
_ARRAY_CLASSES = {str: "[Ljava.lang.String;", bool: "[Z", int: "[J", float: "[D"}
_OBJECTS = "[Ljava.lang.Object;"
_SHOWN = 200


def scalar_text(value: bool | float | str) -> str:  # noqa: FBT001 - a value, not a flag
    """Return a scalar as Java prints it: ``true``, ``3.0``, ``1.0E10``."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return double_text(value)
        case _:
            return str(value)


@dataclass(frozen=True, slots=True)
class Cast:
    """A value of the right type, and a note if it was converted."""

    value: Any
    note: tuple[str, str] | None = None


def cast(name: str, to: ParamType, value: Any) -> Cast:
    """Return ``value`` cast to the type ``to``, for the param of that name.

    Raises:
        ParamError: it does not fit.
    """
    return _CASTS[to](name, value)


def java_class(value: Any) -> str:
    """Return the Java class of a value, as Maestro's messages show it."""
    match value:
        case bool():
            return "class java.lang.Boolean"
        case int():
            return "class java.lang.Long"
        case float():
            return "class java.lang.Double"
        case str() | SecretText():
            return "class java.lang.String"
        case Mapping():
            return "class java.util.HashMap"
        case list() | tuple():
            kinds = {_ARRAY_CLASSES.get(type(member), _OBJECTS) for member in value}
            return f"class {kinds.pop() if len(kinds) == 1 else _OBJECTS}"
        case _:
            return f"class {type(value).__name__}"


def _incompatible(name: str, word: str, value: Any) -> ParamError:
    return ParamError(
        f"Param [{name}] is expected to be a {word} compatible type but is [{java_class(value)}]", param=name
    )


def _unfit(name: str, word: str, value: str) -> ParamError:
    return ParamError(
        f"Param [{name}] is expected to have a {word} compatible result but is [{value[:_SHOWN]}]", param=name
    )


def _string(name: str, value: Any) -> Cast:
    match value:
        case str() | SecretText():
            return Cast(value)
        case bool() | int() | float():
            told = f"Implicitly converted the evaluated result to a string for type {java_class(value)}"
            return Cast(scalar_text(value), ("info", told))
        case _:
            raise _incompatible(name, "String", value)


def _long(name: str, value: Any) -> Cast:
    match value:
        case bool():
            raise _incompatible(name, "Long", value)
        case int():
            return Cast(value)
        case str():
            number = parse_long(value)
            if number is None:
                raise ParamError(f'Param [{name}]: For input string: "{value[:_SHOWN]}"', param=name)
            return Cast(number, ("warn", "Implicitly converted the evaluated result to a long for type String"))
        case _:
            raise _incompatible(name, "Long", value)


def _double(name: str, value: Any) -> Cast:
    match value:
        case bool():
            raise _incompatible(name, "Double", value)
        case int() | float():
            number = float(value)
        case str() if _DECIMAL.fullmatch(value):
            number = float(value)
        case str():
            raise _unfit(name, "Double", value)
        case _:
            raise _incompatible(name, "Double", value)
    if not math.isfinite(number):
        raise _unfit(name, "Double", str(value))
    return Cast(number)


def _boolean(name: str, value: Any) -> Cast:
    match value:
        case bool():
            return Cast(value)
        case str():
            lowered = value.lower()
            if lowered not in {"true", "false"}:
                raise _unfit(name, "Boolean", value)
            told = "Implicitly converted the evaluated result to a boolean for type String"
            return Cast(lowered == "true", ("warn", told))
        case _:
            raise _incompatible(name, "Boolean", value)


def _string_map(name: str, value: Any) -> Cast:
    return Cast({key: _string(f"{name}.{key}", member).value for key, member in _mapping(name, value).items()})


def _map(name: str, value: Any) -> Cast:
    return Cast(_mapping(name, value))


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise _incompatible(name, "Map", value)
    if _is_deeper(value, NESTING):
        raise ParamError(f"Param [{name}] is nested deeper than [{NESTING}] maps", param=name)
    return dict(value)


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, Mapping):
        return False
    return levels == 0 or any(_is_deeper(member, levels - 1) for member in value.values())


def _string_array(name: str, value: Any) -> Cast:
    if not isinstance(value, list | tuple) or not all(
        isinstance(member, str | bool | int | float | SecretText) for member in value
    ):
        raise _invalid(name, value)
    texts = [_string(name, member) for member in value]
    if not any(text.note for text in texts):
        return Cast([text.value for text in texts])
    told = f"Implicitly converted the evaluated result to a string array for type {java_class(value)}"
    return Cast([text.value for text in texts], ("info", told))


def _array_of(kind: type[bool | int | float]) -> Callable[[str, Any], Cast]:
    def array(name: str, value: Any) -> Cast:
        # Exactly that type: True is an int to Python, and a long is not a double to Maestro.
        if not isinstance(value, list | tuple) or not all(type(member) is kind for member in value):
            raise _invalid(name, value)
        return Cast(list(value))

    return array


def _invalid(name: str, value: Any) -> ParamError:
    shown = str(value)[:_SHOWN]
    return ParamError(f"Param [{name}] has an invalid evaluated result [{shown}]", param=name)


def _secret(name: str, value: Any) -> Cast:
    match value:
        case Secret():
            return Cast(value)
        case str():
            return Cast(Secret(value))
        case _:
            raise _incompatible(name, "Secret", value)


_CASTS: dict[ParamType, Callable[[str, Any], Cast]] = {
    ParamType.STRING: _string,
    ParamType.LONG: _long,
    ParamType.DOUBLE: _double,
    ParamType.BOOLEAN: _boolean,
    ParamType.STRING_MAP: _string_map,
    ParamType.MAP: _map,
    ParamType.STRING_ARRAY: _string_array,
    ParamType.LONG_ARRAY: _array_of(int),
    ParamType.DOUBLE_ARRAY: _array_of(float),
    ParamType.BOOLEAN_ARRAY: _array_of(bool),
    ParamType.SECRET: _secret,
}
