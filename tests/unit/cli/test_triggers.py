"""``calve triggers``, ``activate`` and ``deactivate``."""

import json
from pathlib import Path

import pytest

from calve.app import open_project
from calve.cli.entry import run
from calve.settings import load
from calve.testing import PyIcebergWriter
from calve.triggers import SchedulerRound

HOURLY = """
Trigger: {cron: '@hourly', timezone: Europe/Berlin}
Workflow:
  id: hourly
  jobs: [{job: {id: a, type: NoOp}}]
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with a workflow that has a trigger."""
    (tmp_path / "hourly.yaml").write_text(HOURLY)
    assert call(tmp_path, "push", str(tmp_path / "hourly.yaml")) == 0
    return tmp_path


def call(project: Path, *arguments: str) -> int:
    """Run a command in a project."""
    return run(["-C", str(project), *arguments])


def turn(folder: Path) -> SchedulerRound:
    """Let the scheduler of a project take a turn."""
    with open_project(load(folder)) as project:
        by_time, *_ = project.schedulers()
        return by_time.turn()


def test_a_trigger_that_no_scheduler_has_seen_is_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no row yet, and the command says why."""
    capsys.readouterr()
    assert call(project, "triggers") == 0
    shown = capsys.readouterr()
    assert shown.err == "No scheduler has set up the triggers of hourly yet. To start one: calve up\n"


def test_that_nothing_has_a_trigger_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no workflow waits for a scheduler either."""
    assert call(tmp_path, "triggers") == 0
    assert capsys.readouterr().err == "No active workflow has a trigger.\n"


def test_signals_that_a_trigger_has_set_aside_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Since they started nothing, and nobody reads the log."""
    condition = "params.getFromSignal('go', 'day') > '2026'"  # texts have no order
    trigger = f'{{signal: {{definitions: {{go: {{}}}}, condition: "{condition}"}}}}'
    (tmp_path / "w.yaml").write_text(f"Trigger: {trigger}\nWorkflow: {{id: w, jobs: [{{job: {{id: a, type: NoOp}}}}]}}")
    assert call(tmp_path, "push", str(tmp_path / "w.yaml")) == 0
    with open_project(load(tmp_path)) as project:
        for scheduler in project.schedulers():
            scheduler.turn()
    assert call(tmp_path, "signal", "announce", "go", "day=2026-01-31") == 0
    with open_project(load(tmp_path)) as project:
        for scheduler in project.schedulers():
            scheduler.turn()
    capsys.readouterr()
    assert call(tmp_path, "triggers") == 0
    assert "set aside go 1: Param [condition]" in capsys.readouterr().out


def test_triggers_are_shown_with_their_next_time(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What it is, when it comes next, when it came last."""
    turn(project)
    capsys.readouterr()
    assert call(project, "triggers", "hourly") == 0
    shown = capsys.readouterr()
    assert "time:0" in shown.out
    assert "@hourly Europe/Berlin" in shown.out
    assert shown.err == ""
    assert call(project, "triggers", "--json") == 0
    (trigger,) = json.loads(capsys.readouterr().out)
    assert (trigger["workflow_id"], trigger["type"], trigger["last_time"]) == ("hourly", "time", None)
    assert trigger["next_time"] % 3_600_000 == 0


def test_a_workflow_that_is_not_there_has_no_triggers(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name is an error."""
    assert call(project, "triggers", "nowhere") == 1
    assert "Workflow nowhere does not exist." in capsys.readouterr().err


def test_a_workflow_is_made_inactive_and_active_again(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its triggers go at once, and come back with the next turn."""
    turn(project)
    capsys.readouterr()
    assert call(project, "deactivate", "hourly") == 0
    assert capsys.readouterr().out == "hourly: no version is active\n"
    assert call(project, "triggers", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []
    assert call(project, "activate", "hourly", "--version", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"workflow_id": "hourly", "active_version": 1}
    assert turn(project).synced == 1
    assert call(project, "activate", "hourly", "--version", "7") == 1


def test_a_trigger_by_tables_tells_how_soon_it_fired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The time from the commit to the start is shown, for people and for programs."""
    text = "Trigger: {incremental: db.t}\nWorkflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}"
    (tmp_path / "w.yaml").write_text(text)
    assert call(tmp_path, "push", str(tmp_path / "w.yaml")) == 0
    writer = PyIcebergWriter(load(tmp_path, {}))
    writer.create("db.t", {"id": "long"}, days=False)
    with open_project(load(tmp_path)) as project:
        *_, by_tables = project.schedulers()
        by_tables.turn()
        writer.append([{"id": 1}])
        assert project.watcher().poll() == 1
        assert len(by_tables.turn().started) == 1
    writer.close()
    capsys.readouterr()
    assert call(tmp_path, "triggers") == 0
    assert "s after the commit)" in capsys.readouterr().out
    assert call(tmp_path, "triggers", "--json") == 0
    (trigger,) = json.loads(capsys.readouterr().out)
    assert trigger["latency_ms"] == trigger["state"]["latest"]["latency_ms"]


def test_time_starts_nothing_where_it_is_disabled(tmp_path: Path) -> None:
    """The property of the workflow is asked when a firing comes; the firing passes."""
    workflow = {
        "id": "w",
        "time_triggers": [{"type": "INTERVAL", "interval": "2m"}],
        "steps": [{"step": {"id": "a", "type": "NoOp"}}],
    }
    text = json.dumps({"properties": {"time_trigger_disabled": True}, "workflow": workflow})
    (tmp_path / "w.json").write_text(text)
    assert call(tmp_path, "push", str(tmp_path / "w.json")) == 0
    with open_project(load(tmp_path)) as project:
        project.engine.state.activate("w", 1, project.engine.state.now() - 3_600_000)
        by_time = project.schedulers()[0]
        assert by_time.turn().started == ()
        (trigger,) = project.store.triggers.triggers()
    assert "passed_over" in trigger.state
