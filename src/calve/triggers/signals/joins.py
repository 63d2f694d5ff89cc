"""Joins of signals: for equal join keys, the n-th of one name with the n-th of every other. Pure.

So the order in which signals of different names arrive does not matter.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from calve.definition.model import SignalEntry, SignalTrigger
from calve.engine import ParamMatch, Value, Values

MOST = 1_000
"""The most signals of one name that wait for others; the oldest are dropped."""
Key = tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Arrived:
    """A signal that matches, and waits for its counterparts."""

    seq: int
    params: Values = field(default_factory=dict)


Waiting = Mapping[str, Sequence[Arrived]]
"""By name of the signal, ordered by number."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Groups of joined signals, those still waiting, and how many were dropped."""

    groups: tuple[Mapping[str, Arrived], ...]
    waiting: Waiting
    given_up: int = 0


def counts(entry: SignalEntry, params: Values) -> bool:
    """Tell whether a signal matches: it has the required params, and every join key."""
    wanted = (ParamMatch(name, match.value, match.operator) for name, match in entry.match_params.items())
    return all(each.fits(params) for each in wanted) and all(key in params for key in entry.join_keys)


def join(trigger: SignalTrigger, waiting: Waiting) -> Joined:
    """Join signals, the oldest first."""
    names = list(trigger.definitions)
    lines = {name: _by_key(trigger.definitions[name], waiting[name]) for name in names}
    groups = []
    for arrived in waiting[names[0]]:
        key = _key(trigger.definitions[names[0]], arrived)
        if all(lines[name].get(key) for name in names):
            groups.append({name: lines[name][key].popleft() for name in names})
    left = {name: _left(lines[name].values()) for name in names}
    kept = {name: found[-MOST:] for name, found in left.items()}
    given_up = sum(len(left[name]) - len(kept[name]) for name in names)
    return Joined(tuple(groups), kept, given_up)


def _by_key(entry: SignalEntry, arrived: Iterable[Arrived]) -> dict[Key, deque[Arrived]]:
    lines: defaultdict[Key, deque[Arrived]] = defaultdict(deque)
    for each in arrived:
        lines[_key(entry, each)].append(each)
    return dict(lines)


def _key(entry: SignalEntry, arrived: Arrived) -> Key:
    return tuple(arrived.params[key] for key in entry.join_keys)


def _left(lines: Iterable[Iterable[Arrived]]) -> list[Arrived]:
    return sorted((each for line in lines for each in line), key=lambda each: each.seq)
