"""Prefect's server under the load of ``bench/server.py``: reads and creations of flow runs through its REST API."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from peers.environments import PeerMissing, environment
from peers.measuring import CLEAN
from peers.prefect import settings

FLOWS = 20
START_SECONDS = 180


@contextmanager
def prefect_server(home: Path) -> Iterator[int]:
    """Run Prefect's server on a SQLite file; give its port.

    Raises:
        PeerMissing: Prefect is not installed here.
    """
    python = environment("prefect")
    if python is None:
        raise PeerMissing("Prefect is not installed: bench/engine.py --install-peers")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = [str(python), "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(  # noqa: S603 - ours
        command, env=CLEAN | _settings(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        _wait(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(60)


def mix_on(port: int) -> Callable[[int], tuple[str, str, str, bytes]]:
    """Make some flows with a run each; return what gives the kind, method, path and body of one request of the mix."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}/api", timeout=60) as client:
        flows = [_made(client, "/flows/", {"name": f"bench-w{number}"}) for number in range(FLOWS)]
        runs = [_made(client, "/flow_runs/", {"flow_id": flow}) for flow in flows]

    def request(number: int) -> tuple[str, str, str, bytes]:
        flow, run = flows[number % FLOWS], runs[number % FLOWS]
        match number % 5:
            case 0:
                return "start", "POST", "/api/flow_runs/", _body(flow_id=flow, idempotency_key=f"r{number}")
            case 1:
                return "instance", "GET", f"/api/flow_runs/{run}", b""
            case 2:
                return "instances", "POST", "/api/flow_runs/filter", _body(limit=20, sort="START_TIME_DESC")
            case 3:
                return "workflow", "GET", f"/api/flows/{flow}", b""
            case _:
                return "steps", "POST", "/api/task_runs/filter", _body(flow_runs={"id": {"any_": [run]}})

    return request


def _settings(home: Path) -> dict[str, str]:
    return {**settings(home), "HOME": str(home), "DO_NOT_TRACK": "1", "PREFECT_SERVER_UI_ENABLED": "false"}


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"http://127.0.0.1:{port}/api/health", timeout=5).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise TimeoutError("Prefect's server has not come up")


def _made(client: httpx.Client, path: str, body: dict[str, Any]) -> str:
    answer = client.post(path, json=body)
    until = time.monotonic() + START_SECONDS
    while answer.status_code == httpx.codes.SERVICE_UNAVAILABLE and time.monotonic() < until:
        time.sleep(0.5)  # while it starts, its own services lock its database
        answer = client.post(path, json=body)
    return str(answer.raise_for_status().json()["id"])


def _body(**values: Any) -> bytes:
    return json.dumps(values).encode()
