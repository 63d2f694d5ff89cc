"""Arrays: making them, and what is at an index."""

from collections.abc import Callable, Sequence

from calve.errors import ExpressionFailed
from calve.expressions.failures import class_cast, illegal_argument, out_of_bounds, too_long_array, unsupported
from calve.expressions.java.longs import to_int
from calve.expressions.meter import OBJECT_SIZE, Run
from calve.expressions.operators import assign
from calve.expressions.tree import Assigning
from calve.expressions.values import ARRAYS, ELEMENTS, Array, Long, Params, ResultType, Text, Value
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
    # From the last one, which decides whose type is complained about.
    for target, value in zip(reversed(array.val), reversed(values), strict=True):
        assign(run, Assigning.SET, target, value)
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
