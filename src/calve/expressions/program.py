"""A program, and how it is got from text."""

from dataclasses import dataclass, field
from functools import lru_cache

from calve.errors import ExpressionInvalid, LimitReached
from calve.expressions.compiled_statements import Compiled, compile_tree
from calve.expressions.parser import parse_tree
from calve.expressions.text import to_units, without_lone_surrogates
from calve.expressions.tree import Tree

_STACKS_KEPT = 4
_LONGEST_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """An expression that was understood. It can be evaluated any number of times, by any number of threads."""

    text: str
    tree: Tree = field(repr=False)
    _compiled: dict[int, Compiled] = field(default_factory=dict, repr=False)

    def compiled(self, stack: int) -> Compiled:
        """Return the program, compiled for a size of the stack."""
        found = self._compiled.get(stack)
        if found is None:
            found = compile_tree(self.tree, stack)
            if len(self._compiled) < _STACKS_KEPT:
                self._compiled[stack] = found
        return found


def parse(text: str, *, length: int = 10_000) -> Program:
    """Return the program that ``text`` is.

    Raises:
        LimitReached: it has ``length`` characters or more.
        ExpressionInvalid: it is not in the language.
    """
    if len(text) >= length or len(to_units(text)) >= length:
        raise LimitReached(
            f"Expression length is over the limit: {length} vs length: {len(to_units(text[:length]))}",
            kind="IllegalArgumentException",
        )
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parse(text)


def _parse(text: str) -> Program:
    try:
        return Program(text, parse_tree(without_lone_surrogates(text)))
    except RecursionError:
        raise ExpressionInvalid("The expression is nested too deeply", kind="StackOverflowError") from None


# Long texts are rare, and a thousand hostile ones would take a gigabyte.
_remembered = lru_cache(maxsize=1_024)(_parse)
