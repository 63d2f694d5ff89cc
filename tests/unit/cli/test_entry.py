"""The command line's manners: help, exit codes, errors."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from calve.cli import entry
from calve.cli.state import State, json_option
from calve.errors import SqlFailed


@click.command()
@click.argument("how")
@json_option
@click.pass_obj
def failing(state: State, how: str) -> None:
    """Fail in the way that is asked for."""
    if how == "calve":
        raise SqlFailed("it broke", remedy="mend it", statement=2)
    if how == "stop":
        raise KeyboardInterrupt
    if how == "settings":
        click.echo(state.settings.home)
        return
    raise ZeroDivisionError("a bug")


@pytest.fixture(autouse=True)
def _failing_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Add a command that fails, and stand in an empty project."""
    monkeypatch.setattr(entry, "import_module", lambda _: sys.modules[__name__])
    monkeypatch.setitem(entry.COMMANDS, "failing", "here:failing")
    monkeypatch.chdir(tmp_path)


def test_a_misspelt_command_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """If one is near."""
    assert entry.run(["rnu"]) == 2
    assert "No such command 'rnu'. Did you mean 'run'?" in capsys.readouterr().err
    assert entry.run(["xyzzy"]) == 2
    assert "No such command 'xyzzy'." in capsys.readouterr().err


def test_an_error_is_one_line_and_a_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    """People read what happened and what to do, on standard error, and the exit code is 1."""
    assert entry.run(["failing", "calve"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "error: it broke\n  → mend it\n")


def test_an_error_is_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the error is an object on standard output."""
    assert entry.run(["failing", "calve", "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["error"] == {
        "code": "sql_failed",
        "message": "it broke",
        "remedy": "mend it",
        "context": {"statement": 2},
    }


def test_a_bug_says_how_to_see_more(capsys: pytest.CaptureFixture[str]) -> None:
    """An unexpected exception is one line without a traceback, and exit code 70."""
    assert entry.run(["failing", "bug"]) == 70
    said = capsys.readouterr().err
    assert said.startswith("error: ZeroDivisionError: a bug\n")
    assert "--debug" in said
    assert "Traceback" not in said


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    """With --debug the traceback follows."""
    assert entry.run(["--debug", "failing", "bug"]) == 70
    assert "Traceback" in capsys.readouterr().err


def test_control_c_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    """A stopped command says so and exits as shells expect."""
    assert entry.run(["failing", "stop"]) == 130
    assert "stopped" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["nonsense"], ["failing"], ["failing", "x", "--nonsense"]])
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown commands and options, and missing arguments, exit with 2."""
    assert entry.run(arguments) == 2
    assert "Usage:" in capsys.readouterr().err


def test_a_project_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-C DIR reads that folder's settings."""
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "calve.toml").write_text('home = "state"')
    assert entry.run(["-C", str(tmp_path / "p"), "failing", "settings"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "p" / "state")


def test_help_imports_nothing_heavy() -> None:
    """``calve --help`` stays instant because it loads no data library."""
    script = (
        "import sys; from calve.cli.entry import run; run(['--help']); "
        "print([m for m in ('pyspark', 'pyarrow', 'pyiceberg', 'fastapi', 'sqlalchemy', 'pydantic', 'rich') "
        "if m in sys.modules], file=sys.stderr)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert said.stderr == "[]\n"
    assert "doctor" in said.stdout
