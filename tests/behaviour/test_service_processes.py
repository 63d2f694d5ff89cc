"""Processes that run for long, and the state database that goes away: while it restarts, or for good."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import psycopg
import pytest
from tests.engines import wait_for

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
def service(folder: Path, name: str, url: str | None = None) -> Iterator[Service]:
    """Start a process in a project's folder."""
    said = folder / f"{name}.log"
    if url is not None:
        (folder / "calve.toml").write_text(f'[store]\nurl = "{url}"\n')
    command = [sys.executable, "-m", "calve", "-C", str(folder), *SERVICES[name]]
    with (
        said.open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, text=True) as process,
    ):
        try:
            yield Service(process, said)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """Give a PostgreSQL that can be stopped."""
    with throwaway_postgres() as server:
        yield server
        if not (server.folder / "data" / "postmaster.pid").exists():
            server.start()


@pytest.mark.parametrize("name", SERVICES)
def test_a_process_that_starts_while_the_database_restarts_waits_and_goes_on(
    server: Postgres, name: str, tmp_path: Path
) -> None:
    """It says what it waits for; once the database answers it is as if nothing had been."""
    server.stop("fast")
    with service(tmp_path, name, server.url) as waiting:
        wait_for(lambda: waiting.says("Waiting until it answers"), 120)
        server.start()
        wait_for(lambda: waiting.says(" is ready") or waiting.says("calve answers") or waiting.says("calve is up"), 120)
        assert waiting.process.poll() is None, waiting.said.read_text()
        assert waiting.end(signal.SIGTERM) == 0, waiting.said.read_text()


def test_whoever_waits_can_be_interrupted(server: Postgres, tmp_path: Path) -> None:
    """Ctrl-C ends it without a trace of anything."""
    server.stop("fast")
    with service(tmp_path, "scheduler", server.url) as waiting:
        wait_for(lambda: waiting.says("Waiting until it answers"), 120)
        assert waiting.end(signal.SIGINT) == 130
        assert "Traceback" not in waiting.said.read_text()
    server.start()


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
        wait_for(lambda: running.says("is ready") or running.says("To end: Ctrl-C."), 120)
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
