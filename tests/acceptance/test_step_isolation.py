"""A step cannot become calve: what programs of steps find of the worker, of its state, and of each other.

Issue 16, A.2. Each test is an attack: a workflow that its author may push, run by real processes.
"""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

CANARY = "cAnArY"
SECRETS = {
    "CALVE_SECRETS__OTHER__PASSWORD": f"{CANARY}-secret",
    "CALVE_CONNECTIONS__WAREHOUSE": f"postgresql+psycopg://ann:{CANARY}-connection@127.0.0.1:1/none",
    "CALVE_TOKEN": f"{CANARY}-token",
    "AWS_SECRET_ACCESS_KEY": f"{CANARY}-aws",
}
PROC = r"""
pid=$$
while [ "$pid" -gt 1 ]; do
  read -r stat < /proc/$pid/stat; rest=${stat##*) }; set -- $rest
  echo "PROCESS $pid $(tr '\0' ' ' < /proc/$pid/cmdline)"
  tr '\0' '\n' < /proc/$pid/environ
  [ "$pid" = "$TOP" ] && break
  pid=$2
done
"""


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a worker that holds secrets."""
    return {**os.environ, **SECRETS, **more}  # noqa: TID251 - a worker's


def shell(script: str, **env: str) -> str:
    """Return a workflow of one Shell step."""
    step = {"script": script.replace("$", "$$"), "env": env}
    return json.dumps(
        {"Workflow": {"id": "mine.attack", "jobs": [{"job": {"id": "a", "type": "Shell", "shell": step}}]}}
    )


@dataclass(frozen=True, slots=True)
class Found:
    """What came of a workflow."""

    code: int
    told: str
    """What the command printed."""
    log: str
    """What the step printed."""


def run(folder: Path, workflow: str, **more: str) -> Found:
    """Run a workflow of one step in a process of its own."""
    (folder / "w.json").write_text(workflow)
    ran = calve(folder, "run", "w.json", **more)
    url = {name: value for name, value in more.items() if name == "CALVE_STORE__URL"}
    number = ran.stdout.split()[1]
    log = calve(folder, "logs", "mine.attack", number, "a", **url).stdout
    return Found(ran.returncode, ran.stdout + ran.stderr, log)


def calve(folder: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "calve", *command],
        cwd=folder,
        env=environment(**more),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@contextmanager
def running(folder: Path, *command: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a command that runs until it is ended, and wait until it says that it is up."""
    process = subprocess.Popen(
        [sys.executable, "-m", "calve", *command], cwd=folder, env=environment(), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def test_no_process_above_a_step_shows_what_the_worker_was_given(tmp_path: Path) -> None:
    """Neither secrets, nor connections, nor the token, nor keys of others stand in /proc/PID/environ."""
    found = run(tmp_path, shell(PROC))
    assert found.code == 0, found.told
    assert "calve run" in found.log  # it has seen the worker
    assert CANARY not in found.log


@pytest.mark.parametrize("command", [("up", "--port", "0"), ("server", "--port", "0")])
def test_no_command_that_keeps_running_shows_what_it_was_given(tmp_path: Path, command: tuple[str, ...]) -> None:
    """Nor does the environment of a process that waits for work."""
    with running(tmp_path, *command) as process:
        assert CANARY.encode() not in Path(f"/proc/{process.pid}/environ").read_bytes()


def test_workers_that_up_starts_get_their_secrets_and_show_none(tmp_path: Path, postgres_state: str) -> None:
    """They are handed over by a pipe."""
    (tmp_path / "w.json").write_text(
        shell('test "$P" = cAnArY-secret && touch given', P="${p}")
        .replace('"type"', '"p<secret>": "other.password", "type"')
        .replace("mine.attack", "other.attack")
    )
    settings = {"CALVE_STORE__URL": postgres_state}
    told = environment(**settings)
    del told["CALVE_TOKEN"]
    process = subprocess.Popen(
        [sys.executable, "-m", "calve", "up", "--processes", "1", "--port", "0"],
        cwd=tmp_path,
        env=told,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline()
        subprocess.run(
            [sys.executable, "-m", "calve", "run", "w.json"], cwd=tmp_path, env=told, check=True, timeout=120
        )
        for pid in (process.pid, *_children(process.pid)):
            shown = Path(f"/proc/{pid}/environ").read_bytes()
            assert CANARY.encode() not in shown
            assert postgres_state.encode() not in shown
    finally:
        process.terminate()
        process.communicate(timeout=60)


def _children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(pid):
            found.append(int(path.parent.name))
    assert found
    return found


def test_a_step_gets_only_variables_that_are_on_the_list(tmp_path: Path) -> None:
    """PATH, HOME and their like; what worker.environment names; what its own env gives."""
    found = run(
        tmp_path,
        shell("env; env > env.txt", GIVEN="by-the-step"),
        CALVE_WORKER__ENVIRONMENT="NAMED OTHER_*",
        NAMED="named",
        OTHER_ONE="matched",
        UNKNOWN="unknown",
    )
    assert found.code == 0, found.told
    assert CANARY not in found.log
    assert "unknown" not in found.log
    for line in ("GIVEN=by-the-step", "NAMED=named", "OTHER_ONE=matched", f"PATH={os.environ['PATH']}"):  # noqa: TID251 - a worker's
        assert line in found.log


def test_only_the_owner_can_read_the_state(tmp_path: Path) -> None:
    """The folder, the database with its companions, and the key of secrets; also where they were open before."""
    home = tmp_path / ".calve"
    home.mkdir(mode=0o755)
    (home / "state.db").touch(mode=0o644)
    (home / "secret.key").touch(mode=0o644)
    (home / "secret.key").unlink()
    assert run(tmp_path, shell("true")).code == 0
    subprocess.run(
        [sys.executable, "-m", "calve", "secret", "set", "x"],
        cwd=tmp_path,
        env={**os.environ},  # noqa: TID251 - as a user
        input="text",
        text=True,
        check=True,
        timeout=60,
    )
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir() if path.is_file()}
    assert {"state.db", "secret.key"} <= set(files)
    assert set(files.values()) == {0o600}, files


def test_a_sql_step_cannot_make_itself_administrator(tmp_path: Path) -> None:
    """By a connection to the state database; the ways to write its address stand in tests/unit/steps/test_sql.py."""
    query = "INSERT INTO access_user (name) VALUES ('attacker')"
    found = run(tmp_path, sql("sqlite:///.calve/state.db", query))
    assert found.code == 1
    assert "sqlite:///" in found.log + found.told
    assert "is calve's state database" in found.log + found.told


def sql(url: str, query: str, **more: object) -> str:
    """Return a workflow of one SQL step."""
    step = {"url": url, "query": query, **more}
    return json.dumps({"Workflow": {"id": "mine.attack", "jobs": [{"job": {"id": "a", "type": "SQL", "sql": step}}]}})
