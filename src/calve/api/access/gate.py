"""The gate before all routes: who asks, from where, how often, and whether a page of somebody else is behind it."""

from collections import OrderedDict
from functools import partial

from starlette.types import ASGIApp, Receive, Scope, Send

from calve.access import PrincipalKind, digest, network_of, remember
from calve.api.access.entrance import Entrance
from calve.api.access.noting import audited
from calve.api.access.recognizing import is_still, recognize
from calve.api.access.securing import secured
from calve.api.access.visits import Visit, visit_of
from calve.api.problems import error_answer
from calve.api.sockets import Guarded
from calve.errors import CalveError, Forbidden, TooManyAttempts

_KNOWN = frozenset({PrincipalKind.USER, PrincipalKind.TOKEN})


class Gate:
    """Finds out who asks, and refuses what nobody may ask for; what each one may do, the policies of the routes say."""

    def __init__(self, app: ASGIApp, entrance: Entrance) -> None:
        self._app = app
        self._entrance = entrance
        self._known: OrderedDict[str, None] = OrderedDict()  # what was shown by those whom we let in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        visit = visit_of(scope, self._entrance.rules)
        send = secured(send, is_secure=visit.is_secure)
        try:
            self._check(visit)
            principal = await recognize(self._entrance, visit)
        except CalveError as error:
            await error_answer(visit.headers.get("accept", ""), error)(scope, receive, send)
            return
        if principal.kind in _KNOWN and (shown := _shown(visit)) is not None:
            remember(self._known, shown, None)
        holds = partial(is_still, self._entrance, principal, visit)
        scope.setdefault("state", {}).update(principal=principal, visit=visit, asked=[], holds=holds)
        if scope["type"] == "websocket":
            await self._connected(scope, Guarded(receive, send, holds), visit)
        else:
            await self._app(scope, receive, audited(send, scope, principal, visit, self._entrance.door))

    def _check(self, visit: Visit) -> None:
        rules = self._entrance.rules
        rules.check_host(visit.headers)
        rules.check_origin(visit.headers, changes=visit.changes)
        shown = _shown(visit)
        # Whom we know has a measure of his own: others at the same address cannot use it up.
        wait = self._entrance.rate.wait(shown if shown and shown in self._known else network_of(visit.source))
        if wait:
            raise TooManyAttempts("Too many requests.", retry_after=int(wait) + 1)

    async def _connected(self, scope: Scope, socket: Guarded, visit: Visit) -> None:
        """Let a WebSocket through; one that its route's policy has refused gets an answer, which errors do not give."""
        await self._app(scope, socket.receive, socket.send)
        if not socket.is_answered:
            refused = scope["state"].get("refused", Forbidden())
            await error_answer(visit.headers.get("accept", ""), refused)(scope, socket.receive, socket.send)


def _shown(visit: Visit) -> str | None:
    """Return what stands for the token or the session that a request shows, if it does."""
    shown = visit.headers.get("authorization") or visit.session
    return None if shown is None else digest(shown)
