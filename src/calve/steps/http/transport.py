"""The transport of the Http step: connects to the address that was checked, within one deadline."""

import queue
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import certifi
import httpcore
import httpx

from calve.steps.failures import interrupted, platform_error
from calve.steps.http.allow_list import AllowList, Resolver

_SLICE_SECONDS = 0.25
"""The longest time that a read blocks before it checks the deadline and whether the step was interrupted."""
_CONNECT_SECONDS = 10.0
"""The time limit of a connection attempt."""


class Deadline:
    """The time limit of one call, for connecting, sending, redirects and reading together."""

    def __init__(self, seconds: float, is_interrupted: Callable[[], bool]) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        self._is_interrupted = is_interrupted

    def left(self) -> float:
        """Return how many seconds are left.

        Raises:
            StepFailed: the deadline has passed, or the step was interrupted.
        """
        if self._is_interrupted():
            raise interrupted("The request")
        left = self._end - time.monotonic()
        if left <= 0:
            raise platform_error(f"There was no complete response within {self._seconds:g} s.")
        return left


class _Stream(httpcore.NetworkStream):
    """A connection whose every operation ends with the deadline."""

    def __init__(self, inner: httpcore.NetworkStream, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 - the port's signature
        while True:
            try:
                return self._inner.read(max_bytes, min(self._deadline.left(), _SLICE_SECONDS))
            except httpcore.ReadTimeout:
                continue

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 - the port's signature
        self._inner.write(buffer, self._deadline.left())

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 - the port's signature
    ) -> httpcore.NetworkStream:
        left = min(self._deadline.left(), _CONNECT_SECONDS)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Network(httpcore.NetworkBackend):
    """Resolves a name once, checks all of its addresses, and connects to one of them."""

    def __init__(self, allowed: AllowList, resolver: Resolver, deadline: Deadline) -> None:
        self._allowed = allowed
        self._resolver = resolver
        self._deadline = deadline
        self._sockets = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 - the port's signature
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        self._allowed.check_host(host)
        addresses = self._resolve(host, port)
        for address in addresses:
            self._allowed.check_address(host, address)
        for address in addresses[:-1]:
            try:
                return self._connect(address, port, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue  # try the next address; only the error of the last one is reported
        return self._connect(addresses[-1], port, local_address, socket_options)

    def _connect(
        self, address: str, port: int, local: str | None, options: Iterable[httpcore.SOCKET_OPTION] | None
    ) -> httpcore.NetworkStream:
        left = min(self._deadline.left(), _CONNECT_SECONDS)
        return _Stream(self._sockets.connect_tcp(address, port, left, local, options), self._deadline)

    def _resolve(self, host: str, port: int) -> list[str]:
        """Resolve a name in a thread: the system's resolver has no timeout."""
        answers: queue.Queue[list[str] | OSError] = queue.Queue()

        def look_up() -> None:
            try:
                answers.put(self._resolver(host, port))
            except (OSError, UnicodeError) as error:
                answers.put(OSError(str(error)))

        threading.Thread(target=look_up, name="calve-http-resolve", daemon=True).start()
        while True:
            try:
                answer = answers.get(timeout=min(self._deadline.left(), _SLICE_SECONDS))
            except queue.Empty:
                continue
            if isinstance(answer, OSError) or not answer:
                raise platform_error(f"The host {host} cannot be found: {answer or 'it has no address'}.")
            return answer


class _Body(httpx.SyncByteStream):
    def __init__(self, parts: Iterable[bytes], close: Callable[[], None]) -> None:
        self._parts = parts
        self._close = close

    def __iter__(self) -> Iterator[bytes]:
        yield from self._parts

    def close(self) -> None:
        self._close()


class Transport(httpx.BaseTransport):
    """Sends requests over checked connections with a deadline; uses no proxy."""

    def __init__(self, allowed: AllowList, resolver: Resolver, deadline: Deadline, *, verify: bool) -> None:
        network = _Network(allowed, resolver, deadline)
        self._pool = httpcore.ConnectionPool(ssl_context=_tls(verify=verify), network_backend=network)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response; its body is read later."""
        if not isinstance(request.stream, httpx.SyncByteStream):
            raise TypeError("the body of the request is not readable")
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        asked = httpcore.Request(request.method, url, headers=request.headers.raw, content=request.stream)
        answer = self._pool.handle_request(asked)
        body = _Body(answer.iter_stream(), answer.close)
        return httpx.Response(answer.status, headers=answer.headers, stream=body, extensions=answer.extensions)

    def close(self) -> None:
        """Close every connection."""
        self._pool.close()


def _tls(*, verify: bool) -> ssl.SSLContext:
    """Return the TLS context, which verifies certificates with the machine's trust store and certifi's."""
    context = ssl.create_default_context()
    if verify:
        context.load_verify_locations(certifi.where())
    else:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
