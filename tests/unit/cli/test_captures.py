"""``calve plan`` and ``capture`` of what is no table, as a user sees it."""

from pathlib import Path

import pytest

from calve import settings
from calve.cli import entry
from calve.lake import Lake

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}]}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project whose lake has a view."""
    lake = Lake(settings.load(tmp_path, {}))
    lake.catalog("lake").register_view(lake.parse("db.v"), "SELECT a FROM db.events", SCHEMA, {})
    lake.close()
    return tmp_path


@pytest.mark.parametrize("command", ["plan", "capture"])
def test_a_view_is_said_to_be_one(project: Path, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And what to capture instead."""
    assert entry.run(["-C", str(project), command, "db.v", "--consumer", "c"]) == 1
    assert capsys.readouterr().err == (
        "error: lake.db.v is a view, not a table: a view has no snapshots to capture or write to.\n"
        "  → Capture the tables that it reads (db.events), or write its rows into a table and capture that.\n"
    )


@pytest.mark.parametrize("command", ["plan", "capture"])
def test_a_catalog_that_is_none_is_said_to_be_none(
    project: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """And which ones there are."""
    assert entry.run(["-C", str(project), command, "nope.db.t", "--consumer", "c"]) == 1
    assert capsys.readouterr().err == (
        "error: There is no table nope.db.t: nope is not a catalog, and the catalog lake has no namespace nope.db.\n"
        "  → The settings define these catalogs: lake.\n"
    )


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the setting that names another one."""
    (tmp_path / "file").touch()
    (tmp_path / "calve.toml").write_text('home = "file/home"\n')
    assert entry.run(["-C", str(tmp_path), "status"]) == 1
    assert capsys.readouterr().err == (
        f"error: The state database cannot be written: Not a directory ({tmp_path}/file/home).\n"
        "  → Move the file that is in the way, or choose another location with the setting home, or store.url.\n"
    )
