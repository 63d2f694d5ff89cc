"""SIGINT and SIGTERM: the first asks to end, the second ends, and so does time."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calve.settings import Settings

STOPPED = 130
"""The exit code of a command that was stopped, as shells expect it."""
_SHOW_CURSOR = "\x1b[?25h"


_AFTER = 4.0
"""How many seconds it takes at most to leave what did not come to its end."""
WITHIN = 5.0 + _AFTER
"""How many seconds after the first signal a process that carries out no steps is over, whatever it was doing."""


def within(settings: "Settings") -> float:
    """Return how many seconds after the first signal a process that carries out steps is over."""
    return settings.worker.drain.total_seconds() + _AFTER


@contextmanager
def counted(at_last: Callable[[], None] = lambda: None, *, within: float | None = None) -> Iterator[Callable[[], int]]:
    """Count signals instead of dying of the first one; the second one ends this process at once.

    The handler only counts: whatever it would call might be what it has interrupted. ``at_last`` is called by the
    second one, and may do no more than send signals itself.

    Args:
        at_last: ends what this process has started.
        within: after how many seconds the first signal ends this process too. This holds beyond the block: threads
            that do not end would keep the interpreter from ending as well.
    """
    count = 0
    ring = None if within is None else _guarded(within, at_last)

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            _leave(at_last)
        if ring is not None:
            os.write(ring, b"!")

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: count
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if ring is not None and not count:
            os.close(ring)  # which ends the guard


def _guarded(within: float, at_last: Callable[[], None]) -> int:
    """Have a thread end this process in time; return the descriptor of a pipe by which it is told to begin to wait."""
    alarm, ring = os.pipe()
    threading.Thread(target=_guard, args=(alarm, within, at_last), name="calve-end", daemon=True).start()
    return ring


def _guard(alarm: int, within: float, at_last: Callable[[], None]) -> None:
    """Wait for a signal, then see to it that this process ends in time."""
    if os.read(alarm, 1):
        select.select([], [], [], within)
        os.write(2, f"calve: not ended within {within:g} s; leaving what is under way.\n".encode())
        _leave(at_last)
    os.close(alarm)


def _leave(at_last: Callable[[], None]) -> None:
    if sys.stderr.isatty():
        os.write(2, _SHOW_CURSOR.encode())
    at_last()
    os._exit(STOPPED)
