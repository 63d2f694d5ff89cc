"""Those who tell others of what happens."""

from pathlib import Path

import pytest

from calve.app import open_project
from calve.definition import installed, load
from calve.settings import load as load_settings

SETTINGS = """
[alerts.channels.hook]
type = "webhook"
url = "http://127.0.0.1:9/alerts"

[lineage]
file = "lineage.jsonl"
"""
WORKFLOW = "Workflow:\n  id: w\n  jobs:\n    - job: {id: job, type: NoOp}\n"


@pytest.mark.parametrize("follower", ["alerts", "lineage"])
def test_what_happens_before_a_follower_gets_its_turn_is_not_omitted(tmp_path: Path, follower: str) -> None:
    """A worker may have done with an instance before the thread that tells of it has begun."""
    (tmp_path / "calve.toml").write_text(SETTINGS)
    with open_project(load_settings(tmp_path, {})) as project:
        assert len(project.followers()) == 3
        project.engine.push(load(WORKFLOW, name="w", vocabulary=installed()).required())
        project.engine.start("w")
        assert project.engine.state.last_event() > project.store.positions.position(follower) == 0
