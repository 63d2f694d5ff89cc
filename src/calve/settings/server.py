"""The server, and the server that commands use."""

from datetime import timedelta
from typing import Annotated

from pydantic import BeforeValidator, Field

from calve.settings.fields import Duration, Section

THREADS = 3
"""How many requests a server process handles concurrently by default."""


def _without_slash(value: object) -> object:
    return value.removesuffix("/") if isinstance(value, str) else value


class GraphqlSettings(Section):
    """Limits of one GraphQL request; all are counted before anything is read."""

    depth: Annotated[int, Field(ge=1, le=50)] = 10
    """How deep fields may be nested."""
    fields: Annotated[int, Field(ge=1)] = 1_000
    """How many fields it may have, counting those of a fragment at each spread."""
    aliases: Annotated[int, Field(ge=0)] = 20
    """How many of them may have an alias."""
    cost: Annotated[int, Field(ge=1)] = 5_000
    """How many fields the response may have, if every list is as long as requested."""
    introspection: Annotated[int, Field(ge=0)] = 100_000
    """The same for fields about the schema."""
    tokens: Annotated[int, Field(ge=1, le=100_000)] = 2_000
    """How many tokens it may have."""
    deadline: Duration = timedelta(seconds=10)
    """How long it may take."""


class ServerSettings(Section):
    """Where the server listens."""

    host: str = "127.0.0.1"
    """The address; one that other machines can reach requires ``[access]``."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    """0 takes a free one."""
    url: Annotated[str | None, BeforeValidator(_without_slash), Field(pattern=r"^https?://[^/?#\s@]+$")] = None
    """The address under which people reach it, for links to its pages."""
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """How many processes ``calve server`` has."""
    threads: Annotated[int, Field(ge=1, le=64)] = THREADS
    """How many requests a process handles concurrently; more help only if the database is far away."""
    max_body: Annotated[int, Field(ge=1_024)] = 1_048_576
    """Largest body of a request, in bytes."""
    streams: Annotated[int, Field(ge=1)] = 1_000
    """How many streams of events and logs, and WebSockets, each process may have open."""
    streams_per_caller: Annotated[int, Field(ge=1)] = 100
    """How many of them each caller may have."""
    min_free: Annotated[int, Field(ge=0)] = 67_108_864
    """Below how many free bytes in ``home`` the server reports itself as degraded."""
    graphql: GraphqlSettings = GraphqlSettings()

    @property
    def local_url(self) -> str:
        """The address as a browser on this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - it listens on all
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class ClientSettings(Section):
    """The server that commands use, instead of this project's own state."""

    url: str | None = None
    """Its address; ``CALVE_URL`` overrides it."""
    token: str | None = Field(default=None, exclude=True, repr=False)
    """An API token for it; preferably set by ``CALVE_TOKEN``."""
