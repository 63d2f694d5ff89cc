"""The Shell step: runs a command, a script or a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calve.definition.step_types import SHELL
from calve.engine import Outcome, State, StepContext
from calve.steps.config import fields, text
from calve.steps.processes import ProcessFolder, Program, outcome_of, run_program
from calve.steps.programs.program_step import ProgramStep

(_CHOOSE,) = SHELL.choose
_PROGRAMS = _CHOOSE.names


class Shell(ProgramStep):
    """Runs a command or a script on the worker."""

    def run(self, context: StepContext) -> Outcome:
        """Run the command; a step without one succeeds."""
        config = _with_script(fields(context, SHELL), context)
        if not any(name in config for name in _PROGRAMS):
            return Outcome(State.DONE, {"exit_code": 0}, message="There was nothing to run: the step has no command.")

        def program(folder: ProcessFolder) -> Program:
            return Program(self._argv(config, folder), self._environment(config, context), self._cwd(config))

        completed = run_program(context, self._workspace, program)
        fatal = config.get("fatal_codes", ())
        return outcome_of(completed, context, success=config["success_codes"], fatal=fatal)

    def _argv(self, config: Mapping[str, Any], folder: ProcessFolder) -> tuple[str, ...]:
        given = config["interpreter"]
        interpreter = given.split() if isinstance(given, str) else [text(word) for word in given]
        arguments = [text(word) for word in config.get("args", ())]
        command = config.get("command")
        if isinstance(command, list | tuple):
            return (*map(text, command), *arguments)
        return (*interpreter, str(self._script(config, folder)), *arguments)

    def _script(self, config: Mapping[str, Any], folder: ProcessFolder) -> Path:
        """Return the file to run.

        A command is written to a file too: in an argument, every user of the machine could read its secrets.
        """
        if "file" in config:
            return self._workspace.locate(config["file"], "The script")
        name = "command" if "command" in config else "script"
        return folder.write(name, config[name])


def _with_script(config: dict[str, Any], context: StepContext) -> dict[str, Any]:
    """Add the ``script`` param beside the config map, where Maestro's shell template expects it."""
    script = context.params.get(_CHOOSE.beside)
    if script is None or any(name in config for name in _PROGRAMS):
        return config
    return {**config, "script": text(script)}
