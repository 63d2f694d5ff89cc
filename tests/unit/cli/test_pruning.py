"""``calve prune``."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from calve.app import open_workplace
from calve.app.retaining import ages_of
from calve.cli.entry import run
from calve.engine.signals import Announcement
from calve.retention import Kind, Pruner
from calve.settings import RetentionSettings, load

DAY = 86_400_000


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a project with two old signals."""
    with open_workplace(load(tmp_path)) as workplace:
        for number in (1, 2):
            workplace.store.engine.announce(Announcement("x", {"n": number}, at=1))
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
    assert "may go" in shown
    assert "90 d" in shown


def test_what_is_never_to_go_stays(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the settings say."""
    (project / "calve.toml").write_text('[retention]\nunused_signals = "never"\naudit = "never"\n')
    assert told(project, capsys) == {}
    ages = ages_of(load(project).retention)
    assert Kind.AUDIT not in ages.used
    assert ages.unused == {Kind.SIGNALS: None}


def test_the_ages_are_those_of_the_settings() -> None:
    """Each kind has one."""
    ages = ages_of(RetentionSettings())
    assert set(ages.used) == set(Kind)
    assert ages_of(RetentionSettings(instances=timedelta(days=2))).used[Kind.INSTANCES] == 2 * DAY
    assert ages.used[Kind.INSTANCES] == 90 * DAY
    assert (ages.used[Kind.ALERTS], ages.used[Kind.AUDIT]) == (30 * DAY, 400 * DAY)


def test_pruning_runs_beside_the_scheduler(project: Path) -> None:
    """Events wait for those who follow them, as far as the settings say that somebody does."""
    (project / "calve.toml").write_text('[lineage]\nfile = "lineage.jsonl"\n')
    with open_workplace(load(project)) as workplace:
        (pruner,) = [each for each in workplace.companions() if isinstance(each, Pruner)]
    assert pruner.followers == ["lineage"]
