"""Signals, on both databases: announced once, numbered, listed, matched."""

import threading
from typing import Any

import pytest
from tests.engines import Playground

from calve.definition.model import Operator
from calve.engine import Announced, Announcement, AnnouncementStatus, ParamMatch
from calve.errors import RequestInvalid, SignalMissing
from calve.triggers.signals import Signals

pytestmark = pytest.mark.each_store


@pytest.fixture
def signals(playground: Playground) -> Signals:
    """Give the façade."""
    return Signals(playground.state, playground.clock)


def test_signals_are_numbered_by_name(signals: Signals) -> None:
    """Each name counts from 1."""
    said = [signals.announce(name, {"n": number}) for name, number in [("x", 1), ("y", 1), ("x", 2)]]
    assert [(each.signal.name, each.signal.seq) for each in said] == [("x", 1), ("y", 1), ("x", 2)]
    assert signals.latest("x").params == {"n": 2}
    assert signals.instance("x", 1).params == {"n": 1}


def test_a_request_announces_once(signals: Signals) -> None:
    """Whatever it says the second time."""
    first = signals.announce("x", {"n": 1}, request_id="r")
    second = signals.announce("x", {"n": 2}, request_id="r")
    assert (first.status, second.status) == (AnnouncementStatus.CREATED, AnnouncementStatus.DUPLICATED)
    assert second.signal == first.signal


def test_without_a_request_the_same_params_announce_once(signals: Signals) -> None:
    """In any order of their names; the payload does not count."""
    signals.announce("x", {"a": 1, "b": "2"})
    again = signals.announce("x", {"b": "2", "a": 1}, payload={"who": "me"})
    assert again.status is AnnouncementStatus.DUPLICATED
    assert signals.announce("x", {"a": 1, "b": 2}).status is AnnouncementStatus.CREATED


def test_fifty_announce_the_same_request_and_one_signal_comes_of_it(playground: Playground) -> None:
    """All get the same answer (B.2-17)."""
    answers: list[Announced] = []

    def announce() -> None:
        answers.append(playground.state.announce(Announcement("x", {"n": 1}, request_id="same", at=1)))

    threads = [threading.Thread(target=announce) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 50
    assert {answer.signal.seq for answer in answers} == {1}
    assert [answer.status for answer in answers].count(AnnouncementStatus.CREATED) == 1
    assert playground.state.signal_heads(["x", "y"]) == {"x": 1, "y": 0}


def test_many_announce_different_signals_and_no_number_is_missing(playground: Playground) -> None:
    """Numbers of a name have no gaps."""
    threads = [
        threading.Thread(target=lambda n=number: playground.state.announce(Announcement("x", {"n": n}, at=1)))
        for number in range(30)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.seq for each in playground.state.signals_after("x", 0, 100)] == list(range(1, 31))


def test_what_can_be_no_signal_is_refused(signals: Signals) -> None:
    """With a word on what can be."""
    wrong: list[tuple[str, dict[str, str | int]]] = [
        ("", {}),
        (" x", {}),
        ("x", {"a": "\0"}),
        ("x", {"": 1}),
        ("x" * 300, {}),
    ]
    for name, params in wrong:
        with pytest.raises(RequestInvalid):
            signals.announce(name, params)


def test_signals_are_listed_newest_first_in_pages(playground: Playground, signals: Signals) -> None:
    """Of one name, or of all."""
    for number in range(5):
        playground.clock.now += number % 2
        signals.announce("xy"[number % 2], {"n": number})
    whole = signals.list()
    assert [each.params["n"] for each in signals.list(name="x")] == [4, 2, 0]
    first = signals.list(limit=2)
    last = first[-1]
    rest = signals.list(before=(last.announced_at, last.name, last.seq))
    assert [*first, *rest] == whole


def test_a_signal_that_was_not_announced_is_missing(signals: Signals) -> None:
    """By name, or by number."""
    signals.announce("x")
    with pytest.raises(SignalMissing, match="Signal y does not exist"):
        signals.latest("y")
    with pytest.raises(SignalMissing, match="number 2"):
        signals.instance("x", 2)


MATCHES: list[tuple[list[tuple[str, Any, str]], int | None]] = [
    ([], 6),
    ([("n", 3, "=")], 3),
    ([("n", 3, ">")], 5),
    ([("n", 3, ">=")], 5),
    ([("n", 3, "<")], 2),
    ([("n", 3, "<=")], 3),
    ([("n", -5, "<")], None),
    ([("n", "3", "=")], None),
    ([("n", "a", ">")], 6),
    ([("n", "z", "<")], 6),
    ([("day", "b", "="), ("n", 1, ">=")], 4),
    ([("day", "b", "="), ("n", 5, ">=")], None),
    ([("missing", 1, "=")], None),
]


@pytest.mark.parametrize(("wanted", "seq"), MATCHES)
def test_the_latest_signal_that_fits_matches(
    playground: Playground, wanted: list[tuple[str, Any, str]], seq: int | None
) -> None:
    """Numbers compare as numbers, texts as texts, and never one with the other."""
    said: list[dict[str, Any]] = [
        {"n": -2, "day": "a"},
        {"n": 2, "day": "b"},
        {"n": 3, "day": "a"},
        {"n": 4, "day": "b"},
        {"n": 10, "day": "é"},
        {"n": "m"},
    ]
    for params in said:
        playground.state.announce(Announcement("x", params))
    playground.state.announce(Announcement("y", {"n": 3, "day": "b"}))
    asked = [ParamMatch(name, value, Operator(operator)) for name, value, operator in wanted]
    found = playground.state.match_signal("x", asked)
    assert (found.seq if found else None) == seq
    assert seq == next((n for n in range(6, 0, -1) if all(each.fits(said[n - 1]) for each in asked)), None)
