"""Answers that never end: how many there may be, who looks for news for all, and WebSockets of guarded callers."""

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
"""Seconds between two looks for new events, of all streams of a process together."""
PATIENCE = 2.0
"""Seconds after which a stream looks for itself: PostgreSQL may show an event later than one with a higher number."""
RECHECK = 3.0
"""Seconds after which it is asked again whether the caller may still hear a stream."""
_PAGE = 500
_AGAIN = 10
"""After how many seconds a refused caller may try again."""


class Streams:
    """The streams that a process has open."""

    def __init__(self, most: int = 1_000, most_each: int = 100) -> None:
        """Take how many there may be in all, and of each caller."""
        self._most = most
        self._most_each = most_each
        self._open: Counter[str] = Counter()
        self.pulse = Pulse()

    @contextmanager
    def opened(self, name: str) -> Iterator[None]:
        """Count a stream of a caller while it is open.

        Raises:
            TooManyStreams: the caller has too many open.
            StreamsExhausted: all callers together have.
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
            self._open += Counter()  # who has none is forgotten


class Pulse:
    """Looks for new events on behalf of all streams of a process, as long as one of them waits."""

    def __init__(self) -> None:
        self.beats = 0
        """How often there was something new."""
        self._last = 0
        self._waiting = 0
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def news(self, engine: Engine, ending: threading.Event, since: int) -> None:
        """Wait until there was something new after so many beats, or the server ends; but not for long."""
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
        is_new = True  # nobody has looked for a while
        while self._waiting:
            if is_new or ending.is_set():
                self.beats += 1
                self._news.set()
                self._news = asyncio.Event()
            await asyncio.sleep(OFTEN)
            is_new = await self._is_new(engine)

    async def _is_new(self, engine: Engine) -> bool:
        """Tell whether there are events that nobody was told of; far behind, not all of them are read."""
        try:
            newest = await in_thread(engine.state.last_event)
            after = max(self._last, newest - _PAGE)
            found = await in_thread(engine.state.events, after=after, limit=_PAGE) if newest > self._last else []
        except CalveError as error:  # each stream finds out for itself
            _LOG.debug("%s", error.message)
            return False
        self._last = found[-1].seq if found else self._last
        return bool(found)


UNAUTHORIZED = 4_401
"""The code with which such a WebSocket is closed, as graphql-transport-ws has it."""


class GuardedSocket:
    """The two ends of a WebSocket; the application hears of its end as if the caller had hung up."""

    def __init__(self, receive: Receive, send: Send, holds: Callable[[], Awaitable[bool]]) -> None:
        self._receive = receive
        self._send = send
        self._holds = holds
        self._coming: asyncio.Future[Message] | None = None
        self._asked = asyncio.get_running_loop().time()
        self._is_over = False
        self.is_answered = False
        """Whether the application has said anything."""

    async def send(self, message: Message) -> None:
        """Pass on what the application says, while the caller may hear it."""
        self.is_answered = True
        if not self._is_over:
            await self._send(message)

    async def receive(self) -> Message:
        """Give what comes next; meanwhile, see now and then whether the caller may still be here."""
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
