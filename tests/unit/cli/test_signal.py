"""``calve signal``: announce, show, list."""

import json
from pathlib import Path

import pytest

from calve.app import open_workplace
from calve.cli.entry import run
from calve.settings import load

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
    assert capsys.readouterr().out == "ready 1: it was announced before\n"
    assert call(tmp_path, "announce", "ready", "--request-id", "r", "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["seq_id"], said["status"], said["instance_id"]) == (2, "CREATED", "r")
    assert call(tmp_path, "show", "ready", "1", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["signal"]["params"] == {"day": "2026-01-31", "rows": 5, "code": "7"}
    assert shown["signal"]["payload"] == {"by": "me"}
    assert call(tmp_path, "show", "ready", "1") == 0
    text = capsys.readouterr().out
    assert "sent by: somebody outside" in text
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
    with open_workplace(load(tmp_path)) as workplace:
        scheduler = workplace.schedulers()[0]
        while scheduler.turn().synced:
            pass
    capsys.readouterr()
    assert call(tmp_path, "show", "ready") == 0
    shown = capsys.readouterr().out
    assert "started: chain/1\n" in shown
    assert "params" not in shown


def test_nothing_announced_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With what to do."""
    assert call(tmp_path, "list") == 0
    assert "calve signal announce NAME" in capsys.readouterr().err
    assert call(tmp_path, "show", "ready") == 1
    assert "There is no signal ready." in capsys.readouterr().err
    assert call(tmp_path, "show", "ready", "last") == 2
    assert call(tmp_path, "announce", "ready", "rows=1.5") == 1
    assert "a whole number" in capsys.readouterr().err
