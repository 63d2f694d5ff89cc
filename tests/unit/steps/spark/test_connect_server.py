"""The servers of a worker, with a program in the place of Spark."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.steps.programs import is_gone, number_in, until, workspace
from tests.unit.steps.spark.fake import UP, install

from calve.engine import State
from calve.errors import StepFailed
from calve.settings import load
from calve.steps.spark.connect_server import ConnectServer, ConnectServers

WORKER = """
import sys, time
from pathlib import Path
import pytest
from tests.unit.steps.programs import workspace
from tests.unit.steps.spark.fake import UP, install
from calve.settings import load
from calve.steps.spark.connect_server import ConnectServers
folder = Path(sys.argv[1])
install(folder, UP, pytest.MonkeyPatch())
server = ConnectServers(load(folder, {}), workspace(folder)).get("local[1]", print, lambda: False)
(folder / "pid").write_text((server.folder / "events" / "pid").read_text())
time.sleep(600)
"""
"""A worker that has a server, and then does nothing."""


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ConnectServers]:
    """Yield servers whose Spark comes up at once."""
    install(tmp_path, UP, monkeypatch)
    made = ConnectServers(load(tmp_path, {}), workspace(tmp_path))
    yield made
    made.close()


def _get(servers: ConnectServers, master: str = "local[1]") -> ConnectServer:
    return servers.get(master, lambda _: None, lambda: False)


def _pid(server: ConnectServer) -> int:
    return int((server.folder / "events" / "pid").read_text())


def test_a_server_is_started_once_and_by_one(servers: ConnectServers) -> None:
    """The others wait for it."""
    found: list[ConnectServer] = []
    threads = [threading.Thread(target=lambda: found.append(_get(servers))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len({id(server) for server in found}) == 1


def test_each_master_has_a_server(servers: ConnectServers) -> None:
    """A step may name another cluster."""
    assert _get(servers, "local[1]") is not _get(servers, "local[2]")


def test_a_server_is_known_by_its_port_and_token(servers: ConnectServers) -> None:
    """The token stands in no argument list."""
    server = _get(servers)
    token = (server.folder / "events" / "token").read_text().strip()
    assert server.sessions.url == f"sc://localhost:4711/;token={token};user_id=calve"
    assert token not in Path(f"/proc/{_pid(server)}/cmdline").read_text()


def test_a_dead_server_is_replaced(servers: ConnectServers) -> None:
    """By the next step that wants one."""
    first = _get(servers)
    os.kill(_pid(first), signal.SIGKILL)
    until(lambda: not first.is_alive)
    log: list[str] = []
    second = servers.get("local[1]", log.append, lambda: False)
    assert second is not first
    assert "a new one starts" in "".join(log)


def test_closing_ends_the_servers(servers: ConnectServers) -> None:
    """Nothing of them is left, not even a folder."""
    server = _get(servers)
    pid = _pid(server)
    servers.close()
    assert is_gone(pid)
    assert not server.folder.exists()


def test_a_server_that_ends_at_its_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine may try again."""
    install(tmp_path, "echo 'Exception: no such master' >&2; exit 1", monkeypatch)
    servers = ConnectServers(load(tmp_path, {}), workspace(tmp_path))
    with pytest.raises(StepFailed, match="no such master") as failed:
        _get(servers)
    assert failed.value.context["state"] == State.PLATFORM_ERROR


def test_a_step_that_is_interrupted_does_not_wait_for_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was started is ended."""
    install(tmp_path, "exec sleep 600", monkeypatch)
    servers = ConnectServers(load(tmp_path, {}), workspace(tmp_path))
    with pytest.raises(StepFailed, match="interrupted"):
        servers.get("local[1]", lambda _: None, lambda: True)


def test_a_server_is_gone_when_its_worker_is_killed(tmp_path: Path) -> None:
    """A worker that is killed cannot end it; the pipe between them does."""
    root = Path(__file__).parents[4]
    with subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)], cwd=root) as worker:
        pid = number_in(tmp_path / "pid")
        assert not is_gone(pid)
        worker.kill()
    until(lambda: is_gone(pid))
