"""Which signals come together."""

from calve.definition.model import SignalEntry, SignalTrigger
from calve.triggers.signals import Arrived, counts, join, joins


def trigger(**keys: list[str]) -> SignalTrigger:
    """Return a trigger with join keys by signal."""
    return SignalTrigger.model_validate({"definitions": {name: {"join_keys": key} for name, key in keys.items()}})


def arrived(*values: str | int) -> list[Arrived]:
    """Return signals whose param ``k`` has some values, numbered from 1."""
    return [Arrived(number, {"k": value}) for number, value in enumerate(values, 1)]


def ids(joined: joins.Joined) -> list[dict[str, int]]:
    """Return the numbers of what came together."""
    return [{name: each.seq for name, each in group.items()} for group in joined.groups]


def test_without_keys_the_nth_of_each_come_together() -> None:
    """What is left waits."""
    joined = join(trigger(a=[], b=[]), {"a": arrived("x", "y", "z"), "b": arrived("p", "q")})
    assert ids(joined) == [{"a": 1, "b": 1}, {"a": 2, "b": 2}]
    assert joined.waiting == {"a": [Arrived(3, {"k": "z"})], "b": []}


def test_equal_keys_come_together_whatever_their_numbers() -> None:
    """The text 1 is not the number 1."""
    joined = join(trigger(a=["k"], b=["k"]), {"a": arrived(1, 2, 2), "b": arrived(2, "1")})
    assert ids(joined) == [{"a": 2, "b": 1}]
    assert [each.seq for each in joined.waiting["a"]] == [1, 3]


def test_one_signal_comes_together_with_itself() -> None:
    """A trigger of one signal fires for each."""
    assert ids(join(trigger(a=[]), {"a": arrived(1, 1)})) == [{"a": 1}, {"a": 2}]


def test_signals_that_wait_too_long_are_abandoned() -> None:
    """The oldest go, and are counted."""
    joined = join(trigger(a=[], b=[]), {"a": arrived(*range(joins.MOST + 3)), "b": []})
    assert joined.given_up == 3
    assert joined.waiting["a"][0].seq == 4


def test_a_signal_counts_that_has_what_must_match_and_its_keys() -> None:
    """Ranges are of numbers, or of texts."""
    entry = SignalEntry.model_validate(
        {"match_params": {"n": {"value": 3, "operator": ">"}, "s": {"value": "x"}}, "join_keys": ["k"]}
    )
    assert counts(entry, {"n": 4, "s": "x", "k": 1})
    assert not counts(entry, {"n": 3, "s": "x", "k": 1})
    assert not counts(entry, {"n": "4", "s": "x", "k": 1})
    assert not counts(entry, {"n": 4, "s": "y", "k": 1})
    assert not counts(entry, {"n": 4, "s": "x"})
