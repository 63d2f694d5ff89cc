"""The variables, parameters and functions of ``params`` that a program refers to."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, lru_cache
from typing import Any

from calve.expressions.evaluation import Program
from calve.expressions.text import from_units
from calve.expressions.tree import Assignment, Call, Declarator, Expression, Index, Literal, Name, Position, Primary
from calve.expressions.values import CLASSES


def names(program: Program) -> dict[str, bool]:
    """Return each variable, and whether it is read before it is set, so that it must be a parameter."""
    found: dict[str, bool] = {}
    for node in walk(program.tree.statements):
        match node:
            case Name():
                found.setdefault(from_units(node.name), True)
            case Assignment() | Declarator():
                found.setdefault(from_units(node.name), False)
            case _:
                pass
    return found


@lru_cache(maxsize=1_024)
def inputs(program: Program) -> frozenset[str]:
    """Return the parameters that a program reads by name."""
    return frozenset(name for name, is_input in names(program).items() if is_input and name not in CLASSES)


def walk(tree: Any) -> Iterator[Any]:
    """Yield every node, in the order of the source; without recursion, as a tree may be as deep as its limit."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, tuple):
            pending.extend(reversed(node))
        elif (parts := _parts(node.__class__)) is not None:
            yield node
            pending.extend([getattr(node, part) for part in parts])


@cache
def _parts(kind: type[Any]) -> tuple[str, ...] | None:
    """Return the fields in which a node may hold other nodes, the last first; None if the class is not a node."""
    if kind is Position or not is_dataclass(kind):
        return None
    return tuple(part.name for part in reversed(fields(kind)) if part.name != "at")


@dataclass(frozen=True, slots=True)
class ParamCall:
    """A call of ``params.<name>(…)``, or ``params[…]``, which is ``get``; arguments other than literals are None."""

    name: str
    arguments: tuple[str | None, ...]


@lru_cache(maxsize=1_024)
def calls(program: Program) -> tuple[ParamCall, ...]:
    """Return the calls of ``params`` in a program, in the order of its text."""
    found = []
    for node in walk(program.tree.statements):
        match node:
            case Primary(prefix=Name(name="params"), suffixes=(Call() as call, *_)):
                found.append(ParamCall(from_units(call.name), tuple(_text(item) for item in call.arguments)))
            case Primary(prefix=Name(name="params"), suffixes=(Index() as index, *_)):
                found.append(ParamCall("get", (_text(index.index),)))
            case _:
                pass
    return tuple(found)


@lru_cache(maxsize=1_024)
def reads(program: Program) -> frozenset[str] | None:
    """Return the names of the params that a program may read; None if that depends on its values."""
    asked = calls(program)
    uses = sum(isinstance(node, Name) and node.name == "params" for node in walk(program.tree.statements))
    named = [call.arguments[0] for call in asked if call.name == "get" and len(call.arguments) == 1]
    if uses > len(asked) or None in named:
        return None
    return frozenset({*inputs(program), *(name for name in named if name is not None)} - {"params"})


def _text(argument: Any) -> str | None:
    match argument:
        case Expression(body=Primary(prefix=Literal(value=str(value)), suffixes=())):
            return from_units(value)
        case _:
            return None
