"""``calve signal``: announce, show, list."""

import json
from pathlib import Path

import pytest

from calve.app import open_project
from calve.cli.entry import run
from calve.settings import load
from calve.testing import PyIcebergWriter
from calve.triggers.signals import ValidThrough

CHAIN = """
Trigger: {signal: ready}
Workflow:
  id: chain
  jobs: [{job: {id: a, type: NoOp}}]
"""


def call(project: Path, *arguments: str) -> int:
    """Run a command in a project."""
    return run(["-C", str(project), "signal", *arguments])


def test_a_signal_is_announced_shown_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are numbers, texts are texts."""
    assert call(tmp_path, "announce", "ready", "day=2026-01-31", "rows=5", 'code="7"', "--payload", "by=me") == 0
    assert capsys.readouterr().out == "ready 1\n"
    assert call(tmp_path, "announce", "ready", 'code="7"', "rows=5", "day=2026-01-31") == 0
    assert capsys.readouterr().out == "ready 1: announced before\n"
    assert call(tmp_path, "announce", "ready", "--request-id", "r", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["seq_id"], said["status"], said["instance_id"]) == (2, "CREATED", "r")
    assert call(tmp_path, "show", "ready", "1", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["signal"]["params"] == {"day": "2026-01-31", "rows": 5, "code": "7"}
    assert shown["signal"]["payload"] == {"by": "me"}
    assert call(tmp_path, "show", "ready", "1") == 0
    text = capsys.readouterr().out
    assert "sent by: a user or program" in text
    assert "started: nothing" in text
    assert "rows=5" in text
    assert call(tmp_path, "list", "ready", "--limit", "1", "--json") == 0
    assert [each["seq_id"] for each in json.loads(capsys.readouterr().out)] == [2]
    assert call(tmp_path, "list") == 0
    assert "rows=5" in capsys.readouterr().out


def test_what_a_signal_started_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By workflow and instance."""
    (tmp_path / "chain.yaml").write_text(CHAIN)
    assert run(["-C", str(tmp_path), "push", str(tmp_path / "chain.yaml")]) == 0
    assert call(tmp_path, "announce", "ready") == 0
    with open_project(load(tmp_path)) as project:
        scheduler = project.schedulers()[0]
        while scheduler.turn().synced:
            pass
    capsys.readouterr()
    assert call(tmp_path, "show", "ready") == 0
    shown = capsys.readouterr().out
    assert "started: chain/1\n" in shown
    assert "params" not in shown


def test_a_workflow_may_be_closed_to_signals(tmp_path: Path) -> None:
    """By a property; and whoever schedules looks at tables that someone waits for, too."""
    (tmp_path / "chain.yaml").write_text(CHAIN.replace("  id: chain", "  id: chain\n  signal_trigger_disabled: true"))
    assert run(["-C", str(tmp_path), "push", str(tmp_path / "chain.yaml")]) == 0
    assert call(tmp_path, "announce", "ready") == 0
    with open_project(load(tmp_path)) as project:
        scheduler = project.schedulers()[0]
        while scheduler.turn().synced:
            pass
        assert any(isinstance(each, ValidThrough) for each in project.background_services())
        assert project.signals.lineage("ready").started == ()


def test_a_table_is_told_to_be_complete(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In its property, and by a signal."""
    writer = PyIcebergWriter(load(tmp_path))
    writer.create("db.t", {"id": "long", "day": "int"}, days=True)
    assert call(tmp_path, "valid-through", "db.t", "1970-01-01T00:00:05Z") == 0
    assert capsys.readouterr().out == "db.t is complete through 1970-01-01 00:00:05Z\n"
    assert call(tmp_path, "valid-through", "db.t", "5000", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["name"], said["params"], said["status"]) == ("vtts/db.t", {"through": 5000}, "DUPLICATED")
    with open_project(load(tmp_path)) as project:
        loaded = project.lake.catalog(project.lake.default_catalog).load(project.lake.parse("db.t"))
    assert loaded.metadata["properties"]["calve.valid-through"] == "5000"
    writer.close()
    assert call(tmp_path, "valid-through", "db.t", "soon") == 1
    assert call(tmp_path, "valid-through", "db.missing", "5") == 1


def test_nothing_announced_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do."""
    assert call(tmp_path, "list") == 0
    assert "calve signal announce NAME" in capsys.readouterr().err
    assert call(tmp_path, "show", "ready") == 1
    assert "Signal ready does not exist." in capsys.readouterr().err
    assert call(tmp_path, "show", "ready", "last") == 2
    assert call(tmp_path, "announce", "ready", "rows=1.5") == 1
    assert "must be a text or a whole number" in capsys.readouterr().err
