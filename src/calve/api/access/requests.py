"""The requests of the middleware. Pure."""

from dataclasses import dataclass

from starlette.types import Scope

from calve.api.access.cookies import SESSION, cookie_in
from calve.api.access.origins import SAFE, Headers, Rules


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """The parts of a request that the middleware needs."""

    peer: str
    source: str
    method: str
    path: str
    headers: Headers
    session: str | None
    is_secure: bool

    @property
    def changes(self) -> bool:
        """Tell whether the request may change something; a WebSocket may, at any time."""
        return self.method not in SAFE


def request_info(scope: Scope, rules: Rules) -> RequestInfo:
    """Return the parts of a request that the middleware needs."""
    headers = _headers(scope)
    peer = (scope.get("client") or ("unknown", 0))[0]
    return RequestInfo(
        peer=peer,
        source=rules.source(peer, headers),
        method=scope.get("method", "WEBSOCKET"),
        path="".join(letter for letter in scope["path"] if letter.isprintable()),  # no line breaks
        headers=headers,
        session=cookie_in(headers, SESSION),
        is_secure=rules.is_secure(peer, scope["scheme"], headers),
    )


def _headers(scope: Scope) -> Headers:
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        headers[key] = f"{headers[key]},{value.decode('latin-1')}" if key in headers else value.decode("latin-1")
    return headers
