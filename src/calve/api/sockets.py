"""A WebSocket that ends when its caller is no longer who he was."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.types import Message, Receive, Send

from calve.api.streams import RECHECK

UNAUTHORIZED = 4_401
"""The code with which such a WebSocket is closed, as graphql-transport-ws has it."""


class Guarded:
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
        """Pass on what the application says, while somebody may hear it."""
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
