"""A network in front of an object store: it records each request, and throttles, delays or cuts what a test names."""

import http.client
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_SLOW_DOWN = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Reduce your request rate</Message>'
    b"<RequestId>1</RequestId></Error>"
)
_HOPS = {"connection", "keep-alive", "transfer-encoding", "expect"}


class Fault(Enum):
    """What happens to a request."""

    THROTTLE = auto()
    """The store answers 503 SlowDown."""
    CUT = auto()
    """The connection is cut in the middle of the answer."""
    LOSE_ANSWER = auto()
    """The request is carried out, and the connection is cut before the answer."""
    HANG = auto()
    """No answer comes."""
    SLOW = auto()
    """The answer comes after half a second."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    headers: dict[str, str]
    number: int
    """How many requests came before."""


@dataclass
class S3Proxy:
    """Listens on a port of its own; ``fate`` names the fault of a request, None for none."""

    target: int
    fate: Callable[[Request], Fault | None] = lambda _: None
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._over = threading.Event()
        handler = type("Handler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def counted(self) -> dict[str, int]:
        """Return how many requests of each method came."""
        methods = [request.method for request in self.requests]
        return {method: methods.count(method) for method in sorted(set(methods))}

    def hang(self) -> None:
        """Wait until the test is over."""
        self._over.wait(600)


class _Handler(BaseHTTPRequestHandler):
    """Hands each request on, unless it is to meet a fault."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: S3Proxy

    def carry(self) -> None:
        body = self._body()
        headers = {name.lower(): text for name, text in self.headers.items()}
        request = Request(self.command, self.path, headers, len(self.proxy.requests))
        self.proxy.requests.append(request)
        fault = self.proxy.fate(request)
        match fault:
            case Fault.THROTTLE:
                self._send(503, {"content-type": "application/xml"}, _SLOW_DOWN)
            case Fault.HANG:
                self.proxy.hang()
                self.close_connection = True
            case _:
                if fault is Fault.SLOW:
                    time.sleep(0.5)
                status, answered, content = self._answer(request, body)
                if fault is Fault.LOSE_ANSWER:
                    self.close_connection = True
                else:
                    self._send(status, answered, content, cut=fault is Fault.CUT)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = carry  # noqa: N815 - named by the standard library

    def _body(self) -> bytes:
        """Read the body as it was sent, with the frames of its chunks."""
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        read: list[bytes] = []
        while not read or read[-1] != b"0\r\n":
            read.append(self.rfile.readline())
            size = int(read[-1], 16)
            read += [self.rfile.read(size + 2)] if size else []
        return b"".join([*read, self.rfile.readline()])

    def _answer(self, request: Request, body: bytes) -> tuple[int, dict[str, str], bytes]:
        server = http.client.HTTPConnection("127.0.0.1", self.proxy.target, timeout=60)
        try:
            server.putrequest(request.method, request.path, skip_host=True, skip_accept_encoding=True)
            for name, text in request.headers.items():
                if name not in _HOPS - {"transfer-encoding"}:
                    server.putheader(name, text)
            server.endheaders(body or None)
            response = server.getresponse()
            return response.status, {name.lower(): text for name, text in response.getheaders()}, response.read()
        finally:
            server.close()

    def _send(self, status: int, headers: dict[str, str], content: bytes, *, cut: bool = False) -> None:
        self.send_response_only(status)
        length = headers.get("content-length", "0") if self.command == "HEAD" else str(len(content))
        for name, text in headers.items():
            if name not in _HOPS | {"content-length"}:
                self.send_header(name, text)
        self.send_header("content-length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[: len(content) // 2] if cut else content)
        self.close_connection = self.close_connection or cut

    def log_message(self, *_: Any) -> None:
        """Keep quiet: tests read ``requests``."""
