"""``calve prune``."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from calve.app import open_project
from calve.app.scheduler import ages_of
from calve.cli.entry import run
from calve.engine import Announcement
from calve.retention import Pruner, RecordKind
from calve.settings import RetentionSettings, load

DAY = 86_400_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with two old signals."""
    with open_project(load(tmp_path)) as project:
        for number in (1, 2):
            project.store.engine.announce(Announcement("x", {"n": number}, at=1))
    return tmp_path


def told(project: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, int]:
    """Return how many rows of each kind go."""
    capsys.readouterr()
    assert run(["-C", str(project), "prune", "--json", *options]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["is_dry_run"] is bool(options)
    return {each["kind"]: each["rows"] for each in said["kinds"] if each["rows"]}


def test_a_dry_run_tells_what_goes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And takes nothing away; the command then does."""
    assert told(project, capsys, "--dry-run") == {"signals": 1}
    assert told(project, capsys, "--dry-run") == {"signals": 1}
    assert told(project, capsys) == {"signals": 1}
    assert told(project, capsys) == {}


def test_people_get_a_table(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of all kinds, with their ages."""
    assert run(["-C", str(project), "prune", "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "to delete" in shown
    assert "90 d" in shown


def test_what_is_never_to_go_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the settings say."""
    (project / "calve.toml").write_text('[retention]\nunused_signals = "never"\naudit = "never"\n')
    assert told(project, capsys) == {}
    ages = ages_of(load(project).retention)
    assert RecordKind.AUDIT not in ages.used
    assert ages.unused == {RecordKind.SIGNALS: None}


def test_the_ages_are_those_of_the_settings() -> None:
    """Each kind has one."""
    ages = ages_of(RetentionSettings())
    assert set(ages.used) == set(RecordKind)
    assert ages_of(RetentionSettings(instances=timedelta(days=2))).used[RecordKind.INSTANCES] == 2 * DAY
    assert ages.used[RecordKind.INSTANCES] == 90 * DAY
    assert (ages.used[RecordKind.ALERTS], ages.used[RecordKind.AUDIT]) == (30 * DAY, 400 * DAY)


def test_pruning_runs_beside_the_scheduler(project: Path) -> None:
    """Events wait for those who follow them: what keeps lineage, and whom the settings name."""
    (project / "calve.toml").write_text('[lineage]\nfile = "lineage.jsonl"\n')
    with open_project(load(project)) as opened:
        (pruner,) = [each for each in opened.background_services() if isinstance(each, Pruner)]
    assert pruner.followers == ["lineage_edges", "lineage"]
