"""The Notebook step: papermill runs a Jupyter notebook in a process of its own."""

import os
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from calve.definition.step_types import NOTEBOOK, parameters_files
from calve.engine import Outcome, State, StepContext
from calve.steps.config import fields, text
from calve.steps.failures import fatal
from calve.steps.processes import (
    CompletedProcess,
    ProcessFolder,
    Program,
    outcome_of,
    refuse_shown_secrets,
    run_program,
    without_exit_code,
)
from calve.steps.programs.git import fetch
from calve.steps.programs.program_step import ProgramStep
from calve.steps.retries import Kind, state_of

_MISSING = "No module named papermill"
_REMOTE = "://"


class Notebook(ProgramStep):
    """Runs a notebook with papermill, after fetching its Git repository if it names one."""

    def run(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        config = fields(context, NOTEBOOK)
        project, failed = self._fetched(context, config)
        if failed is not None:
            return failed
        source = self._source(config, project)
        target = self._target(context, config, source)

        def program(folder: ProcessFolder) -> Program:
            made = self._program(context, config, folder, source, target)
            prefix = config.get("init_command", "").strip()
            refuse_shown_secrets(context, made.argv)
            return _prefixed(made, prefix, project, folder) if prefix else made

        return _outcome(run_program(context, self._workspace, program), context, target)

    def _fetched(self, context: StepContext, config: Mapping[str, Any]) -> tuple[Path, Outcome | None]:
        """Fetch the repository, if any; return the folder that paths are relative to, and the failure, if any."""
        if "git_repo" not in config:
            return self._workspace.project, None
        branch, commit = config.get("git_branch"), config.get("git_commit")
        folder, completed = fetch(context, self._workspace, config["git_repo"], branch, commit)
        found = outcome_of(completed, context)
        if found.state is State.DONE:
            return folder, None
        message = f"The repository could not be fetched. {found.message}"
        is_unclear = found.state is State.USER_ERROR
        state = state_of([(Kind.GIT, message)], found.state) if is_unclear else found.state
        return folder, Outcome(state, message=message)

    def _source(self, config: Mapping[str, Any], project: Path) -> str:
        """Return the notebook's path or URL; a path of a step with a repository must be inside the repository."""
        given = config["input_path"]
        if _REMOTE in given:
            return str(given)
        found = replace(self._workspace, project=project).locate(given, "The notebook")
        if "git_repo" in config and not found.resolve().is_relative_to(project.resolve()):
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
        path = self._workspace.resolve(given, "output_path")
        path.parent.mkdir(parents=True, exist_ok=True)
        return str(path)

    def _program(
        self, context: StepContext, config: Mapping[str, Any], folder: ProcessFolder, source: str, target: str
    ) -> Program:
        given = yaml.safe_dump(dict(config.get("parameters", {})), allow_unicode=True)
        parameters = folder.write("parameters.yaml", given)
        options = ["--no-progress-bar", "--log-output", "--parameters_file", str(parameters)]
        options += ["--kernel", config["kernel"]] if "kernel" in config else []
        cwd = None if _REMOTE in source else Path(source).parent
        options += self._resolved(_options(config.get("papermill_arguments", ())), context, folder, cwd)
        argv = (self._workspace.python, "-m", "papermill", *options, source, target)
        named = {"PAPERMILL_RUN_ID": config["run_id"]} if "run_id" in config else {}
        return Program(argv, {"PYTHONUNBUFFERED": "1", **self._workspace.environment_for(context, named)}, cwd)

    def _resolved(self, options: list[str], context: StepContext, folder: ProcessFolder, cwd: Path | None) -> list[str]:
        """Replace each parameters file among papermill's options by a copy with its references resolved."""
        found = list(options)
        beside = replace(self._workspace, project=cwd or self._workspace.project)
        for index, option, path in parameters_files(options):
            text = beside.read(path, "notebook.papermill_arguments", "The parameters file", context)
            found[index] = f"{option}{folder.write(f'parameters-{index}{Path(path).suffix}', text)}"
        return found


def _prefixed(program: Program, prefix: str, project: Path, folder: ProcessFolder) -> Program:
    """Put ``init_command`` before the command line, as Maestro does: a shell runs both as one line in ``project``.

    The command may install or activate another papermill, so papermill is found on PATH, where calve's own comes last.
    """
    own = folder.write("bin/papermill", f'#!/bin/sh\nexec {shlex.join(program.argv[:3])} "$@"\n')
    own.chmod(0o700)
    environment = {**program.environment, "PATH": f"{program.environment.get('PATH', os.defpath)}:{own.parent}"}
    options = [*program.argv[3:-2], *(["--cwd", str(program.cwd)] if program.cwd else []), *program.argv[-2:]]
    script = folder.write("command", f"{prefix} {shlex.join(['papermill', *options])}\n")
    return Program(("bash", str(script)), environment, project)


def _options(given: str | list[Any] | Mapping[str, Any]) -> list[str]:
    """Return further options of papermill, given as a command line, a list or a map."""
    if isinstance(given, str):
        try:
            return shlex.split(given)
        except ValueError as error:
            raise fatal(f"papermill_arguments is not a valid command line: {error}.") from error
    if isinstance(given, Mapping):
        return [word for name, value in given.items() for word in _option(name.lstrip("-"), value)]
    return [text(item) for item in given]


def _option(name: str, value: Any) -> Iterator[str]:
    """Yield one option of a map: a boolean is a flag, a list repeats the option, a map gives it names and values."""
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
    """Return an option in papermill's spelling, which mixes underscores and hyphens: parameters_file, log-output."""
    return name if name.startswith("parameters") else name.replace("_", "-")


def _outcome(completed: CompletedProcess, context: StepContext, target: str) -> Outcome:
    found = without_exit_code(outcome_of(completed, context, finds_evidence=True))
    found = replace(found, outputs={**found.outputs, "output_path": target})
    if found.state is not State.DONE and any(_MISSING in line for line in completed.tail):
        message = "Notebooks need papermill, which is not installed: pip install 'calve[notebook]'"
        return replace(found, state=State.FATAL_ERROR, message=message)
    return found
