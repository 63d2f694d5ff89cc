"""A clock that follows the clock of the database, and does not jump when the clock of this machine does."""

import threading
import time
from collections.abc import Callable


class AnchoredClock:
    """A clock in milliseconds: the database's time when it was last asked, plus what has passed here since."""

    def __init__(
        self, ask: Callable[[], int], monotonic: Callable[[], float] = time.monotonic, *, is_shared: bool = True
    ) -> None:
        self._monotonic = monotonic
        self._is_shared = is_shared
        self._lock = threading.Lock()
        self._offset = 0
        self._set(ask())

    def __call__(self) -> int:
        """Return the time."""
        return int(self._monotonic() * 1_000) + self._offset

    def anchor(self, now: int) -> None:
        """Adopt the time of a shared database; a private one uses this machine's clock, and jumps with it."""
        if self._is_shared:
            self._set(now)

    def _set(self, now: int) -> None:
        with self._lock:
            self._offset = now - int(self._monotonic() * 1_000)
