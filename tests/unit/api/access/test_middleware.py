"""The headers of answers."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message

from calve.api.access.middleware import secured


def _sent(message: Message, *, is_secure: bool = False) -> Message:
    sent: list[Message] = []

    async def send(one: Message) -> None:
        sent.append(one)

    async def run() -> None:
        await secured(send, is_secure=is_secure)(message)

    asyncio.run(run())
    (only,) = sent
    return only


@pytest.mark.parametrize("kind", ["http.response.start", "websocket.http.response.start"])
@pytest.mark.parametrize("is_secure", [True, False])
def test_every_answer_is_secured(kind: str, *, is_secure: bool) -> None:
    """Refusals of WebSockets too; browsers are held to TLS only where there is some."""
    headers: dict[bytes, Any] = dict(_sent({"type": kind, "status": 200}, is_secure=is_secure)["headers"])
    assert headers[b"x-frame-options"] == b"DENY"
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert (b"strict-transport-security" in headers) is is_secure


def test_what_an_answer_says_itself_stands() -> None:
    """In whatever letters its name is written."""
    message = {"type": "http.response.start", "status": 200, "headers": [(b"Cache-Control", b"max-age=9")]}
    assert [value for name, value in _sent(message)["headers"] if name == b"cache-control"] == [b"max-age=9"]


def test_a_body_is_passed_on_as_it_is() -> None:
    """It has no headers."""
    message = {"type": "http.response.body", "body": b"here"}
    assert _sent(dict(message)) == message
