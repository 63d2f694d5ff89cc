"""``calve server`` and ``calve up`` as people start them."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.engines import wait_for

JOB = "Workflow:\n  id: w\n  jobs:\n    - job: {id: job, type: NoOp}\n"


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[tuple[httpx.Client, subprocess.Popen[str]]]:
    """Start a command that serves; give a client of it, and end it as Ctrl-C does."""
    command = [sys.executable, "-m", "calve", "-C", str(folder), *arguments, "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said: dict[str, Any] = json.loads(process.stdout.readline())
            with httpx.Client(base_url=said["url"], timeout=30) as client:
                yield client, process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def test_a_server_answers_until_it_is_told_to_end(tmp_path: Path) -> None:
    """It is ready, takes a definition, and leaves with exit code 0."""
    with started(tmp_path, "server", "--port", "0") as (client, process):
        assert client.get("/ready").json() == {"status": "ready", "problems": {}}
        assert client.post("/api/v3/workflows/yaml", content=JOB).status_code == 200
        assert client.get("/api/v3/workflows").json()["elements"][0]["workflow_id"] == "w"
        assert client.get("/api/v3/workflows", headers={"host": "evil.example"}).status_code == 403
    assert process.returncode == 0


def test_up_is_all_in_one(tmp_path: Path) -> None:
    """What is pushed and started over HTTP is carried out."""
    with started(tmp_path, "up", "--port", "0") as (client, process):
        client.post("/api/v3/workflows/yaml", content=JOB)
        assert client.post("/api/v3/workflows/w/versions/active/actions/start", json={}).status_code == 200
        path = "/api/v3/workflows/w/instances/1"
        wait_for(lambda: client.get(path).json()["status"] == "SUCCEEDED", 60)
    assert process.returncode == 0


@pytest.mark.parametrize("command", ["server", "up"])
def test_nobody_listens_to_the_world_by_accident(tmp_path: Path, command: str) -> None:
    """An address that others can reach is refused unless the settings say how it is protected."""
    given = [sys.executable, "-m", "calve", "-C", str(tmp_path), command, "--host", "0.0.0.0", "--port", "0"]  # noqa: S104
    refused = subprocess.run(given, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 1
    assert "access.hosts" in refused.stderr
