"""The caller of a request, recognized by the middleware, and the services of the server."""

import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request
from starlette.requests import HTTPConnection

from calve.access import ANONYMOUS, Accounts, Principal
from calve.api.streams import Streams
from calve.api.threads import Deadline, FairThreads
from calve.capture import Captures
from calve.capture.inspection import Tables
from calve.engine import Engine
from calve.lineage import EdgeState
from calve.operations import Administration, Caller
from calve.settings import GraphqlSettings
from calve.triggers import TriggerState
from calve.triggers.signals import Signals

Probe = Callable[[], str | None]
"""Returns what is wrong with a part of the server, if anything is."""


@dataclass(frozen=True, slots=True)
class WebServices:
    """The services that carry out operations (``calve.operations.Services``), and those of a server."""

    engine: Engine
    captures: Captures | None = None
    """None if there is no lake."""
    tables: Tables | None = None
    lineage: EdgeState | None = None
    signals: Signals | None = None
    triggers: TriggerState | None = None
    accounts: Accounts | None = None
    administration: Administration | None = None
    changed: Callable[[str, Callable[[str], bool]], int] = lambda _table, _is_for: 0
    """Lets triggers of some workflows check a table now; returns how many watch it."""
    scrape: Callable[[], bytes] = lambda: b""
    """Returns the metrics."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """The checks of readiness, by name."""
    body_limit: int = 1_048_576
    """The maximum number of bytes in a body."""
    streams: Streams = field(default_factory=Streams)
    """The open streams."""
    graphql: GraphqlSettings = field(default_factory=GraphqlSettings)
    """The limits of one GraphQL request."""
    queries: FairThreads = field(default_factory=FairThreads)
    """Answers GraphQL requests."""
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when the server shuts down, to end streams."""


async def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class WebCaller(Caller):
    """The caller of a request, and the services of the server."""

    services: WebServices
    holds: Callable[[], Awaitable[bool]] = _always
    """Whether the caller is still signed in with the same permissions; streams check it periodically."""
    deadline: Deadline = field(default_factory=Deadline)
    """When the request must be answered."""

    @property
    def is_ending(self) -> bool:
        """Tell whether the server is shutting down."""
        return self.services.ending.is_set()


def principal_of(request: HTTPConnection) -> Principal:
    """Return the caller that a middleware has recognized; without one, the anonymous caller."""
    found = getattr(request.state, "principal", ANONYMOUS)
    assert isinstance(found, Principal)  # noqa: S101 - only our own middleware writes it
    return found


def caller_of(request: HTTPConnection) -> WebCaller:
    """Return the caller of a request, or of a WebSocket."""
    about = request.state
    asked, holds = getattr(about, "asked", []), getattr(about, "holds", _always)
    source = getattr(about, "source", "")
    return WebCaller(request.app.state.services, principal_of(request), source, asked, holds)


async def _caller(request: Request) -> WebCaller:
    return caller_of(request)


Call = Annotated[WebCaller, Depends(_caller)]
"""The caller, for a route."""
