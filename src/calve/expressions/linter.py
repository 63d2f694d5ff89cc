"""Warnings about expressions that may not do what their author expects: where SEL surprises people who know Java.

The warnings are based on the source alone, so they may be wrong. An expression with warnings can still be evaluated.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from calve.expressions.evaluation import Program
from calve.expressions.references import inputs, walk
from calve.expressions.text import from_units
from calve.expressions.tree import (
    Assignment,
    Block,
    Call,
    Chain,
    Declaration,
    Declarator,
    Expression,
    For,
    If,
    Index,
    Literal,
    Name,
    Operand,
    Operator,
    Position,
    Primary,
    Return,
    Statement,
    Throw,
    While,
)

_LOGICAL = frozenset({Operator.AND, Operator.OR})
_DIVIDING = frozenset({Operator.DIVIDE, Operator.REMAINDER})
_EQUALITY = frozenset({Operator.EQUAL, Operator.NOT_EQUAL})


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the word that users know; the built-in is not used here
    """Something that may be a mistake; ``code`` is for programs and does not change."""

    code: str
    message: str
    line: int
    column: int


Found: TypeAlias = Iterator[Warning]


def lint(program: Program, *, known: Collection[str] | None = None) -> tuple[Warning, ...]:
    """Return the warnings about a program, in the order of the source.

    ``known`` are the existing parameters; without them, no name is reported as undeclared.
    """
    found = [
        *(warning for node in walk(program.tree.statements) for warning in _warnings(node)),
        *_literals_changed(program),
        *_undeclared(program, known),
        *_without_value(program.tree.statements),
    ]
    return tuple(sorted(set(found), key=lambda warning: (warning.line, warning.column, warning.code)))


def _warning(code: str, message: str, at: Position) -> Warning:
    return Warning(code, message, at.line, at.column)


def _warnings(node: object) -> Found:
    match node:
        case Chain():
            yield from _in_chain(node)
        case Literal():
            yield from _in_literal(node)
        case Declarator(value=Expression(body=Primary(prefix=Name() as other, suffixes=()))):
            yield _warning(
                "aliased_declaration",
                f"{node.name} and {other.name} are one object from here on: a change of one changes the other. "
                f"To copy, declare {node.name} first and assign then.",
                node.at,
            )
        case Primary(prefix=prefix, suffixes=[*_, Index(index=Expression(body=body)) as last]) if _is_text(body):
            if not (isinstance(prefix, Name) and prefix.name == "params" and len(node.suffixes) == 1):
                yield _warning("map_index", "only params can be indexed by a text; a Map takes .get(…)", last.at)
        case _:
            pass


def _in_chain(chain: Chain) -> Found:
    left = chain.first
    for operator, right, at in chain.rest:
        if operator in _LOGICAL and _can_fail(right):
            yield _warning(
                "no_short_circuit",
                f"both sides of {operator} are always evaluated, so the left one does not guard the right one; "
                "use ?: instead",
                at,
            )
        if operator in _EQUALITY and _is_text(left) and _is_number(right):
            yield _warning("string_number_equality", "a text on the left of == cannot be compared to a number", at)
        if operator in _EQUALITY and _is_number(left) and _is_text(right):
            yield _warning("string_number_equality", "the number is compared to the text as a text", at)
        left = right


def _in_literal(literal: Literal) -> Found:
    image = literal.image
    if isinstance(literal.value, int) and len(image.rstrip("lL")) > 1 and image.startswith("0"):
        yield _warning("octal_like", f"{image} is the decimal number {literal.value}, not an octal one", literal.at)


def _can_fail(operand: Operand) -> bool:
    """Return whether an operand can fail, so that a check before it may be a guard: a call, an index, a division."""
    return any(
        isinstance(node, Call | Index)
        or (isinstance(node, Chain) and any(operator in _DIVIDING for operator, _, _ in node.rest))
        for node in walk(operand)
    )


def _plain_literal(operand: object) -> Literal | None:
    match operand:
        case Primary(prefix=Literal() as literal, suffixes=()):
            return literal
        case _:
            return None


def _is_text(operand: object) -> bool:
    literal = _plain_literal(operand)
    return literal is not None and isinstance(literal.value, str)


def _is_number(operand: object) -> bool:
    literal = _plain_literal(operand)
    return literal is not None and type(literal.value) in {int, float}


def _literals_changed(program: Program) -> Found:
    """Find ``int x = 0`` in a loop that changes ``x``: this changes the literal 0 itself, for all later iterations."""
    for loop in walk(program.tree.statements):
        if not isinstance(loop, For | While):
            continue
        inside = list(walk((loop.body,)))
        changed = {node.name for node in inside if isinstance(node, Assignment)}
        for node in inside:
            match node:
                case Declarator(value=Expression(body=body)) if node.name in changed:
                    literal = _plain_literal(body)
                    if literal is not None and literal.value is not None:
                        yield _warning(
                            "literal_mutated_in_loop",
                            f"{node.name} is the literal itself, so its change stays in the next round; "
                            f"write {node.name} = {literal.image} without a type",
                            node.at,
                        )
                case _:
                    pass


def _undeclared(program: Program, known: Collection[str] | None) -> Found:
    if known is None:
        return
    unknown = inputs(program) - set(known) - {"params"}
    for node in walk(program.tree.statements):
        if isinstance(node, Name) and from_units(node.name) in unknown:
            yield _warning("undeclared_name", f"{node.name} is not a parameter; it is null", node.at)


def _without_value(statements: tuple[Statement, ...]) -> Found:
    match statements[-1:]:
        case (Declaration() | While() | For() as last,):
            yield _no_value(last.at)
        case (If() as last,) if not _always_returns(last):
            yield _no_value(last.at)
        case _:
            pass


def _no_value(at: Position) -> Warning:
    return _warning("ends_without_value", "the last statement has no value; end with return", at)


def _always_returns(statement: Statement | None) -> bool:
    match statement:
        case Return() | Throw():
            return True
        case If():
            return all(_always_returns(branch) for _, branch in statement.branches) and _always_returns(
                statement.otherwise
            )
        case Block():
            return bool(statement.statements) and _always_returns(statement.statements[-1])
        case _:
            return False
