"""Files that hold definitions: found, loaded, and what is wrong in them shown."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.definition import Loaded, Problem, StepFiles, Vocabulary

SUFFIXES = frozenset({".yaml", ".yml", ".json", ".py"})


def found(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
    """Yield the files that are named, and those in the folders that are named, and whether they are named."""
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        inside = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
        chosen = [file for file in inside if file.suffix != ".py" or "calve.dsl" in file.read_text(errors="replace")]
        if not chosen:
            raise RequestInvalid(f"{path} holds no definition", remedy="Name a .yaml, .yml, .json or .py file.")
        yield from ((file, False) for file in chosen)


def is_workflow(result: "Loaded") -> bool:
    """Tell whether a file is meant to be a workflow, right or wrong; a folder may hold others."""
    return [problem.code for problem in result.problems] != ["form_unknown"]


def load_file(file: Path, project: Path, vocabulary: "Vocabulary | None" = None) -> "list[Loaded]":
    """Return what a file holds: one definition, or of a Python file all that it describes.

    Args:
        file: the file; ``-`` is standard input.
        project: the folder in which steps find the files that they read.
        vocabulary: the words that it may use; those that are installed, unless told.
    """
    from calve.definition import ScriptFolder, installed, load

    vocabulary = vocabulary or installed()
    scripts, files = ScriptFolder(_folder(file)), step_files(file, project)
    if file.suffix == ".py":
        from calve.dsl import workflows_in

        found = workflows_in(file)
        if not found:
            raise RequestInvalid(f"{file} describes no workflow", remedy="Describe one: with Workflow('id') as wf: …")
        return [workflow.load(vocabulary=vocabulary, scripts=scripts, files=files) for workflow in found]
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise RequestInvalid(f"{file} cannot be read: {error.strerror}") from error
    return [load(text, name=str(file), vocabulary=vocabulary, scripts=scripts, files=files)]


def step_files(file: Path, project: Path) -> "StepFiles":
    """Return what finds the files that the steps of a definition read."""
    from calve.definition import ProjectFiles

    return ProjectFiles(project, _folder(file))


def _folder(file: Path) -> Path:
    return Path() if str(file) == "-" else file.parent


def show_problem(name: str, problem: "Problem", *, err: bool = False) -> None:
    """Print a problem with its place, its drawing and what was probably meant."""
    colour = "red" if problem.severity == "error" else "yellow"
    where = f"{name}:{problem.line}:{problem.column}: "
    path = click.style(f"  ({problem.path})", dim=True) if problem.path else ""
    click.echo(f"{where}{click.style(problem.severity, fg=colour, bold=True)}: {problem.message}{path}", err=err)
    for line in problem.drawing.splitlines():
        click.echo(f"    {line}", err=err)
    if problem.hint:
        click.echo(f"  → {problem.hint}", err=err)
