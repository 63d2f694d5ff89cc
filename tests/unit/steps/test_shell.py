"""Shell steps: what is run, with what around it, and what its end means."""

import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import shell, workspace

from calve.engine import Outcome, State
from calve.steps.programs.shell import Shell


def _run(context: FakeContext, **changes: Any) -> Outcome:
    return Shell(workspace(context.home, **changes)).execute(context)


def test_a_command_line_is_run_by_bash(tmp_path: Path) -> None:
    """A text is a command line, with arguments as $1, $2 and so on."""
    context = shell(tmp_path, 'echo "$1 and $2" | tr a-z A-Z', args=["one two", 3])
    assert _run(context) == Outcome(State.DONE, {"exit_code": 0})
    assert context.text == "ONE TWO AND 3\n"


def test_a_list_is_a_program_and_its_arguments(tmp_path: Path) -> None:
    """No shell looks at a list."""
    context = shell(tmp_path, ["echo", "$HOME", "*"], args=[True])
    assert _run(context).state is State.DONE
    assert context.text == "$HOME * true\n"


@pytest.mark.parametrize("argument", ["cAnArY", "--password=cAnArY"])
def test_a_secret_cannot_be_an_argument(tmp_path: Path, argument: str) -> None:
    """Everybody on the machine could read it; nothing is started."""
    context = shell(tmp_path, 'echo "$1"', args=[argument])
    context.secrets = ("cAnArY",)
    outcome = _run(context)
    assert outcome.state is State.FATAL_ERROR
    assert "cannot be an argument" in outcome.message
    assert context.text == ""


def test_a_script_may_have_many_lines(tmp_path: Path) -> None:
    """The text of a script is run by the interpreter, with its arguments."""
    context = FakeContext(tmp_path, {"shell": {"script": "set -e\nx=$1\necho got $x\n", "args": ["a"]}})
    assert _run(context).state is State.DONE
    assert context.text == "got a\n"


def test_a_script_may_stand_beside_the_map(tmp_path: Path) -> None:
    """Where Maestro's shell template takes it from; what the map says comes first."""
    context = FakeContext(tmp_path, {"script": "echo beside $1", "shell": {"args": ["a"]}})
    assert _run(context) == Outcome(State.DONE, {"exit_code": 0})
    assert context.text == "beside a\n"
    both = FakeContext(tmp_path, {"script": "echo beside", "shell": {"command": "echo inside"}}, key="both")
    assert _run(both).state is State.DONE
    assert both.text == "inside\n"


@pytest.mark.parametrize("params", [{}, {"shell": {}}, {"shell": {"env": {"A": "b"}}}])
def test_without_a_command_nothing_is_run(tmp_path: Path, params: dict[str, Any]) -> None:
    """The step succeeds, as it does in Maestro, and says so."""
    context = FakeContext(tmp_path, params)
    nothing = "There was nothing to run: the step has no command."
    assert _run(context) == Outcome(State.DONE, {"exit_code": 0}, message=nothing)
    assert context.text == ""


def test_a_file_is_looked_for_in_the_project(tmp_path: Path) -> None:
    """A relative path starts at the project's folder, an absolute one is taken as it is."""
    (tmp_path / "jobs").mkdir()
    script = tmp_path / "jobs" / "export.sh"
    script.write_text("echo exported $1")
    for path in ("jobs/export.sh", str(script)):
        context = FakeContext(tmp_path, {"shell": {"file": path, "args": ["all"]}}, key=path.replace("/", "_"))
        assert _run(context).state is State.DONE
        assert context.text == "exported all\n"


def test_the_interpreter_may_be_another(tmp_path: Path) -> None:
    """What runs a command line or script is a text or a list."""
    for number, interpreter in enumerate(["sh -e", ["sh", "-e"]]):
        context = FakeContext(
            tmp_path, {"shell": {"script": "false\necho no", "interpreter": interpreter}}, key=f"i{number}"
        )
        assert _run(context).outputs == {"exit_code": 1}
        assert context.text == ""


def test_a_step_runs_in_a_fresh_folder(tmp_path: Path) -> None:
    """Without cwd, an attempt has an empty folder of its own."""
    context = shell(tmp_path, "pwd; ls -A; touch left")
    _run(context)
    assert context.text == f"{context.folder / 'work'}\n"


def test_the_folder_may_be_given(tmp_path: Path) -> None:
    """A relative cwd is in the project."""
    (tmp_path / "data").mkdir()
    context = shell(tmp_path, "pwd", cwd="data")
    _run(context)
    assert context.text == f"{tmp_path / 'data'}\n"


def test_the_environment_has_what_the_list_names_and_what_the_step_gives(tmp_path: Path) -> None:
    """Steps see those variables of the worker that the list or the settings name, never one that configures calve."""
    context = shell(tmp_path, ["env"], env={"TARGET": "out", "COUNT": 3, "IS_DRY": False})
    given = {"PATH": os.defpath, "REGION": "north", "AWS_SECRET_ACCESS_KEY": "canary", "CALVE_STORE__URL": "canary"}
    _run(context, environment=given, variables=("REG*", "CALVE_*"))
    seen = dict(line.split("=", 1) for line in context.text.splitlines())
    assert seen == {
        "PATH": os.defpath,
        "REGION": "north",
        "TARGET": "out",
        "COUNT": "3",
        "IS_DRY": "false",
        "CALVE_WORKFLOW_ID": "demo.pipeline",
        "CALVE_INSTANCE_ID": "3",
        "CALVE_RUN_ID": "1",
        "CALVE_STEP_ID": "job.1",
        "CALVE_ATTEMPT_ID": "2",
        "CALVE_ATTEMPT_KEY": context.key,
        "CALVE_OUTPUT": str(context.folder / "processes" / "main" / "results" / "output.json"),
    }


def test_no_argument_list_contains_a_secret(tmp_path: Path) -> None:
    """No argument list holds what env and the command hold, the supervisor's neither, nor any file in the end."""
    command = 'cat /proc/$$/cmdline /proc/$PPID/cmdline | tr "\\0" " "; echo "${#TOKEN}" # canary'
    context = shell(tmp_path, command, env={"TOKEN": "canary"})
    _run(context)
    assert "supervisor" in context.text
    assert "canary" not in context.text
    assert context.text.endswith("6\n")
    assert not [path for path in context.folder.rglob("*") if path.is_file() and b"canary" in path.read_bytes()]


def test_standard_input_is_empty(tmp_path: Path) -> None:
    """A program that reads its input gets none, and does not wait."""
    assert _run(shell(tmp_path, "cat")).state is State.DONE


@pytest.mark.parametrize(
    ("command", "more", "state", "told"),
    [
        ("exit 3", {}, State.USER_ERROR, "exit code 3"),
        ("exit 3", {"success_codes": [0, 3]}, State.DONE, ""),
        ("exit 0", {"success_codes": [3]}, State.USER_ERROR, "exit code 0"),
        ("exit 4", {"fatal_codes": [4]}, State.FATAL_ERROR, "exit code 4"),
        ("no_such_program_here", {}, State.FATAL_ERROR, "not found: is it installed"),
        ("exit 126", {}, State.FATAL_ERROR, "is it executable?"),
        ("exit 127", {"success_codes": [127]}, State.DONE, ""),
        ("kill -KILL $$", {}, State.PLATFORM_ERROR, "killed by SIGKILL, not by calve"),
        ("kill -TERM $$", {}, State.PLATFORM_ERROR, "killed by SIGTERM, not by calve"),
        ("sh -c 'kill -KILL $$'; exit $?", {}, State.PLATFORM_ERROR, "killed by SIGKILL"),
        ("kill -SEGV $$", {}, State.USER_ERROR, "ended by SIGSEGV"),
        ("exit 255", {}, State.USER_ERROR, "exit code 255"),
        ("echo why >&2; echo; echo this >&2; exit 1", {}, State.USER_ERROR, "exit code 1.\nwhy\nthis"),
        (["no_such_program_here"], {}, State.FATAL_ERROR, "no_such_program_here: No such file"),
        (["/etc/passwd"], {}, State.FATAL_ERROR, "/etc/passwd: Permission denied"),
        ([], {}, State.FATAL_ERROR, "the command is empty"),
        (["echo", "a\0b"], {}, State.FATAL_ERROR, "NUL"),
        ("true", {"env": {"A=B": "c"}}, State.FATAL_ERROR, "'A=B' is not a valid variable"),
        ("true", {"env": {"A": "b\0c"}}, State.FATAL_ERROR, "'A' is not a valid variable"),
        ("true", {"cwd": "no/where"}, State.FATAL_ERROR, "The working directory does not exist: no/where"),
        ("true", {"cwd": "/etc/passwd"}, State.FATAL_ERROR, "the folder /etc/passwd: Not a directory"),
        ("true", {"cwd": "a\0b"}, State.FATAL_ERROR, "is not a valid path"),
        ("true", {"script": "true"}, State.FATAL_ERROR, "are set, but"),
    ],
)
def test_the_end_of_a_command_says_how_the_step_went(
    tmp_path: Path, command: Any, more: dict[str, Any], state: State, told: str
) -> None:
    """Each way to end has a state, and a message that says what to do."""
    found = _run(shell(tmp_path, command, **more))
    assert found.state is state
    assert told in found.message


def test_a_missing_file_says_where_it_was_looked_for(tmp_path: Path) -> None:
    """A step whose script is not there fails for good."""
    found = _run(FakeContext(tmp_path, {"shell": {"file": "jobs/gone.sh"}}))
    assert found.state is State.FATAL_ERROR
    assert str(tmp_path / "jobs" / "gone.sh") in found.message


def test_the_exit_code_of_a_killed_program_is_that_of_shells(tmp_path: Path) -> None:
    """A signal counts from 128 on."""
    assert _run(shell(tmp_path, "kill -KILL $$")).outputs == {"exit_code": 137}
