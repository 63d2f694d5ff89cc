"""The threads in which routes work, beside the one that speaks HTTP.

Only one thread of a process computes at a time. More of them than keep it busy while some wait for the database only
make each request, and the one that speaks HTTP, wait for all the others in turn. So what asks nobody but the state
database is done by the few threads that ``calve.api.serving`` gives to the loop; what may wait for something else,
such as a catalog, or what a caller can make long, such as a definition or a log, has threads of its own: few callers
must not be able to keep all others waiting.
"""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from starlette.concurrency import run_in_threadpool as in_slow_thread

__all__ = ["in_slow_thread", "in_thread"]
_P = ParamSpec("_P")
_T = TypeVar("_T")


async def in_thread(work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Do work that asks nobody but the state database."""
    call = partial(copy_context().run, work, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(None, call)
