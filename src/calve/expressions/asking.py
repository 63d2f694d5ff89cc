"""What a program asks ``params`` for: the functions it calls, with the arguments that stand in its text."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from calve.expressions.names import inputs, walk
from calve.expressions.program import Program
from calve.expressions.text import from_units
from calve.expressions.tree import Call, Expression, Index, Literal, Name, Primary


@dataclass(frozen=True, slots=True)
class ParamCall:
    """A call of ``params.<name>(…)``, or ``params[…]``, which is ``get``; an argument that is no plain text is None."""

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
    """Return the names of the params that a program may read; None where only a run can tell them."""
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
