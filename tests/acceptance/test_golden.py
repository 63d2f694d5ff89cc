"""What programs read stays what it was: the answers that were recorded before, compared with those of now."""

import json
from pathlib import Path

from tests.golden import ANSWERS, MISSING, differences, play


def test_json_of_commands_rest_and_graphql_is_what_it_was(tmp_path: Path) -> None:
    """Keys and values are the same; keys may be added, and texts for people put better."""
    before = json.loads(ANSWERS.read_text())
    now = play(tmp_path)
    assert now.keys() == before.keys()
    found = [difference for name in before for difference in differences(before[name], now[name], name)]
    assert not found, "\n".join(found)


def test_requests_of_the_scenario_are_for_something() -> None:
    """A path that leads nowhere would guard nothing."""
    recorded = json.loads(ANSWERS.read_text())
    assert {name for name, answer in recorded.items() if answer.get("status") == 404} == MISSING
