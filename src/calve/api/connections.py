"""A connection with an incomplete request: everything but its body is limited in size and time."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from calve.api import limits

HEAD = 65_536
"""The maximum number of bytes of a request without its body: its line, headers, trailers, sizes of chunks."""
SECONDS = 20.0
"""How long the head of a request may take."""


def _whole() -> float:
    """Return how long the rest may take: longer than the reader of the body waits, so that it can respond."""
    return limits.SECONDS + SECONDS


class Connection(HttpToolsProtocol):
    """Parses HTTP; closes a connection whose request takes too long, or is too large even without its body."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._beside = 0  # bytes of a request that are not its body
        self._is_open = True  # whether a request is incomplete
        self._is_left = False
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start to wait for a request."""
        super().connection_made(transport)
        self._wait(SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._stop_waiting()

    def data_received(self, data: bytes) -> None:
        """Parse more bytes, and check whether the request is still open."""
        self._beside += len(data)
        super().data_received(data)
        if self._is_open and self._beside > HEAD:
            self._refuse(431)
        elif (
            self._is_open or self._is_answered
        ):  # after a response, bytes that are not a request do not keep the connection open
            self._wait(SECONDS, is_new=False)

    def on_message_begin(self) -> None:
        """Note that a request has started."""
        super().on_message_begin()
        self._is_open = True

    def on_headers_complete(self) -> None:
        """Start the time limit of the rest."""
        self._wait(_whole())
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Do not count the body, which has its own limit."""
        self._beside -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        super().on_message_complete()
        self._is_open = False
        self._beside = 0
        self._stop_waiting()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a WebSocket."""
        super().handle_websocket_upgrade()
        self._is_left = True

    @property
    def _is_answered(self) -> bool:
        """Tell whether no request is in progress, and none is expected."""
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
        """Refuse an unread request, and close the connection; during a response, only close it."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if self.cycle is None or (self.cycle.response_complete and not self.pipeline):
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()
