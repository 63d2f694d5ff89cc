"""A clock that follows the database's, and does not jump when this machine's does."""

import threading
import time
from collections.abc import Callable


class AnchoredClock:
    """Milliseconds: the database's clock when it was last asked, and what has passed here since."""

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
        """Take over what a database says that others follow too; one of our own jumps as this machine does."""
        if self._is_shared:
            self._set(now)

    def _set(self, now: int) -> None:
        with self._lock:
            self._offset = now - int(self._monotonic() * 1_000)
