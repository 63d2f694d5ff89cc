"""The client: all that one can ask of a server."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from calve.client.controls import Controls
from calve.client.data import Data
from calve.client.instances import Instances
from calve.client.server import Server
from calve.client.workflows import Workflows


class Client(Workflows, Instances, Controls, Data):
    """Speaks with a calve server.

    What is answered are documents in Maestro's shape, as plain dictionaries; what the server refuses is raised as the
    same ``CalveError`` that the engine raises in process. Reads are asked again when no answer comes, and so are
    starts, under the same request id.

    >>> with Client("http://127.0.0.1:8765") as client:  # doctest: +SKIP
    ...     client.push(Path("pipeline.yaml"))
    ...     started = client.start("demo.pipeline", {"my_query": "SELECT 1"})
    ...     ended = client.wait("demo.pipeline", started["workflow_instance_id"])
    """

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = 30.0, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.server = Server(url, token, timeout=timeout, sleep=sleep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all connections."""
        self.server.close()

    def view_url(self, run: Mapping[str, Any]) -> str | None:
        """Return the address of the page that shows an instance; None if the server has no such page."""
        place = f"/workflows/{quote(run['workflow_id'])}/instances/{run['workflow_instance_id']}"
        return f"{self.server.url}{place}" if self.server.has_page(place) else None
