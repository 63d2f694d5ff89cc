"""The threads in which routes work, beside the one that speaks HTTP.

Only one thread of a process computes at a time. More of them than keep it busy while some wait for the database only
make each request, and the one that speaks HTTP, wait for all the others in turn. So what asks nobody but the state
database is done by the few threads that ``calve.api.server`` gives to the loop; what may wait for something else,
such as a catalog, or what a caller can make long, such as a definition or a log, has threads of its own: few callers
must not be able to keep all others waiting.
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
    """Do work that asks nobody but the state database."""
    call = partial(copy_context().run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(None, call)


class FairThreads:
    """A few threads for work that a caller can make long and ask for many times: nobody gets all of them."""

    def __init__(self, threads: int = THREADS) -> None:
        self._all = CapacityLimiter(threads)
        self._each = max(1, threads - 1)
        self._callers: WeakValueDictionary[str, CapacityLimiter] = WeakValueDictionary()

    async def run(self, caller: str, work: Callable[[], _T]) -> _T:
        """Do work for a caller, as soon as it is its turn."""
        own = self._callers.get(caller) or self._callers.setdefault(caller, CapacityLimiter(self._each))
        async with own:
            return await run_sync(work, limiter=self._all)


class Abandoned(BaseException):
    """The work on a request was ended early.

    Not an Exception: GraphQL would make it the error of one field, and go on with the next.
    """


@dataclass(frozen=True, slots=True)
class Deadline:
    """Until when a request is worked on: until its time is over, its caller is gone, or the server ends."""

    at: float = math.inf
    is_gone: threading.Event = field(default_factory=threading.Event)
    is_ending: threading.Event = field(default_factory=threading.Event)
    now: Callable[[], float] = time.monotonic

    @property
    def is_over(self) -> bool:
        """Tell whether the work is to end."""
        return self.is_gone.is_set() or self.is_ending.is_set() or self.now() > self.at

    def check(self) -> None:
        """Go on, or end the work.

        Raises:
            Abandoned: it is to end.
        """
        if self.is_over:
            raise Abandoned
