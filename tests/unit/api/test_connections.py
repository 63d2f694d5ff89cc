"""Requests that do not come as they should, on a real connection."""

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Event
from types import SimpleNamespace

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
def test_a_head_that_does_not_come_is_not_waited_for(
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


def test_a_head_that_does_not_end_is_not_taken_in(address: tuple[str, int]) -> None:
    """However long its one header becomes."""
    with socket.create_connection(address, 30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nX-Long: " + b"x" * connections.HEAD)
        assert answered(connection).startswith(b"HTTP/1.1 431 ")


def test_a_head_may_come_bit_by_bit(address: tuple[str, int]) -> None:
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
def test_what_comes_beside_a_body_is_not_taken_in_without_end(address: tuple[str, int], endless: bytes) -> None:
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
def test_what_comes_after_an_answer_keeps_no_connection_open(
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
