"""Whoever is wrong again and again waits longer and longer; whoever asks too often waits a little."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from threading import Lock

FREE_TRIES = 5
"""How often somebody may be wrong before he has to wait."""
FIRST_WAIT = 1_000
LONGEST_WAIT = 15 * 60_000
FORGET = 60 * 60_000
"""After how long without a mistake all of them are forgotten."""
KEYS = 20_000
"""How many sources are remembered; the oldest ones are forgotten first."""


@dataclass(slots=True)
class _Tries:
    wrong: int = 0
    last: int = 0
    until: int = 0


class Backoff:
    """Counts mistakes by source, in this process."""

    def __init__(self) -> None:
        self._tries: OrderedDict[str, _Tries] = OrderedDict()
        self._lock = Lock()

    def wait(self, keys: tuple[str, ...], now: int) -> int:
        """Return how many milliseconds the sources have to wait before they may try again; 0, if they may now."""
        with self._lock:
            return max((max(0, tries.until - now) for key in keys if (tries := self._tries.get(key))), default=0)

    def wrong(self, keys: tuple[str, ...], now: int) -> bool:
        """Note a mistake; tell whether a source has to wait from now on that did not have to before it."""
        with self._lock:
            began = [self._count(key, now) for key in keys]
        return any(began)

    def right(self, keys: tuple[str, ...]) -> None:
        """Forget the mistakes of sources that were right."""
        with self._lock:
            for key in keys:
                self._tries.pop(key, None)

    def _count(self, key: str, now: int) -> bool:
        tries = self._tries.pop(key, None) or _Tries()
        if now - tries.last > FORGET:
            tries = _Tries()
        self._tries[key] = tries
        while len(self._tries) > KEYS:
            self._tries.popitem(last=False)
        tries.wrong, tries.last = tries.wrong + 1, now
        over = tries.wrong - FREE_TRIES
        if over > 0:
            tries.until = now + min(LONGEST_WAIT, FIRST_WAIT << min(over - 1, 20))
        return over == 1


class Rate:
    """Lets each source ask so many times a second, twice as many at once."""

    def __init__(self, per_second: int, now: Callable[[], float]) -> None:
        self._per_second, self._now = per_second, now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = Lock()

    def wait(self, key: str) -> float:
        """Take one request from what the source has left; return how many seconds it has to wait if there is none."""
        now, most = self._now(), 2.0 * self._per_second
        with self._lock:
            left, at = self._left.pop(key, (most, now))
            left = min(most, left + (now - at) * self._per_second)
            is_free = left >= 1
            self._left[key] = (left - 1 if is_free else left, now)
            while len(self._left) > KEYS:
                self._left.popitem(last=False)
        return 0.0 if is_free else (1 - left) / self._per_second


@lru_cache(256)
def network_of(address: str) -> str:
    """Return what counts as one source: an address, or of IPv6, where one customer has many, its network."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    return str(parsed.ipv4_mapped or f"{IPv6Address(int(parsed) >> 64 << 64)}/64")
