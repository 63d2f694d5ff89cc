"""A connection, as far as a request has not come in whole: its head may be neither long nor slow."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

HEAD = 65_536
"""Bytes of a request line and headers that are taken in before they are refused unread."""
SECONDS = 20.0


class Connection(HttpToolsProtocol):
    """Parses HTTP; ends a connection that leaves the head of a request open for too long, or makes it too long."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._open = 0  # bytes of a head that has not come to its end
        self._is_open = True
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        super().connection_lost(exc)
        self._stop_waiting()

    def data_received(self, data: bytes) -> None:
        """Parse some more, and see whether the head is still open."""
        super().data_received(data)
        if not self._is_open:
            self._open = 0
            self._stop_waiting()
            return
        self._open += len(data)
        if self._open > HEAD:
            self._refuse(431)
        elif self._patience is None:
            self._wait()

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        super().on_message_begin()
        self._is_open = True

    def on_headers_complete(self) -> None:
        """Note that it has come to its end."""
        self._is_open = False
        super().on_headers_complete()

    def _wait(self) -> None:
        self._patience = self.loop.call_later(SECONDS, self._refuse, 408)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _refuse(self, status: int) -> None:
        """Say no to somebody whose request nobody has read, and hang up."""
        self._stop_waiting()
        if not self.transport.is_closing():
            self.transport.write(STATUS_LINE[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
