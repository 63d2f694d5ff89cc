"""Processes that run for long, and the state database that goes away: while it restarts, or for good."""

import io
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import httpx
import psycopg
import pytest
from tests.engines import wait_for

from calve.cli import entry
from calve.cli.state import Patience
from calve.errors import StoreUnavailable
from calve.testing.postgres import Postgres, throwaway_postgres

SERVICES = {
    "worker": ["worker"],
    "scheduler": ["scheduler"],
    "server": ["server", "--port", "0"],
    "up": ["up", "--port", "0"],
}


@dataclass(frozen=True, slots=True)
class Service:
    """A process of calve, and what it has said so far."""

    process: "subprocess.Popen[str]"
    said: Path

    def says(self, text: str) -> bool:
        """Tell whether it has said something, or is over."""
        return text in self.said.read_text() or self.process.poll() is not None

    def end(self, number: int) -> int:
        """Send a signal; return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def service(
    folder: Path, name: str, url: str | None = None, program: Sequence[str] = (sys.executable, "-m", "calve")
) -> Iterator[Service]:
    """Start a process in a project's folder."""
    said = folder / f"{name}.log"
    if url is not None:
        (folder / "calve.toml").write_text(f'[store]\nurl = "{url}"\n')
    command = [*program, "-C", str(folder), *SERVICES[name]]
    with (
        said.open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, text=True) as process,
    ):
        try:
            yield Service(process, said)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def running() -> Iterator[Postgres]:
    """Give a PostgreSQL."""
    with throwaway_postgres() as server:
        yield server


@pytest.fixture
def server(running: Postgres) -> Iterator[Postgres]:
    """Give a PostgreSQL that can be stopped; for the next test it runs again."""
    yield running
    if not (running.folder / "data" / "postmaster.pid").exists():
        running.start()


@pytest.mark.parametrize("name", SERVICES)
def test_a_process_that_starts_while_the_database_restarts_waits_and_continues(
    server: Postgres, name: str, tmp_path: Path
) -> None:
    """It says what it waits for; once the database answers it is as if nothing had been."""
    server.stop("fast")
    with service(tmp_path, name, server.url) as waiting:
        wait_for(lambda: waiting.says("Waiting until it answers"), 120)
        server.start()
        wait_for(lambda: waiting.says(" is ready") or waiting.says("Serving http") or waiting.says("calve is up"), 120)
        assert waiting.process.poll() is None, waiting.said.read_text()
        assert waiting.end(signal.SIGTERM) == 0, waiting.said.read_text()


def test_whoever_waits_can_be_interrupted(server: Postgres, tmp_path: Path) -> None:
    """Ctrl-C ends it without a trace of anything."""
    server.stop("fast")
    with service(tmp_path, "scheduler", server.url) as waiting:
        wait_for(lambda: waiting.says("Waiting until it answers"), 120)
        assert waiting.end(signal.SIGINT) == 130
        assert "Traceback" not in waiting.said.read_text()


def test_what_no_waiting_mends_is_an_error_at_once(server: Postgres, tmp_path: Path) -> None:
    """A database that is not there."""
    with service(tmp_path, "worker", server.url_at(server.port, "nowhere")) as failing:
        assert failing.process.wait(120) == 1
        assert 'database "nowhere" does not exist' in failing.said.read_text()
        assert "Waiting" not in failing.said.read_text()


@pytest.mark.parametrize("name", SERVICES)
def test_a_wrong_password_is_an_error_at_once(server: Postgres, name: str, tmp_path: Path) -> None:
    """The message names the user, and not the password."""
    rules = server.folder / "data" / "pg_hba.conf"
    if "locked" not in rules.read_text():
        rules.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        with psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
            connection.execute("SELECT pg_reload_conf()")
    with service(tmp_path, name, server.url.replace("postgres@", "locked:s3cr3t@")) as failing:
        assert failing.process.wait(120) == 1
        said = failing.said.read_text()
    assert 'password authentication failed for user "locked"' in said
    assert "Check store.url" in said
    assert "s3cr3t" not in said
    assert "Waiting" not in said


@pytest.mark.parametrize(("name", "is_replaced"), list(product(SERVICES, [False, True])))
def test_a_process_whose_state_is_deleted_ends(name: str, tmp_path: Path, *, is_replaced: bool) -> None:
    """With a message, rather than write to a file that nobody will find; also if another file takes its place."""
    home = tmp_path / ".calve"
    with service(tmp_path, name) as running:
        wait_for(lambda: running.says("is ready") or running.says("Press Ctrl-C to quit."), 120)
        copy = (home / "state.db").read_bytes()
        shutil.rmtree(home)
        if is_replaced:
            home.mkdir()
            (home / "state.db").write_bytes(copy)
        assert running.process.wait(60) == 1, running.said.read_text()
    said = running.said.read_text()
    assert "was deleted or replaced while this process was using it" in said
    assert "Traceback" not in said


def test_it_is_said_now_and_then_what_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    """At first, and again after half a minute."""
    slept: list[float] = []
    wait = Patience(slept.append)
    for _ in range(61):
        wait(StoreUnavailable("It is away."))
    assert capsys.readouterr().err.count("It is away.") == 2
    assert sum(slept) == pytest.approx(30.5)


_STUCK = """
import sys, threading
from calve.operations import workflows
from calve.engine import Engine
from calve.triggers.scheduler import Scheduler

def stuck(*_, **__):
    print("stuck", flush=True)
    threading.Event().wait()

{patch} = stuck
from calve.cli import main
main(sys.argv[1:])
"""
STUCK = {
    "a request": ("server", "Engine.workflow"),
    "a definition that is pushed": ("server", "workflows.load"),
    "a request of all in one": ("up", "Engine.workflow"),
    "a scheduler": ("scheduler", "Scheduler.turn"),
    "a scheduler of all in one": ("up", "Scheduler.turn"),
}


@pytest.mark.parametrize(("name", "patch"), STUCK.values(), ids=STUCK)
def test_a_signal_ends_a_process_whatever_is_stuck_in_it(
    server: Postgres, name: str, patch: str, tmp_path: Path
) -> None:
    """Neither requests nor schedulers that never come to their end keep it."""
    program = [sys.executable, "-c", _STUCK.format(patch=patch)]
    with service(tmp_path, name, server.url, program) as running:
        wait_for(lambda: running.says(" is ready") or running.says("http://"), 120)
        if "Scheduler" not in patch:
            url = re.findall(r"http://[\w.:]+", running.said.read_text())[0]
            asking = threading.Thread(target=_ask, args=(url, patch), daemon=True)
            asking.start()
        wait_for(lambda: running.says("stuck"), 60)
        running.end(signal.SIGTERM)


def _ask(url: str, patch: str) -> None:
    with suppress(httpx.HTTPError):
        if "load" in patch:
            httpx.post(f"{url}/api/v3/workflows", json={"workflow": {"id": "w", "steps": []}}, timeout=90)
        else:
            httpx.post(f"{url}/graphql", json={"query": '{ workflow(id: "w") { id } }'}, timeout=90)


def test_a_signal_ends_a_process_whose_step_does_not_end(tmp_path: Path) -> None:
    """Though its program takes no notice; the next process finds the step and goes on."""
    begun, definition = tmp_path / "begun", tmp_path / "w.yaml"
    script = f"trap '' TERM; touch {begun}; sleep 600 & wait"
    definition.write_text(f'Workflow: {{id: w, jobs: [{{job: {{id: a, type: Shell, script: "{script}"}}}}]}}')
    with service(tmp_path, "up") as running:
        wait_for(lambda: running.says("calve is up"), 120)
        _calve(tmp_path, "run", str(definition), "--no-wait")
        wait_for(begun.exists, 60)
        began = time.monotonic()
        running.end(signal.SIGTERM)
        assert time.monotonic() - began < 15  # nine seconds, and what a busy machine adds


_DEADLY = """
import os, signal, sys
from calve.steps.sleep import Sleep

def die(self, context):
    os.kill(os.getpid(), signal.SIGKILL)

Sleep.execute = die
from calve.cli import main
main(sys.argv[1:])
"""
_DEADLY_WORKFLOW = "Workflow: {id: deadly, jobs: [{job: {id: a, type: Sleep, sleep: {sleep_seconds: 1}}}]}"
_FINE_WORKFLOW = "Workflow: {id: fine, jobs: [{job: {id: a, type: NoOp}}]}"


@pytest.mark.parametrize(
    ("name", "on_postgres"), [("up", False), ("up", True), ("worker", True)], ids=["up", "up on PostgreSQL", "worker"]
)
def test_a_task_over_which_two_processes_died_is_set_aside(
    server: Postgres, name: str, *, on_postgres: bool, tmp_path: Path
) -> None:
    """The third one lives, carries out the rest, and says what to do; doctor, status and REST show it."""
    program = [sys.executable, "-c", _DEADLY]
    url = server.url if on_postgres else None
    workflow_id = f"deadly_{name}_{on_postgres}".lower()
    definition = tmp_path / "deadly.yaml"
    definition.write_text(_DEADLY_WORKFLOW.replace("deadly", workflow_id))
    for death in range(2):
        with service(tmp_path, name, url, program) as dying:
            if death == 0:
                _calve(tmp_path, "run", str(definition), "--no-wait")
            assert dying.process.wait(60) == -signal.SIGKILL, dying.said.read_text()
    (tmp_path / "fine.yaml").write_text(_FINE_WORKFLOW)
    with service(tmp_path, name, url, program) as living:
        wait_for(lambda: "FAILED" in _calve(tmp_path, "status", workflow_id, "1", is_ok=False), 60)
        _calve(tmp_path, "run", str(tmp_path / "fine.yaml"))
        assert living.process.poll() is None
    told = _calve(tmp_path, "status", workflow_id, "1", is_ok=False)
    assert "Set aside: 2 workers died while they held it." in told
    assert f"calve restart {workflow_id} 1" in told
    assert f"{workflow_id} 1: Set aside: 2 workers died while they held it." in _calve(
        tmp_path, "doctor", "--only", "set_aside"
    )


def _calve(folder: Path, *words: str, is_ok: bool = True) -> str:
    """Run a command in a project; return what it says. It is the other processes that must be real ones."""
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
        code = entry.run(["-C", str(folder), *words])
    assert code == 0 or not is_ok, out.getvalue()
    return out.getvalue()
