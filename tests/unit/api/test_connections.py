"""Requests that do not come as they should, on a real connection."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from websockets.sync.client import connect

from calve.api import connections, limits, serve


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """Give where a server listens that says ok."""
    from fastapi import FastAPI, Request, WebSocket
    from starlette.requests import ClientDisconnect

    app = FastAPI()
    app.state.services = SimpleNamespace(ending=Event())

    @app.get("/")
    async def ok() -> str:
        return "ok"

    @app.post("/")
    async def length(request: Request) -> int:
        with suppress(ClientDisconnect):  # who hung up reads no answer, and the log of the tests is for what failed
            return len(await request.body())
        return 0

    @app.websocket("/echo")
    async def echo(channel: WebSocket) -> None:
        await channel.accept()
        while True:
            await channel.send_text(await channel.receive_text())

    with serve(app) as serving:
        host, _, port = serving.url.removeprefix("http://").partition(":")
        yield host, int(port)


def answered(connection: socket.socket) -> bytes:
    """Return all that comes until the server hangs up."""
    parts = []
    while part := connection.recv(65_536):
        parts.append(part)
    return b"".join(parts)


GOOD = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize("said", [b"", b"GET / HTT", b"GET / HTTP/1.1\r\nHost: here\r\nX-Slow: "], ids=len)
def test_a_request_whose_head_does_not_arrive_is_closed(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    """Not on a new connection, and not on one that had a request before."""
    monkeypatch.setattr(connections, "SECONDS", 0.05)
    with socket.create_connection(address, 30) as connection:
        connection.sendall(said)
        assert answered(connection).startswith(b"HTTP/1.1 408 ")
    if said:
        with socket.create_connection(address, 30) as connection:
            connection.sendall(GOOD + said)
            answer = answered(connection)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert b"HTTP/1.1 408 " in answer


def test_a_request_head_without_end_is_refused(address: tuple[str, int]) -> None:
    """However long its one header becomes."""
    with socket.create_connection(address, 30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * connections.HEAD)
        assert answered(connection).startswith(b"HTTP/1.1 431 ")


def test_a_head_may_come_in_parts(address: tuple[str, int]) -> None:
    """As long as it comes in time; the next one on the connection has all its time again."""
    with socket.create_connection(address, 30) as connection:
        for at in range(len(GOOD + LAST)):
            connection.sendall((GOOD + LAST)[at : at + 1])
        assert answered(connection).count(b"HTTP/1.1 200 ") == 2


def test_what_is_no_http_is_told_so(address: tuple[str, int]) -> None:
    """And nothing more is read from it."""
    with socket.create_connection(address, 30) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert answered(connection).startswith(b"HTTP/1.1 400 ")


CHUNKED = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "endless",
    [b"0\r\nX-Long: " + b"x" * 1_000, b"0\r\n" + b"X-Many: more\r\n" * 100, b"1;" + b"x" * 1_000],
    ids=["trailer", "trailers", "extension"],
)
def test_trailers_without_end_are_refused(address: tuple[str, int], endless: bytes) -> None:
    """Trailers are headers too, and chunks can have something to say beside what they hold."""
    with socket.create_connection(address, 30) as connection:
        connection.sendall(CHUNKED + endless)
        with pytest.raises(OSError, match=r"reset|Broken pipe"):  # the server hangs up
            connection.sendall(endless.rpartition(b"0\r\n")[2].removeprefix(b"1;") * 20_000)


def test_a_body_may_come_in_many_chunks_and_with_a_trailer(address: tuple[str, int]) -> None:
    """They are not what is limited here."""
    chunks = b"400\r\n" + b"x" * 0x400 + b"\r\n"
    with socket.create_connection(address, 30) as connection:
        connection.sendall(CHUNKED + chunks * 1_000 + b"0\r\nX-Sum: 17\r\n\r\n" + LAST)
        answer = answered(connection)
        assert answer.count(b"HTTP/1.1 200 ") == 2
        assert b"1024000" in answer


@pytest.mark.parametrize(
    "begun",
    [
        b"POST /none HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    ],
    ids=["body", "upgrade"],
)
def test_data_after_a_response_keeps_no_connection_open(
    address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    """Neither a bit of the body of a request that was answered without it, nor what is no request at all."""
    monkeypatch.setattr(connections, "SECONDS", 0.05)
    monkeypatch.setattr(limits, "SECONDS", 0.05)
    with socket.create_connection(address, 30) as connection:
        connection.sendall(begun)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 ")
        connection.sendall(b"x")
        answered(connection)  # comes to an end


def test_a_websocket_stays_open(address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a connection that had a request before."""
    monkeypatch.setattr(connections, "SECONDS", 0.05)
    with socket.create_connection(address, 30) as connection:
        connection.sendall(GOOD)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        with connect(f"ws://{address[0]}:{address[1]}/echo", sock=connection) as channel:
            time.sleep(0.2)
            channel.send("still here?")
            assert channel.recv() == "still here?"


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """Give where a server listens that takes small bodies only, and does not wait for long."""
    from fastapi import FastAPI, Request

    monkeypatch.setattr(limits, "PAUSE", 0.2)
    app = FastAPI()
    app.state.services = SimpleNamespace(ending=Event())
    app.add_middleware(limits.SmallBodies, limit=1_000_000)
    app.add_middleware(limits.SmallHeaders)

    @app.post("/")
    async def length(request: Request) -> int:
        return len(await request.body())

    with serve(app) as serving:
        host, _, port = serving.url.removeprefix("http://").partition(":")
        yield host, int(port)


BIG = 9_000_000
LENGTH = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: %d\r\n" % BIG
IN_CHUNKS = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("is_chunked", [False, True])
def test_a_body_that_is_too_large_is_answered_not_cut_off(small: tuple[str, int], *, is_chunked: bool) -> None:
    """Also for a client that reads nothing before all of it is sent."""
    content: Any = iter([b"x" * 65_536] * (BIG // 65_536)) if is_chunked else b"x" * BIG
    with httpx.Client(timeout=30) as client:
        answer = client.post(f"http://{small[0]}:{small[1]}/", content=content)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
        assert answer.headers["connection"] == "close"
        assert client.post(f"http://{small[0]}:{small[1]}/", content=b"x").json() == 1


@pytest.mark.parametrize(
    ("head", "body"),
    [
        (LENGTH, b"x" * BIG),
        (LENGTH + b"Content-Encoding: gzip\r\n", b"x" * BIG),
        (LENGTH + b"X-Long: " + b"x" * 20_000 + b"\r\n", b"x" * BIG),
        (IN_CHUNKS, b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
    ],
    ids=["length", "compressed", "headers", "chunks"],
)
def test_whoever_sends_too_much_can_read_why(small: tuple[str, int], head: bytes, body: bytes) -> None:
    """Byte by byte on a bare connection, which is reset at no time."""
    times = 1 if head is not IN_CHUNKS else BIG // 65_536
    with socket.create_connection(small, timeout=30) as connection:
        connection.sendall(head + b"\r\n")
        for _ in range(times):
            connection.sendall(body)
        if head is IN_CHUNKS:
            connection.sendall(b"0\r\n\r\n")
        status = answered(connection).split(b" ", 2)[1]
    assert status in {b"413", b"415", b"431"}


def test_a_client_that_asks_first_sends_nothing(small: tuple[str, int]) -> None:
    """With Expect: 100-continue, the answer comes in place of the invitation."""
    with socket.create_connection(small, timeout=30) as connection:
        connection.sendall(LENGTH + b"Expect: 100-continue\r\n\r\n")
        assert answered(connection).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("sent", [b"", b"x" * 1_000])
def test_a_body_that_is_refused_is_not_waited_for(small: tuple[str, int], sent: bytes) -> None:
    """The answer comes at once, and the connection is closed after a pause."""
    with socket.create_connection(small, timeout=30) as connection:
        connection.sendall(LENGTH + b"\r\n" + sent)
        assert answered(connection).startswith(b"HTTP/1.1 413 ")


def test_of_a_body_without_end_only_so_much_is_taken_in(
    small: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the connection is closed, whatever the caller does."""
    monkeypatch.setattr(limits, "DISCARDED", 1_000_000)
    with socket.create_connection(small, timeout=30) as connection:
        connection.sendall(IN_CHUNKS + b"\r\n")
        with pytest.raises(OSError):  # noqa: PT011 - a reset or a broken pipe, as it happens
            connection.sendall((b"10000\r\n" + b"x" * 65_536 + b"\r\n") * 2_000)
