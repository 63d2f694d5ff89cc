"""The web application: its routes, their policies, and its middleware."""

from collections.abc import Callable, Sequence
from functools import cache

from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from calve import __version__
from calve.access import LOOPBACK, Principal
from calve.api import events, logs
from calve.api.caller import WebServices
from calve.api.graphql import routers as graphql_routers
from calve.api.limits import CleanHeaders, SmallBodies, SmallHeaders
from calve.api.openapi import describe
from calve.api.problems import handle_errors
from calve.api.routes import check_policies, operation_routers
from calve.api.status import about_routes, health_routes


def create_app(
    services: WebServices,
    *,
    middleware: Sequence[Middleware] | None = None,
    extend: Callable[[FastAPI], None] = lambda _: None,
) -> FastAPI:
    """Return the application.

    Args:
        services: the services that the routes call.
        middleware: recognizes callers, and protects the routes; if not given, every caller is the user of this machine,
            which is safe only for a server that listens on loopback.
        extend: adds more routes to ``app.router.routes``, which need policies like all others.

    Raises:
        SettingsInvalid: a route has no policy.
    """
    app = FastAPI(
        title="calve",
        version=__version__,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would lead to the host that the caller named
        docs_url=None,
        redoc_url=None,
        middleware=[
            *([Middleware(FixedPrincipal, principal=LOOPBACK)] if middleware is None else middleware),
            Middleware(SmallHeaders),
            Middleware(CleanHeaders),
            Middleware(SmallBodies, limit=services.body_limit),
        ],
    )
    app.state.services = services
    handle_errors(app)
    for router in (*routers(), *graphql_routers()):
        app.router.routes.extend(router.routes)  # flat, so that every route can be checked
    extend(app)
    describe(app)
    check_policies(app.routes)
    return app


@cache  # they take 0.2 s to create, and find the services in the application of the request
def routers() -> Sequence[APIRouter]:
    """Return the routes of operations, of health and about the server; those of access are separate."""
    specials = {"get_logs": logs.SPECIAL, "get_events": events.SPECIAL}
    return (*operation_routers(specials), health_routes.router, about_routes.router)


class FixedPrincipal:
    """Takes every caller for the same principal."""

    def __init__(self, app: ASGIApp, principal: Principal) -> None:
        self._app = app
        self._principal = principal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note the principal."""
        if scope["type"] != "lifespan":
            scope.setdefault("state", {})["principal"] = self._principal
        await self._app(scope, receive, send)
