"""Carries out Shell steps: a command, a script or a file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calve.definition.step_types.programs import SHELL
from calve.engine.ports import Outcome, State, StepContext
from calve.steps.configs import fields, text
from calve.steps.endings import outcome
from calve.steps.failures import settled
from calve.steps.places import Place
from calve.steps.processes import Program, end, run
from calve.steps.surroundings import Surroundings

(_CHOOSE,) = SHELL.choose
_PROGRAMS = _CHOOSE.names


def _with_script(config: dict[str, Any], context: StepContext) -> dict[str, Any]:
    """Return the fields with the script that stands beside them, where Maestro's shell template looks for it."""
    script = context.params.get(_CHOOSE.beside)
    if script is None or any(name in config for name in _PROGRAMS):
        return config
    return {**config, "script": text(script)}


class Shell:
    """Runs a command or a script on the worker."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def execute(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        return settled(self._execute, context)

    def terminate(self, context: StepContext) -> None:
        """End it and all that it started."""
        end(context, self._surroundings)

    def _execute(self, context: StepContext) -> Outcome:
        config = _with_script(fields(context, SHELL), context)
        if not any(name in config for name in _PROGRAMS):
            return Outcome(State.DONE, {"exit_code": 0}, message="There was nothing to run: the step has no command.")
        ending = run(context, self._surroundings, lambda place: self._program(context, config, place))
        fatal = config.get("fatal_codes", ())
        return outcome(ending, context, success=config["success_codes"], fatal=fatal)

    def _program(self, context: StepContext, config: Mapping[str, Any], place: Place) -> Program:
        environment = self._surroundings.environment_for(context, config.get("env", {}))
        cwd = self._surroundings.locate(config["cwd"], "The folder to run in") if "cwd" in config else None
        return Program(self._argv(config, place), environment, cwd)

    def _argv(self, config: Mapping[str, Any], place: Place) -> tuple[str, ...]:
        given = config["interpreter"]
        interpreter = given.split() if isinstance(given, str) else [text(word) for word in given]
        arguments = [text(word) for word in config.get("args", ())]
        command = config.get("command")
        if isinstance(command, list | tuple):
            return (*map(text, command), *arguments)
        return (*interpreter, str(self._script(config, place)), *arguments)

    def _script(self, config: Mapping[str, Any], place: Place) -> Path:
        """Return the file to run. A command line is one too: as an argument others could read the secrets in it."""
        if "file" in config:
            return self._surroundings.locate(config["file"], "The script")
        name = "command" if "command" in config else "script"
        return place.write(name, config[name])
