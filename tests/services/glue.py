"""A temporary AWS Glue and S3 on a free port of loopback: moto's server, with the compare-and-set that Glue has."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import httpx
from tests.services.process import free_port

from calve.errors import EnvironmentUnfit

_START, _STOP = 60, 10
_KEYS = {"region": "us-east-1", "access-key-id": "key", "secret-access-key": "secret"}


@dataclass(frozen=True, slots=True)
class GlueServer:
    """A running server; it takes any key."""

    port: int

    @property
    def endpoint(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def properties(self) -> dict[str, str]:
        """What a catalog's definition says to reach it, in PyIceberg's names."""
        glue = {f"glue.{key}": value for key, value in _KEYS.items()}
        s3 = {f"s3.{key}": value for key, value in _KEYS.items()}
        return {**glue, **s3, "glue.endpoint": self.endpoint, "s3.endpoint": self.endpoint}

    def make_bucket(self, name: str) -> str:
        """Create a bucket; return its location."""
        httpx.put(f"{self.endpoint}/{name}").raise_for_status()
        return f"s3://{name}"

    @contextmanager
    def checking_keys(self) -> Iterator[None]:
        """Accept only the keys of its users meanwhile, of whom there are none."""
        httpx.post(f"{self.endpoint}/moto-api/reset-auth", content="0").raise_for_status()
        yield
        httpx.post(f"{self.endpoint}/moto-api/reset-auth", content="inf").raise_for_status()


@contextmanager
def throwaway_glue() -> Iterator[GlueServer]:
    """Start a server; what it has is in its memory."""
    server = GlueServer(free_port())
    words = [sys.executable, "-W", "ignore", "-m", __name__, str(server.port)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _START
        while not _answers(server):
            if process.poll() is not None or time.monotonic() > end:
                raise EnvironmentUnfit(f"moto's server did not start: {' '.join(words)}")
            time.sleep(0.05)
        yield server
    finally:
        process.terminate()
        process.wait(_STOP)


def _answers(server: GlueServer) -> bool:
    try:
        return httpx.get(f"{server.endpoint}/moto-api/", timeout=5).is_success
    except httpx.HTTPError:
        return False


def _compare_versions() -> None:
    """Let ``UpdateTable`` refuse an old ``VersionId``, as AWS does; moto ignores it."""
    from moto.core.exceptions import JsonRESTError
    from moto.glue.responses import GlueResponse

    update, lock = GlueResponse.update_table, Lock()

    def compared(response: Any) -> Any:
        with lock:
            name = response.parameters["TableInput"]["Name"]
            table = response.glue_backend.get_table(response.parameters["DatabaseName"], name)
            if response.parameters.get("VersionId") not in {None, table.as_dict()["VersionId"]}:
                raise JsonRESTError("ConcurrentModificationException", f"{name} has another version.")
            return update(response)

    GlueResponse.update_table = compared  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    from moto.server import main

    _compare_versions()
    main(["--host", "127.0.0.1", "--port", sys.argv[1]])
