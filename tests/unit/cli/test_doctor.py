"""The doctor finds what is wrong."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from calve.cli import entry


def test_a_fresh_folder_is_fine_and_stays_fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any file everything has a default, and looking makes nothing."""
    assert entry.run(["-C", str(tmp_path), "doctor", "--json"]) == 0
    found = {finding["check"]: finding["status"] for finding in json.loads(capsys.readouterr().out)}
    assert set(found) == {"python", "sqlite", "settings", "java", "jars", "folders", "store", "catalog lake"}
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
    wrong = {finding["remedy"].rpartition(": ")[2]: finding for finding in found if finding["status"] == "wrong"}
    assert set(wrong) == {"home.", "spark.jars_cache.", "catalogs.lake.warehouse.", "lineage.file."}
    assert wrong["home."]["detail"].endswith(f"cannot be written: Not a directory ({tmp_path}/file/home/attempts).")
    fine = {finding["detail"].partition(" (")[0] for finding in found if finding["status"] == "ok"}
    assert fine == {"The state database", "The catalog lake", "The tables of captures"}


def test_a_folder_of_somebody_else_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "write there, or name another place in the settings: home." in said


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
    """A database that does not answer and a catalog that Spark cannot reach make the exit code 1."""
    (tmp_path / "calve.toml").write_text(
        '[store]\nurl = "postgresql+psycopg://nobody@127.0.0.1:1/none"\n'
        '[catalogs.odd]\ntype = "dynamodb"\n'
        '[catalogs.other]\nuri = "sqlite:///other.db"\nwarehouse = "w"\n'
    )
    assert entry.run(["-C", str(tmp_path), "doctor", "--only", "store", "--only", "catalogs"]) == 1
    said = capsys.readouterr().out
    assert "✗ store" in said
    assert "✗ catalog odd" in said
    assert "✓ catalog other" in said
    assert "→ Known types are" in said


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
