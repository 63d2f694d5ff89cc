"""Files with workflow definitions: finding them, and showing their problems."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from calve.cli.state import State
from calve.connection import SUFFIXES, vocabulary_of as vocabulary_with
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.definition import Loaded, Problem, Vocabulary
    from calve.operations import Document


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


def vocabulary_of(state: State) -> "Vocabulary":
    """Return the vocabulary for a definition to push: step types installed here, and job templates stored there."""

    def templates() -> "list[Document]":
        with state.operations() as operations:
            return operations.templates()

    return vocabulary_with(templates)
