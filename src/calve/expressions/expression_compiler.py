"""Compile expressions: from tree to closures.

Maestro counts every node that it visits and every value that is on the stack. Both are known at compile time, except
which side of a ``?:`` runs: so an expression is charged as a whole before it starts. Only if the remaining budget might
not suffice, its *metered* twin runs instead, which counts node by node, so that the limit is reached exactly where
Maestro reaches it. In the same way, the depth of the stack is checked only where it may be too deep.
"""

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from calve.expressions.containers import element_of, filled_array, indexed, new_array
from calve.expressions.failures import class_cast, stack_overflow
from calve.expressions.java import to_int
from calve.expressions.limits import Run
from calve.expressions.members import call, construct, field_of, type_named
from calve.expressions.operators import assign, binary, signed
from calve.expressions.tree import (
    Assignment,
    Call,
    Chain,
    Expression,
    Field,
    Index,
    Literal,
    Name,
    NewArray,
    NewFilledArray,
    NewObject,
    Operand,
    Primary,
    Signed,
    Ternary,
)
from calve.expressions.values import NULL, Bool, Double, Long, Text, Value
from calve.expressions.variables import (
    Evaluator,
    Test,
    ValueSource,
    assigner,
    binary_source,
    truth,
    variable,
)

Body: TypeAlias = Expression | Assignment | Primary
_LEFT_ON_STACK = 8
"""The maximum number of values that are left on the stack between statements."""
_NESTED_CHAIN = 8
_KEEPING_CALLS = frozenset({"put", "getOrDefault", "asList"})
"""Methods that return or store an argument itself, not a copy."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A compiled expression: its closures, its usual and its highest cost, and its metered twin."""

    evaluate: Evaluator
    test: Test
    visits: int
    worst: int
    metered: Evaluator
    metered_test: Test


def literal_value(literal: Literal) -> Value:
    """Return a new object for a constant."""
    match literal.value:
        case None:
            return NULL
        case bool():
            return Bool(literal.value)
        case int():
            return Long(literal.value)
        case float():
            return Double(literal.value)
        case str():
            return Text(literal.value)
        case _:
            assert_never(literal.value)


class ExpressionCompiler:
    """Compiles expressions, and adds up their cost."""

    def __init__(self, slots: dict[str, int], stack: int) -> None:
        self._slots = slots
        self._stack = stack
        self._visits = 0
        self._branch_visits = 0

    def unit(self, body: Body, lead: int, *, depth: int = 0, keeps: bool = False) -> Unit:
        """Compile an expression; ``lead`` is the number of nodes that Maestro visits before it.

        ``keeps`` means that a variable may be bound to the value itself, not to a copy.
        """
        self._visits = self._branch_visits = 0
        source = self._before(lead, self._body(body, depth, keeps=keeps))
        evaluate, metered = source.evaluate, self._metered_later(body, lead, depth, keeps=keeps)
        return Unit(
            evaluate,
            source.test or (lambda run: truth(evaluate(run))),
            self._visits,
            self._visits + self._branch_visits,
            metered,
            lambda run: truth(metered(run)),
        )

    def slot(self, name: str) -> int:
        """Return the number of a variable."""
        return self._slots.setdefault(name, len(self._slots))

    def _metered_later(self, body: Body, lead: int, depth: int, *, keeps: bool) -> Evaluator:
        made: list[Evaluator] = []

        def evaluate(run: Run) -> Value:
            if not made:
                made.append(_Metered(self._slots, self._stack).unit(body, lead, depth=depth, keeps=keeps).evaluate)
            return made[0](run)

        return evaluate

    def _before(self, visits: int, source: ValueSource) -> ValueSource:
        """Count visits that come before a value."""
        self._visits += visits
        return source

    def _after(self, source: ValueSource, visits: int, depth: int | None) -> ValueSource:
        """Count visits that come after a value, and then one more value on a stack of ``depth``."""
        self._visits += visits
        return self._pushed(source, depth)

    def _pushed(self, source: ValueSource, depth: int | None) -> ValueSource:
        if depth is None or depth + _LEFT_ON_STACK < self._stack:
            return source
        evaluate, limit = source.evaluate, self._stack

        def checked(run: Run) -> Value:
            value = evaluate(run)
            if len(run.stack) + depth >= limit:
                raise stack_overflow(limit)
            return value

        return ValueSource(checked)

    def _body(self, body: Body, depth: int, *, keeps: bool) -> ValueSource:
        match body:
            case Expression():
                return self._expression(body, depth, keeps=keeps)
            case Assignment():
                return self._assignment(body, depth)
            case Primary():
                return self._primary(body, depth, keeps=keeps)
            case _:
                assert_never(body)

    def _expression(self, expression: Expression, depth: int, *, keeps: bool = False) -> ValueSource:
        body = expression.body
        match body:
            case Assignment():
                source = self._assignment(body, depth)
            case Ternary():
                source = self._ternary(body, depth, keeps=keeps)
            case _:
                source = self._operand(body, depth, keeps=keeps)
        return self._before(1, source)

    def _operand(self, operand: Operand, depth: int, *, keeps: bool) -> ValueSource:
        match operand:
            case Primary():
                return self._primary(operand, depth, keeps=keeps)
            case Signed():
                return self._signed(operand, depth)
            case Chain():
                return self._chain(operand, depth)
            case _:
                assert_never(operand)

    def _assignment(self, assignment: Assignment, depth: int) -> ValueSource:
        slot, operator = self.slot(assignment.name), assignment.operator
        if assignment.index is None:
            value = self._before(3, self._expression(assignment.value, depth))
            return ValueSource(assigner(slot, operator, value))
        index = self._before(2, self._expression(assignment.index, depth)).evaluate
        content = self._before(1, self._expression(assignment.value, depth + 1)).evaluate
        array = variable(slot)

        def assign_element(run: Run) -> Value:
            place, new = index(run), content(run)
            if not isinstance(place, Long):
                raise class_cast(place.java_class, "SelLong")
            target = element_of(array(run), to_int(place.val))
            assign(run, operator, target, new)
            return target

        return ValueSource(assign_element)

    def _ternary(self, ternary: Ternary, depth: int, *, keeps: bool) -> ValueSource:
        condition = self._operand(ternary.condition, depth, keeps=False)
        outer = self._visits, self._branch_visits
        sides: list[tuple[Evaluator, int, int]] = []
        for side in (ternary.then, ternary.otherwise):
            self._visits = self._branch_visits = 0
            evaluate = self._expression(side, depth, keeps=keeps).evaluate
            sides.append((evaluate, self._visits, self._visits + self._branch_visits))
        (then, then_visits, then_worst), (otherwise, other_visits, other_worst) = sides
        self._visits, self._branch_visits = outer[0], outer[1] + max(then_worst, other_worst)
        evaluate_condition = condition.evaluate
        test = condition.test or (lambda run: truth(evaluate_condition(run)))

        def choose(run: Run) -> Value:
            if test(run):
                run.steps -= then_visits
                return then(run)
            run.steps -= other_visits
            return otherwise(run)

        return self._before(1, ValueSource(choose))

    def _signed(self, operand: Signed, depth: int) -> ValueSource:
        evaluate = self._primary(operand.operand, depth, keeps=False).evaluate
        signs = operand.signs[::-1]

        def apply(run: Run) -> Value:
            value = evaluate(run)
            for sign in signs:
                value = signed(run, sign, value)
            return value

        return self._before(len(signs), ValueSource(apply))

    def _chain(self, chain: Chain, depth: int) -> ValueSource:
        source = self._operand(chain.first, depth, keeps=False)
        steps = [(operator, self._operand(operand, depth + 1, keeps=False)) for operator, operand, _ in chain.rest]
        if len(steps) <= _NESTED_CHAIN:
            for operator, operand in steps:
                source = binary_source(operator, source, operand)
            return self._before(len(steps), source)
        first, rest = source.evaluate, [(operator, operand.evaluate) for operator, operand in steps]

        def apply(run: Run) -> Value:
            value = first(run)
            for operator, evaluate in rest:
                value = binary(run, operator, value, evaluate(run))
            return value

        return self._before(len(steps), ValueSource(apply))

    def _primary(self, primary: Primary, depth: int, *, keeps: bool) -> ValueSource:
        prefix = primary.prefix
        keeps = keeps and not primary.suffixes
        match prefix:
            case Literal():
                source = self._before(1, self._pushed(self._literal(prefix, keeps=keeps), depth))
            case Name():
                slot = self.slot(prefix.name)
                source = self._before(1, self._pushed(ValueSource(variable(slot), slot=slot), depth))
            case NewArray() | NewFilledArray() | NewObject():
                source = self._before(1, self._allocation(prefix, depth))
            case Expression():
                source = self._expression(prefix, depth, keeps=keeps)
            case _:
                assert_never(prefix)
        source = self._before(1, source)
        for suffix in primary.suffixes:
            match suffix:
                case Index():
                    source = self._indexed(source, suffix, depth)
                case Field():
                    source = self._field(source, suffix, depth)
                case Call():
                    source = self._call(source, suffix, depth)
                case _:
                    assert_never(suffix)
        return source

    def _literal(self, literal: Literal, *, keeps: bool) -> ValueSource:
        constant = literal_value(literal)
        if not keeps or constant is NULL:
            # Nothing can change it, so all evaluations share it.
            return ValueSource(lambda _: constant, constant=constant)
        index = literal.index

        def own(run: Run) -> Value:
            value = run.literals[index]
            if value is None:
                value = run.literals[index] = literal_value(literal)
            return value

        return ValueSource(own)

    def _indexed(self, source: ValueSource, suffix: Index, depth: int) -> ValueSource:
        receiver = self._after(source, 2, None).evaluate
        index = self._expression(suffix.index, depth + 1).evaluate
        return ValueSource(lambda run: indexed(run, receiver(run), index(run)))

    def _field(self, source: ValueSource, suffix: Field, depth: int) -> ValueSource:
        receiver, name = self._after(source, 2, depth + 1).evaluate, suffix.name
        return ValueSource(lambda run: field_of(run, receiver(run), name))

    def _call(self, source: ValueSource, suffix: Call, depth: int) -> ValueSource:
        named = self._after(source, 2, depth + 1)
        receiver, name = self._after(named, 2, None).evaluate, suffix.name
        arguments = self._arguments(suffix.arguments, depth + 2, keeps=name in _KEEPING_CALLS)
        return ValueSource(lambda run: call(run, receiver(run), name, [argument(run) for argument in arguments]))

    def _arguments(self, arguments: tuple[Expression, ...], depth: int, *, keeps: bool) -> list[Evaluator]:
        return [
            self._expression(argument, depth + place, keeps=keeps).evaluate for place, argument in enumerate(arguments)
        ]

    def _allocation(self, node: NewArray | NewFilledArray | NewObject, depth: int) -> ValueSource:
        name = node.type_name

        def check_name(_: Run) -> Value:
            type_named(name)
            return NULL

        typed = self._pushed(ValueSource(check_name), depth)
        check = self._before(1, self._after(typed, 1 if not isinstance(node, NewObject) else 2, None)).evaluate
        match node:
            case NewArray():
                length = self._expression(node.length, depth + 1).evaluate

                def make(run: Run) -> Value:
                    check(run)
                    return new_array(run, type_named(name), length(run))

            case NewFilledArray():
                elements = self._arguments(node.elements, depth + 1, keeps=False)

                def make(run: Run) -> Value:
                    check(run)
                    return filled_array(run, type_named(name), elements)

            case NewObject():
                arguments = self._arguments(node.arguments, depth + 1, keeps=False)

                def make(run: Run) -> Value:
                    check(run)
                    return construct(run, type_named(name), [argument(run) for argument in arguments])

            case _:
                assert_never(node)
        return ValueSource(make)


class _Metered(ExpressionCompiler):
    """Compiles the twin that counts node by node."""

    def _before(self, visits: int, source: ValueSource) -> ValueSource:
        evaluate = source.evaluate

        def counted(run: Run) -> Value:
            run.visit(visits)
            return evaluate(run)

        return ValueSource(counted)

    def _after(self, source: ValueSource, visits: int, depth: int | None) -> ValueSource:
        evaluate = source.evaluate

        def counted(run: Run) -> Value:
            value = evaluate(run)
            run.visit(visits)
            return value

        return self._pushed(ValueSource(counted), depth)
