"""Folders in which steps have run, and when they go."""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from calve.app import Project, attempt_folders, open_project
from calve.app.attempt_folders import AttemptFolders
from calve.cli import entry
from calve.engine import RunEnd, RunStatus
from calve.settings import load

NOW = 1_800_000_000.0
HOUR = 3_600.0
BOTH = r"""
Workflow:
  id: w
  jobs:
    - job: {id: good, type: Shell, shell: {script: "echo made > file"}}
    - job: {id: bad, type: Shell, shell: {script: "test \"$$OK\" = yes"}, retry_policy: {error_retry_limit: 0}}
  dag: sequential
"""


@dataclass
class Known:
    """Tells what it was told."""

    ends: dict[str, RunEnd] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def run_ends(self, attempt_uuids: Sequence[str]) -> Mapping[str, RunEnd]:
        """Return what is known."""
        self.asked.append(len(attempt_uuids))
        return {uuid: self.ends[uuid] for uuid in attempt_uuids if uuid in self.ends}


@pytest.fixture
def known() -> Known:
    """Give runs of every kind."""
    hour, minute = int((NOW - 2 * HOUR) * 1_000), int((NOW - 60) * 1_000)
    return Known(
        {
            "running": RunEnd(RunStatus.IN_PROGRESS, None),
            "queued": RunEnd(RunStatus.CREATED, None),
            "succeeded": RunEnd(RunStatus.SUCCEEDED, minute),
            "failed": RunEnd(RunStatus.FAILED, minute),
            "failed-long-ago": RunEnd(RunStatus.FAILED, hour),
            "stopped-long-ago": RunEnd(RunStatus.STOPPED, hour),
        }
    )


def folders(known: Known, tmp_path: Path) -> AttemptFolders:
    """Make a folder for each run, and two of which nothing is known."""
    for name in (*known.ends, "foreign", "foreign-long-ago"):
        (tmp_path / name / "work").mkdir(parents=True)
        age = 2 * HOUR if name == "foreign-long-ago" else 0
        os.utime(tmp_path / name, (NOW - age, NOW - age))
    return AttemptFolders(tmp_path, HOUR, known, now=lambda: NOW)


def left(tmp_path: Path) -> set[str]:
    """Return what is still there."""
    return {path.name for path in tmp_path.iterdir()}


def test_what_nobody_needs_goes(known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of runs that succeeded at once, of others after a while, and never those of runs that are not over."""
    monkeypatch.setattr(attempt_folders, "BATCH", 3)
    found = folders(known, tmp_path)
    assert len(list(found.old())) == 4
    assert found.sweep() == 4
    assert left(tmp_path) == {"running", "queued", "failed", "foreign"}
    assert found.sweep() == 0
    assert known.asked == [3, 3, 2, 3, 3, 2, 3, 1]


def test_a_folder_that_cannot_be_removed_is_tried_again(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others go; one that another worker was faster with does not count."""
    found = folders(known, tmp_path)
    remove = shutil.rmtree

    def broken(path: Path) -> None:
        if path.name == "succeeded":
            raise PermissionError(path)
        if path.name == "foreign-long-ago":
            remove(path)
        remove(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", broken)
        assert found.sweep() == 2
    assert left(tmp_path) == {"running", "queued", "failed", "foreign", "succeeded"}
    assert found.sweep() == 1
    assert attempt_folders._touched(tmp_path / "gone") == 0.0


def test_where_no_step_has_run_there_is_nothing(known: Known, tmp_path: Path) -> None:
    """The folder need not be there."""
    assert AttemptFolders(tmp_path / "none", HOUR, known).sweep() == 0


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project with a workflow that fails, unless it is told otherwise."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "w.yaml").write_text(BOTH)
    return tmp_path


def test_a_worker_removes_the_folders_of_what_succeeded(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a run that failed stay for whoever looks, until calve prune finds them too old."""
    assert entry.run(["run", "w.yaml"]) == 1
    assert len(left(project / ".calve" / "attempts")) == 2
    monkeypatch.setenv("OK", "yes")
    monkeypatch.setenv("CALVE_WORKER__ENVIRONMENT", "OK")
    assert entry.run(["run", "w.yaml"]) == 0
    assert len(left(project / ".calve" / "attempts")) == 2


def test_prune_removes_folders(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many as a dry run says."""
    entry.run(["run", "w.yaml"])
    (project / "calve.toml").write_text('[worker]\nkeep_files = "1s"\n')
    with open_project(load(project)) as opened:
        _age(opened)
    for options in (["--dry-run"], []):
        capsys.readouterr()
        assert entry.run(["prune", "--json", *options]) == 0
        assert json.loads(capsys.readouterr().out)["attempt_folders"] == 2
    assert left(project / ".calve" / "attempts") == set()
    assert entry.run(["prune"]) == 0
    assert "attempt folders" in capsys.readouterr().out


def _age(project: Project) -> None:
    """Let all runs have ended long ago."""
    with project.store._database.write("test") as connection:
        connection.exec_driver_sql("UPDATE run SET ended_at = 1")
