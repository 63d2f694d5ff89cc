"""Whoever is wrong again and again waits longer and longer."""

import pytest

from calve.access import Backoff, Rate, network_of, rate_limit as module
from calve.access.rate_limit import (
    FORGET,
    FREE_TRIES,
    FREE_TRIES_OF_ADDRESS,
    FREE_TRIES_OF_NAME,
    LONGEST_WAIT,
    LONGEST_WAIT_AT_ADDRESS,
    SignInBackoff,
    SignInSource,
)


def test_the_first_mistakes_cost_nothing() -> None:
    """The next ones do; who was right begins anew."""
    backoff = Backoff()
    began = [backoff.wrong("a", 0) for _ in range(FREE_TRIES + 2)]
    assert began == [False] * FREE_TRIES + [True, False]
    assert backoff.wait("a", 0) == 2_000
    assert backoff.wait("b", 0) == 0
    assert backoff.wait("a", 500) == 1_500
    backoff.right("a")
    backoff.right("b")
    assert backoff.wait("a", 0) == 0


def test_nobody_waits_for_ever() -> None:
    """A quarter of an hour at most, and after an hour all is forgotten."""
    backoff = Backoff()
    for _ in range(200):
        backoff.wrong("a", 0)
    assert backoff.wait("a", 0) == LONGEST_WAIT
    backoff.wrong("a", FORGET + 1)
    assert backoff.wait("a", FORGET + 1) == 0


def test_no_more_sources_are_remembered_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker with many addresses cannot fill the memory."""
    monkeypatch.setattr(module, "KEYS", 10)
    backoff, rate = Backoff(), Rate(1, lambda: 0.0)
    for number in range(100):
        backoff.wrong(str(number), 0)
        rate.wait(str(number))
    assert len(backoff._tries) == 10
    assert len(rate._left) == 10


def test_wrong_passwords_delay_only_their_source() -> None:
    """Not the same name elsewhere, nor other names there."""
    backoff = SignInBackoff()
    for _ in range(FREE_TRIES_OF_NAME + 1):
        backoff.wrong(SignInSource("ann", "here"), 0)
    assert backoff.wait(SignInSource("ann", "here"), 0) == 1_000
    assert backoff.wait(SignInSource("ann", "there"), 0) == 0
    assert backoff.wait(SignInSource("bob", "here"), 0) == 0
    assert backoff.wait(SignInSource("ann", "here", "laptop"), 0) == 0


def test_names_are_not_tried_one_after_the_other_from_one_address() -> None:
    """All of an address wait a little, but for those who have signed in from there, or on a device of theirs."""
    backoff = SignInBackoff()
    backoff.right(SignInSource("ann", "here"))
    written = [backoff.wrong(SignInSource(f"user{n}", "here"), 0) for n in range(FREE_TRIES_OF_ADDRESS + 20)]
    assert [n for n, is_written in enumerate(written) if is_written] == [FREE_TRIES_OF_ADDRESS]
    assert backoff.wait(SignInSource("bob", "here"), 0) == LONGEST_WAIT_AT_ADDRESS
    assert backoff.wait(SignInSource("bob", "there"), 0) == 0
    assert backoff.wait(SignInSource("ann", "here"), 0) == 0
    assert backoff.wait(SignInSource("bob", "here", "laptop"), 0) == 0


def test_a_device_waits_for_its_own_mistakes() -> None:
    """They count for nobody else, not even at its address."""
    backoff = SignInBackoff()
    for _ in range(FREE_TRIES_OF_ADDRESS + 1):
        backoff.wrong(SignInSource("ann", "here", "laptop"), 0)
    assert backoff.wait(SignInSource("ann", "here", "laptop"), 0) == LONGEST_WAIT
    assert backoff.wait(SignInSource("ann", "here"), 0) == 0


def test_guessing_from_many_addresses_is_logged_and_locks_nobody_out() -> None:
    """It is told once."""
    backoff = SignInBackoff()
    written = [backoff.wrong(SignInSource("ann", f"net{n}"), 0) for n in range(200)]
    assert sum(written) == 1
    assert backoff.wait(SignInSource("ann", "home"), 0) == 0


def test_a_source_asks_so_often_and_twice_as_often_at_once() -> None:
    """And waits for the next."""
    now = 0.0
    rate = Rate(10, lambda: now)
    assert [rate.wait("a") for _ in range(20)] == [0.0] * 20
    assert rate.wait("a") == pytest.approx(0.1)
    assert rate.wait("b") == 0
    now = 0.1
    assert rate.wait("a") == 0
    assert rate.wait("a") > 0
    now = 1_000.0
    assert [rate.wait("a") for _ in range(21)][-1] > 0


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unknown", "unknown"),
    ],
)
def test_a_network_of_ipv6_is_one_source(address: str, source: str) -> None:
    """One customer has billions of addresses."""
    assert network_of(address) == source
