"""Operators on variables and constants that hold whole numbers, which is what loops are made of.

Everything here gives exactly what ``operators`` gives; whatever is not a whole number goes there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from calve.expressions.failures import class_cast, too_much_memory
from calve.expressions.java.longs import MAX, MIN, wrap
from calve.expressions.meter import OBJECT_SIZE, Run
from calve.expressions.operators import COMPARISONS, LONG_ARITHMETIC, assign, binary
from calve.expressions.tree import Assigning, Operator
from calve.expressions.values import Bool, Long, Value
from calve.expressions.variables import resolve, target_of

Evaluator: TypeAlias = Callable[[Run], Value]
Test: TypeAlias = Callable[[Run], bool]
_WRAPPING = frozenset({Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY})


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value comes from.

    ``slot`` or ``constant`` are given where it is a mere variable or constant, ``test`` where it is a comparison.
    """

    evaluate: Evaluator
    slot: int | None = None
    constant: Value | None = None
    test: Test | None = None


def variable(slot: int) -> Evaluator:
    """Return what reads a variable."""

    def read(run: Run) -> Value:
        value = run.slots[slot]
        return resolve(run, slot) if value is None else value

    return read


def truth(value: Value) -> bool:
    """Return the truth of a condition.

    Raises:
        ExpressionFailed: it is not a boolean.
    """
    if type(value) is Bool:
        return value.val
    raise class_cast(value.java_class, "SelBoolean")


def binary_source(operator: Operator, left: Source, right: Source) -> Source:
    """Return what applies an operator to two operands."""
    first, second = left.evaluate, right.evaluate
    if operator in COMPARISONS:
        test = _comparison_test(operator, left, right)

        def compared(run: Run) -> Value:
            return Bool(test(run))

        return Source(compared, test=test)
    if operator not in _WRAPPING:
        return Source(lambda run: binary(run, operator, first(run), second(run)))
    compute = LONG_ARITHMETIC[operator]

    def computed(run: Run) -> Value:
        one, other = first(run), second(run)
        if type(one) is Long and type(other) is Long:
            result = compute(one.val, other.val)
            run.room -= OBJECT_SIZE
            if run.room <= 0:
                raise too_much_memory(run.limits.memory)
            return Long(result if MIN <= result <= MAX else wrap(result))
        return binary(run, operator, one, other)

    return Source(computed)


def _comparison_test(operator: Operator, left: Source, right: Source) -> Test:
    """Return what compares two operands; the boolean that Maestro makes for it is paid for."""
    compare = COMPARISONS[operator]
    first, second, slot, constant = left.evaluate, right.evaluate, left.slot, right.constant

    def test(run: Run) -> bool:
        one, other = first(run), second(run)
        if type(one) is Long and type(other) is Long:
            run.room -= OBJECT_SIZE
            if run.room <= 0:
                raise too_much_memory(run.limits.memory)
            return compare(one.val, other.val)
        return truth(binary(run, operator, one, other))

    if slot is None or not isinstance(constant, Long):
        return test
    bound = constant.val

    def test_variable(run: Run) -> bool:
        one = run.slots[slot]
        if type(one) is Long:
            run.room -= OBJECT_SIZE
            if run.room <= 0:
                raise too_much_memory(run.limits.memory)
            return compare(one.val, bound)
        return test(run)

    return test_variable


def assigner(slot: int, operator: Assigning, value: Source) -> Evaluator:  # noqa: C901 - four closures, none complex
    """Return what changes a variable and gives it."""
    evaluate, read = value.evaluate, variable(slot)
    if operator is Assigning.SET:

        def set_variable(run: Run) -> Value:
            content = evaluate(run)
            target = run.slots[slot] or target_of(run, slot, content)
            if type(target) is Long and type(content) is Long:
                target.val = content.val
            else:
                assign(run, operator, target, content)
            return target

        return set_variable

    def change(run: Run) -> Value:
        content = evaluate(run)
        target = read(run)
        assign(run, operator, target, content)
        return target

    if operator is not Assigning.ADD:
        return change

    def add(run: Run) -> Value:
        content = evaluate(run)
        target = run.slots[slot]
        if type(target) is Long and type(content) is Long:
            result = target.val + content.val
            target.val = result if MIN <= result <= MAX else wrap(result)
            return target
        target = read(run)
        assign(run, operator, target, content)
        return target

    if not isinstance(value.constant, Long):
        return add
    step = value.constant.val

    def add_constant(run: Run) -> Value:
        target = run.slots[slot]
        if type(target) is Long:
            result = target.val + step
            target.val = result if MIN <= result <= MAX else wrap(result)
            return target
        return add(run)

    return add_constant
