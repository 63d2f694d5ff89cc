"""Convert plain Python values to values of the language and back, and call Java methods with them.

Both directions copy. As in Maestro, any error inside a Java method becomes a failure that names the method.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from calve.errors import ExpressionFailed
from calve.expressions.failures import illegal_argument, too_deep, too_much_memory, unsupported
from calve.expressions.java import INT_MAX, LONG_MAX, LONG_MIN, HashMap, PatternInvalid, to_int
from calve.expressions.joda import JodaError
from calve.expressions.limits import OBJECT_SIZE, Run
from calve.expressions.text import brief_text, from_units, shown, to_units, without_content
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
    """Return a new value with the content of a plain Python value.

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
        return Long(int(content)) if LONG_MIN <= content <= LONG_MAX else None
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
    """Return the built-in class of an element, also for an instance of a subclass."""
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
    """Return a value as plain Python, a date as its ISO text; None if it has no content."""
    return _Unboxing(run).content(value, 0)


class _Unboxing:
    """Copies values and counts their size: an array that occurs a thousand times is copied a thousand times."""

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
                    f"{brief_text(self._run, key)}={brief_text(self._run, element)}"
                )
            entries["null" if key.val is None else from_units(key.val)] = self.content(element, depth + 1)
        return entries


def argument(value: Value) -> Any:
    """Return a simple value as a Java method receives it: an integer as 32 bits, unless it is too large.

    Arrays, maps and dates are passed unchanged.

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


@dataclass(frozen=True, slots=True)
class Method:
    """A method: the classes of its arguments, and its implementation. None and other classes are refused."""

    parameters: tuple[type, ...]
    invoke: Callable[..., Value]
    takes_none: bool = False


@contextmanager
def inside_java(name: str) -> Iterator[None]:
    """Turn any failure of a method into the error that Maestro raises, except an exceeded limit."""
    try:
        yield
    except (ExpressionFailed, JodaError, PatternInvalid) as error:
        raise illegal_argument(f"Failed calling method {name}: {error}") from error


@contextmanager
def inside_joda() -> Iterator[None]:
    """Turn an error of the date library into an expression error of the same kind."""
    try:
        yield
    except JodaError as error:
        raise ExpressionFailed(str(error), kind=error.kind) from error


def invoke(run: Run, method: Method, name: str, content: Any, arguments: list[Value]) -> Value:
    """Call a method of an object that is not null."""
    with inside_java(name):
        given = [argument(value) for value in arguments]
        for value, class_ in zip(given, method.parameters, strict=True):
            if value is None and not method.takes_none:
                raise illegal_argument("an argument is null")
            if value is not None and not _is_a(value, class_):
                raise illegal_argument(f"{type(value).__name__} is not a {class_.__name__}")
        return method.invoke(run, content, *given)


def _is_a(value: object, class_: type) -> bool:
    if class_ is int:
        # In Java, a number that needs more than 32 bits is a Long, not an Integer.
        return type(value) is int and value < 2**31
    return isinstance(value, class_)
