"""Access control of an application: the middleware, and the routes to sign in."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware

from calve.api.access import oidc, sign_in
from calve.api.access.control import AccessControl
from calve.api.access.middleware import AccessMiddleware

ROUTERS = tuple(part.routes.router for part in (sign_in, oidc))
"""The routes to sign in and to administer."""


def guarded(control: AccessControl, more: Callable[[FastAPI], None] = lambda _: None) -> dict[str, Any]:
    """Return the arguments of ``create_app`` for access control: the middleware, and the routes to sign in.

    Args:
        control: the parts of the middleware.
        more: adds more routes, like ``extend`` of ``create_app``.
    """

    def extend(app: FastAPI) -> None:
        app.state.control = control
        app.state.services = replace(app.state.services, accounts=control.accounts)
        app.router.routes.extend(route for router in ROUTERS for route in router.routes)
        more(app)

    return {"middleware": [Middleware(AccessMiddleware, control=control)], "extend": extend}
