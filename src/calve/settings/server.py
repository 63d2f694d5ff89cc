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
    """How deep the fields of a GraphQL request may be nested."""
    fields: Annotated[int, Field(ge=1)] = 1_000
    """How many fields it may have, counting those of a fragment each time it is spread."""
    aliases: Annotated[int, Field(ge=0)] = 20
    """How many of its fields may have an alias."""
    cost: Annotated[int, Field(ge=1)] = 5_000
    """How many fields its response may have, if every list is as long as requested."""
    introspection: Annotated[int, Field(ge=0)] = 100_000
    """The same for fields about the schema; tools that ask for all of it need 61,000."""
    tokens: Annotated[int, Field(ge=1, le=100_000)] = 2_000
    """How many tokens it may have."""
    deadline: Duration = timedelta(seconds=10)
    """After how long the server stops working on it."""


class ServerSettings(Section):
    """Where the server listens."""

    host: str = "127.0.0.1"
    """The address on which ``calve server`` and ``calve up`` listen; one that other machines can reach requires
    ``access.hosts`` and TLS."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    """The port; ``0`` takes a free one."""
    url: Annotated[str | None, BeforeValidator(_without_slash), Field(pattern=r"^https?://[^/?#\s@]+$")] = None
    """The address under which people reach the server, such as ``https://calve.example.com``; alerts link to its pages.
    Default: that of ``access.oidc.redirect_url``, else where ``calve up`` listens unless ``access.hosts`` is set."""
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """How many processes ``calve server`` has; ``calve up`` has one."""
    threads: Annotated[int, Field(ge=1, le=64)] = THREADS
    """How many requests a process handles concurrently; more help only if the database is far away."""
    max_body: Annotated[int, Field(ge=1_024)] = 1_048_576
    """The largest body of a request, in bytes."""
    streams: Annotated[int, Field(ge=1)] = 1_000
    """How many streams of events and logs, and WebSockets, a process may have open; one more is answered with 503."""
    streams_per_caller: Annotated[int, Field(ge=1)] = 100
    """How many of them each caller may have; one more is answered with 429."""
    min_free: Annotated[int, Field(ge=0)] = 67_108_864
    """``/ready`` reports ``degraded`` if ``home`` has fewer free bytes than this."""
    graphql: GraphqlSettings = GraphqlSettings()

    @property
    def local_url(self) -> str:
        """The address as a browser on this machine reaches it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - it listens on all
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


class ClientSettings(Section):
    """The server that commands use, instead of this project's own state."""

    url: str | None = None
    """The server that commands use, instead of this project's own state; ``CALVE_CLIENT__URL`` is the same."""
    token: str | None = Field(default=None, exclude=True, repr=False)
    """An API token for that server; ``CALVE_CLIENT__TOKEN`` is the same. Keep it out of files."""
