"""``calve push``: definitions become versions of workflows."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from calve.cli.files import found, is_workflow, load_file, show_problem
from calve.cli.output import duration, print_json
from calve.cli.state import State, json_option
from calve.cli.words import words
from calve.errors import RequestInvalid

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calve.cli.desk import Desk, Document
    from calve.definition import Definition, Loaded

_MISSING = "script_missing"
"""A warning while a definition is written; once it is pushed, the script would be missing for good."""


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--inactive", is_flag=True, help="Keep the version without making it the active one.")
@json_option
@click.pass_obj
def push(state: State, files: tuple[Path, ...], *, inactive: bool) -> int:
    r"""Keep definitions as new versions of their workflows, ready to run.

    \b
      calve push pipeline.yaml
      calve push workflows/

    A FILE is YAML, JSON or Python (calve.dsl), - is standard input, and a folder stands for all such files in it.
    Everything is checked first: if anything is wrong, nothing is pushed.
    """
    known = words(state)
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
    with state.desk() as desk:
        pushed = [keep(desk, definition, inactive=inactive) for definition in definitions]
        kept = desk.instances_kept()
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
    """Return which version it is."""
    return f"{version['workflow_id']} version {version['workflow_version_id']}"


def accepted(state: State, loaded: "Iterable[Loaded]") -> "list[Definition] | None":
    """Return the definitions if all of them can be pushed; otherwise show what is wrong with which."""
    loaded = list(loaded)
    definitions = [result.definition for result in loaded if result.definition and not _lacks_script(result)]
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
        f"{len(loaded) - len(definitions)} of {len(loaded)} definitions cannot be pushed; nothing was.", err=True
    )
    return None


def keep(desk: "Desk", definition: "Definition", *, inactive: bool = False) -> "Document":
    """Push one definition."""
    return desk.push(definition.model_copy(update={"is_active": False}) if inactive else definition)


def _problems(loaded: "Iterable[Loaded]") -> "list[Document]":
    return [{"file": result.name, **problem.as_json()} for result in loaded for problem in result.problems]


def _lacks_script(result: "Loaded") -> bool:
    return any(problem.code == _MISSING for problem in result.problems)


def _check_different(loaded: "Iterable[Loaded]") -> None:
    places: dict[str, list[str]] = {}
    for result in loaded:
        places.setdefault(result.required().workflow.id, []).append(result.name)
    for workflow_id, names in places.items():
        if len(names) > 1:
            files = ", ".join(dict.fromkeys(names))
            raise RequestInvalid(f"{workflow_id} is described more than once: {files}.", remedy="Push one of them.")
