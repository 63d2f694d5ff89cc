"""A connection whose request has not come in whole: what it holds beside its body may be neither long nor slow."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from calve.api import limits

HEAD = 65_536
"""Bytes beside the body of a request (its line, headers, trailers, sizes of chunks) that are taken in unread."""
SECONDS = 20.0
"""How long a head may take to come."""


def _whole() -> float:
    """Return how long the rest may take: longer than whoever reads the body waits for it, and can say so."""
    return limits.SECONDS + SECONDS


class Connection(HttpToolsProtocol):
    """Parses HTTP; ends a connection that leaves a request open for too long, or holds too much beside a body."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._beside = 0  # bytes of a request that are not its body
        self._is_open = True  # no request has come to its end
        self._is_left = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait(SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._stop_waiting()

    def data_received(self, data: bytes) -> None:
        """Parse some more, and see whether the request is still open."""
        self._beside += len(data)
        super().data_received(data)
        if self._is_open and self._beside > HEAD:
            self._refuse(431)
        elif self._is_open or self._is_answered:  # after an answer, what is no request keeps nothing open
            self._wait(SECONDS, is_new=False)

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        super().on_message_begin()
        self._is_open = True

    def on_headers_complete(self) -> None:
        """Give the rest its own time."""
        self._wait(_whole())
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Leave to others how long a body may be."""
        self._beside -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request has come to its end."""
        super().on_message_complete()
        self._is_open = False
        self._beside = 0
        self._stop_waiting()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to a WebSocket."""
        super().handle_websocket_upgrade()
        self._is_left = True

    @property
    def _is_answered(self) -> bool:
        """Tell whether nothing is under way, and nobody waits for the next request."""
        is_over = self.cycle is not None and self.cycle.response_complete
        return is_over and self.timeout_keep_alive_task is None and not self._is_left

    def _wait(self, seconds: float, *, is_new: bool = True) -> None:
        if is_new:
            self._stop_waiting()
        if self._patience is None:
            self._patience = self.loop.call_later(seconds, self._refuse, 408)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _refuse(self, status: int) -> None:
        """Refuse a request that was not read, and close the connection; during an answer, only close it."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if self.cycle is None or (self.cycle.response_complete and not self.pipeline):
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
