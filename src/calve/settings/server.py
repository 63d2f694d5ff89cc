"""The server, and which server commands ask."""

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from calve.settings.fields import Duration, Section

THREADS = 3
"""How many requests a process of the server answers at a time, if nobody says otherwise."""


class GraphqlSettings(Section):
    """How much one request of GraphQL may ask for; all are counted before anything is read."""

    depth: Annotated[int, Field(ge=1, le=50)] = 10
    """How deep fields may be nested."""
    fields: Annotated[int, Field(ge=1)] = 1_000
    """How many fields it may name, with those of every fragment each time that it is spread."""
    aliases: Annotated[int, Field(ge=0)] = 20
    """How many of them may have another name."""
    cost: Annotated[int, Field(ge=1)] = 5_000
    """How many fields the answer may have, if every list is as long as was asked for."""
    introspection: Annotated[int, Field(ge=0)] = 100_000
    """The same for fields about the schema."""
    tokens: Annotated[int, Field(ge=1, le=100_000)] = 2_000
    """How many words and signs it may have."""
    deadline: Duration = timedelta(seconds=10)
    """How long it is worked on."""


class ServerSettings(Section):
    """Where the server listens."""

    host: str = "127.0.0.1"
    """The address; one that others can reach needs what ``[access]`` says."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    """0 takes a free one."""
    processes: Annotated[int, Field(ge=1, le=64)] = 1
    """How many processes ``calve server`` answers with."""
    threads: Annotated[int, Field(ge=1, le=64)] = THREADS
    """How many requests a process answers at a time; more pay only where the database is far away."""
    max_body: Annotated[int, Field(ge=1_024)] = 1_048_576
    """How many bytes a request may bring."""
    streams: Annotated[int, Field(ge=1)] = 1_000
    """How many streams of events and logs, and WebSockets, each process may have open."""
    streams_per_caller: Annotated[int, Field(ge=1)] = 100
    """How many of them each caller may have."""
    min_free: Annotated[int, Field(ge=0)] = 67_108_864
    """Below how many free bytes in ``home`` the server says that it is degraded."""
    graphql: GraphqlSettings = GraphqlSettings()


class ClientSettings(Section):
    """The server that commands ask, instead of this project's own state."""

    url: str | None = None
    """Its address; ``CALVE_URL`` wins over it."""
    token: str | None = Field(default=None, exclude=True, repr=False)
    """An API token of it; rather given by ``CALVE_TOKEN``."""
