"""``calve validate``, ``render`` and ``schema``: definitions before they run."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calve.cli.files import found, is_workflow, load_file, show_problem, step_files
from calve.cli.given import params_option
from calve.cli.output import print_json
from calve.cli.state import State, json_option

if TYPE_CHECKING:
    from calve.definition import Loaded


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
    for file, is_named in found(files):
        for result in load_file(file, state.settings.project):
            (results if is_named or is_workflow(result) else others).append(result)
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

    What only a run can tell (outputs of steps, ids of the instance) stays as it is written. Files of SQL are shown
    as text.
    """
    from calve.definition import installed, rendered, to_json, to_yaml

    project = state.settings.project
    for result in load_file(file, project):
        shown = rendered(result.required(), params, installed(), files=step_files(file, project)).as_json()
        click.echo(to_json(shown, indent=2) if state.json else to_yaml(shown).rstrip("\n"))


@click.command()
@json_option
def schema() -> None:
    """Print the JSON Schema of definitions, with which editors complete and check YAML."""
    from calve.definition import schema, to_json

    click.echo(to_json(schema(), indent=2))


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
        show_problem(result.name, problem)
