"""Carries out Python steps: a function, a file or a text, in a process of its own."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calve.definition.step_types.programs import PYTHON
from calve.engine.ports import Outcome, State, StepContext
from calve.steps.configs import fields, text
from calve.steps.endings import outcome
from calve.steps.failures import fatal, settled
from calve.steps.outputs import LIMIT
from calve.steps.places import Place
from calve.steps.processes import Program, end, run
from calve.steps.retries import Kind, evidence_in, state_of
from calve.steps.surroundings import Surroundings

RETURNED = "returned.json"
"""What the function returned."""
FAILURE = "failure.json"
"""What the runner says of an exception."""
_RUNNER = Path(__file__).with_name("python_runner.py")
_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class Python:
    """Runs a Python function, file or text."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def execute(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        return settled(self._execute, context)

    def terminate(self, context: StepContext) -> None:
        """End it and all that it started."""
        end(context, self._surroundings)

    def _execute(self, context: StepContext) -> Outcome:
        config = fields(context, PYTHON)
        ending = run(context, self._surroundings, lambda place: self._program(context, config, place))
        found = outcome(ending, context, more=[RETURNED])
        return explained(found, ending.place)

    def _program(self, context: StepContext, config: Mapping[str, Any], place: Place) -> Program:
        folders = [str(self._surroundings.locate(text(item), "A folder of path")) for item in config.get("path", ())]
        job = place.write("job.json", json.dumps(self._job(config, place, len(folders))))
        cwd = self._surroundings.locate(config["cwd"], "The folder to run in") if "cwd" in config else None
        environment = self._environment(context, config, folders)
        return Program((self._interpreter(config), str(_RUNNER), str(job)), environment, cwd)

    def _job(self, config: Mapping[str, Any], place: Place, script_index: int) -> dict[str, Any]:
        results = {"returned": str(place.results / RETURNED), "failure": str(place.results / FAILURE)}
        arguments = list(config.get("args", ()))
        if "callable" in config:
            what = _checked(config["callable"])
            return {**results, "callable": what, "args": arguments, "kwargs": dict(config.get("kwargs", {}))}
        file = self._file(config, place)
        return {**results, "file": file, "args": [text(item) for item in arguments], "script_index": script_index}

    def _file(self, config: Mapping[str, Any], place: Place) -> str:
        if "file" in config:
            return str(self._surroundings.locate(config["file"], "The Python file"))
        return str(place.write("source.py", config["source"]))

    def _interpreter(self, config: Mapping[str, Any]) -> str:
        """Return the Python to run; a bare name is looked for on PATH."""
        given = str(config.get("interpreter", self._surroundings.python))
        return str(self._surroundings.locate(given, "The interpreter")) if os.sep in given else given

    def _environment(self, context: StepContext, config: Mapping[str, Any], folders: list[str]) -> dict[str, str]:
        """Return the environment: modules are found in the folders of ``path``, then in the project's."""
        environment = self._surroundings.environment_for(context, config.get("env", {}))
        inherited = [environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else []
        search = os.pathsep.join([*folders, str(self._surroundings.project), *inherited])
        return {"PYTHONUNBUFFERED": "1", **environment, "PYTHONPATH": search}


def _checked(name: str) -> str:
    if not _CALLABLE.fullmatch(name):
        raise fatal(f"callable is {name!r}, but must be written as package.module:function.")
    return name


def explained(found: Outcome, place: Place) -> Outcome:
    """Return a failed outcome with what the runner says about it: the error, and whether a retry can cure it."""
    if found.state is not State.USER_ERROR:  # what killed it is known
        return found
    try:
        failure = json.loads(place.result(FAILURE, LIMIT))
    except (OSError, ValueError):
        return found
    return Outcome(_state(failure), found.outputs, found.artifacts, failure["message"])


def _state(failure: Mapping[str, Any]) -> State:
    """Return whether another try is worth it, by what the runner says of the exception."""
    known = [(Kind.EXCEPTION, name) for name in failure["exceptions"]]
    code = [(Kind.SQLSTATE, failure["sqlstate"])] if failure["sqlstate"] else []
    return state_of([*known, *code, *evidence_in(failure["message"])])
