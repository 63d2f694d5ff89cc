"""The threads that run routes, besides the one that handles HTTP.

Only one thread of a process computes at a time. More threads than are needed to keep it busy while some of them wait
for the database only make each request, and the thread that handles HTTP, wait for all the others. So routes that wait
only for the state database run in the few threads that ``calve.api.server`` gives to the loop. Routes that may wait
for something else, such as a catalog, or that a caller can make long, such as those of a definition or a log, have
threads of their own, so that a few callers cannot block all others.
"""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec, TypeVar
from weakref import WeakValueDictionary

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.concurrency import run_in_threadpool as in_slow_thread

from calve.settings import THREADS

__all__ = ["Abandoned", "Deadline", "FairThreads", "in_slow_thread", "in_thread"]
_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a function that waits only for the state database."""
    call = partial(copy_context().run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(None, call)


class FairThreads:
    """A few threads for work that callers can make long; no caller gets all of them."""

    def __init__(self, threads: int = THREADS) -> None:
        self._all = CapacityLimiter(threads)
        self._each = max(1, threads - 1)
        self._callers: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    async def run(self, caller: str, work: Callable[[], _T]) -> _T:
        """Run a function for a caller, when a thread is free."""
        own = self._callers.get(caller) or self._callers.setdefault(caller, CapacityLimiter(self._each))
        async with own:
            return await run_sync(work, limiter=self._all)


class Abandoned(BaseException):
    """A request was cancelled.

    Not an Exception: GraphQL would make it the error of one field, and continue with the next.
    """


@dataclass(frozen=True, slots=True)
class Deadline:
    """The deadline of a request: its time limit, the end of its connection, or the shutdown of the server."""

    at: float = math.inf
    is_gone: threading.Event = field(default_factory=threading.Event)
    is_ending: threading.Event = field(default_factory=threading.Event)
    now: Callable[[], float] = time.monotonic

    @property
    def is_over(self) -> bool:
        """Tell whether the request must end."""
        return self.is_gone.is_set() or self.is_ending.is_set() or self.now() > self.at

    def check(self) -> None:
        """Check the deadline.

        Raises:
            Abandoned: it has passed.
        """
        if self.is_over:
            raise Abandoned
