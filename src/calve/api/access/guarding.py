"""What makes an application one that not everybody can use."""

from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware

from calve.api.access import administration, providing, sessions
from calve.api.access.entrance import Entrance
from calve.api.access.gate import Gate

ROUTERS = tuple(part.routes.router for part in (sessions, providing, administration))
"""The routes to sign in and to administer."""


def guarded(entrance: Entrance) -> dict[str, Any]:
    """Return what ``create_app`` is to be given besides: the gate, and the routes to sign in and to administer."""

    def extend(app: FastAPI) -> None:
        app.state.entrance = entrance
        app.router.routes.extend(route for router in ROUTERS for route in router.routes)

    return {"middleware": [Middleware(Gate, entrance=entrance)], "extend": extend}
