"""Arrays and maps: their construction, their elements and their methods."""

from collections.abc import Callable, Sequence

from calve.errors import ExpressionFailed
from calve.expressions.failures import (
    class_cast,
    illegal_argument,
    null_pointer,
    out_of_bounds,
    too_long_array,
    unsupported,
)
from calve.expressions.java import HashMap, to_int
from calve.expressions.limits import OBJECT_SIZE, Run
from calve.expressions.operators import assign
from calve.expressions.tree import AssignmentOperator
from calve.expressions.values import ARRAYS, ELEMENTS, NULL, Array, Bool, Long, Map, Params, ResultType, Text, Value
from calve.expressions.variables import param


def new_array(run: Run, element: ResultType, length: Value) -> Array:
    """Return a new array of a length."""
    if not isinstance(length, Long):
        raise class_cast(length.java_class, "SelLong")
    size = to_int(length.val)
    if size >= run.limits.array:
        raise too_long_array(run.limits.array, length.val)
    return _blank_array(run, element, size)


def filled_array(run: Run, element: ResultType, elements: Sequence[Callable[[Run], Value]]) -> Array:
    """Return a new array with these elements."""
    if len(elements) >= run.limits.array:
        raise too_long_array(run.limits.array, len(elements))
    values = [evaluate(run) for evaluate in elements]
    array = _blank_array(run, element, len(values))
    # Maestro assigns from the last one, so the last wrong type is the one in the error.
    for target, value in zip(reversed(array.val), reversed(values), strict=True):
        assign(run, AssignmentOperator.SET, target, value)
    return array


def _blank_array(run: Run, element: ResultType, size: int) -> Array:
    if element not in ARRAYS:
        raise unsupported(f"NOT support creating an array with the element type {element}")
    run.charge()
    if size < 0:
        raise ExpressionFailed(str(size), kind="NegativeArraySizeException")
    run.check_room(size * OBJECT_SIZE)
    run.room -= size * OBJECT_SIZE
    make = ELEMENTS[element]
    return Array([make() for _ in range(size)], ARRAYS[element])


def element_of(array: Value, index: int) -> Value:
    """Return the element at an index, which is the object in the array itself."""
    if not isinstance(array, Array):
        raise class_cast(array.java_class, "SelArray")
    if not 0 <= index < len(array.val):
        raise out_of_bounds(f"Index {index} out of bounds for length {len(array.val)}")
    return array.val[index]


def indexed(run: Run, value: Value, index: Value) -> Value:
    """Return ``value[index]``: an element of an array, or one of ``params``."""
    match index:
        case Long():
            return element_of(value, to_int(index.val))
        case Text():
            if not isinstance(value, Params):
                raise class_cast(value.java_class, "SelParams")
            return param(run, index)
        case _:
            raise illegal_argument(f"Invalid index type: {index.type}")


def call_map(run: Run, value: Map, name: str, arguments: list[Value]) -> Value | None:
    """Call a method and return its result; None if the method does not exist."""
    match name, arguments:
        case "size", []:
            run.charge()
            return Long(0 if value.val is None else len(value.val))
        case "containsKey", [key]:
            found = value.val is not None and value.val.get(_key(key).val) is not None
            run.charge()
            return Bool(found)
        case "get", [key]:
            return _entries(value, key).get(_key(key).val) or NULL
        case "getOrDefault", [key, default]:
            return _entries(value, key).get(_key(key).val) or default
        case "put", [key, element]:
            return _entries(value, key).put(_key(key), element) or NULL
        case _:
            return None


def _key(key: Value) -> Text:
    if not isinstance(key, Text):
        raise class_cast(key.java_class, "SelString")
    return key


def _entries(value: Map, key: Value) -> HashMap[Text, Value]:
    _key(key)
    if value.val is None:
        raise null_pointer("the map is null: it was declared but not assigned")
    return value.val
