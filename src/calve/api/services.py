"""What the routes are made of: the façades that they call."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from calve.api.streams import Streams
from calve.api.threads import FairThreads
from calve.capture import Captures
from calve.engine import Engine
from calve.settings.server import GraphqlSettings
from calve.triggers import TriggerState
from calve.triggers.signals import Signals

Probe = Callable[[], str | None]
"""Says what is wrong with something, if anything is."""


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that a request may ask something of."""

    engine: Engine
    captures: Captures | None = None
    """Missing where there is no lake."""
    signals: Signals | None = None
    triggers: TriggerState | None = None
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
