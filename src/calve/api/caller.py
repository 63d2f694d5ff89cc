"""The caller of a request, as the middleware has recognized them, and the services that answer it."""

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
"""Says what is wrong with something, if anything is."""


@dataclass(frozen=True, slots=True)
class WebServices:
    """What operations are carried out by (``calve.operations.Services``), and what a server needs besides."""

    engine: Engine
    captures: Captures | None = None
    """Missing where there is no lake."""
    tables: Tables | None = None
    lineage: EdgeState | None = None
    signals: Signals | None = None
    triggers: TriggerState | None = None
    accounts: Accounts | None = None
    administration: Administration | None = None
    changed: Callable[[str, Callable[[str], bool]], int] = lambda _table, _is_for: 0
    """Lets triggers of some workflows look at a table now; gives how many watch it."""
    scrape: Callable[[], bytes] = lambda: b""
    """Gives the metrics."""
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """What has to be in order for the server to do its work, by name."""
    body_limit: int = 1_048_576
    """How many bytes a body may have."""
    streams: Streams = field(default_factory=Streams)
    """Those that are open."""
    graphql: GraphqlSettings = field(default_factory=GraphqlSettings)
    """How much one request of GraphQL may ask for."""
    queries: FairThreads = field(default_factory=FairThreads)
    """What answers requests of GraphQL."""
    ending: threading.Event = field(default_factory=threading.Event)
    """Set when the server ends, so that streams do."""


async def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class WebCaller(Caller):
    """Who sends a request, and the services that answer it."""

    services: WebServices
    holds: Callable[[], Awaitable[bool]] = _always
    """Whether the caller is still signed in with the same permissions; long answers ask now and then."""
    deadline: Deadline = field(default_factory=Deadline)
    """Until when the request is worked on."""

    @property
    def is_ending(self) -> bool:
        """Tell whether the server is about to end."""
        return self.services.ending.is_set()


def principal_of(request: HTTPConnection) -> Principal:
    """Return who sends a request, as a middleware has found out; nobody, if there is none."""
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
