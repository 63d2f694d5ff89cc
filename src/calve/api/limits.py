"""The limits of a request: headers, body, depth, time. One small middleware each."""

import re
from dataclasses import dataclass

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calve.api.problems import accepted, answer

HEADERS = 16_384
HEADER_COUNT = 100
BODY = 1_048_576
DEPTH = 64
SECONDS = 30.0
DISCARDED = 67_108_864
"""How many bytes of a refused body are still read, so that the caller receives the response."""
PAUSE = 5.0
"""The maximum number of seconds between two parts of such a body."""
_TOO_SLOW = 408
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*(?:"|\Z)|[\[{]|[\]}]', re.DOTALL)
"""Brackets, and strings, whose brackets do not count; an unterminated string extends to the end."""
_BREAKS = re.compile(rb"[\r\n\0]")


class SmallHeaders:
    """Refuses requests with headers that are too large or too many."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        headers = scope.get("headers", ())
        size = sum(len(name) + len(value) for name, value in headers) + len(scope.get("query_string", b""))
        if len(headers) > HEADER_COUNT or size > HEADERS:
            refusal = _Refusal(431, "headers_too_large", f"Headers and query may have at most {HEADERS} bytes.")
            await _refuse(refusal, scope, receive, send, is_whole=not _has_body(scope))
            return
        await self._app(scope, receive, send)


class CleanHeaders:
    """Removes line breaks from the headers of responses, so that no text of a user can become a header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [(name, _BREAKS.sub(b" ", value)) for name, value in message.get("headers", ())]
            await send(message)

        await self._app(scope, receive, sending)


@dataclass(frozen=True, slots=True)
class _Refusal(Exception):
    status: int
    code: str
    message: str


class SmallBodies:
    """Reads the whole body before it is passed on, and refuses one that is too large, compressed, too deep or slow."""

    def __init__(self, app: ASGIApp, limit: int = BODY, seconds: float = SECONDS) -> None:
        self._app = app
        self._limit = limit
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if not _has_body(scope):
            await self._app(scope, receive, send)
            return
        body: bytes | None = None
        try:
            self._check(dict(scope["headers"]))
            body = await self._body(receive)
            check_depth(body or b"")
        except _Refusal as refusal:
            await _refuse(refusal, scope, receive, send, is_whole=body is not None or refusal.status == _TOO_SLOW)
            return
        if body is not None:
            await self._app(scope, _replayed(body, receive), send)

    def _check(self, headers: dict[bytes, bytes]) -> None:
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise _Refusal(415, "body_encoded", "Compressed bodies are not supported.")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18 or int(length) > self._limit:
            raise self._too_large()

    def _too_large(self) -> _Refusal:
        return _Refusal(413, "body_too_large", f"A body may have at most {self._limit} bytes.")

    async def _body(self, receive: Receive) -> bytes | None:
        """Return the whole body; None if the caller disconnected: half of a definition may be valid."""
        parts: list[bytes] = []
        size = 0
        with anyio.move_on_after(self._seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > self._limit:
                    raise self._too_large()
                if not message.get("more_body", False):
                    return b"".join(parts)
        raise _Refusal(_TOO_SLOW, "body_too_slow", f"The body did not arrive within {self._seconds:g} s.")


def check_depth(body: bytes) -> None:
    """Refuse JSON whose nesting could exhaust the stack of a parser."""
    if body.lstrip()[:1] not in {b"{", b"["}:
        return
    depth = 0
    for token in _TOKENS.finditer(body):
        if token[0] in b"[{":
            depth += 1
            if depth > DEPTH:
                raise _Refusal(400, "body_too_deep", f"A body may be nested at most {DEPTH} levels deep.")
        elif token[0] in b"]}":
            depth -= 1


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a function that receives the body at once, and then what follows."""
    is_given = False

    async def receiving() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"]) if scope["type"] == "http" else {}
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


async def _refuse(refusal: _Refusal, scope: Scope, receive: Receive, send: Send, *, is_whole: bool) -> None:
    """Send a response; if the body is incomplete, read more of it before the connection is closed.

    Closing a connection with unread bytes resets it, and the caller loses the response.
    """

    async def sending(message: Message) -> None:
        if is_whole or message["type"] != "http.response.body":
            await send(message)
            return
        await send({**message, "more_body": True})
        await _discard(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    headers = {"Connection": "close"}
    refused = answer(accepted(scope), refusal.status, refusal.message, code=refusal.code, headers=headers)
    await refused(scope, receive, sending)


async def _discard(receive: Receive) -> None:
    """Read and discard a body until it ends, pauses, or exceeds a limit."""
    size = 0
    with anyio.move_on_after(SECONDS):
        while size < DISCARDED:
            with anyio.move_on_after(PAUSE) as pause:
                message = await receive()
            if pause.cancelled_caught or message["type"] == "http.disconnect" or not message.get("more_body", False):
                return
            size += len(message.get("body", b""))
