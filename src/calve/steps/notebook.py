"""Carries out Notebook steps: papermill runs a Jupyter notebook, in a process of its own."""

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from calve.definition.step_types.programs import NOTEBOOK, parameters_files
from calve.engine.ports import Outcome, State, StepContext
from calve.steps.configs import fields, text
from calve.steps.endings import outcome
from calve.steps.failures import fatal, settled
from calve.steps.places import Place
from calve.steps.processes import Ending, Program, end, refuse_shown_secrets, run
from calve.steps.repositories import fetch
from calve.steps.retries import Kind, state_of
from calve.steps.surroundings import Surroundings

_MISSING = "No module named papermill"
_REMOTE = "://"


class Notebook:
    """Runs a notebook with papermill, after fetching its repository, if it has one."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def execute(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        return settled(self._execute, context)

    def terminate(self, context: StepContext) -> None:
        """End it and all that it started."""
        end(context, self._surroundings)

    def _execute(self, context: StepContext) -> Outcome:
        config = fields(context, NOTEBOOK)
        folder, failed = self._fetched(context, config)
        if failed is not None:
            return failed
        source = self._source(config, folder)
        target = self._target(context, config, source)

        def program(place: Place) -> Program:
            made = self._program(context, config, place, source, target)
            prefix = config.get("init_command", "").strip()
            refuse_shown_secrets(context, made.argv)
            return _prefixed(made, prefix, folder, place) if prefix else made

        return _told(run(context, self._surroundings, program), context, target)

    def _fetched(self, context: StepContext, config: Mapping[str, Any]) -> tuple[Path, Outcome | None]:
        """Fetch the repository, if there is one; return the folder that paths begin in, and what went wrong."""
        if "git_repo" not in config:
            return self._surroundings.project, None
        branch, commit = config.get("git_branch"), config.get("git_commit")
        folder, ending = fetch(context, self._surroundings, config["git_repo"], branch, commit)
        failed = _failure(ending, context, "The repository could not be fetched.")
        if failed is not None and failed.state is State.USER_ERROR:
            return folder, replace(failed, state=state_of([(Kind.GIT, failed.message)], failed.state))
        return folder, failed

    def _environment(self, context: StepContext, config: Mapping[str, Any]) -> dict[str, str]:
        named = {"PAPERMILL_RUN_ID": config["run_id"]} if "run_id" in config else {}
        return {"PYTHONUNBUFFERED": "1", **self._surroundings.environment_for(context, named)}

    def _source(self, config: Mapping[str, Any], folder: Path) -> str:
        """Return the notebook: a path or an address; a repository's own must be in the repository."""
        given = config["input_path"]
        if _REMOTE in given:
            return str(given)
        found = replace(self._surroundings, project=folder).locate(given, "The notebook")
        if "git_repo" in config and not found.resolve().is_relative_to(folder.resolve()):
            raise fatal(f"The notebook is not in the repository: {given}.")
        return str(found)

    def _target(self, context: StepContext, config: Mapping[str, Any], source: str) -> str:
        given = config.get("output_path")
        if given is None:
            folder = context.folder / "notebook"  # a program that runs as another user can write there
            folder.mkdir(mode=0o700, exist_ok=True)
            return str(folder / Path(source).name)
        if _REMOTE in given:
            return str(given)
        path = self._surroundings.resolve(given, "output_path")
        path.parent.mkdir(parents=True, exist_ok=True)
        return str(path)

    def _program(
        self, context: StepContext, config: Mapping[str, Any], place: Place, source: str, target: str
    ) -> Program:
        given = yaml.safe_dump(dict(config.get("parameters", {})), allow_unicode=True)
        parameters = place.write("parameters.yaml", given)
        options = ["--no-progress-bar", "--log-output", "--parameters_file", str(parameters)]
        options += ["--kernel", config["kernel"]] if "kernel" in config else []
        cwd = None if _REMOTE in source else Path(source).parent
        options += self._resolved(_options(config.get("papermill_arguments", ())), context, place, cwd)
        argv = (self._surroundings.python, "-m", "papermill", *options, source, target)
        return Program(argv, self._environment(context, config), cwd)

    def _resolved(self, options: list[str], context: StepContext, place: Place, cwd: Path | None) -> list[str]:
        """Return papermill's options with copies of their parameters files, in which references are resolved."""
        found = list(options)
        folder = replace(self._surroundings, project=cwd or self._surroundings.project)
        for index, option, path in parameters_files(options):
            text = folder.read(path, "notebook.papermill_arguments", "The parameters file", context)
            found[index] = f"{option}{place.write(f'parameters-{index}{Path(path).suffix}', text)}"
        return found


def _prefixed(program: Program, prefix: str, folder: Path, place: Place) -> Program:
    """Return a program with a text before its command line, as Maestro builds it: one line for a shell.

    The text may install or activate another papermill, so the name is looked up on PATH; calve's own comes last there.
    It runs in ``folder``, the notebook where it would without the text.
    """
    own = place.write("bin/papermill", f'#!/bin/sh\nexec {shlex.join(program.argv[:3])} "$@"\n')
    own.chmod(0o700)
    environment = {**program.environment, "PATH": f"{program.environment.get('PATH', os.defpath)}:{own.parent}"}
    options = [*program.argv[3:-2], *(["--cwd", str(program.cwd)] if program.cwd else []), *program.argv[-2:]]
    script = place.write("command", f"{prefix} {shlex.join(['papermill', *options])}\n")
    return Program(("bash", str(script)), environment, folder)


def _options(given: str | list[Any] | Mapping[str, Any]) -> list[str]:
    """Return more options of papermill: from a command line, a list or a map."""
    if isinstance(given, str):
        try:
            return shlex.split(given)
        except ValueError as error:
            raise fatal(f"papermill_arguments is no command line: {error}.") from error
    if isinstance(given, Mapping):
        return [word for name, value in given.items() for word in _option(name.lstrip("-"), value)]
    return [text(item) for item in given]


def _option(name: str, value: Any) -> Iterator[str]:
    """Yield one option of a map: true and false are flags, a list repeats it, a map gives it names and values."""
    option = f"-{name}" if len(name) == 1 else f"--{_spelt(name)}"
    if isinstance(value, bool):
        yield option if value else f"--no-{_spelt(name)}"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from (option, key, text(item))
    else:
        for item in value if isinstance(value, list | tuple) else [value]:
            yield from (option, text(item))


def _spelt(name: str) -> str:
    """Return an option as papermill spells it: parameters_file, but log-output."""
    return name if name.startswith("parameters") else name.replace("_", "-")


def _failure(ending: Ending, context: StepContext, what: str) -> Outcome | None:
    found = outcome(ending, context)
    return None if found.state is State.DONE else Outcome(found.state, message=f"{what} {found.message}")


def _told(ending: Ending, context: StepContext, target: str) -> Outcome:
    found = outcome(ending, context, is_telling=True)
    given = {name: value for name, value in found.outputs.items() if name != "exit_code"}
    told = replace(found, outputs={**given, "output_path": target})
    if found.state is not State.DONE and any(_MISSING in line for line in ending.tail):
        message = "Notebooks need papermill, which is not installed: pip install 'calve[notebook]'"
        return replace(told, state=State.FATAL_ERROR, message=message)
    return told
