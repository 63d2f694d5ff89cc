"""What a runtime is given."""

from pathlib import Path
from typing import Any

import pytest

from calve.definition.model import SecretParam
from calve.definition.params import Parameter, Secret
from calve.engine import Outcome, State
from calve.engine.logs import Log
from calve.engine.ports import StepAddress
from calve.engine.worker import AttemptContext, revealed


def context(folder: Path, **given: Any) -> AttemptContext:
    """Return a context, some of whose answers are given."""
    usual = {
        "key": "key",
        "title": "w/1/1/a/1",
        "place": StepAddress("w", 1, "a"),
        "params": {},
        "workflow_params": {},
        "artifacts": {},
        "is_first": True,
        "root": folder / "key",
        "deadline": None,
        "monotonic": lambda: 100.0,
        "record": lambda _: None,
        "evaluate": lambda file: file.text,
        "secret": lambda name: name,
        "lines": Log("key"),
        "undelivered": lambda _: (),
    }
    return AttemptContext(**{**usual, **given})


def test_the_folder_is_made_when_it_is_asked_for(tmp_path: Path) -> None:
    """Most steps need none."""
    given = context(tmp_path / "attempts")
    assert not given.root.exists()
    assert given.folder.is_dir()


def test_the_time_that_is_left_ends_at_nothing(tmp_path: Path) -> None:
    """Without a limit there is no end."""
    assert context(tmp_path).timeout is None
    assert context(tmp_path, deadline=107.5).timeout == 7.5
    assert context(tmp_path, deadline=90).timeout == 0


def test_work_is_to_end_when_someone_says_so_or_its_time_is_up(tmp_path: Path) -> None:
    """Whoever waits hears of both."""
    given = context(tmp_path)
    assert not given.is_interrupted()
    assert not given.wait(0)
    given.interrupted.set()
    assert given.is_interrupted()
    assert given.wait(1_000)
    late = context(tmp_path, deadline=100)
    assert late.is_interrupted()
    assert late.wait(1_000)


def test_what_is_kept_is_stored_and_seen(tmp_path: Path) -> None:
    """At once."""
    stored: list[object] = []
    given = context(tmp_path, record=stored.append, artifacts={"old": 1})
    given.keep({"job": 7})
    assert stored == [{"job": 7}]
    assert given.artifacts == {"old": 1, "job": 7}


def test_a_log_has_lines_without_secrets(tmp_path: Path) -> None:
    """The longest secret first, so that none shows behind another."""
    given = context(tmp_path, secrets=("abc123", "abc"))
    given.log("with abc123")
    given.log("and abc\n")
    given.log("and \0")
    assert given.lines.take()[0].text == "with ***\nand ***\nand \N{REPLACEMENT CHARACTER}\n"
    assert given.mask("an abc") == "an ***"


def test_what_comes_of_the_work_has_no_secrets(tmp_path: Path) -> None:
    """However deep they stand."""
    outcome = Outcome(State.DONE, {"a": ["abc", 1]}, {"b": {"c": "xabcx"}}, "it is abc")
    assert context(tmp_path, secrets=("abc",)).without_secrets(outcome) == Outcome(
        State.DONE, {"a": ["***", 1]}, {"b": {"c": "x***x"}}, "it is ***"
    )
    assert context(tmp_path).without_secrets(outcome) is outcome


def test_an_empty_secret_hides_nothing() -> None:
    """Else stars would stand between all letters."""
    param = Parameter("p", SecretParam(value="P"), Secret("P"))
    assert revealed({"p": param}, lambda _: "") == ({"p": ""}, ())
    assert revealed({"p": param}, lambda _: "abc") == ({"p": "abc"}, ("abc",))


@pytest.mark.parametrize(
    "printed",
    [
        'pass "word" + ü/1',
        r"pass \"word\" + \u00fc/1",
        r"pass \"word\" + ü/1",
        "pass%20%22word%22%20%2B%20%C3%BC/1",
        "pass%20%22word%22%20%2B%20%C3%BC%2F1",
        "pass+%22word%22+%2B+%C3%BC%2F1",
        "cGFzcyAid29yZCIgKyDDvC8x",
    ],
)
def test_a_secret_is_masked_in_every_encoding(tmp_path: Path, printed: str) -> None:
    """Programs print what they were given quoted, escaped or encoded; keys of what they give back count too."""
    param = Parameter("p", SecretParam(value="P"), Secret("P"))
    _, hidden = revealed({"p": param}, lambda _: 'pass "word" + ü/1')
    given = context(tmp_path, secrets=hidden)
    assert given.holds_secret(f"<{printed}>")
    assert not given.holds_secret("something else")
    given.log(f"it is <{printed}>")
    assert given.lines.take()[0].text == "it is <***>\n"
    outcome = Outcome(State.DONE, {printed: 1})
    assert given.without_secrets(outcome).outputs == {"***": 1}


def test_each_long_line_of_a_secret_is_hidden(tmp_path: Path) -> None:
    """A key is often printed line by line; short lines stand in too many other texts."""
    param = Parameter("p", SecretParam(value="P"), Secret("P"))
    _, hidden = revealed({"p": param}, lambda _: "first line\nend\n")
    given = context(tmp_path, secrets=hidden)
    given.log("the first line")
    given.log("in the end")
    assert given.lines.take()[0].text == "the ***\nin the end\n"
