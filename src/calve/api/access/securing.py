"""The headers by which a browser protects who uses it."""

from starlette.types import Message, Send

_ALWAYS = (
    (
        b"content-security-policy",
        b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_WITH_TLS = (*_ALWAYS, (b"strict-transport-security", b"max-age=31536000"))
_STARTS = frozenset({"http.response.start", "websocket.http.response.start"})


def secured(send: Send, *, is_secure: bool) -> Send:
    """Add those headers to an answer that it does not have itself."""
    own = _WITH_TLS if is_secure else _ALWAYS

    async def sending(message: Message) -> None:
        if message["type"] in _STARTS:
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            names = {name for name, _ in headers}
            message["headers"] = [*headers, *(pair for pair in own if pair[0] not in names)]
        await send(message)

    return sending
