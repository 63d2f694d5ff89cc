"""Which names a program uses, and which of them it takes from outside."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from typing import Any

from calve.expressions.program import Program
from calve.expressions.text import from_units
from calve.expressions.tree import Assignment, Declarator, Name, Position
from calve.expressions.values import CLASSES


def names(program: Program) -> dict[str, bool]:
    """Return each variable, and True if it is first read, so that it must come from outside."""
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
    """Return the names that a program takes from outside, without the classes of the language."""
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
    """Return the fields in which a kind of node may hold others, the last first; None for what is no node."""
    if kind is Position or not is_dataclass(kind):
        return None
    return tuple(part.name for part in reversed(fields(kind)) if part.name != "at")
