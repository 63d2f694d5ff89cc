"""What operators do with values of each type.

The type on the left decides. If it does not support the type on the right, the error is the one that Maestro raises.
"""

import operator as python
from collections.abc import Callable
from typing import Any

from calve.errors import ExpressionFailed
from calve.expressions.failures import class_cast, null_pointer, type_mismatch, unsupported
from calve.expressions.java import (
    divide_doubles,
    divide_longs,
    double_text,
    remainder_of_doubles,
    remainder_of_longs,
    wrap,
)
from calve.expressions.limits import Run
from calve.expressions.text import appended, without_content
from calve.expressions.tree import AssignmentOperator, Operator, Sign
from calve.expressions.values import (
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
    Text,
    Uuid,
    Value,
    Void,
    Zone,
)

COMPARISONS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: python.eq,
    Operator.NOT_EQUAL: python.ne,
    Operator.LESS: python.lt,
    Operator.GREATER: python.gt,
    Operator.LESS_EQUAL: python.le,
    Operator.GREATER_EQUAL: python.ge,
}
_EQUALITIES = frozenset({Operator.EQUAL, Operator.NOT_EQUAL})
_LONG_NAME = "int/Integer/long/Long"
_DOUBLE_NAME = "float/Float/double/Doubles"


def _divided(left: int, right: int) -> int:
    if not right:
        raise ExpressionFailed("/ by zero", kind="ArithmeticException")
    return divide_longs(left, right)


def _remaining(left: int, right: int) -> int:
    if not right:
        raise ExpressionFailed("/ by zero", kind="ArithmeticException")
    return remainder_of_longs(left, right)


LONG_ARITHMETIC: dict[Operator, Callable[[int, int], int]] = {
    Operator.ADD: python.add,
    Operator.SUBTRACT: python.sub,
    Operator.MULTIPLY: python.mul,
    Operator.DIVIDE: _divided,
    Operator.REMAINDER: _remaining,
}
"""Without the wrap to 64 bits."""

_DOUBLE_ARITHMETIC: dict[Operator, Callable[[float, float], float]] = {
    Operator.ADD: python.add,
    Operator.SUBTRACT: python.sub,
    Operator.MULTIPLY: python.mul,
    Operator.DIVIDE: divide_doubles,
    Operator.REMAINDER: remainder_of_doubles,
}
_ASSIGNED: dict[AssignmentOperator, Operator] = {
    AssignmentOperator.MULTIPLY: Operator.MULTIPLY,
    AssignmentOperator.DIVIDE: Operator.DIVIDE,
    AssignmentOperator.REMAINDER: Operator.REMAINDER,
    AssignmentOperator.ADD: Operator.ADD,
    AssignmentOperator.SUBTRACT: Operator.SUBTRACT,
}


def binary(run: Run, operator: Operator, left: Value, right: Value) -> Value:
    """Return ``left operator right``."""
    match left:
        case Long():
            return _binary_long(run, operator, left, right)
        case Double():
            return _binary_double(run, operator, left.val, right)
        case Text():
            return _binary_text(run, operator, left.val, right)
        case Bool():
            return _binary_bool(run, operator, left, right)
        case Null():
            return _binary_null(run, operator, right)
        case _:
            raise unsupported(f"{left.type} DO NOT support expression operation {operator}")


def _truth(run: Run, truth: bool) -> Bool:  # noqa: FBT001 - it is the value
    run.charge()
    return Bool(truth)


def new_text(run: Run, text: str) -> Text:
    """Return a new string."""
    run.charge(2 * len(text))
    return Text(text)


def _joined(run: Run, left: str, right: str) -> Text:
    run.charge(2 * (len(left) + len(right)))
    run.tick(len(left) + len(right))
    return Text(left + right)


def _binary_long(run: Run, operator: Operator, left: Long, right: Value) -> Value:
    match right:
        case Long():
            if (compare := COMPARISONS.get(operator)) is not None:
                return _truth(run, compare(left.val, right.val))
            if (compute := LONG_ARITHMETIC.get(operator)) is None:
                raise unsupported(f"{_LONG_NAME} DO NOT support expression operation {operator}")
            result = compute(left.val, right.val)
            run.charge()
            return Long(wrap(result))
        case Null() if operator in _EQUALITIES:
            return _truth(run, operator is Operator.NOT_EQUAL)
        case Double():
            run.charge()
            return _binary_double(run, operator, float(left.val), right)
        case Text():
            text = new_text(run, str(left.val)).val
            return _binary_text(run, operator, text, right)
        case _:
            raise type_mismatch(left.type, right.type)


def _binary_double(run: Run, operator: Operator, left: float, right: Value) -> Value:
    if isinstance(right, Null):
        if operator in _EQUALITIES:
            return _truth(run, operator is Operator.NOT_EQUAL)
        raise unsupported(f"DOUBLE DO NOT support {operator} for rhs with NULL value")
    if isinstance(right, Text):
        text = new_text(run, double_text(left)).val
        return _binary_text(run, operator, text, right)
    another = number_in(right)
    if (compare := COMPARISONS.get(operator)) is not None:
        return _truth(run, compare(left, another))
    if (compute := _DOUBLE_ARITHMETIC.get(operator)) is None:
        raise unsupported(f"{_DOUBLE_NAME} DO NOT support expression operation {operator}")
    run.charge()
    return Double(compute(left, another))


def number_in(value: Value) -> float:
    """Return the content of a value as a floating-point number.

    Raises:
        ExpressionFailed: it is not a number.
    """
    match value:
        case Long() | Double():
            return float(value.val)
        case Bool() | Text() | Array() | Map() | DateTime() | Zone() | Formatter() | Property() | Days():
            if value.val is None:
                raise null_pointer("the value is null")
            raise class_cast(f"the content of a {value.type}", "java.lang.Number")
        case Null() | Void():
            raise null_pointer("null is not a number")
        case _:
            raise without_content(value)


def _binary_text(run: Run, operator: Operator, left: str | None, right: Value) -> Value:
    if operator in _EQUALITIES:
        if not isinstance(right, Text | Null):
            raise type_mismatch("STRING", right.type)
        same = left == (right.val if isinstance(right, Text) else None)
        return _truth(run, same is (operator is Operator.EQUAL))
    if operator is Operator.ADD:
        return _joined(run, "null" if left is None else left, appended(run, right))
    raise unsupported(f"STRING DO NOT support expression operation {operator}")


def _binary_bool(run: Run, operator: Operator, left: Bool, right: Value) -> Value:
    if isinstance(right, Null) and operator in _EQUALITIES:
        return _truth(run, operator is Operator.NOT_EQUAL)
    if not isinstance(right, Bool):
        raise type_mismatch(left.type, right.type)
    match operator:
        case Operator.AND:
            return _truth(run, left.val and right.val)
        case Operator.OR:
            return _truth(run, left.val or right.val)
        case Operator.EQUAL:
            return _truth(run, left.val == right.val)
        case Operator.NOT_EQUAL:
            return _truth(run, left.val != right.val)
        case _:
            raise unsupported(f"BOOLEAN DO NOT support expression operation {operator}")


def _binary_null(run: Run, operator: Operator, right: Value) -> Value:
    match operator:
        case Operator.EQUAL:
            return _truth(run, _holds_nothing(right))
        case Operator.NOT_EQUAL:
            return _truth(run, not _holds_nothing(right))
        case Operator.LESS | Operator.GREATER:
            return _truth(run, False)
        case Operator.ADD:
            return _joined(run, "null", appended(run, right))
        case _:
            raise unsupported(f"NULL DO NOT support expression operation {operator}")


def _holds_nothing(value: Value) -> bool:
    match value:
        case Null() | Void():
            return True
        case Long() | Double() | Bool() | Array():
            return False
        case Text() | Map() | DateTime() | Zone() | Formatter() | Property() | Days():
            return value.val is None
        case _:
            raise without_content(value)


def signed(run: Run, sign: Sign, value: Value) -> Value:
    """Return ``sign value``."""
    match value, sign:
        case Long(), Sign.PLUS:
            run.charge()
            return Long(value.val)
        case Long(), Sign.MINUS:
            run.charge()
            return Long(wrap(-value.val))
        case Double(), Sign.PLUS:
            run.charge()
            return Double(value.val)
        case Double(), Sign.MINUS:
            run.charge()
            return Double(-value.val)
        case Bool(), Sign.NOT:
            return _truth(run, not value.val)
        case Long(), _:
            raise unsupported(f"{_LONG_NAME} DO NOT support expression operation {sign.value}")
        case Double(), _:
            raise unsupported(f"{_DOUBLE_NAME} DO NOT support expression operation {sign.value}")
        case _:
            raise unsupported(f"{value.type} DO NOT support expression operation {sign.value}")


def assign(run: Run, operator: AssignmentOperator, target: Value, value: Value) -> None:  # noqa: C901 - one case for each type
    """Change ``target`` in place: ``target operator value``."""
    match target:
        case Long():
            if not isinstance(value, Long):
                raise type_mismatch(target.type, value.type)
            compute = None if operator is AssignmentOperator.SET else LONG_ARITHMETIC[_ASSIGNED[operator]]
            target.val = value.val if compute is None else wrap(compute(target.val, value.val))
        case Double():
            if not isinstance(value, Double):
                raise type_mismatch(target.type, value.type)
            reckon = None if operator is AssignmentOperator.SET else _DOUBLE_ARITHMETIC[_ASSIGNED[operator]]
            target.val = value.val if reckon is None else reckon(target.val, value.val)
        case Text():
            _assign_text(run, operator, target, value)
        case Null() | Uuid():
            raise _not_assignable(target, operator)
        case Bool():
            if operator is not AssignmentOperator.SET:
                raise unsupported(f"boolean/Boolean DO NOT support assignment operation {operator}")
            _assign_same(target, value)
        case Array() | Map() | DateTime() | Zone() | Formatter() | Property() | Days():
            if operator is not AssignmentOperator.SET:
                raise _not_assignable(target, operator)
            _assign_same(target, value)
        case _:
            raise _not_assignable(target, operator)


def _not_assignable(target: Value, operator: AssignmentOperator) -> ExpressionFailed:
    return unsupported(f"{target.type} DO NOT support assignment operation {operator}")


def _assign_same(target: Any, value: Any) -> None:
    if target.type is not value.type:
        raise type_mismatch(target.type, value.type)
    target.val = value.val


def _assign_text(run: Run, operator: AssignmentOperator, target: Text, value: Value) -> None:
    match operator:
        case AssignmentOperator.SET:
            if not isinstance(value, Text):
                raise type_mismatch(target.type, value.type)
            text = value.val
        case AssignmentOperator.ADD:
            old = "null" if target.val is None else target.val
            addition = appended(run, value)
            run.tick(len(old) + len(addition))
            run.grow_text(len(old) + len(addition) - len(target.val or ""))
            target.val = old + addition
            return
        case _:
            raise _not_assignable(target, operator)
    run.grow_text(len(text or "") - len(target.val or ""))
    target.val = text
