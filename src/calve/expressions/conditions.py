"""Conditions as formulas: which of them can be true at the same time. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from itertools import combinations, product
from typing import Any

from calve.expressions.evaluation import complete, parse
from calve.expressions.text import from_units
from calve.expressions.tree import (
    Chain,
    Evaluate,
    Expression,
    Field,
    Index,
    Literal,
    Name,
    Operator,
    Position,
    Primary,
    Return,
    Sign,
    Signed,
    Suffix,
)

ATOMS = 12
"""The maximum number of comparisons that are tried in all combinations; with more, conditions count as independent."""


@dataclass(frozen=True, slots=True)
class ParamRead:
    """A param that a condition reads: of the step that it names, or by its bare name."""

    name: str
    step: str | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal value; two are equal only if they have the same type."""

    value: int | float | str | bool | None
    type: str


@dataclass(frozen=True, slots=True)
class Other:
    """Any other computed value, identified by the shape of its expression."""

    shape: str


Side = ParamRead | Constant | Other


@dataclass(frozen=True, slots=True)
class Atom:
    """The smallest part of a condition that is true or false: ``left == right``, ``left > right``, or ``left``."""

    left: Side
    operator: Operator | None = None
    right: Side | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A condition: its atoms, and the function that evaluates it given their truth values."""

    atoms: frozenset[Atom]
    holds: Callable[[Mapping[Atom, bool]], bool]


Known = Callable[[Atom], bool | None]
"""Returns whether an atom is true; None if that is not known."""


def satisfiable(conditions: Mapping[str, str], known: Known = lambda _: None) -> frozenset[frozenset[str]]:
    """Return every set of conditions, by name, that may be true while the others are false.

    A combination counts as possible unless the text of the conditions excludes it.
    """
    formulas = {name: formula(text) for name, text in conditions.items()}
    atoms = sorted({atom for each in formulas.values() for atom in each.atoms}, key=repr)
    decided = {atom: truth for atom in atoms if (truth := known(atom)) is not None}
    free = [atom for atom in atoms if atom not in decided]
    if len(free) > ATOMS:
        return frozenset(_independent(formulas))
    found = set()
    for truths in product((False, True), repeat=len(free)):
        assumed = {**decided, **dict(zip(free, truths, strict=True))}
        if not _contradicts(assumed):
            found.add(frozenset(name for name, each in formulas.items() if each.holds(assumed)))
    return frozenset(found)


def _independent(formulas: Mapping[str, Formula]) -> Iterator[frozenset[str]]:
    """Yield the sets of at most two conditions, with those that always hold; callers need no more."""
    always = {name for name, each in formulas.items() if not each.atoms and each.holds({})}
    sometimes = [name for name, each in formulas.items() if each.atoms]
    for size in range(3):
        yield from (frozenset(always.union(some)) for some in combinations(sometimes, size))


def _contradicts(truths: Mapping[Atom, bool]) -> bool:
    """Return whether one value would have to equal two constants."""
    seen: dict[Side, Side | None] = {}
    for atom, holds in truths.items():
        is_equal = holds and atom.operator is Operator.EQUAL and isinstance(atom.right, Constant)
        if is_equal and seen.setdefault(atom.left, atom.right) != atom.right:
            return True
    return False


def atoms_of(text: str) -> frozenset[Atom]:
    """Return the atoms of a condition."""
    return formula(text).atoms


def formula(text: str) -> Formula:
    """Return a condition as a formula; a program of several statements is one atom.

    Raises:
        ExpressionInvalid: the text is not a valid expression.
    """
    if not text.strip(" ;"):
        return _constant(holds=True)
    match parse(complete(text)).tree.statements:
        case (Evaluate(expression=expression),) | (Return(expression=expression),):
            return _of(expression)
        case _:
            return _atom(Atom(Other(text)))


def _of(node: Any) -> Formula:
    match node:
        case Expression(body=body):
            return _of(body)
        case Primary(prefix=Expression() as inside, suffixes=()):
            return _of(inside)
        case Primary(prefix=Literal(value=bool(value)), suffixes=()):
            return _constant(holds=value)
        case Signed(signs=signs, operand=operand) if set(signs) == {Sign.NOT}:
            return _negated(_of(operand)) if len(signs) % 2 else _of(operand)
        case Chain(first=first, rest=((Operator.OR | Operator.AND as operator, _, _), *_) as rest):
            return _joined(operator, [_of(first), *(_of(operand) for _, operand, _ in rest)])
        case Chain(first=first, rest=((operator, second, _),)) if operator in _COMPARED:
            return _compared(operator, first, second)
        case _:
            return _atom(Atom(_side(node)))


def _joined(operator: Operator, parts: Iterable[Formula]) -> Formula:
    formulas, is_met = tuple(parts), any if operator is Operator.OR else all
    atoms = frozenset[Atom]().union(*(each.atoms for each in formulas))
    return Formula(atoms, lambda truths: is_met(each.holds(truths) for each in formulas))


_COMPARED = {
    Operator.EQUAL: (Operator.EQUAL, False, False),
    Operator.NOT_EQUAL: (Operator.EQUAL, False, True),
    Operator.GREATER: (Operator.GREATER, False, False),
    Operator.LESS_EQUAL: (Operator.GREATER, False, True),
    Operator.LESS: (Operator.GREATER, True, False),
    Operator.GREATER_EQUAL: (Operator.GREATER, True, True),
}
"""Each comparison expressed by ``==`` or ``>``: which one, whether its sides are swapped, and whether it is negated."""


def _compared(operator: Operator, first: Any, second: Any) -> Formula:
    kept, is_swapped, is_negated = _COMPARED[operator]
    if kept is Operator.EQUAL:
        for side, other in ((first, second), (second, first)):
            match _side(side):
                case Constant(value=bool(value)):
                    found = _of(other)
                    return found if value is not is_negated else _negated(found)
                case _:
                    pass
    left, right = (_side(second), _side(first)) if is_swapped else (_side(first), _side(second))
    if kept is Operator.EQUAL and isinstance(left, Constant):
        left, right = right, left
    found = _atom(Atom(left, kept, right))
    return _negated(found) if is_negated else found


def _constant(*, holds: bool) -> Formula:
    return Formula(frozenset(), lambda _: holds)


def _atom(atom: Atom) -> Formula:
    return Formula(frozenset({atom}), lambda truths: truths[atom])


def _negated(found: Formula) -> Formula:
    return Formula(found.atoms, lambda truths: not found.holds(truths))


def _side(node: Any) -> Side:
    match node:
        case Expression(body=body):
            return _side(body)
        case Primary(prefix=Expression() as inside, suffixes=()):
            return _side(inside)
        case Primary(prefix=Literal(value=value), suffixes=()):
            return Constant(from_units(value) if isinstance(value, str) else value, type(value).__name__)
        case Primary(prefix=Name(name="params"), suffixes=(suffix,)):
            return _asked(suffix) or Other(_shape(node))
        case Primary(prefix=Name(name=name), suffixes=()):
            return ParamRead(from_units(name))
        case _:
            return Other(_shape(node))


def _asked(suffix: Suffix) -> ParamRead | None:
    """Return the param that ``params.name``, ``params['name']`` or a function of ``params`` reads."""
    match suffix:
        case Field(name=name):
            return ParamRead(from_units(name))
        case Index(index=index):
            arguments, function = [_side(index)], "get"
        case _:
            arguments, function = [_side(each) for each in suffix.arguments], from_units(suffix.name)
    match function, arguments:
        case "get", [Constant(value=str(param))]:
            return ParamRead(param)
        case "getFromStep", [Constant(value=str(step)), Constant(value=str(param))]:
            return ParamRead(param, step)
        case _:
            return None


def _shape(node: Any) -> str:
    """Return a text for a tree that does not depend on the positions of its nodes."""
    match node:
        case Position():
            return ""
        case Literal(value=value):
            return repr(value)
        case tuple():
            return f"({', '.join(map(_shape, node))})"
        case _ if is_dataclass(node):
            parts = (_shape(getattr(node, part.name)) for part in fields(node))
            return f"{type(node).__name__}({', '.join(parts)})"
        case _:
            return repr(node)
