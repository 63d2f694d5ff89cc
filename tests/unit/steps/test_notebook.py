"""Notebook steps: papermill is run for real once, and otherwise asked what it was told."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.steps.contexts import FakeContext
from tests.unit.steps.programs import SLOW, is_gone, number_in, workspace

from calve.engine import Outcome, State
from calve.steps.programs.notebook import Notebook

_PAPERMILL = """
import json, os, pathlib, sys
words = sys.argv[1:]
print(json.dumps(words))
print(pathlib.Path(words[words.index("--parameters_file") + 1]).read_text(), end="")
for copy in (word.removeprefix("--parameters_file=") for word in words if "parameters-" in word):
    print(pathlib.Path(copy).read_text(), end="")
print(os.getcwd(), os.environ.get("PAPERMILL_RUN_ID"))
"""
"""Stands in for papermill: prints what it was told."""


def _context(folder: Path, **config: Any) -> FakeContext:
    return FakeContext(folder, {"notebook": {"input_path": "report.ipynb", **config}})


def _run(context: FakeContext, **changes: Any) -> Outcome:
    return Notebook(workspace(context.home, **changes)).execute(context)


@pytest.fixture
def told(tmp_path: Path) -> dict[str, str]:
    """Make a papermill that prints what it was told; return the environment that has it."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "papermill.py").write_text(_PAPERMILL)
    (tmp_path / "report.ipynb").write_text("{}")
    return {"PYTHONPATH": str(tmp_path / "modules"), "PATH": "/usr/local/bin:/usr/bin:/bin"}


def _notebook(*cells: str) -> str:
    def cell(source: str) -> dict[str, Any]:
        tags = ["parameters"] if source.startswith("#") else []
        return {
            "cell_type": "code",
            "source": source,
            "metadata": {"tags": tags},
            "outputs": [],
            "execution_count": None,
        }

    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    document = {"cells": [cell(source) for source in cells], "nbformat": 4, "nbformat_minor": 4}
    return json.dumps({**document, "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}}})


def _words(context: FakeContext) -> list[str]:
    words: list[str] = json.loads(context.text.splitlines()[0])
    return words


def _git(folder: Path, *words: str) -> str:
    given = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *words]
    return subprocess.run(given, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, told: dict[str, str]) -> Path:
    """Make a repository with a notebook on two branches, whose commits differ."""
    assert told
    folder = tmp_path / "origin"
    folder.mkdir()
    _git(folder, "init", "--quiet")
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    for branch, text in (("main", "1"), ("main", "2"), ("other", "3")):
        _git(folder, "checkout", "--quiet", "-B", branch)
        (folder / "nb.ipynb").write_text(text)
        _git(folder, "add", ".")
        _git(folder, "commit", "--quiet", "-m", text)
    _git(folder, "checkout", "--quiet", "main")
    return folder


def test_a_notebook_is_run_for_real(tmp_path: Path) -> None:
    """With its parameters; what cells print is in the log, and both ways of giving outputs work."""
    prints = 'print("CALVE_OUTPUT_START\\n" + json.dumps({"params": {"printed": day}}) + "\\nCALVE_OUTPUT_END")'
    writes = 'open(os.environ["CALVE_OUTPUT"], "w").write(json.dumps({"rows": rows, "big": big, "cwd": os.getcwd()}))'
    text = _notebook("# parameters\nday, rows, big = 'none', 0, 0", "import json, os", prints, writes)
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "report.ipynb").write_text(text)
    parameters = {"day": "2026-01-02", "rows": 5, "big": 1e22}
    config = {"input_path": "books/report.ipynb", "parameters": parameters, "output_path": "out/done.ipynb"}
    context = _context(tmp_path, **config)
    found = _run(context)
    target = tmp_path / "out" / "done.ipynb"
    outputs = {"printed": "2026-01-02", "rows": 5, "big": 1e22, "cwd": str(tmp_path / "books")}
    assert found == Outcome(State.DONE, {**outputs, "output_path": str(target)})
    assert "2026-01-02" in context.text
    assert json.loads(target.read_text())["metadata"]["papermill"]["parameters"] == parameters


def test_a_cell_that_fails_is_reported(tmp_path: Path) -> None:
    """The message names the error, and the notebook is kept as far as it came."""
    (tmp_path / "report.ipynb").write_text(_notebook("print('so far')", "raise ValueError('no such day')"))
    context = _context(tmp_path)
    found = _run(context)
    assert found.state is State.USER_ERROR
    assert "ValueError: no such day" in found.message
    assert found.outputs == {"output_path": str(context.folder / "notebook" / "report.ipynb")}
    assert "so far" in Path(found.outputs["output_path"]).read_text()


def test_everything_reaches_papermill(tmp_path: Path, told: dict[str, str]) -> None:
    """Kernel, parameters, run and paths; it runs where the notebook is."""
    config = {"kernel": "scala", "parameters": {"a": [1, "é"]}, "run_id": "r1", "output_path": "s3://bucket/out.ipynb"}
    context = _context(tmp_path, **config)
    found = _run(context, environment=told)
    assert found == Outcome(State.DONE, {"output_path": "s3://bucket/out.ipynb"})
    words = _words(context)
    assert words[:3] == ["--no-progress-bar", "--log-output", "--parameters_file"]
    assert words[4:] == ["--kernel", "scala", str(tmp_path / "report.ipynb"), "s3://bucket/out.ipynb"]
    assert context.text.splitlines()[1:] == ["a:", "- 1", "- é", f"{tmp_path} r1"]


def test_a_notebook_may_be_elsewhere(tmp_path: Path, told: dict[str, str]) -> None:
    """Papermill knows how to read addresses; it runs in a fresh folder then."""
    context = _context(tmp_path, input_path="https://host/report.ipynb")
    _run(context, environment=told)
    assert _words(context)[4:] == ["https://host/report.ipynb", str(context.folder / "notebook" / "report.ipynb")]
    assert context.text.splitlines()[-1] == f"{context.folder / 'work'} None"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--log-level 'DEBUG' -k x", ["--log-level", "DEBUG", "-k", "x"]),
        (["--execution-timeout", "5"], ["--execution-timeout", "5"]),
        (
            {"execution_timeout": 5, "--report-mode": True, "log_output": False, "parameters_yaml": ["a: 1"] * 2},
            ["--execution-timeout", "5", "--report-mode", "--no-log-output", *["--parameters_yaml", "a: 1"] * 2],
        ),
        ({"k": "x", "p": {"a": 1, "b": True}}, ["-k", "x", "-p", "a", "1", "-p", "b", "true"]),
    ],
)
def test_more_options_may_be_given(tmp_path: Path, told: dict[str, str], given: Any, words: list[str]) -> None:
    """As a command line, a list or a map."""
    context = _context(tmp_path, papermill_arguments=given)
    _run(context, environment=told)
    assert _words(context)[4:-2] == words


def test_the_init_command_stands_before_papermill(tmp_path: Path, told: dict[str, str]) -> None:
    """As in Maestro: with && papermill runs after it, in the same shell, and not at all if it fails."""
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "it's.ipynb").write_text("{}")
    config = {"input_path": "books/it's.ipynb", "run_id": "r", "papermill_arguments": ["--stdout-file", "a b"]}
    context = _context(tmp_path, **config, init_command="pwd > init.txt && export PAPERMILL_RUN_ID=other &&")
    found = _run(context, environment=told)
    assert found.state is State.DONE, context.text
    assert (tmp_path / "init.txt").read_text() == f"{tmp_path}\n"
    words = _words(context)
    assert words[4:-2] == ["--stdout-file", "a b", "--cwd", str(tmp_path / "books")]
    assert words[-2:] == [str(tmp_path / "books" / "it's.ipynb"), found.outputs["output_path"]]
    assert context.text.splitlines()[-1] == f"{tmp_path} other"


@pytest.mark.parametrize(
    ("prefix", "is_run"),
    [("exit 4;", False), ("false &&", False), ("A=b", True), ("nice -n 1", True), ("  ", True), ("true; ", True)],
)
def test_the_init_command_is_a_prefix_and_no_more(
    tmp_path: Path, told: dict[str, str], *, prefix: str, is_run: bool
) -> None:
    """What fails before papermill fails the step; a wrapper or a variable wraps papermill."""
    context = _context(tmp_path, init_command=prefix)
    found = _run(context, environment=told)
    assert (found.state is State.DONE) is is_run, context.text
    assert ("parameters_file" in context.text) is is_run


def test_the_init_command_may_bring_another_papermill(tmp_path: Path, told: dict[str, str]) -> None:
    """One that it installs or activates comes first."""
    other = tmp_path / "venv" / "papermill"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho the other one\n")
    other.chmod(0o700)
    context = _context(tmp_path, init_command=f"export PATH={other.parent}:$PATH &&")
    assert _run(context, environment=told).state is State.DONE
    assert context.text == "the other one\n"


def test_a_secret_is_no_argument_of_papermill_behind_a_prefix(tmp_path: Path, told: dict[str, str]) -> None:
    """The shell would show it as plainly as we would."""
    context = _context(tmp_path, init_command="true &&", papermill_arguments=["-p", "token", "cAnArY"])
    context.secrets = ("cAnArY",)
    found = _run(context, environment=told)
    assert (found.state, context.text) == (State.FATAL_ERROR, "")


def test_what_was_done_is_not_done_again(tmp_path: Path, told: dict[str, str]) -> None:
    """A worker that takes over goes on where the other one was."""
    context = _context(tmp_path, init_command=f"echo once >> {tmp_path}/counted &&")
    first = _run(context, environment=told)
    assert _run(context.again(), environment=told) == first
    assert (tmp_path / "counted").read_text() == "once\n"


@pytest.mark.parametrize(
    ("wanted", "text"), [({}, "2"), ({"git_branch": "other"}, "3"), ({"git_commit": 7}, "1"), ({"git_commit": 40}, "1")]
)
def test_a_notebook_may_come_from_a_repository(
    tmp_path: Path, told: dict[str, str], repository: Path, wanted: dict[str, Any], text: str
) -> None:
    """From its head, a branch, or a commit, whole or abbreviated; commands before run in it."""
    if "git_commit" in wanted:
        wanted = {"git_commit": _git(repository, "rev-parse", "main~1")[: wanted["git_commit"]]}
    config = {"input_path": "nb.ipynb", "git_repo": "origin", "init_command": "cat nb.ipynb && echo &&", **wanted}
    context = _context(tmp_path, **config)
    found = _run(context, environment=told)
    assert found.state is State.DONE, found
    assert context.text.splitlines()[-4] == text
    assert context.text.splitlines()[-1] == f"{context.folder / 'repository'} None"


def test_the_past_of_a_repository_is_not_fetched(tmp_path: Path, told: dict[str, str], repository: Path) -> None:
    """One commit is enough."""
    context = _context(tmp_path, input_path="nb.ipynb", git_repo=f"file://{repository}", git_branch="main")
    assert _run(context, environment=told).state is State.DONE
    assert _git(context.folder / "repository", "rev-list", "--count", "HEAD") == "1"


def test_the_address_of_a_repository_stands_in_no_argument_list(tmp_path: Path, told: dict[str, str]) -> None:
    """It may hold a token."""
    git = tmp_path / "modules" / "git"
    git.write_text('#!/bin/sh\necho "$@"\necho "$GIT_CONFIG_VALUE_0" > told\nexit 1\n')
    git.chmod(0o700)
    environment = {**told, "PATH": f"{tmp_path / 'modules'}:{told['PATH']}"}
    context = _context(tmp_path, git_repo="https://canary@host/repo.git")
    found = _run(context, environment=environment)
    assert (found.state, found.message.partition(".")[0]) == (State.USER_ERROR, "The repository could not be fetched")
    assert "canary" not in context.text
    assert (context.folder / "repository" / "told").read_text() == "https://canary@host/repo.git\n"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"input_path": "gone.ipynb"}, "The notebook does not exist: gone.ipynb"),
        ({"git_repo": "origin", "input_path": "../../../../report.ipynb"}, "The notebook does not exist"),
        ({"git_repo": "origin", "input_path": "link.ipynb"}, "The notebook is not in the repository"),
        ({"git_repo": "origin", "input_path": "/etc/passwd"}, "The notebook is not in the repository"),
        ({"git_repo": "origin", "git_branch": "--upload-pack=x"}, "is not a valid name of a branch or commit"),
        ({"git_repo": "origin", "git_commit": "a..b"}, "is not a valid name of a branch or commit"),
        ({"papermill_arguments": "'"}, "papermill_arguments is not a valid command line: No closing quotation"),
        ({"output_path": "a\0b"}, "output_path is not a valid path"),
    ],
)
@pytest.mark.usefixtures("repository")
def test_what_cannot_be_is_refused(tmp_path: Path, told: dict[str, str], config: dict[str, Any], message: str) -> None:
    """For good, with what was wrong."""
    found = _run(_context(tmp_path, **config), environment=told)
    assert (found.state, message in found.message) == (State.FATAL_ERROR, True), found


def test_a_branch_that_is_not_there_fails_at_once(tmp_path: Path, repository: Path, told: dict[str, str]) -> None:
    """It will not come by itself."""
    context = _context(tmp_path, input_path="nb.ipynb", git_repo=f"file://{repository}", git_branch="nope")
    found = _run(context, environment=told)
    assert (found.state, "couldn't find remote ref nope" in found.message) == (State.FATAL_ERROR, True)


def test_a_repository_that_is_not_there_may_come_back(tmp_path: Path, told: dict[str, str]) -> None:
    """What git says is told, and a retry may help."""
    for number, wanted in enumerate([{}, {"git_commit": "abc1234"}]):
        given = {"input_path": "x.ipynb", "git_repo": "file:///gone", **wanted}
        found = _run(FakeContext(tmp_path, {"notebook": given}, key=f"{number}"), environment=told)
        assert found.state is State.USER_ERROR
        assert "does not appear to be a git repository" in found.message


def test_without_papermill_it_is_told_how_to_get_it(tmp_path: Path) -> None:
    """It is an extra of calve."""
    (tmp_path / "report.ipynb").write_text("{}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    bare = str(tmp_path / "venv" / "bin" / "python")
    found = _run(_context(tmp_path), python=bare, environment={"PATH": "/usr/bin:/bin"})
    assert found.state is State.FATAL_ERROR
    assert "pip install 'calve[notebook]'" in found.message


def test_a_kernel_ends_with_its_step(tmp_path: Path) -> None:
    """A notebook that is interrupted leaves no kernel behind, though kernels have sessions of their own."""
    cell = f"import os, subprocess\nopen('main', 'w').write(f'{{os.getpid()}}\\n')\nsubprocess.run({SLOW.split()})"
    (tmp_path / "report.ipynb").write_text(_notebook(cell))

    class Stopped(FakeContext):
        def is_interrupted(self) -> bool:
            return (tmp_path / "main").exists()

    context = Stopped(tmp_path, {"notebook": {"input_path": "report.ipynb"}})
    runtime = Notebook(workspace(tmp_path))
    assert runtime.execute(context).state is State.STOPPED
    runtime.terminate(context)
    assert is_gone(number_in(tmp_path / "main"))


@pytest.mark.parametrize(
    ("given", "option"),
    [
        ("-f days.yaml", ["-f"]),
        (["--parameters_file=days.yaml"], []),
        ({"parameters_file": "days.yaml"}, ["--parameters_file"]),
    ],
)
def test_references_in_a_parameters_file_are_resolved(
    tmp_path: Path, told: dict[str, str], given: Any, option: list[str]
) -> None:
    """In a copy that papermill reads, which is gone afterwards; the file itself is left alone."""
    (tmp_path / "days.yaml").write_text("day: '${day}'\nliteral: $${day}\n")
    context = _context(tmp_path, papermill_arguments=given)
    context.values = {"day": 20260301}
    assert _run(context, environment=told).state is State.DONE
    words = _words(context)[4:-2]
    assert words[:-1] == option
    assert context.text.splitlines()[2:4] == ["day: '20260301'", "literal: ${day}"]
    assert not Path(words[-1].removeprefix("--parameters_file=")).exists()
    assert (tmp_path / "days.yaml").read_text().startswith("day: '${day}'")


def test_a_parameters_file_that_cannot_be_resolved_fails_the_step(tmp_path: Path, told: dict[str, str]) -> None:
    """With its place; papermill is not started."""
    (tmp_path / "days.yaml").write_text("a: 1\nday: ${dya}\n")
    context = _context(tmp_path, papermill_arguments="-f days.yaml")
    found = _run(context, environment=told)
    assert found.state is State.FATAL_ERROR
    assert found.message.startswith("days.yaml:2:6: Param [notebook.papermill_arguments]: Cannot find")
    assert not context.text
