"""The doctor finds what is wrong."""

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.bubblewrap import bubblewrap

from calve.cli import entry


def test_a_fresh_folder_is_fine_and_stays_fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any file everything has a default, and looking makes nothing."""
    assert entry.run(["-C", str(tmp_path), "doctor", "--json"]) == 0
    found = {finding["check"]: finding["status"] for finding in json.loads(capsys.readouterr().out)}
    checks = {"python", "sqlite", "settings", "java", "jars", "folders", "store", "catalog lake", "tables"}
    boundaries = {f"steps: {name}" for name in ("state", "settings", "environment", "users", "sandbox", "server")}
    assert set(found) == checks | boundaries
    assert "wrong" not in found.values()
    assert list(tmp_path.iterdir()) == []


def test_one_check_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``--only`` leaves the rest out."""
    assert entry.run(["-C", str(tmp_path), "doctor", "--only", "java"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_folder_that_cannot_be_made_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Below a file there is none; each setting that names such a place is told."""
    (tmp_path / "file").touch()
    (tmp_path / "calve.toml").write_text(
        'home = "file/home"\n[store]\nurl = "sqlite:///state.db"\n[capture]\nlocation = "file"\n'
        '[spark]\njars_cache = "file/jars"\n[lineage]\nfile = "file/lineage.jsonl"\n'
        '[catalogs.lake]\nuri = "sqlite:///lake.db"\nwarehouse = "file/w"\n'
    )
    assert entry.run(["-C", str(tmp_path), "doctor", "--only", "folders", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    wrong = {finding["remedy"].rpartition(" setting ")[2]: finding for finding in found if finding["status"] == "wrong"}
    assert set(wrong) == {"home.", "spark.jars_cache.", "catalogs.lake.warehouse.", "lineage.file."}
    assert wrong["home."]["detail"].endswith(f"cannot be written: Not a directory ({tmp_path}/file/home/attempts).")
    fine = {finding["detail"].partition(" (")[0] for finding in found if finding["status"] == "ok"}
    assert fine == {"The state database", "The catalog lake", "The tables of captures"}


def test_a_folder_of_someone_else_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rights are tried, not guessed: as another user, where we are root."""
    entry.run(["-C", str(tmp_path), "doctor", "--only", "folders"])  # what it imports may not be there for all
    capsys.readouterr()
    with TemporaryDirectory() as folder:
        project = Path(folder)
        (project / "home").mkdir(mode=0o555)
        (project / "calve.toml").write_text('home = "home"\n[spark]\njars_cache = "home/jars"\n')
        project.chmod(0o755)
        with _as_nobody():
            code = entry.run(["-C", folder, "doctor", "--only", "folders"])
        said = capsys.readouterr().out
    assert code == 1
    assert f"✗ folders  The state cannot be written: Permission denied ({folder}/home)." in said
    assert "write permission, or choose another location with the setting home." in said


@contextmanager
def _as_nobody() -> Iterator[None]:
    """Be another user for a while, if we are root, whom nothing is refused."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_what_is_wrong_is_said_with_a_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A database and a catalog that do not answer make the exit code 1."""
    (tmp_path / "calve.toml").write_text(
        '[store]\nurl = "postgresql+psycopg://nobody@127.0.0.1:1/none"\n'
        '[catalogs.odd]\nuri = "thrift://127.0.0.1:1"\n'
        '[catalogs.other]\nuri = "sqlite:///other.db"\nwarehouse = "w"\n'
    )
    assert entry.run(["-C", str(tmp_path), "doctor", "--only", "store", "--only", "catalogs"]) == 1
    said = capsys.readouterr().out
    assert "✗ store" in said
    assert "✗ catalog odd" in said
    assert "✓ catalog other" in said
    assert "→ Check that the metastore runs" in said


def test_a_wrong_setting_fails_its_check_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Checks that need no settings still run."""
    (tmp_path / "calve.toml").write_text("nonsense = 1")
    assert entry.run(["-C", str(tmp_path), "doctor", "--only", "python", "--only", "settings"]) == 1
    said = capsys.readouterr().out
    assert "✓ python" in said
    assert "✗ settings" in said


def test_an_existing_lake_is_opened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A catalog and a store that are there are really reached."""
    import sqlite3

    for file in ("lake.db", "state.db"):
        sqlite3.connect(tmp_path / file).close()
        (tmp_path / file).touch()
    (tmp_path / "calve.toml").write_text(
        '[store]\nurl = "sqlite:///state.db"\n[catalogs.lake]\nuri = "sqlite:///lake.db"\nwarehouse = "w"\n'
    )
    assert entry.run(["-C", str(tmp_path), "doctor", "--only", "store", "--only", "catalogs"]) == 0
    assert "✓ catalog lake  sql" in capsys.readouterr().out


def _isolation(folder: Path, capsys: pytest.CaptureFixture[str], code: int = 0) -> list[str]:
    capsys.readouterr()
    assert entry.run(["-C", str(folder), "doctor", "--only", "isolation"]) == code
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_the_boundaries_of_a_fresh_folder_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which of them hold without any setting, and how to get the others."""
    open_server = "a server on a loopback address requires no sign-in, also not from programs of steps"
    assert _isolation(tmp_path, capsys) == [
        "✓ steps: state holds: only its owner can read the state, the database and the key",
        "✓ steps: settings holds: calve.toml has no password of a database",
        "✓ steps: environment holds: programs of steps only get the variables of the list",
        (
            "! steps: users does not hold: "
            "programs of all namespaces run as the worker's user, and can read each other's files"
        ),
        "→ Name users in worker.run_as, or set worker.sandbox to bubblewrap.",
        "! steps: sandbox does not hold: programs of steps can see all files and processes of their user",
        "→ Set worker.sandbox to bubblewrap.",
        f"! steps: server does not hold: {open_server}",
        "→ Set access.required to true if steps are not trusted.",
        "! tables does not hold: every namespace may use every table",
        "→ Grant tables to namespaces in [access.tables], and set its policy to closed.",
    ]


def test_boundaries_that_settings_give_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The sandbox is tried, not believed."""
    program = bubblewrap()
    (tmp_path / "calve.toml").write_text(
        '[worker]\nsandbox = "bubblewrap"\nenvironment = ["AWS_*"]\n[access]\nrequired = true\n'
        '[connections]\na = "postgresql://ann:canary@host/db"\n'
    )
    told = _isolation(tmp_path, capsys)
    assert [line for line in told if line.startswith("✓")] == [
        "✓ steps: state holds: only its owner can read the state, the database and the key",
        "✓ steps: settings holds: programs of steps cannot read calve.toml",
        "✓ steps: environment holds: programs of steps only get the variables of the list, and AWS_*",
        f"✓ steps: sandbox holds: programs of steps run in a sandbox ({program})",
        "✓ steps: server holds: programs of steps must sign in to the server, like all callers",
    ]


@pytest.mark.parametrize("policy", ["open", "closed", "auto"])
def test_whether_tables_are_granted_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """By the setting; or, unless it says so, by whether anybody has a role in a namespace only."""
    (tmp_path / "calve.toml").write_text(f'[access.tables]\npolicy = "{policy}"\n')
    monkeypatch.setattr("sys.stdin", io.StringIO("a long enough password\n"))
    assert entry.run(["-C", str(tmp_path), "user", "add", "ann", "-g", "viewer@sales"]) == 0
    told = [line for line in _isolation(tmp_path, capsys) if "tables " in line]
    expected = "! tables does not hold: every namespace may use every table"
    granted = "✓ tables holds: a namespace may use only the tables that [access.tables] grants it"
    assert told[0] == (expected if policy == "open" else granted)


def test_boundaries_that_are_open_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """State that others can read, a password in the file of the settings, a list that names everything."""
    (tmp_path / ".calve").mkdir()
    (tmp_path / ".calve").chmod(0o755)
    (tmp_path / "calve.toml").write_text(
        '[worker]\nenvironment = ["*"]\n[connections]\na = "postgresql://ann:canary@host/db"\nb = "no address"\n'
    )
    told = _isolation(tmp_path, capsys)
    assert f"! steps: state does not hold: others can read {tmp_path}/.calve" in told
    assert "! steps: settings does not hold: calve.toml has a password, and programs of steps can read it" in told
    assert "! steps: environment does not hold: programs of steps only get the variables of the list, and *" in told


def test_a_sandbox_that_this_machine_cannot_make_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its program is missing, or may not do what it needs to."""
    (tmp_path / "bwrap").write_text("#!/bin/sh\necho No permissions >&2\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CALVE_WORKER__SANDBOX", "bubblewrap")
    assert "bwrap is not on PATH" in _isolation(tmp_path, capsys, 1)[0]
    (tmp_path / "bwrap").chmod(0o700)
    assert "cannot create a sandbox: No permissions" in " ".join(_isolation(tmp_path, capsys, 1))
