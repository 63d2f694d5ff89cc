"""The web application: its routes, their policies, and what guards them."""

from collections.abc import Callable, Sequence

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from calve import __version__
from calve.access import LOOPBACK, Principal
from calve.api.describing import describe
from calve.api.graphql import routers as graphql_routers
from calve.api.limits import CleanHeaders, SmallBodies, SmallHeaders
from calve.api.policy import check_policies
from calve.api.problems import handle_errors
from calve.api.routes import ROUTERS
from calve.api.services import Services


def create_app(
    services: Services,
    *,
    middleware: Sequence[Middleware] | None = None,
    extend: Callable[[FastAPI], None] = lambda _: None,
) -> FastAPI:
    """Return the application.

    Args:
        services: what the routes call.
        middleware: what finds out who asks, and guards the rest; if not given, everybody is whoever sits at this
            machine, which is right only for a server that listens on loopback.
        extend: adds more routes to ``app.router.routes``, which need policies like all others.

    Raises:
        SettingsInvalid: a route has no policy.
    """
    app = FastAPI(
        title="calve",
        version=__version__,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would name the host that the caller named
        docs_url=None,
        redoc_url=None,
        middleware=[
            *([Middleware(Everybody, principal=LOOPBACK)] if middleware is None else middleware),
            Middleware(SmallHeaders),
            Middleware(CleanHeaders),
            Middleware(SmallBodies, limit=services.body_limit),
        ],
    )
    app.state.services = services
    handle_errors(app)
    for router in (*ROUTERS, *graphql_routers()):
        app.router.routes.extend(router.routes)  # flat, so that every route can be looked at
    extend(app)
    describe(app)
    check_policies(app.routes)
    return app


class Everybody:
    """Takes everybody for the same one."""

    def __init__(self, app: ASGIApp, principal: Principal) -> None:
        self._app = app
        self._principal = principal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note who asks."""
        if scope["type"] != "lifespan":
            scope.setdefault("state", {})["principal"] = self._principal
        await self._app(scope, receive, send)
