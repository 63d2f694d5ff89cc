"""Streams: the limit of open ones, the search for new events on behalf of all, and WebSockets with access control."""

import asyncio
import logging
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.types import Message, Receive, Send

from calve.api.threads import in_thread
from calve.engine import Engine
from calve.errors import CalveError, StreamsExhausted, TooManyStreams

_LOG = logging.getLogger(__name__)
OFTEN = 0.25
"""Seconds between two searches for new events, for all streams of a process."""
PATIENCE = 2.0
"""Seconds after which a stream searches itself: PostgreSQL may show an event later than one with a higher number."""
RECHECK = 3.0
"""Seconds between two checks of a stream's caller."""
_PAGE = 500
_AGAIN = 10
"""After how many seconds a refused caller may try again."""


class Streams:
    """The open streams of a process."""

    def __init__(self, most: int = 1_000, most_each: int = 100) -> None:
        """Set the maximum number of streams, in total and for each caller."""
        self._most = most
        self._most_each = most_each
        self._open: Counter[str] = Counter()
        self.pulse = Pulse()

    @contextmanager
    def opened(self, name: str) -> Iterator[None]:
        """Count an open stream of a caller.

        Raises:
            TooManyStreams: the caller has too many open.
            StreamsExhausted: all callers together have too many open.
        """
        if self._open[name] >= self._most_each:
            raise TooManyStreams(f"{name} has {self._most_each} streams open.", retry_after=_AGAIN)
        if self._open.total() >= self._most:
            raise StreamsExhausted(f"{self._most} streams are open.", retry_after=_AGAIN)
        self._open[name] += 1
        try:
            yield
        finally:
            self._open[name] -= 1
            self._open += Counter()  # callers without streams are removed


class Pulse:
    """Searches for new events on behalf of all streams of a process, while one of them waits."""

    def __init__(self) -> None:
        self.beats = 0
        """How often new events have been found."""
        self._last = 0
        self._waiting = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def news(self, engine: Engine, ending: threading.Event, since: int) -> None:
        """Wait until ``beats`` is no longer ``since``, the server shuts down, or a short time has passed."""
        if self.beats != since:
            return
        if self._task is None or self._task.done():
            self._news = asyncio.Event()
            self._task = asyncio.create_task(self._beat(engine, ending))
        self._waiting += 1
        try:
            with anyio.move_on_after(PATIENCE):
                await self._news.wait()
        finally:
            self._waiting -= 1

    async def _beat(self, engine: Engine, ending: threading.Event) -> None:
        is_new = True  # nobody has searched for a while
        while self._waiting:
            if is_new or ending.is_set():
                self.beats += 1
                self._news.set()
                self._news = asyncio.Event()
            await asyncio.sleep(OFTEN)
            is_new = await self._is_new(engine)

    async def _is_new(self, engine: Engine) -> bool:
        """Tell whether there are new events; if there are many, only the newest are read."""
        try:
            newest = await in_thread(engine.state.last_event)
            after = max(self._last, newest - _PAGE)
            found = await in_thread(engine.state.events, after=after, limit=_PAGE) if newest > self._last else []
        except CalveError as error:  # each stream reports it itself
            _LOG.debug("%s", error.message)
            return False
        self._last = found[-1].seq if found else self._last
        return bool(found)


UNAUTHORIZED = 4_401
"""The close code of graphql-transport-ws for a caller who may not, or no longer, use the WebSocket."""


class GuardedSocket:
    """Closes a WebSocket whose caller loses permission; to the application, the caller has disconnected."""

    def __init__(self, receive: Receive, send: Send, holds: Callable[[], Awaitable[bool]]) -> None:
        self._receive = receive
        self._send = send
        self._holds = holds
        self._coming: asyncio.Future[Message] | None = None
        self._asked = asyncio.get_running_loop().time()
        self._is_over = False
        self.is_answered = False
        """Whether the application has sent anything."""

    async def send(self, message: Message) -> None:
        """Pass on messages of the application while the caller may receive them."""
        self.is_answered = True
        if not self._is_over:
            await self._send(message)

    async def receive(self) -> Message:
        """Return the next message; meanwhile, check periodically whether the caller still has permission."""
        coming = self._coming = self._coming or asyncio.ensure_future(self._receive())
        try:
            while not self._is_over:
                await asyncio.wait({coming}, timeout=self._left())
                if self._left() <= 0 and not await self._is_still_allowed():
                    break
                if coming.done():
                    self._coming = None
                    return coming.result()
        except asyncio.CancelledError:
            coming.cancel()
            raise
        coming.cancel()
        return {"type": "websocket.disconnect", "code": UNAUTHORIZED}

    def _left(self) -> float:
        return max(0.0, self._asked + RECHECK - asyncio.get_running_loop().time())

    async def _is_still_allowed(self) -> bool:
        self._asked = asyncio.get_running_loop().time()
        if await self._holds():
            return True
        self._is_over = True
        await self._send({"type": "websocket.close", "code": UNAUTHORIZED, "reason": "Sign in again."})
        return False
