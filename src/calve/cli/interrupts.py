"""SIGINT and SIGTERM: the first asks a command to end, the second and a deadline end it at once."""

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
"""The exit code of a command that was interrupted, as shells expect it."""
_SHOW_CURSOR = "\x1b[?25h"


_AFTER = 4.0
"""How many seconds a process may take to end after its deadline for running steps."""
WITHIN = 5.0 + _AFTER
"""Seconds after the first signal at which a process that runs no steps is ended, whatever it is doing."""


def within(settings: "Settings") -> float:
    """Return how many seconds after the first signal a process that runs steps is ended."""
    return settings.worker.drain.total_seconds() + _AFTER


@contextmanager
def counted(at_last: Callable[[], None] = lambda: None, *, within: float | None = None) -> Iterator[Callable[[], int]]:
    """Count signals instead of being terminated by the first one; the second one ends this process at once.

    The handler only counts, because it may have interrupted the very code that it would call. ``at_last`` is called on
    the second signal or at the deadline, and may only send signals.

    Args:
        at_last: ends the processes that this one has started.
        within: the deadline: end this process this many seconds after the first signal, even after the block, because
            threads that do not end keep the interpreter from exiting.
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
            os.close(ring)  # the guard reads the end of the pipe, and ends


def _guarded(within: float, at_last: Callable[[], None]) -> int:
    """Start a thread that ends this process in time; return the descriptor of the pipe that starts its clock."""
    alarm, ring = os.pipe()
    threading.Thread(target=_guard, args=(alarm, within, at_last), name="calve-end", daemon=True).start()
    return ring


def _guard(alarm: int, within: float, at_last: Callable[[], None]) -> None:
    """Wait for the first signal, then end this process when its time is over."""
    if os.read(alarm, 1):
        select.select([], [], [], within)
        os.write(2, f"calve: did not end within {within:g} s; leaving running steps behind.\n".encode())
        _leave(at_last)
    os.close(alarm)


def _leave(at_last: Callable[[], None]) -> None:
    if sys.stderr.isatty():
        os.write(2, _SHOW_CURSOR.encode())
    at_last()
    os._exit(STOPPED)
