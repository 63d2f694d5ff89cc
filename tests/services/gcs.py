"""A temporary server of Google Cloud Storage: fake-gcs-server from the Go proxy, on a free port of loopback."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tests.services import go
from tests.services.process import folder_for, free_port, running

from calve.settings import load

VERSION = "1.56.1"
_PACKAGE = "github.com/fsouza/fake-gcs-server"
_ROOT = Path(__file__).parents[2]
_NEVER = "4102444800000"
"""The year 2100, in milliseconds."""


@contextmanager
def throwaway_gcs(bucket: str) -> Iterator[dict[str, str]]:
    """Start a server with one bucket; yield PyIceberg's properties to reach it. It accepts every token.

    Raises:
        EnvironmentUnfit: it cannot be built, or does not start.
    """
    program = go.built(load(_ROOT), _PACKAGE, VERSION)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    words = [
        *(str(program), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port)),
        *("-external-url", url, "-backend", "memory", "-log-level", "error"),
    ]
    with folder_for("gcs") as folder, running(words, port, folder / "log"):
        httpx.post(f"{url}/storage/v1/b", json={"name": bucket}, timeout=30).raise_for_status()
        yield {"gcs.service.host": url, "gcs.oauth2.token": "any", "gcs.oauth2.token-expires-at": _NEVER}
