"""The middleware before all routes: recognizes callers, limits their rate, adds headers that protect browsers."""

from collections import OrderedDict
from functools import partial

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calve.access import PrincipalKind, digest, network_of, remember
from calve.api.access.audit import audited
from calve.api.access.authentication import is_still, recognize
from calve.api.access.control import AccessControl
from calve.api.access.requests import RequestInfo, request_info
from calve.api.problems import error_answer, refusal
from calve.api.streams import GuardedSocket
from calve.errors import CalveError, Forbidden, TooManyAttempts

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
    """Add the missing headers to a response."""
    own = _WITH_TLS if is_secure else _ALWAYS

    async def sending(message: Message) -> None:
        if message["type"] in _STARTS:
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            names = {name for name, _ in headers}
            message["headers"] = [*headers, *(pair for pair in own if pair[0] not in names)]
        await send(message)

    return sending


_KNOWN = frozenset({PrincipalKind.USER, PrincipalKind.TOKEN})


class AccessMiddleware:
    """Recognizes callers, and refuses requests that no caller may send; the policies of routes check permissions."""

    def __init__(self, app: ASGIApp, control: AccessControl) -> None:
        self._app = app
        self._control = control
        self._known: OrderedDict[str, None] = OrderedDict()  # the credentials of callers that were let in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        info = request_info(scope, self._control.rules)
        send = secured(send, is_secure=info.is_secure)
        try:
            self._check(info)
            principal = await recognize(self._control, info)
        except CalveError as error:
            await refusal(scope, error)(scope, receive, send)
            return
        if principal.kind in _KNOWN and (shown := _shown(info)) is not None:
            remember(self._known, shown, None)
        holds = partial(is_still, self._control, principal, info)
        scope.setdefault("state", {}).update(principal=principal, info=info, source=info.source, asked=[], holds=holds)
        if scope["type"] == "websocket":
            await self._connected(scope, GuardedSocket(receive, send, holds), info)
        else:
            await self._app(scope, receive, audited(send, scope, principal, info, self._control.authenticator))

    def _check(self, info: RequestInfo) -> None:
        rules = self._control.rules
        rules.check_host(info.headers)
        rules.check_origin(info.headers, changes=info.changes)
        shown = _shown(info)
        # A known caller has their own rate limit: others at the same address cannot use it up.
        wait = self._control.rate.wait(shown if shown and shown in self._known else network_of(info.source))
        if wait:
            raise TooManyAttempts("Too many requests.", retry_after=int(wait) + 1)

    async def _connected(self, scope: Scope, socket: GuardedSocket, info: RequestInfo) -> None:
        """Pass a WebSocket on; if its route's policy refuses it, send a response, which errors alone do not."""
        await self._app(scope, socket.receive, socket.send)
        if not socket.is_answered:
            refused = scope["state"].get("refused", Forbidden())
            await error_answer(info.headers.get("accept", ""), refused)(scope, socket.receive, socket.send)


def _shown(info: RequestInfo) -> str | None:
    """Return a hash of the token or the session of a request, if it has one."""
    shown = info.headers.get("authorization") or info.session
    return None if shown is None else digest(shown)
