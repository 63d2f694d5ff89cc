"""A web server in a thread of this process."""

import asyncio
import gc
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn

from calve.api.connections import Connection
from calve.api.limits import BODY
from calve.api.listeners import listen, url_of
from calve.settings import THREADS

if TYPE_CHECKING:
    from fastapi import FastAPI

DRAIN = 4
"""How many seconds requests in progress have to finish when the server shuts down."""
_OFTEN = 0.01


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, threads: int) -> None:
        super().__init__(config)
        self._threads = threads

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(self._threads, "api"))
        await super().serve(sockets)


@dataclass(frozen=True, slots=True)
class Serving:
    """A running server."""

    url: str
    _thread: threading.Thread

    @property
    def is_over(self) -> bool:
        """Tell whether it has ended without being stopped."""
        return not self._thread.is_alive()


@contextmanager
def serve(
    app: "FastAPI", listener: socket.socket | None = None, *, drain: int = DRAIN, threads: int = THREADS
) -> Iterator[Serving]:
    """Serve an application until the block ends; requests in progress then have some seconds to finish.

    Args:
        app: the application.
        listener: where to listen. Default: a free port on this machine. It is closed at the end.
        drain: how many seconds requests have to finish.
        threads: how many requests are answered at the same time; see ``calve.api.threads``.
    """
    with closing(listener or listen("127.0.0.1", 0)) as where:
        ending: threading.Event = app.state.services.ending
        ending.clear()
        server = _Server(_configured(app, drain), threads)
        thread = threading.Thread(target=server.run, args=([where],), name="server", daemon=True)
        gc.freeze()  # all modules: to visit their objects in a full collection takes 0.2 s, in which no request goes on
        thread.start()
        try:
            while not server.started and thread.is_alive():
                thread.join(_OFTEN)
            yield Serving(url_of(where), thread)
        finally:
            ending.set()
            server.should_exit = True
            thread.join(drain + 1)  # a request that never ends would keep the server running forever
            gc.unfreeze()


def _configured(app: "FastAPI", drain: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Connection,
        ws="websockets-sansio",
        ws_max_size=BODY,
        ws_per_message_deflate=False,  # as for compressed bodies
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # calve.api.access decides which proxies are trusted
        timeout_keep_alive=30,
        timeout_graceful_shutdown=drain,
    )
