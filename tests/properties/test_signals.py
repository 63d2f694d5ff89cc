"""Joining signals, held against a model that goes through everything."""

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random
from typing import cast

from hypothesis import given, strategies as st

from calve.definition.model import Operator
from calve.engine import Json, ParamMatch, Signal
from calve.store.engine.signals import encoded
from calve.triggers import Fire, Trigger, TriggerType
from calve.triggers.signals import SignalState, SignalTriggers

NAMES = ("a", "b", "c")
VALUES = st.integers(-(2**63), 2**63 - 1) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20
)
DEFINITION = {"definitions": {name: {"match_params": {"ok": {"value": 1}}, "join_keys": ["k"]} for name in NAMES}}


class Announced:
    """Signals that were announced, as a trigger asks for them."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Signal]] = {name: [] for name in NAMES}

    def add(self, name: str, key: int, ok: int) -> None:
        """Announce one."""
        line = self.kept[name]
        line.append(Signal(name, len(line) + 1, str(len(line)), {"k": key, "ok": ok}))

    def signals_after(self, name: str, seq: int, limit: int) -> list[Signal]:
        """Return what came after a number."""
        return self.kept[name][seq : seq + limit]

    def last_before(self, name: str, at: int) -> int:
        """Return nothing: the trigger is older than all."""
        assert name
        return min(at, 0)


def fired(order: list[tuple[str, int, int]], looks: list[bool]) -> set[tuple[tuple[str, int], ...]]:
    """Announce in some order, look now and then and at last, and return the signals that fired together."""
    board = Announced()
    kind = SignalTriggers(cast("SignalState", board))  # what else it could ask is not asked
    trigger = Trigger("w", "signal:0", TriggerType.SIGNAL, 1, DEFINITION, {}, None, 1, 0)
    looked = kind.begin(trigger, 0)
    found: list[Fire] = []
    for (name, key, ok), is_looking in zip(order, looks, strict=True):
        board.add(name, key, ok)
        if is_looking:
            looked = kind.evaluate(_moved(trigger, looked.state), 0)
            found += looked.fires
    found += kind.evaluate(_moved(trigger, looked.state), 0).fires
    groups = [tuple(sorted(fire.initiator.trigger["signal_ids"].items())) for fire in found]
    assert max(Counter(pair for group in groups for pair in group).values(), default=0) <= 1
    return set(groups)


def _moved(trigger: Trigger, state: Json) -> Trigger:
    return replace(trigger, state=state)


def expected(order: list[tuple[str, int, int]]) -> set[tuple[tuple[str, int], ...]]:
    """Go through all combinations: those of one key belong together that are the n-th of it in their names."""
    numbered: list[tuple[str, int, int, int]] = []
    seqs: Counter[str] = Counter()
    ranks: Counter[tuple[str, int]] = Counter()
    for name, key, ok in order:
        seqs[name] += 1
        if ok == 1:
            ranks[name, key] += 1
            numbered.append((name, seqs[name], key, ranks[name, key]))
    lines = [[each for each in numbered if each[0] == name] for name in NAMES]
    return {
        tuple(sorted((each[0], each[1]) for each in group))
        for group in product(*lines)
        if len({each[2:] for each in group}) == 1
    }


ORDERS = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 2), st.integers(0, 1)), max_size=20)


@given(ORDERS, st.data())
def test_signals_are_joined_as_the_model_says_whenever_someone_looks(
    order: list[tuple[str, int, int]], data: st.DataObject
) -> None:
    """Looking after each, after some or only at last gives the same."""
    looks = data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
    assert fired(order, looks) == expected(order)


@given(ORDERS, st.randoms(use_true_random=False))
def test_the_order_of_names_does_not_matter(order: list[tuple[str, int, int]], random: Random) -> None:
    """Signals of one name keep theirs, as their numbers do."""
    names = [name for name, _, _ in order]
    random.shuffle(names)
    lines = {name: iter([each for each in order if each[0] == name]) for name in NAMES}
    mixed = [next(lines[name]) for name in names]
    assert fired(mixed, [True] * len(mixed)) == fired(order, [True] * len(order))


@given(VALUES, VALUES)
def test_values_sort_as_they_are_written(one: str | int, two: str | int) -> None:
    """Byte by byte, as databases compare; numbers and texts do not mix."""
    if isinstance(one, str) is isinstance(two, str):
        assert (encoded(one).encode() < encoded(two).encode()) == (one < two)  # type: ignore[operator]
        assert ParamMatch("p", two, Operator.LESS).fits({"p": one}) == (one < two)  # type: ignore[operator]
    else:
        assert encoded(one)[0] != encoded(two)[0]
        assert not any(ParamMatch("p", one, operator).fits({"p": two}) for operator in Operator)
