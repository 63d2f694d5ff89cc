"""SIGINT and SIGTERM: the first asks to end, the second ends."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

STOPPED = 130
"""The exit code of a command that was stopped, as shells expect it."""
_SHOW_CURSOR = "\x1b[?25h"


@contextmanager
def counted(at_last: Callable[[], None] = lambda: None) -> Iterator[Callable[[], int]]:
    """Count signals instead of dying of the first one; the second one ends this process at once.

    The handler only counts: whatever it would call might be what it has interrupted. ``at_last`` is called by the
    second one, and may do no more than send signals itself.
    """
    count = 0

    def handle(_: int, __: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            if sys.stderr.isatty():
                os.write(2, _SHOW_CURSOR.encode())
            at_last()
            os._exit(STOPPED)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: count
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
