"""``calve validate``, ``render`` and ``schema``: definitions before they run."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calve.cli.given import params_option
from calve.cli.output import print_json
from calve.cli.scripts import ScriptFolder
from calve.cli.state import State, json_option
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from calve.definition import Loaded, Problem

SUFFIXES = frozenset({".yaml", ".yml", ".json", ".py"})


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@json_option
@click.pass_obj
def validate(state: State, files: tuple[Path, ...]) -> int:
    """Check workflow definitions without running them.

    A FILE is YAML, JSON or Python (calve.dsl), - is standard input, and a folder stands for all such files in
    it. Every problem is shown, with its place and what was probably meant. The exit code is 1 if there is an error.
    """
    results: list[Loaded] = []
    others: list[Loaded] = []
    for file, is_named in _found(files):
        for result in _load(file):
            (results if is_named or _is_workflow(result) else others).append(result)
    failed = sum(result.definition is None for result in results)
    if state.json:
        left_out = [result.name for result in others]
        print_json({"ok": not failed, "files": [_as_json(result) for result in results], "left_out": left_out})
    else:
        for result in results:
            _show(result)
        for result in others:
            click.echo(f"{result.name}: no workflow, left out")
        if len(results) > 1:
            click.echo(f"{len(results) - failed} of {len(results)} definitions are valid")
    return 1 if failed else 0


@click.command()
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@params_option
@json_option
@click.pass_obj
def render(state: State, file: Path, params: Mapping[str, Any]) -> None:
    """Show a definition with its params resolved.

    What only a run can tell (outputs of steps, ids of the instance) stays as it is written.
    """
    from calve.definition import installed, rendered, to_json, to_yaml

    for result in _load(file):
        shown = rendered(result.required(), params, installed()).as_json()
        click.echo(to_json(shown, indent=2) if state.json else to_yaml(shown).rstrip("\n"))


@click.command()
@json_option
def schema() -> None:
    """Print the JSON Schema of definitions, with which editors complete and check YAML."""
    from calve.definition import schema, to_json

    click.echo(to_json(schema(), indent=2))


def _found(paths: Iterable[Path]) -> Iterator[tuple[Path, bool]]:
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


def _is_workflow(result: "Loaded") -> bool:
    """Tell whether a file is meant to be a workflow, right or wrong; a folder may hold others."""
    return [problem.code for problem in result.problems] != ["form_unknown"]


def _load(file: Path) -> "list[Loaded]":
    """Return what a file holds: one definition, or of a Python file all that it describes."""
    from calve.definition import installed, load

    scripts = ScriptFolder(Path() if str(file) == "-" else file.parent)
    if file.suffix == ".py":
        from calve.dsl import workflows_in

        found = workflows_in(file)
        if not found:
            raise RequestInvalid(f"{file} describes no workflow", remedy="Describe one: with Workflow('id') as wf: …")
        return [workflow.load(vocabulary=installed(), scripts=scripts) for workflow in found]
    try:
        text = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise RequestInvalid(f"{file} cannot be read: {error.strerror}") from error
    return [load(text, name=str(file), vocabulary=installed(), scripts=scripts)]


def _as_json(result: "Loaded") -> dict[str, Any]:
    definition = result.definition
    return {
        "file": result.name,
        "ok": definition is not None,
        "workflow_id": definition.workflow.id if definition else None,
        "problems": [problem.as_json() for problem in result.problems],
    }


def _show(result: "Loaded") -> None:
    if result.definition is not None:
        count = sum(1 for _ in result.definition.workflow.all_steps())
        steps = "1 step" if count == 1 else f"{count} steps"
        click.echo(f"{result.name}: {click.style('ok', fg='green')} {result.definition.workflow.id}, {steps}")
    for problem in result.problems:
        _show_problem(result.name, problem)


def _show_problem(name: str, problem: "Problem") -> None:
    colour = "red" if problem.severity == "error" else "yellow"
    where = f"{name}:{problem.line}:{problem.column}: "
    path = click.style(f"  ({problem.path})", dim=True) if problem.path else ""
    click.echo(f"{where}{click.style(problem.severity, fg=colour, bold=True)}: {problem.message}{path}")
    for line in problem.drawing.splitlines():
        click.echo(f"    {line}")
    if problem.hint:
        click.echo(f"  → {problem.hint}")
