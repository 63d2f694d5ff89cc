"""``calve validate``, ``render`` and ``schema``: definitions before they run."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from calve.cli.definition_files import found, is_workflow, show_problem, vocabulary_of
from calve.cli.options import params_option
from calve.cli.output import duration, print_json
from calve.cli.state import State, json_option
from calve.connection import load_file, step_files
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calve.cli.session import Document
    from calve.definition import Definition, Loaded
    from calve.operations import Operations


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@json_option
@click.pass_obj
def validate(state: State, files: tuple[Path, ...]) -> int:
    """Check workflow definitions without running them.

    A FILE is YAML, JSON or Python (calve.dsl), - reads standard input, and a folder means every such file in it.
    Every problem is shown with its position and, where possible, a suggestion. The exit code is 1 if there is an error.
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
            click.echo(f"{result.name}: not a workflow, left out")
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

    Values known only at run time (outputs of steps, ids of the instance) stay as written. SQL files are shown as text.
    """
    from calve.definition import installed, rendered, to_json, to_yaml

    project = state.settings.project
    for result in load_file(file, project):
        shown = rendered(result.required(), params, installed(), files=step_files(file, project)).as_json()
        click.echo(to_json(shown, indent=2) if state.json else to_yaml(shown).rstrip("\n"))


@click.command()
@json_option
def schema() -> None:
    """Print the JSON Schema of definitions, which editors use to complete and check YAML."""
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


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--inactive", is_flag=True, help="Store the version without activating it.")
@json_option
@click.pass_obj
def push(state: State, files: tuple[Path, ...], *, inactive: bool) -> int:
    r"""Store definitions as new versions of their workflows, ready to run.

    \b
      calve push pipeline.yaml
      calve push workflows/

    A FILE is YAML, JSON or Python (calve.dsl), - reads standard input, and a folder means every such file in it.
    All definitions are checked first: if one is invalid, none is pushed.
    """
    known = vocabulary_of(state)
    loaded = [
        result
        for file, is_named in found(files)
        for result in load_file(file, state.settings.project, known)
        if is_named or is_workflow(result)
    ]
    definitions = accepted(state, loaded)
    if definitions is None:
        return 1
    _show_warnings(state, loaded)
    with state.operations() as operations:
        pushed = [keep(operations, definition, inactive=inactive) for definition in definitions]
        kept = operations.instances_kept()
    if state.json:
        print_json({"ok": True, "pushed": pushed, "problems": _problems(loaded), "instances_kept_seconds": kept})
        return 0
    for version in pushed:
        click.echo(f"{shown(version)}{' (not active)' if inactive else ''}")
    if kept is not None and any(version["workflow_version_id"] == 1 for version in pushed):
        click.echo(f"Instances are kept for {_span(kept)}; set retention.instances to change it.", err=True)
    return 0


def _span(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    return duration(timedelta(seconds=seconds)) if rest else f"{days} days"


def _show_warnings(state: State, loaded: "Iterable[Loaded]") -> None:
    for result in () if state.json else loaded:
        for problem in result.problems:
            show_problem(result.name, problem, err=True)


def shown(version: "Document") -> str:
    """Return the name of a version."""
    return f"{version['workflow_id']} version {version['workflow_version_id']}"


def accepted(state: State, loaded: "Iterable[Loaded]") -> "list[Definition] | None":
    """Return the definitions if all of them can be pushed; otherwise show their problems and return None."""
    loaded = [result.to_push() for result in loaded]
    definitions = [result.definition for result in loaded if result.definition is not None]
    if len(definitions) == len(loaded):
        _check_different(loaded)
        return definitions
    if state.json:
        print_json({"ok": False, "pushed": [], "problems": _problems(loaded)})
        return None
    for result in loaded:
        for problem in result.problems:
            show_problem(result.name, problem)
    click.echo(
        f"{len(loaded) - len(definitions)} of {len(loaded)} definitions are invalid; nothing was pushed.", err=True
    )
    return None


def keep(operations: "Operations", definition: "Definition", *, inactive: bool = False) -> "Document":
    """Push a definition, and return its version."""
    chosen = definition.model_copy(update={"is_active": False}) if inactive else definition
    version = operations.push(chosen.as_json())
    metadata = version["metadata"]
    return {
        "workflow_id": metadata["workflow_id"],
        "workflow_version_id": metadata["workflow_version_id"],
        "is_active": version["is_active"],
        "create_time": metadata["create_time"],
        "author": metadata.get("version_author", ""),
    }


def _problems(loaded: "Iterable[Loaded]") -> "list[Document]":
    return [{"file": result.name, **problem.as_json()} for result in loaded for problem in result.problems]


def _check_different(loaded: "Iterable[Loaded]") -> None:
    places: dict[str, list[str]] = {}
    for result in loaded:
        places.setdefault(result.required().workflow.id, []).append(result.name)
    for workflow_id, names in places.items():
        if len(names) > 1:
            files = ", ".join(dict.fromkeys(names))
            raise RequestInvalid(f"{workflow_id} is defined more than once: {files}.", remedy="Push one of them.")
