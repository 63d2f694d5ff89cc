"""The keys of a map: those that mean something where they stand, and the others."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from calve.definition.document import Node
from calve.definition.problems import Problems

SHORTEST_MISSPELT = 4
"""Shorter keys are near to too many others."""

_MARKS = "!<("
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


@dataclass(frozen=True, slots=True)
class Sorted:
    """A map's entries: by the field they mean, and the rest by their own keys."""

    fields: dict[str, Node]
    others: dict[str, Node]


def same(*names: str) -> dict[str, str]:
    """Return keys that mean the fields of the same names."""
    return {name: name for name in names}


def as_written(key: str) -> str:
    """Return a key unchanged."""
    return key


@lru_cache(maxsize=4_096)
def snake(key: str) -> str:
    """Return ``source_table`` for ``sourceTable``."""
    return _HUMP.sub(r"_\1", key).lower()


def sort_keys(
    entries: Mapping[str, Node],
    known: Mapping[str, str],
    problems: Problems,
    *,
    spelling: Callable[[str], str] = as_written,
) -> Sorted:
    """Sort entries by ``known``, which names the field that each key means; a field that is null is absent."""
    fields: dict[str, Node] = {}
    others: dict[str, Node] = {}
    written: dict[str, str] = {}
    for key, item in entries.items():
        field = known.get(key) or known.get(spelling(key))
        if field is None:
            others[key] = item
        elif item.value is None:
            continue
        elif field in fields:
            problems.add(item, "said_twice", f"{key} says again what {written[field]} says", at_key=True)
        else:
            fields[field] = item
            written[field] = key
    return Sorted(fields, others)


def without_misspelt(entries: Mapping[str, Node], known: Iterable[str], problems: Problems) -> dict[str, Node]:
    """Return the entries that may be params; report those that are more probably a known key gone wrong."""
    names = list(known)
    kept: dict[str, Node] = {}
    for key, item in entries.items():
        meant = misspelt(key, names)
        if meant is None:
            kept[key] = item
            continue
        hint = f"write {key}<string> if a param of that name is meant"
        problems.add(item, "misspelt_key", f"{key} looks like {meant}", hint=hint, at_key=True)
    return kept


def misspelt(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that a key is one slip of the finger away from."""
    names = list(known)
    if key in names or len(key) < SHORTEST_MISSPELT:
        return None
    # A key that ends in a number is one of a series, and one with marks says itself that it is a param.
    if key[-1].isdigit() or any(mark in key for mark in _MARKS):
        return None
    folded = key.casefold()
    return next((name for name in names if _within_one_edit(folded, name.casefold())), None)


def _within_one_edit(one: str, other: str) -> bool:
    """Tell whether one insertion, deletion, replacement or swap of neighbours makes the texts equal."""
    short, long = sorted((one, other), key=len)
    start = next((i for i, char in enumerate(short) if char != long[i]), len(short))
    short, long = short[start:], long[start:]
    if len(short) == len(long):
        return short[1:] == long[1:] or (short[:2] == long[:2][::-1] and short[2:] == long[2:])
    return short == long[1:]
