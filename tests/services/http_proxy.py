"""A proxy of an HTTP server that counts requests, loses answers, answers itself, and edits what it passes on."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

_HOP = {"connection", "content-length", "expect", "keep-alive", "transfer-encoding"}
_DECODED = {*_HOP, "content-encoding"}
_GONE = 444
_RETRY = "Validation failed, please retry: "
Edit = Callable[["Seen", dict[str, Any]], dict[str, Any]]


class Fate(Enum):
    """What happens to a request."""

    LOSE_ANSWER = auto()
    """It is carried out, and the connection is cut before the answer."""
    LOSE_REQUEST = auto()
    """The connection is cut before it is carried out."""
    FAIL_AFTER = auto()
    """It is carried out, and the answer is an error of the proxy's own."""
    FAIL_BEFORE = auto()
    """It is not carried out, and the answer is an error of the proxy's own."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A request, and the status of its answer."""

    method: str
    path: str
    status: int
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path.partition('?')[0]}"


@dataclass
class Fault:
    """A fate for requests whose method and path match, some times."""

    pattern: str
    fate: Fate
    times: int = 1
    status: int = 502


class HttpProxy(ThreadingHTTPServer):
    """Listens on a port of its own."""

    daemon_threads = True

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = target
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.edit: Edit | None = None
        self.is_old = False
        """Whether lost races are answered as catalogs built on Iceberg before 1.11 do, with status 400."""
        self.client = httpx.Client(timeout=60)
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_port}"

    def fault_for(self, line: str) -> Fault | None:
        """Return what happens to a request, and count it."""
        with self.lock:
            for fault in self.faults:
                if fault.times and re.search(fault.pattern, line):
                    fault.times -= 1
                    return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    server: HttpProxy
    protocol_version = "HTTP/1.1"

    def pass_on(self) -> None:
        """Pass a request on, or not."""
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        fault = self.server.fault_for(f"{self.command} {self.path}")
        if fault is not None and fault.fate in {Fate.LOSE_REQUEST, Fate.FAIL_BEFORE}:
            self._break(fault)
            return
        answer = self.server.client.request(
            self.command,
            f"{self.server.target}{self.path}",
            content=body,
            headers={name: text for name, text in self.headers.items() if name.lower() not in _HOP},
        )
        if fault is not None:
            self._break(fault)
            return
        if self.server.is_old and _RETRY in answer.text:
            error = answer.json()["error"]
            told = {"message": error["message"].replace(_RETRY, ""), "type": "ValidationException", "code": 400}
            self._answer(400, json.dumps({"error": told}).encode(), {"Content-Type": "application/json"})
            return
        self._answer(answer.status_code, self._edited(answer), dict(answer.headers))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _edited(self, answer: httpx.Response) -> bytes:
        if self.server.edit is None or not answer.is_success or "json" not in answer.headers.get("content-type", ""):
            return answer.content
        request = Seen(self.command, self.path, answer.status_code, dict(self.headers.items()))
        return json.dumps(self.server.edit(request, answer.json())).encode() if answer.content else b""

    def _break(self, fault: Fault) -> None:
        if fault.fate in {Fate.LOSE_ANSWER, Fate.LOSE_REQUEST}:
            self._note(_GONE)
            self.close_connection = True
            return
        self._answer(fault.status, b"<html>upstream</html>", {"Content-Type": "text/html"})

    def _answer(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self._note(status)
        self.send_response(status)
        for name, text in headers.items():
            if name.lower() not in _DECODED:
                self.send_header(name, text)
        if status not in {204, 304}:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD" and status not in {204, 304}:
            self.wfile.write(content)

    def _note(self, status: int) -> None:
        with self.server.lock:
            self.server.seen.append(Seen(self.command, self.path, status, dict(self.headers.items())))


for _method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
    setattr(_Handler, f"do_{_method}", _Handler.pass_on)


@contextmanager
def http_proxy(target: str) -> Iterator[HttpProxy]:
    """Start a proxy in front of a server, and stop it in the end."""
    proxy = HttpProxy(target)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
        proxy.client.close()
