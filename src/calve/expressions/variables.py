"""Variables: the meaning of names, and fast paths for whole numbers, with which loops count.

The fast paths give the same results as ``operators``, which handles all other values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from calve.expressions.conversion import box
from calve.expressions.failures import class_cast, too_much_memory
from calve.expressions.java import LONG_MAX, LONG_MIN, wrap
from calve.expressions.limits import OBJECT_SIZE, Run
from calve.expressions.operators import COMPARISONS, LONG_ARITHMETIC, assign, binary
from calve.expressions.text import from_units
from calve.expressions.tree import AssignmentOperator, Operator
from calve.expressions.values import CLASSES, NULL, PARAMS, Bool, Long, Text, Value

PARAMS_NAME = "params"


def resolve(run: Run, slot: int) -> Value:
    """Return the value of a name that is not a variable yet; a parameter becomes a variable."""
    name = run.names[slot]
    if name in CLASSES:
        # An assignment changes the class for the rest of this evaluation, as it does in Maestro.
        value = CLASSES[name]()
    elif name == PARAMS_NAME:
        value = PARAMS
    elif (key := from_units(name)) in run.params:
        value = box(run, run.params[key])
    else:
        return NULL
    run.slots[slot] = value
    return value


def target_of(run: Run, slot: int, value: Value) -> Value:
    """Return the variable that a new name becomes when ``value`` is assigned to it."""
    name = run.names[slot]
    if name in CLASSES or name == PARAMS_NAME or from_units(name) in run.params:
        return resolve(run, slot)
    target = run.slots[slot] = run.blank(value.type)
    return target


def param(run: Run, key: Text) -> Value:
    """Return a copy of a parameter, or null."""
    name = None if key.val is None else from_units(key.val)
    return box(run, run.params[name]) if name is not None and name in run.params else NULL


Evaluator: TypeAlias = Callable[[Run], Value]
Test: TypeAlias = Callable[[Run], bool]
_WRAPPING = frozenset({Operator.ADD, Operator.SUBTRACT, Operator.MULTIPLY})


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Where a value comes from.

    ``slot`` is set for a variable, ``constant`` for a constant, and ``test`` for a comparison.
    """

    evaluate: Evaluator
    slot: int | None = None
    constant: Value | None = None
    test: Test | None = None


def variable(slot: int) -> Evaluator:
    """Return a closure that reads a variable."""

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


def binary_source(operator: Operator, left: ValueSource, right: ValueSource) -> ValueSource:
    """Return a closure that applies an operator to two operands."""
    first, second = left.evaluate, right.evaluate
    if operator in COMPARISONS:
        test = _comparison_test(operator, left, right)

        def compared(run: Run) -> Value:
            return Bool(test(run))

        return ValueSource(compared, test=test)
    if operator not in _WRAPPING:
        return ValueSource(lambda run: binary(run, operator, first(run), second(run)))
    compute = LONG_ARITHMETIC[operator]

    def computed(run: Run) -> Value:
        one, other = first(run), second(run)
        if type(one) is Long and type(other) is Long:
            result = compute(one.val, other.val)
            run.room -= OBJECT_SIZE
            if run.room <= 0:
                raise too_much_memory(run.limits.memory)
            return Long(result if LONG_MIN <= result <= LONG_MAX else wrap(result))
        return binary(run, operator, one, other)

    return ValueSource(computed)


def _comparison_test(operator: Operator, left: ValueSource, right: ValueSource) -> Test:
    """Return a closure that compares two operands, and charges for the boolean that Maestro creates."""
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


def assigner(slot: int, operator: AssignmentOperator, value: ValueSource) -> Evaluator:  # noqa: C901 - four closures, none complex
    """Return a closure that assigns to a variable and returns it."""
    evaluate, read = value.evaluate, variable(slot)
    if operator is AssignmentOperator.SET:

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

    if operator is not AssignmentOperator.ADD:
        return change

    def add(run: Run) -> Value:
        content = evaluate(run)
        target = run.slots[slot]
        if type(target) is Long and type(content) is Long:
            result = target.val + content.val
            target.val = result if LONG_MIN <= result <= LONG_MAX else wrap(result)
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
            target.val = result if LONG_MIN <= result <= LONG_MAX else wrap(result)
            return target
        return add(run)

    return add_constant
