"""The gate before all routes: who asks, from where, how often, and whether a page of somebody else is behind it."""

import logging
from dataclasses import dataclass, replace
from functools import partial
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from calve.access import (
    ANONYMOUS,
    LOOPBACK,
    Act,
    Door,
    Office,
    Permission,
    Principal,
    PrincipalKind,
    Rate,
    csrf_of,
    is_same,
    network_of,
    who,
)
from calve.api.origins import SAFE, Headers, Rules
from calve.api.policy import policy_of
from calve.api.problems import error_answer
from calve.api.sockets import Guarded
from calve.api.threads import in_thread
from calve.errors import CalveError, Forbidden, StoreError, TooManyAttempts, Unauthenticated

if TYPE_CHECKING:
    from calve.access.oidc import Provider
    from calve.api.callers import Asked

_LOG = logging.getLogger(__name__)
COOKIE = "calve_session"
CSRF = "x-calve-csrf"
_SECURITY = (
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
_TLS = (*_SECURITY, (b"strict-transport-security", b"max-age=31536000"))
_SIZE = 200
_FAILED = 400
_CHANGING = frozenset({Permission.RUN, Permission.EDIT, Permission.ADMINISTER})


@dataclass(frozen=True, slots=True)
class Entrance:
    """All that it takes to let somebody in."""

    door: Door
    office: Office
    rules: Rules
    rate: Rate
    provider: "Provider | None" = None
    """Of identities, if people sign in elsewhere."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A request as the gate sees it."""

    peer: str
    source: str
    scheme: str
    method: str
    path: str
    headers: Headers
    session: str | None
    is_secure: bool

    @property
    def changes(self) -> bool:
        """Tell whether the request may change something; a WebSocket may, at any time."""
        return self.method not in SAFE


class Gate:
    """Finds out who asks, and refuses what nobody may ask for; what each one may do, the policies of the routes say."""

    def __init__(self, app: ASGIApp, entrance: Entrance) -> None:
        self._app = app
        self._entrance = entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        visit = visit_of(scope, self._entrance.rules)
        send = _secured(send, visit)
        try:
            self._check(visit)
            principal = await self._principal(visit)
        except CalveError as error:
            await error_answer(visit.headers.get("accept", ""), error)(scope, receive, send)
            return
        holds = partial(self._holds, principal, visit)
        scope.setdefault("state", {}).update(principal=principal, visit=visit, asked=[], holds=holds)
        if scope["type"] == "websocket":
            await self._connected(scope, Guarded(receive, send, holds), visit)
        else:
            await self._app(scope, receive, self._audited(send, scope, principal, visit))

    async def _connected(self, scope: Scope, socket: Guarded, visit: Visit) -> None:
        """Let a WebSocket through; one that its route's policy has refused gets an answer, which errors do not give."""
        await self._app(scope, socket.receive, socket.send)
        if not socket.is_answered:
            refused = scope["state"].get("refused", Forbidden())
            await error_answer(visit.headers.get("accept", ""), refused)(scope, socket.receive, socket.send)

    async def _holds(self, principal: Principal, visit: Visit) -> bool:
        """Tell whether whom we let in would still be let in as the same; if nobody can say, he stays."""
        try:
            if "authorization" in visit.headers:
                token = visit.headers["authorization"].partition(" ")[2].strip()
                return await in_thread(self._entrance.door.holder, token) == principal
            return await self._principal(visit) == principal
        except StoreError:
            return True
        except CalveError:
            return False

    def _check(self, visit: Visit) -> None:
        rules = self._entrance.rules
        rules.check_host(visit.headers)
        rules.check_origin(visit.headers, changes=visit.changes)
        wait = self._entrance.rate.wait(network_of(visit.source))
        if wait:
            raise TooManyAttempts("Too many requests.", retry_after=int(wait) + 1)

    async def _principal(self, visit: Visit) -> Principal:
        """Return who asks.

        Raises:
            Unauthenticated: a token was shown that is not valid.
            Forbidden: a session was used by somebody who has not read a page of it.
        """
        rules, door = self._entrance.rules, self._entrance.door
        if "authorization" in visit.headers:
            scheme, _, token = visit.headers["authorization"].partition(" ")
            if scheme.lower() != "bearer":
                raise Unauthenticated("Only bearer tokens are taken here.")
            return await in_thread(door.by_token, token.strip(), visit.source)
        if visit.session is not None:
            return await self._of_session(visit.session, visit)
        if rules.user_header is not None and rules.is_proxy(visit.peer):
            return await self._of_proxy(visit.headers.get(rules.user_header, ""))
        return self._of_nobody(visit)

    async def _of_session(self, session: str, visit: Visit) -> Principal:
        try:
            principal = await in_thread(self._entrance.door.by_session, session)
        except Unauthenticated:
            return self._of_nobody(visit)  # an old cookie must not keep anybody from signing in
        if visit.method != "WEBSOCKET" and visit.changes and not _knows_page(visit, session):
            raise Forbidden("The request does not come from a page of this session.", remedy=f"Send {CSRF}.")
        return principal

    async def _of_proxy(self, name: str) -> Principal:
        if not name:
            return ANONYMOUS
        user = await in_thread(self._entrance.door.state.user, name[:_SIZE].replace("\0", ""))
        if user is None or user.is_disabled:
            raise Unauthenticated(f"There is no user {name[:_SIZE]!r} here.")
        return Principal(user.name, PrincipalKind.USER, user.grants)

    def _of_nobody(self, visit: Visit) -> Principal:
        """Return who it is where nobody has to say so; a name that is given anyway is a name, and no more."""
        if not self._entrance.rules.is_local(visit.headers):
            return ANONYMOUS
        name = visit.headers.get("user", "")[:_SIZE]
        return replace(LOOPBACK, name=name) if name.isprintable() and name else LOOPBACK

    def _audited(self, send: Send, scope: Scope, principal: Principal, visit: Visit) -> Send:
        """Write down what was changed, and what was refused to somebody known, before he gets the answer."""
        if not visit.changes or principal == ANONYMOUS:
            return send

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and _is_notable(scope, message["status"]):
                await in_thread(self._note, scope, principal, visit, message["status"])
            await send(message)

        return sending

    def _note(self, scope: Scope, principal: Principal, visit: Visit, status: int) -> None:
        action = getattr(scope.get("route"), "operation_id", None) or visit.method
        asked: list[Asked] = scope["state"]["asked"]
        is_denied = status in {401, 403} or not all(one.is_allowed for one in asked)
        result = "denied" if is_denied else "ok" if status < _FAILED else "failed"
        detail = {"status": status} | (
            {"asked": [f"{one.permission} {one.workflow_id}" for one in asked]} if asked else {}
        )
        door = self._entrance.door
        act = Act(door.clock(), who(principal), action, visit.path[:_SIZE], visit.source, result, detail)
        try:
            door.state.append(act)
        except CalveError as error:
            _LOG.error("The audit log cannot be written: %s", error.message)


def _is_notable(scope: Scope, status: int) -> bool:
    """Tell what goes into the audit log: not starts, of which the instances themselves say who asked for them."""
    if status in {401, 403} or scope["state"]["asked"]:
        return True
    route = scope.get("route")
    policy = policy_of(route) if route is not None else None
    is_start = visit_path(scope).endswith(("/actions/start", "/actions/start-batch"))
    return policy is not None and policy.permission in _CHANGING and not is_start


def visit_path(scope: Scope) -> str:
    """Return the path of a request, without what would break a line."""
    return "".join(letter for letter in scope["path"] if letter.isprintable())


def visit_of(scope: Scope, rules: Rules) -> Visit:
    """Return what the gate has to know of a request."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        headers[key] = f"{headers[key]},{value.decode('latin-1')}" if key in headers else value.decode("latin-1")
    peer = (scope.get("client") or ("unknown", 0))[0]
    return Visit(
        peer=peer,
        source=rules.source(peer, headers),
        scheme=scope["scheme"],
        method=scope.get("method", "WEBSOCKET"),
        path=visit_path(scope),
        headers=headers,
        session=_session(headers.get("cookie", "")),
        is_secure=rules.is_secure(peer, scope["scheme"], headers),
    )


def _session(header: str) -> str | None:
    if COOKIE not in header:
        return None
    try:
        cookie = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie is not None else None


def _knows_page(visit: Visit, session: str) -> bool:
    return is_same(visit.headers.get(CSRF, ""), csrf_of(session))


def _secured(send: Send, visit: Visit) -> Send:
    own = _TLS if visit.is_secure else _SECURITY

    async def sending(message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.http.response.start"}:
            headers = [(name.lower(), value) for name, value in message.get("headers", ())]
            names = {name for name, _ in headers}
            message["headers"] = [*headers, *(pair for pair in own if pair[0] not in names)]
        await send(message)

    return sending
