"""What programs read stays what it was: the answers that were recorded before, compared with those of now."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from tests.golden import ANSWERS, MISSING, differences, play

from calve.cli import entry


def test_json_of_commands_rest_and_graphql_is_what_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and values are the same; keys may be added, and texts for people put better."""
    before = json.loads(ANSWERS.read_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOGNAME", "golden")

    def run(words: list[str], typed: str) -> tuple[int, str]:
        """Run a command in this process: starting one takes longer than most commands do."""
        monkeypatch.setattr("sys.stdin", io.StringIO(typed))
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()):
            return entry.run(words), out.getvalue()

    now = play(tmp_path, command=run)
    assert now.keys() == before.keys()
    found = [difference for name in before for difference in differences(before[name], now[name], name)]
    assert not found, "\n".join(found)


def test_requests_of_the_scenario_are_for_something() -> None:
    """A path that leads nowhere would guard nothing."""
    recorded = json.loads(ANSWERS.read_text())
    assert {name for name, answer in recorded.items() if answer.get("status") == 404} == MISSING
