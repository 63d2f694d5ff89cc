"""Compile statements: from tree to closures.

A statement pushes its value on a stack, from which the next statement pops one value if there is any. Some statements
push a value although they report none. A program that ends with two values on the stack is refused, so the stack must
be exactly like Maestro's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias, assert_never

from calve.errors import ExpressionFailed
from calve.expressions.expression_compiler import Body, ExpressionCompiler, Unit
from calve.expressions.failures import illegal_argument, stack_overflow, too_many_iterations, type_mismatch
from calve.expressions.limits import Run
from calve.expressions.members import type_named
from calve.expressions.text import brief_text
from calve.expressions.tree import (
    Block,
    Break,
    Continue,
    Declaration,
    Declarator,
    Evaluate,
    For,
    If,
    Return,
    Statement,
    Throw,
    Tree,
    While,
)
from calve.expressions.values import ARRAYS, VOID, Bool, ResultType, Text, Thrown, Value


class Outcome(Enum):
    """How a statement ended."""

    NONE = auto()
    DATA = auto()
    RETURN = auto()
    BREAK = auto()
    CONTINUE = auto()


_NONE, _DATA, _RETURN, _BREAK, _CONTINUE = Outcome
_LEAVING = frozenset({_RETURN, _BREAK, _CONTINUE})
_ITERATIONS_PER_LOOK_AT_THE_CLOCK = 256
_TRUE = Bool(True)

Action: TypeAlias = Callable[[Run], Outcome]
Step: TypeAlias = Callable[[Run], None]


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """A program that can be run."""

    names: tuple[str, ...]
    literals: int
    actions: tuple[Action, ...]

    def run(self, run: Run) -> Value:
        """Run the program and return its value."""
        outcome = _NONE
        stack = run.stack
        for action in self.actions:
            if outcome is _DATA:
                stack.pop()
            outcome = action(run)
            if outcome is _RETURN:
                break
        if outcome is _NONE:
            return VOID
        if outcome in {_BREAK, _CONTINUE}:
            raise ExpressionFailed(
                f"Invalid expression : it ends with wrong return type: {outcome.name}", kind="RuntimeException"
            )
        value = stack.pop()
        if stack:
            raise ExpressionFailed("Invalid expression (stack is not empty)", kind="RuntimeException")
        return value


def compile_tree(tree: Tree, stack: int) -> Compiled:
    """Compile a program for a size of the stack."""
    slots: dict[str, int] = {}
    compiler = _StatementCompiler(slots, stack)
    actions = compiler.sequence(tree.statements, 1 + tree.imports, 0)
    return Compiled(tuple(slots), tree.literals, tuple(actions))


def _paid(unit: Unit) -> Callable[[Run], Value]:
    evaluate, metered, visits, worst = unit.evaluate, unit.metered, unit.visits, unit.worst

    def pay_and_evaluate(run: Run) -> Value:
        if run.steps <= worst:
            return metered(run)
        run.steps -= visits
        return evaluate(run)

    return pay_and_evaluate


def _paid_test(unit: Unit) -> Callable[[Run], bool]:
    test, metered_test, visits, worst = unit.test, unit.metered_test, unit.visits, unit.worst

    def pay_and_test(run: Run) -> bool:
        if run.steps <= worst:
            return metered_test(run)
        run.steps -= visits
        return test(run)

    return pay_and_test


class _StatementCompiler:
    """Compiles statements.

    ``lead`` and ``pops`` are the node visits and stack pops of the nodes around a statement; the first action of the
    statement counts them together with its own.
    """

    def __init__(self, slots: dict[str, int], stack: int) -> None:
        self._expressions = ExpressionCompiler(slots, stack)
        self._stack = stack

    def sequence(self, statements: tuple[Statement, ...], lead: int, pops: int) -> list[Action]:
        if not statements:
            return [self._nothing(lead, pops, _NONE)]
        first, *rest = statements
        return [self._statement(first, lead, pops), *(self._statement(statement, 0, 0) for statement in rest)]

    def _statement(self, statement: Statement, lead: int, pops: int) -> Action:  # noqa: C901 - one case for each kind
        match statement:
            case Declaration():
                declare = self._declaration(statement, lead, pops)

                def declaration(run: Run) -> Outcome:
                    declare(run)
                    return _NONE

                return declaration
            case Evaluate():
                return self._evaluate(statement.expression, lead + 1, pops + 1, _DATA)
            case Return():
                return self._evaluate(statement.expression, lead + 2, pops + 1, _RETURN)
            case Throw():
                return self._throw(statement, lead + 2, pops + 1)
            case Block():
                return self._block(statement, lead + 2, pops + 1)
            case If():
                return self._if(statement, lead + 2, pops + 1)
            case While():
                start = self._head(lead + 2, pops + 1)
                return self._loop(start, self._unit(statement.condition, 0), None, statement.body)
            case For():
                return self._for(statement, lead + 2, pops + 1)
            case Break():
                return self._nothing(lead + 2, pops + 1, _BREAK)
            case Continue():
                return self._nothing(lead + 2, pops + 1, _CONTINUE)
            case _:
                assert_never(statement)

    def _unit(self, body: Body, lead: int) -> Unit:
        return self._expressions.unit(body, lead)

    def _head(self, lead: int, pops: int) -> Step:
        def settle(run: Run) -> None:
            if run.stack and pops:
                del run.stack[-pops:]
            run.visit(lead)

        return settle

    def _nothing(self, lead: int, pops: int, outcome: Outcome) -> Action:
        settle = self._head(lead, pops)

        def end(run: Run) -> Outcome:
            settle(run)
            return outcome

        return end

    def _evaluate(self, expression: Body, lead: int, pops: int, outcome: Outcome) -> Action:
        unit = self._unit(expression, lead)
        evaluate, metered, visits, worst = unit.evaluate, unit.metered, unit.visits, unit.worst

        def keep(run: Run) -> Outcome:
            stack = run.stack
            if stack:
                del stack[-pops:]
            if run.steps <= worst:
                stack.append(metered(run))
            else:
                run.steps -= visits
                stack.append(evaluate(run))
            return outcome

        return keep

    def _throw(self, statement: Throw, lead: int, pops: int) -> Action:
        evaluate = self._evaluate(statement.expression, lead, pops, _RETURN)

        def throw(run: Run) -> Outcome:
            evaluate(run)
            value = run.stack.pop()
            if not isinstance(value, Text):
                raise illegal_argument(
                    f"Can only throw a string error message. Invalid thrown object {brief_text(run, value)}"
                )
            run.charge(2 * len(value.val or ""))
            run.stack.append(Thrown(value.val))
            return _RETURN

        return throw

    def _block(self, block: Block, lead: int, pops: int) -> Action:
        actions = self.sequence(block.statements, lead, pops)
        if len(actions) == 1:
            return actions[0]

        def run_all(run: Run) -> Outcome:
            outcome = _NONE
            for action in actions:
                outcome = action(run)
                if outcome in _LEAVING:
                    break
            return outcome

        return run_all

    def _if(self, statement: If, lead: int, pops: int) -> Action:
        branches: list[tuple[Step, Callable[[Run], bool], Action]] = []
        for condition, body in statement.branches:
            # An "else if" is a statement in the "else" of the one before it.
            branches.append((self._head(lead, pops), _paid_test(self._unit(condition, 0)), self._statement(body, 0, 0)))
            lead, pops = 2, 1
        otherwise = None if statement.otherwise is None else self._statement(statement.otherwise, 0, 0)

        def choose(run: Run) -> Outcome:
            for settle, test, body in branches:
                settle(run)
                if test(run):
                    return _without_data(run, body(run))
            return _NONE if otherwise is None else _without_data(run, otherwise(run))

        return choose

    def _for(self, statement: For, lead: int, pops: int) -> Action:
        start = self._for_start(statement, lead, pops)
        condition = None if statement.condition is None else self._unit(statement.condition, 0)
        update = self._push_true(1, 0) if statement.update is None else self._drop(statement.update, 1)
        return self._loop(start, condition, update, statement.body)

    def _for_start(self, statement: For, lead: int, pops: int) -> Step:
        match statement.start:
            case None:
                return self._push_true(lead + 1, pops)
            case Declaration():
                return self._declaration(statement.start, lead + 1, pops)
            case _:
                settle, start = self._head(lead, pops), self._drop(statement.start, 1)

                def evaluate(run: Run) -> None:
                    settle(run)
                    start(run)

                return evaluate

    def _push_true(self, lead: int, pops: int) -> Step:
        """Push true, as Maestro does where a part of ``for`` is missing."""
        settle, limit = self._head(lead, pops), self._stack

        def push(run: Run) -> None:
            settle(run)
            if len(run.stack) >= limit:
                raise stack_overflow(limit)
            run.stack.append(_TRUE)

        return push

    def _drop(self, body: Body, lead: int) -> Step:
        evaluate = _paid(self._unit(body, lead))

        def drop(run: Run) -> None:
            evaluate(run)

        return drop

    def _always(self) -> Callable[[Run], bool]:
        push = self._push_true(1, 0)

        def always(run: Run) -> bool:
            push(run)
            run.stack.pop()
            return True

        return always

    def _loop(self, start: Step, condition: Unit | None, update: Step | None, body: Statement) -> Action:
        test = self._always() if condition is None else _paid_test(condition)
        action = self._statement(body, 0, 0)

        def loop(run: Run) -> Outcome:
            start(run)
            stack, limit, count = run.stack, run.limits.loop, 0
            while test(run):
                outcome = action(run)
                if outcome is _DATA:
                    stack.pop()
                elif outcome is _RETURN:
                    return _RETURN
                elif outcome is _BREAK:
                    return _NONE
                if update is not None:
                    update(run)
                count += 1
                if count >= limit:
                    raise too_many_iterations(limit)
                if not count % _ITERATIONS_PER_LOOK_AT_THE_CLOCK:
                    run.check_time()
            return _NONE

        return loop

    def _declaration(self, declaration: Declaration, lead: int, pops: int) -> Step:
        settle, limit = self._head(lead + 3, pops), self._stack
        declarators = [self._declarator(declarator) for declarator in declaration.declarators]

        def declare(run: Run) -> None:
            settle(run)
            type_ = type_named(declaration.type_name)
            if len(run.stack) >= limit:
                raise stack_overflow(limit)
            if declaration.is_array:
                if type_ not in ARRAYS:
                    raise illegal_argument(f"Cannot create an array of {type_}")
                type_ = ARRAYS[type_]
            for declarator in declarators:
                declarator(run, type_)

        return declare

    def _declarator(self, declarator: Declarator) -> Callable[[Run, ResultType], None]:
        slot = self._expressions.slot(declarator.name)
        if declarator.value is None:

            def declare(run: Run, type_: ResultType) -> None:
                run.visit(2)
                run.slots[slot] = run.blank(type_)

            return declare
        evaluate = _paid(self._expressions.unit(declarator.value, 2, depth=1, keeps=True))

        def declare_and_set(run: Run, type_: ResultType) -> None:
            value = evaluate(run)
            if value.type is not type_:
                raise type_mismatch(type_, value.type)
            # The variable is the object itself, not a copy of it.
            run.slots[slot] = value

        return declare_and_set


def _without_data(run: Run, outcome: Outcome) -> Outcome:
    if outcome is _DATA:
        run.stack.pop()
        return _NONE
    return outcome
