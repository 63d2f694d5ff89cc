"""The head of a request on a real connection."""

import socket
from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace

import pytest

from calve.api import connections, serve


@pytest.fixture
def address() -> Iterator[tuple[str, int]]:
    """Give where a server listens that says ok."""
    from fastapi import FastAPI

    app = FastAPI()
    app.state.services = SimpleNamespace(ending=Event())

    @app.get("/")
    async def ok() -> str:
        return "ok"

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
