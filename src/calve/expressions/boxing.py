"""Plain Python values into values of the language, and back. Both ways copy."""

from collections.abc import Mapping, Sequence
from typing import Any

from calve.expressions.failures import illegal_argument, too_deep, too_much_memory, unsupported
from calve.expressions.java.hash_map import HashMap
from calve.expressions.java.longs import INT_MAX, MAX, MIN, to_int
from calve.expressions.meter import OBJECT_SIZE, Run
from calve.expressions.rendering import shown, told, without_content
from calve.expressions.text import from_units, to_units
from calve.expressions.values import (
    NULL,
    Array,
    Bool,
    DateTime,
    Days,
    Double,
    Formatter,
    Long,
    Map,
    Null,
    Property,
    ResultType,
    Text,
    Value,
    Void,
    Zone,
)

_DEPTH = 200


def box(run: Run, content: Any) -> Value:
    """Return a new value with a plain Python content.

    Raises:
        ExpressionFailed: the language has no type for it.
    """
    if content is None:
        return NULL
    value = _box(run, content, 0)
    if value is None:
        raise unsupported(f"Return type class {type(content).__name__} is not supported.")
    return value


def _box(run: Run, content: Any, depth: int) -> Value | None:
    if depth > _DEPTH:
        raise too_deep("a parameter")
    if isinstance(content, str):
        text = to_units(content)
        run.charge(2 * len(text))
        return Text(text)
    if isinstance(content, Mapping):
        return _box_map(run, content, depth)
    if isinstance(content, Sequence) and not isinstance(content, bytes | bytearray | memoryview):
        return _box_array(run, content)
    return _box_number(run, content)


def _box_number(run: Run, content: Any) -> Value | None:
    if isinstance(content, bool):
        run.charge()
        return Bool(content)
    if isinstance(content, int):
        run.charge()
        return Long(int(content)) if MIN <= content <= MAX else None
    if isinstance(content, float):
        run.charge()
        return Double(float(content))
    return None


def _box_array(run: Run, content: Sequence[Any]) -> Value | None:
    kinds = {_kind(element) for element in content}
    run.charge()
    if kinds <= {str, type(None)}:
        return Array([_text(run, element) for element in content], ResultType.STRING_ARRAY)
    if kinds == {bool}:
        type_ = ResultType.BOOLEAN_ARRAY
    elif kinds == {int}:
        type_ = ResultType.LONG_ARRAY
    elif kinds <= {int, float}:
        type_ = ResultType.DOUBLE_ARRAY
        content = [float(element) for element in content]
    else:
        return None
    elements = [_box_number(run, element) for element in content]
    return Array([element for element in elements if element is not None], type_) if None not in elements else None


def _kind(element: object) -> type:
    """Return the plain class of an element, whatever class of its own it has."""
    return next((kind for kind in (bool, int, float, str) if isinstance(element, kind)), type(element))


def _text(run: Run, content: str | None) -> Text:
    units = None if content is None else to_units(content)
    run.charge(2 * len(units or ""))
    return Text(units)


def _box_map(run: Run, content: Mapping[Any, Any], depth: int) -> Map:
    run.charge()
    entries: HashMap[Text, Value] = HashMap()
    for key, element in content.items():
        boxed_key = _text(run, str(key))
        value = _box(run, element, depth + 1)
        if value is None:
            name = "null" if element is None else type(element).__name__
            raise illegal_argument(f"Invalid map entry type ({name}) for Map constructor")
        entries.put(boxed_key, value)
    return Map(entries)


def unbox(run: Run, value: Value) -> Any:
    """Return the content of a value in plain Python, and a date as its text; None where it has no content."""
    return _Unboxing(run).content(value, 0)


class _Unboxing:
    """Counts what is copied: an array that is in a map a thousand times comes out a thousand times."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._left = run.limits.memory

    def content(self, value: Value, depth: int) -> Any:
        size = len(value.val or "") if isinstance(value, Text) else 0
        self._run.tick(size)
        self._left -= OBJECT_SIZE + 2 * size
        if self._left <= 0:
            raise too_much_memory(self._run.limits.memory)
        match value:
            case Text():
                return None if value.val is None else from_units(value.val)
            case Long() | Double() | Bool():
                return value.val
            case Array():
                return [self.content(element, depth) for element in value.val]
            case Map():
                return self._map(value, depth)
            case DateTime() | Zone() | Property() | Days():
                return None if value.val is None else shown(self._run, value)
            case _:
                return None

    def _map(self, value: Map, depth: int) -> dict[str, Any] | None:
        if depth > _DEPTH:
            raise too_deep("the map")
        if value.val is None:
            return None
        entries: dict[str, Any] = {}
        for key, element in value.val.items():
            if not isinstance(element, Text | Long | Double | Bool | Array | Map):
                raise unsupported(
                    "Invalid type, not support having map entry value "
                    f"{told(self._run, key)}={told(self._run, element)}"
                )
            entries["null" if key.val is None else from_units(key.val)] = self.content(element, depth + 1)
        return entries


def argument(value: Value) -> Any:
    """Return a simple value as a method gets it: a whole number as 32 bits, unless it is too large for them.

    Arrays, maps and dates come as they are.

    Raises:
        ExpressionFailed: it has no content.
    """
    match value:
        case Long():
            return value.val if value.val > INT_MAX else to_int(value.val)
        case Text() | Double() | Bool() | DateTime() | Zone() | Formatter() | Property():
            return value.val
        case Days():
            return None if value.val is None else value
        case Null() | Void():
            return None
        case Map() | Array():
            return value
        case _:
            raise without_content(value)
