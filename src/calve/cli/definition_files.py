"""Files with workflow definitions: finding and loading them, and showing their problems."""

import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from calve.cli.state import State
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calve.definition import JobTemplate, Loaded, Problem, StepFiles, Vocabulary

SUFFIXES = frozenset({".yaml", ".yml", ".json", ".py"})


def found(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the given files and the definitions in the given folders; each with whether the file itself was given."""
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        inside = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
        chosen = [file for file in inside if file.suffix != ".py" or "calve.dsl" in file.read_text(errors="replace")]
        if not chosen:
            raise RequestInvalid(f"{path} has no definition", remedy="Give a .yaml, .yml, .json or .py file.")
        yield from ((file, False) for file in chosen)


def is_workflow(result: "Loaded") -> bool:
    """Tell whether a file is meant to be a workflow, valid or not; a folder may also contain other files."""
    return [problem.code for problem in result.problems] != ["form_unknown"]


def load_file(file: Path, project: Path, vocabulary: "Vocabulary | None" = None) -> "list[Loaded]":
    """Return the definition in a file; a Python file may have several.

    Args:
        file: the file; ``-`` is standard input.
        project: the folder of the files that steps read.
        vocabulary: the step types and job templates that the definition may use; by default, those installed.
    """
    from calve.definition import ScriptFolder, installed, load

    vocabulary = vocabulary or installed()
    scripts, files = ScriptFolder(_folder(file)), step_files(file, project)
    if file.suffix == ".py":
        from calve.dsl import workflows_in

        found = workflows_in(file)
        if not found:
            raise RequestInvalid(f"{file} defines no workflow", remedy="Define one: with Workflow('id') as wf: …")
        return [workflow.load(vocabulary=vocabulary, scripts=scripts, files=files) for workflow in found]
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise RequestInvalid(f"{file} cannot be read: {error.strerror}") from error
    return [load(text, name=str(file), vocabulary=vocabulary, scripts=scripts, files=files)]


def step_files(file: Path, project: Path) -> "StepFiles":
    """Return the files that the steps of a definition may read: those of the project and beside the definition."""
    from calve.definition import ProjectFiles

    return ProjectFiles(project, _folder(file))


def _folder(file: Path) -> Path:
    return Path() if str(file) == "-" else file.parent


def show_problem(name: str, problem: "Problem", *, err: bool = False) -> None:
    """Print a problem with its position, the lines around it and a suggestion."""
    colour = "red" if problem.severity == "error" else "yellow"
    where = f"{name}:{problem.line}:{problem.column}: "
    path = click.style(f"  ({problem.path})", dim=True) if problem.path else ""
    click.echo(f"{where}{click.style(problem.severity, fg=colour, bold=True)}: {problem.message}{path}", err=err)
    for line in problem.drawing.splitlines():
        click.echo(f"    {line}", err=err)
    if problem.hint:
        click.echo(f"  → {problem.hint}", err=err)


class _Templates:
    """Fetches job templates once, and only if a definition uses a step type that is not installed."""

    def __init__(self, state: State) -> None:
        self._state = state

    @cached_property
    def _kept(self) -> "list[JobTemplate]":
        from calve.definition import JobTemplate

        with self._state.operations() as operations:
            return [JobTemplate.model_validate(one) for one in operations.templates()]

    def templates(self, job_type: str | None = None) -> "Sequence[JobTemplate]":
        """Return the job templates of a type, or all."""
        return [one for one in self._kept if job_type in {None, one.definition.job_type}]


def vocabulary_of(state: State) -> "Vocabulary":
    """Return the vocabulary for a definition to push: step types installed here, and job templates stored there."""
    from calve.definition import vocabulary_with

    return vocabulary_with(_Templates(state))
