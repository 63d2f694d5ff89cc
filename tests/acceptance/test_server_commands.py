"""``calve server`` and ``calve up`` as people start them."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from maestro import Job, MaestroClient  # type: ignore[import-untyped]
from tests.behaviour.api.test_maestro_client import child, described, finished
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


def test_maestros_own_client_needs_nothing_but_the_address(tmp_path: Path) -> None:
    """What its DSL describes is carried out, every kind of job of it."""
    with started(tmp_path, "up", "--port", "0") as (client, _):
        maestro = MaestroClient(base_url=str(client.base_url), user="tester")
        maestro.push_yaml(child().to_yaml())
        wf = described().job(Job(id="nap", type="Sleep").param("sleep_seconds", 1))
        assert maestro.push_yaml(wf.to_yaml())["metadata"]["version_author"] == "tester"
        maestro.start("sample")
        assert finished(maestro, "sample")["aggregated_info"]["workflow_instance_status"] == "SUCCEEDED"


@pytest.mark.parametrize("command", ["server", "up", "server --processes 2"])
def test_nobody_listens_to_the_world_by_accident(tmp_path: Path, command: str) -> None:
    """An address that others can reach is refused unless the settings say how it is protected."""
    address = ["--host", "0.0.0.0", "--port", "0"]  # noqa: S104
    given = [sys.executable, "-m", "calve", "-C", str(tmp_path), *command.split(), *address]
    refused = subprocess.run(given, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 1
    assert "access.hosts" in refused.stderr


@pytest.mark.parametrize("command", ["server", "up", "server --processes 2"])
def test_a_port_that_is_taken_is_an_error_that_says_by_whom(tmp_path: Path, command: str) -> None:
    """No server is left on an unknown port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (tmp_path / "calve.toml").write_text(f"[server]\nport = {port}\n")
        given = [sys.executable, "-m", "calve", "-C", str(tmp_path), *command.split()]
        refused = subprocess.run(given, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 1
    assert f"Cannot listen on 127.0.0.1:{port}" in refused.stderr
    assert f"Process {os.getpid()} listens there" in refused.stderr
    assert "--port 0" in refused.stderr


def processes_of(parent: int) -> set[int]:
    """Return the processes that a server has started to answer requests."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {int(pid) for pid in children if "spawn_main" in command_of(pid)}


def command_of(pid: str) -> str:
    """Return how a process was called; nothing, if it has gone since."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except FileNotFoundError:
        return ""


def is_running(pid: int) -> bool:
    """Tell whether a process is there, and more than a zombie that nobody has asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_several_processes_serve_as_one(tmp_path: Path) -> None:
    """They answer at one address, one that is killed is replaced, and all end with the one that started them."""
    with started(tmp_path, "server", "--port", "0", "--processes", "2") as (client, process):
        assert client.post("/api/v3/workflows/yaml", content=JOB).status_code == 200
        before = processes_of(process.pid)
        assert len(before) == 2
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: len(processes_of(process.pid) - {killed}) == 2, 60)
        with httpx.Client(base_url=client.base_url, timeout=30) as another:
            assert another.get("/api/v3/workflows").json()["elements"][0]["workflow_id"] == "w"
        processes = processes_of(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert not any(map(is_running, processes))


def test_no_process_outlives_a_server_that_was_killed(tmp_path: Path) -> None:
    """They notice that nobody is there any more who could end them."""
    with started(tmp_path, "server", "--port", "0", "--processes", "2") as (client, process):
        assert client.get("/ready").status_code == 200
        processes = processes_of(process.pid)
        process.kill()
        wait_for(lambda: not any(map(is_running, processes)), 60)
    assert len(processes) == 2
