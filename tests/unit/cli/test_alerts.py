"""``calve alerts``: what was told, and whether a channel works."""

import json
from pathlib import Path

import pytest
from tests.http_receiver import receiving

from calve.alerts import Alert, Message, Route
from calve.cli import entry
from calve.definition.model import AlertType
from calve.settings import load
from calve.store import open_store


def test_a_channel_is_tried_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says that nothing has happened; a channel that is not there is told of with those that are."""
    with receiving() as receiver:
        (tmp_path / "calve.toml").write_text(f'[alerts.channels.hook]\ntype = "webhook"\nurl = "{receiver.url}"\n')
        assert entry.run(["-C", str(tmp_path), "alerts", "test", "hook", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["id"] == receiver.documents[0]["id"]
        assert entry.run(["-C", str(tmp_path), "alerts", "test", "hook"]) == 0
        assert "hook accepted the message" in capsys.readouterr().out
        receiver.answers = [500]
        assert entry.run(["-C", str(tmp_path), "alerts", "test", "hook"]) == 1
        assert "responded with 500" in capsys.readouterr().err
    assert entry.run(["-C", str(tmp_path), "alerts", "test", "phone"]) == 1
    assert "(channels: hook)" in capsys.readouterr().err


def test_that_nothing_was_told_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Instead of an empty table."""
    assert entry.run(["-C", str(tmp_path), "alerts"]) == 0
    assert capsys.readouterr().err.startswith("There are no alerts.")


def test_what_was_told_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With why something could not be sent."""
    (tmp_path / "calve.toml").write_text("")
    with open_store(load(tmp_path, {}).store.url) as store:
        message = Message(Alert("k", AlertType.STEP_FAILURE, "w", 5, title="w 1 failed"), Route("hook", ("x",)))
        store.alerts.take("t", store.alerts.position("t", 0), 1, [message], 7)
        store.alerts.failed(message.id, "away", None)
    assert entry.run(["-C", str(tmp_path), "alerts"]) == 0
    assert "w 1 failed (away)" in capsys.readouterr().out
    assert entry.run(["-C", str(tmp_path), "alerts", "--status", "given_up", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["status"], found["error"], found["alert"]["title"]) == ("given_up", "away", "w 1 failed")
    assert entry.run(["-C", str(tmp_path), "alerts", "--status", "sent", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
