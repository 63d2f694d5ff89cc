"""``calve restart --latest``: a fix is pushed, and the instance goes on; every command that is offered works."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calve.cli import entry
from calve.settings import load
from calve.testing import PyIcebergWriter

Calve = Callable[..., str]

CHAIN = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: load, type: Shell, shell: {script: "echo loaded >> loaded.txt"}}
    - job: {id: publish, type: Shell, shell: {script: "exit 7"}, retry_policy: {error_retry_limit: 0}}
"""
CAPTURING = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.events]}}
    - job:
        id: write
        type: Shell
        shell: {script: "echo ${capture.capture_id} >> written.txt; exit 7"}
        retry_policy: {error_retry_limit: 0}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
"""
FIXED = CAPTURING.replace("; exit 7", "")


@pytest.fixture
def calve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Calve:
    """Give what runs a command in a new folder, and returns what it printed, on both ways."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> str:
        capsys.readouterr()
        result = entry.run(list(words))
        said = capsys.readouterr()
        assert result == code, said.out + said.err
        return said.out + said.err

    return run


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[PyIcebergWriter]:
    """Give a table db.events of two rows."""
    writer = PyIcebergWriter(load(tmp_path, {}))
    writer.create("db.events", {"id": "long"}, days=False)
    writer.append([{"id": 1}, {"id": 2}])
    yield writer
    writer.close()


def pushed(calve: Calve, text: str) -> None:
    """Push a definition."""
    Path("w.yaml").write_text(text)
    calve("push", "w.yaml")


def offered(said: str) -> list[list[str]]:
    """Return the commands that a text offers."""
    return [
        shlex.split(found)
        for found in re.findall(
            r"calve ((?:restart|status|logs|show|unblock)[^\n`,;]*?)(?:\.?$|\. )", said, re.MULTILINE
        )
    ]


def test_a_fix_continues_where_the_instance_stopped(calve: Calve, tmp_path: Path) -> None:
    """What succeeded is kept, and the plan says so before anything runs."""
    text = CHAIN.replace("loaded.txt", str(tmp_path / "loaded.txt"))
    pushed(calve, text)
    said = calve("run", "w", code=1)
    assert "→ calve restart w 1" in said
    pushed(calve, text.replace("exit 7", "echo done"))
    plan = calve("restart", "w", "1", "--latest", "--dry-run")
    assert plan.splitlines() == [
        "Version 2, before: 1",
        "  load     kept        SUCCEEDED, unchanged",
        "  publish  runs again  was FATALLY_FAILED",
    ]
    document = json.loads(calve("restart", "w", "1", "--latest", "--dry-run", "--json"))
    assert (document["workflow_version_id"], document["restart_version_id"], document["refusal"]) == (1, 2, "")
    assert [step["fate"] for step in document["steps"]] == ["KEPT", "RUNS_AGAIN"]
    said = calve("restart", "w", "1", "--latest")
    assert "publish  runs again" in said
    assert "w 1 run 2 SUCCEEDED" in said
    assert (tmp_path / "loaded.txt").read_text() == "loaded\n"


def test_what_the_commands_offer_works(calve: Calve) -> None:
    """After a failure: the log, and the restart, which fails for the same reason."""
    pushed(calve, CHAIN)
    said = calve("run", "w", code=1)
    commands = offered(said)
    assert [words[0] for words in commands] == ["logs", "restart"]
    calve(*commands[0])
    assert "publish FATALLY_FAILED" in calve(*commands[1], code=1)


def test_options_that_exclude_each_other_are_refused(calve: Calve) -> None:
    """With a sentence, and the exit code of a wrong usage."""
    assert "either --from-beginning or" in calve("restart", "w", "1", "--latest", "--from-beginning", code=2)
    assert "--keep needs --latest" in calve("restart", "w", "1", "--keep", "a", code=2)


def test_what_is_refused_is_reported_by_a_dry_run(calve: Calve) -> None:
    """And so is an instance with nothing to do."""
    pushed(calve, "Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}")
    calve("run", "w")
    assert "The restart would be refused: All steps of w instance 1 are complete" in calve(
        "restart", "w", "1", "--latest", "--dry-run"
    )
    assert "changes none of them" in calve("restart", "w", "1", "--latest", code=1)


def test_a_capture_that_was_abandoned_offers_what_works(calve: Calve, writer: PyIcebergWriter, tmp_path: Path) -> None:
    """The older instance cannot go on with it: its rows came with the newer one."""
    written = tmp_path / "written.txt"
    pushed(calve, CAPTURING.replace("written.txt", str(written)))
    calve("run", "w", code=1)
    calve("run", "w", code=1)
    pushed(calve, FIXED.replace("written.txt", str(written)))
    said = calve("restart", "w", "1", "--latest", code=1)
    assert "taken by w instance 2, which contains the same changes" in said
    status, restart = offered(said)
    assert status == ["status", "w", "2"]
    assert "w 2 FAILED" in calve(*status)
    assert restart == ["restart", "w", "1", "--latest", "--step", "capture"]
    writer.append([{"id": 3}])
    assert "SUCCEEDED" in calve(*restart)
    said = calve("restart", "w", "2", code=1)
    assert "taken by w instance 1, which contains the same changes and is committed" in said
    again = offered(said)[1]
    assert again == ["restart", "w", "2", "--step", "capture"]
    said = calve(*again)
    assert "capture SUCCEEDED: Nothing changed in db.events since snapshot " in said
    assert "write UNSATISFIED: Not run: capture: Nothing changed in db.events since snapshot " in said
    taken = written.read_text().split()
    assert len(taken) == len(set(taken)) == 3


def test_a_run_whose_capture_was_abandoned_meanwhile_offers_no_restart_that_fails(
    calve: Calve, writer: PyIcebergWriter
) -> None:
    """But what to do instead."""
    assert writer
    pushed(calve, CAPTURING)
    calve("run", "w", code=1)
    calve("capture", "db.events", "--consumer", "w/capture", "--supersede")
    said = calve("restart", "w", "1", code=1)
    assert "calve show " in said
    commands = offered(said)
    for words in commands:
        if words[0] == "show":
            calve(*words)
    assert commands[-1] == ["restart", "w", "1", "--step", "capture"]


def test_what_found_nothing_says_so_everywhere(calve: Calve, writer: PyIcebergWriter) -> None:
    """In what is printed while it runs, in the status, the log, and for programs."""
    assert writer
    pushed(calve, FIXED)
    calve("run", "w")
    said = calve("run", "w")
    found = re.search(r"Nothing changed in db\.events since snapshot \d+ \([-\d]+ [:\d]+ UTC\)\.", said)
    assert found is not None, said
    assert f"write UNSATISFIED: Not run: capture: {found[0]}" in said
    assert f"Not run: capture: {found[0]}" in calve("status", "w", "2")
    assert found[0] in calve("logs", "w", "2", "capture")
    assert f"write has written nothing. Not run: capture: {found[0]}" in calve("logs", "w", "2", "write")
    steps = json.loads(calve("status", "w", "2", "--json"))["steps"]
    assert [step["message"] for step in steps] == [
        found[0],
        f"Not run: capture: {found[0]}",
        f"Not run: capture: {found[0]}",
    ]
