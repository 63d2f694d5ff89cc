"""The threads in which routes work, beside the one that speaks HTTP.

Only one thread of a process computes at a time. More of them than keep it busy while some wait for the database only
make each request, and the one that speaks HTTP, wait for all the others in turn. So what asks nobody but the state
database is done by a few threads; what may wait for something else, such as a catalog, has threads of its own.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")
QUICK = ThreadPoolExecutor(3, thread_name_prefix="api")
SLOW = ThreadPoolExecutor(40, thread_name_prefix="api-slow")


async def in_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Do work that asks nobody but the state database."""
    return await _done(QUICK, partial(work, *args, **kwargs))


async def in_slow_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Do work that may take its time."""
    return await _done(SLOW, partial(work, *args, **kwargs))


async def _done(threads: ThreadPoolExecutor, work: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(threads, copy_context().run, work)
