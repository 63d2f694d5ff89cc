"""A small HTTP server that records the requests that it gets, for tests of what calve sends."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Receiver:
    """What came, and how it is answered."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    """The next statuses; 200 when there are none left."""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    """Path, headers in small letters, and body."""

    @property
    def documents(self) -> list[Any]:
        """The bodies as JSON."""
        return [json.loads(body) for _, _, body in self.requests]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on a free port."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the same
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
