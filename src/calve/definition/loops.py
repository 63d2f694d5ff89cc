"""The iterations of a foreach: every combination of its lists, the first list varying fastest. Pure."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from calve.errors import ParamError

ITERATIONS = 25_000
"""How often a loop may run its steps."""

Lists = Mapping[str, Sequence[Any]]


def count(lists: Lists) -> int:
    """Return how many iterations there are; none, if a list is empty.

    Raises:
        ParamError: there are no lists, something is no list, or there are too many iterations.
    """
    for name, values in lists.items():
        if not isinstance(values, list | tuple):
            raise ParamError(f"Loop param [{name}] is not a list", param=name)
    if not lists:
        raise ParamError("A foreach needs at least one list in loop_params")
    total = prod(len(values) for values in lists.values())
    if total > ITERATIONS:
        raise ParamError(f"A foreach of [{total}] iterations is over the limit of [{ITERATIONS}]")
    return total


def values_at(lists: Lists, index: int) -> dict[str, Any]:
    """Return the values of one iteration, counted from 0."""
    values = {}
    for name, items in lists.items():
        index, position = divmod(index, len(items))
        values[name] = items[position]
    return values
