"""What the routes of access take: what lets people in, the request as the gate saw it, and who asks."""

from typing import Annotated

from fastapi import Depends, Request

from calve.access import Principal
from calve.api.access.entrance import Entrance
from calve.api.access.visits import Visit
from calve.api.callers import principal_of
from calve.api.identifiers import PREFIX

ACCESS = f"{PREFIX}/access"
"""What their paths begin with."""


async def _entrance(request: Request) -> Entrance:
    entrance = request.app.state.entrance
    assert isinstance(entrance, Entrance)  # noqa: S101 - guarded() put it there
    return entrance


async def _visit(request: Request) -> Visit:
    visit = request.state.visit
    assert isinstance(visit, Visit)  # noqa: S101 - the gate put it there
    return visit


async def _principal(request: Request) -> Principal:
    return principal_of(request)


At = Annotated[Entrance, Depends(_entrance)]
"""What lets people in."""
From = Annotated[Visit, Depends(_visit)]
"""The request as the gate saw it."""
Who = Annotated[Principal, Depends(_principal)]
"""Who asks."""
