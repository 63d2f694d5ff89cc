"""What makes an application one that not everybody can use."""

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
    """Return what ``create_app`` is to be given besides: the middleware, and the routes to sign in.

    Args:
        control: what the middleware needs.
        more: adds more routes, as ``extend`` of ``create_app`` does.
    """

    def extend(app: FastAPI) -> None:
        app.state.control = control
        app.state.services = replace(app.state.services, accounts=control.accounts)
        app.router.routes.extend(route for router in ROUTERS for route in router.routes)
        more(app)

    return {"middleware": [Middleware(AccessMiddleware, control=control)], "extend": extend}
