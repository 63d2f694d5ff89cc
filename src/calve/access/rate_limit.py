"""Rate limits: repeated failures wait longer and longer, and too frequent requests wait a little."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from threading import Lock
from typing import TypeVar

_T = TypeVar("_T")
FREE_TRIES = 5
"""The number of failures before a caller has to wait."""
FIRST_WAIT = 1_000
LONGEST_WAIT = 15 * 60_000
FREE_TRIES_OF_NAME = 4
"""Failures for one user's password before a source has to wait."""
FREE_TRIES_OF_ADDRESS = 50
"""Failures from one address, over all names, before it has to wait: a whole company may share one address."""
LONGEST_WAIT_AT_ADDRESS = 30_000
FORGET = 60 * 60_000
"""Milliseconds without a failure after which all are forgotten."""
KEYS = 20_000
"""How many sources are remembered; the oldest are forgotten first."""


@dataclass(slots=True)
class _Tries:
    wrong: int = 0
    last: int = 0
    until: int = 0


class Backoff:
    """Counts failures by source, in this process."""

    def __init__(self, free: int = FREE_TRIES, longest: int = LONGEST_WAIT) -> None:
        self._free, self._longest = free, longest
        self._tries: OrderedDict[str, _Tries] = OrderedDict()
        self._lock = Lock()

    def wait(self, key: str, now: int) -> int:
        """Return how many milliseconds a source has to wait before its next attempt; 0: none."""
        with self._lock:
            tries = self._tries.get(key)
            return max(0, tries.until - now) if tries else 0

    def wrong(self, key: str, now: int) -> bool:
        """Record a failure; tell whether the source has to wait from now on, and did not before."""
        with self._lock:
            tries = self._tries.pop(key, None) or _Tries()
            if now - tries.last > FORGET:
                tries = _Tries()
            remember(self._tries, key, tries)
            tries.wrong, tries.last = tries.wrong + 1, now
            over = tries.wrong - self._free
            if over > 0:
                # The shift is bounded as well: a count that grows for years must not make a number of thousands of
                # bits.
                tries.until = now + min(self._longest, FIRST_WAIT << min(over - 1, 20))
            return over == 1

    def right(self, key: str) -> None:
        """Forget the failures of a source that succeeded."""
        with self._lock:
            self._tries.pop(key, None)


@dataclass(frozen=True, slots=True)
class SignInSource:
    """The source of a sign-in: user name, network, and a device that has signed in under that name before."""

    name: str
    network: str
    device: str | None = None

    @property
    def key(self) -> str:
        """The key by which failures are counted."""
        return f"{self.device or self.network} {self.name}"


class SignInBackoff:
    """Counts wrong passwords, in this process, so that they slow down their source and nobody else.

    They are counted by name and address, not by name: others could lock a user out. A device that has signed in before
    is counted separately: behind a proxy, attackers have the same address. Failures of an address are counted too, so
    that one password cannot be tried with every name; that does not slow down users who signed in from there before.
    """

    def __init__(self) -> None:
        self._own = Backoff(FREE_TRIES_OF_NAME)
        self._addresses = Backoff(FREE_TRIES_OF_ADDRESS, LONGEST_WAIT_AT_ADDRESS)
        self._names = Backoff(FREE_TRIES_OF_ADDRESS)
        self._known: OrderedDict[str, None] = OrderedDict()

    def wait(self, source: SignInSource, now: int) -> int:
        """Return how many milliseconds a source has to wait before its next attempt; 0: none."""
        own = self._own.wait(source.key, now)
        return own if self._is_known(source) else max(own, self._addresses.wait(source.network, now))

    def wrong(self, source: SignInSource, now: int) -> bool:
        """Record a failure; tell whether to log it: a source has to wait, or many try one name."""
        is_guessed = self._names.wrong(source.name, now)
        is_slowed = self._addresses.wrong(source.network, now) if source.device is None else False
        return self._own.wrong(source.key, now) or is_slowed or is_guessed

    def right(self, source: SignInSource) -> None:
        """Record a success."""
        self._own.right(source.key)
        remember(self._known, source.key, None)

    def _is_known(self, source: SignInSource) -> bool:
        return source.device is not None or source.key in self._known


def remember(kept: OrderedDict[str, _T], key: str, value: _T) -> None:
    """Store a value as the newest; the oldest are dropped if there are too many."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > KEYS:
        kept.popitem(last=False)


class Rate:
    """A token bucket for each source: a number of requests per second, and bursts of twice as many."""

    def __init__(self, per_second: int, now: Callable[[], float]) -> None:
        self._per_second, self._now = per_second, now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def wait(self, key: str) -> float:
        """Take one request from the source's bucket; return the seconds to wait if it is empty."""
        now, most = self._now(), 2.0 * self._per_second
        with self._lock:
            left, at = self._left.pop(key, (most, now))
            left = min(most, left + (now - at) * self._per_second)
            is_free = left >= 1
            remember(self._left, key, (left - 1 if is_free else left, now))
        return 0.0 if is_free else (1 - left) / self._per_second


@lru_cache(256)
def network_of(address: str) -> str:
    """Return what counts as one source: an address or, for IPv6, the /64 network that one customer has."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or f"{IPv6Address(int(parsed) >> 64 << 64)}/64")
