"""The Python step: calls a function, or runs a file or a text, in a process of its own."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calve.definition.step_types import PYTHON
from calve.engine import Outcome, State, StepContext
from calve.steps.config import fields, text
from calve.steps.failures import fatal
from calve.steps.processes import MAIN, OUTPUT_LIMIT, ProcessFolder, Program, Workspace, outcome_of, run_program
from calve.steps.programs.program_step import ProgramStep
from calve.steps.retries import Kind, evidence_in, state_of

_RETURNED = "returned.json"
"""The file with the map that the function returned."""
_FAILURE = "failure.json"
"""The file in which the runner reports an exception."""
_RUNNER = Path(__file__).with_name("python_runner.py")
_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


@dataclass(frozen=True, slots=True)
class PythonJob:
    """A job for ``python_runner``, and the Python that runs it."""

    job: Mapping[str, Any]
    """``callable``, ``args`` and ``kwargs``; or ``file``, ``args`` and ``script_index``."""
    interpreter: str
    environment: Mapping[str, str]
    cwd: Path | None = None


def run_python(
    context: StepContext, workspace: Workspace, make: Callable[[ProcessFolder], PythonJob], *, name: str = MAIN
) -> Outcome:
    """Run a job in a process of its own; if a function returns a map, its entries become outputs.

    Raises:
        StepFailed: it cannot be started.
    """

    def program(folder: ProcessFolder) -> Program:
        made = make(folder)
        results = {"returned": str(folder.results / _RETURNED), "failure": str(folder.results / _FAILURE)}
        job = folder.write("job.json", json.dumps({**made.job, **results}))
        return Program((made.interpreter, str(_RUNNER), str(job)), made.environment, made.cwd)

    completed = run_program(context, workspace, program, name=name)
    return _explained(outcome_of(completed, context, more=[_RETURNED]), completed.folder)


def python_environment(workspace: Workspace, inherited: Mapping[str, str], path: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment of a Python that finds modules in ``path``, then in the project."""
    search = [*path, str(workspace.project), *filter(None, [inherited.get("PYTHONPATH")])]
    return {"PYTHONUNBUFFERED": "1", **inherited, "PYTHONPATH": os.pathsep.join(search)}


class Python(ProgramStep):
    """Runs a Python function, file or text."""

    def run(self, context: StepContext) -> Outcome:
        """Run it to its end."""
        config = fields(context, PYTHON)
        return run_python(context, self._workspace, lambda folder: self._job(context, config, folder))

    def _job(self, context: StepContext, config: Mapping[str, Any], folder: ProcessFolder) -> PythonJob:
        path = [str(self._workspace.locate(text(item), "A folder of path")) for item in config.get("path", ())]
        environment = python_environment(self._workspace, self._environment(config, context), path)
        what = self._what(config, folder, len(path))
        return PythonJob(what, self._interpreter(config), environment, self._cwd(config))

    def _what(self, config: Mapping[str, Any], folder: ProcessFolder, script_index: int) -> dict[str, Any]:
        arguments = list(config.get("args", ()))
        if "callable" in config:
            called = _checked(config["callable"])
            return {"callable": called, "args": arguments, "kwargs": dict(config.get("kwargs", {}))}
        file = self._file(config, folder)
        return {"file": file, "args": [text(item) for item in arguments], "script_index": script_index}

    def _file(self, config: Mapping[str, Any], folder: ProcessFolder) -> str:
        if "file" in config:
            return str(self._workspace.locate(config["file"], "The Python file"))
        return str(folder.write("source.py", config["source"]))

    def _interpreter(self, config: Mapping[str, Any]) -> str:
        """Return the Python to run; a name without a folder is searched on PATH."""
        given = str(config.get("interpreter", self._workspace.python))
        return str(self._workspace.locate(given, "The interpreter")) if os.sep in given else given


def _checked(name: str) -> str:
    if not _CALLABLE.fullmatch(name):
        raise fatal(f"callable is {name!r}, but must be written as package.module:function.")
    return name


def _explained(found: Outcome, folder: ProcessFolder) -> Outcome:
    """Add to a failed outcome what the runner reports: the error, and whether a retry may help."""
    if found.state is not State.USER_ERROR:  # the cause is known already
        return found
    try:
        failure = json.loads(folder.result(_FAILURE, OUTPUT_LIMIT))
    except (OSError, ValueError):
        return found
    return Outcome(_state(failure), found.outputs, found.artifacts, failure["message"])


def _state(failure: Mapping[str, Any]) -> State:
    """Decide by the exception that the runner reports whether a retry may help."""
    known = [(Kind.EXCEPTION, name) for name in failure["exceptions"]]
    code = [(Kind.SQLSTATE, failure["sqlstate"])] if failure["sqlstate"] else []
    return state_of([*known, *code, *evidence_in(failure["message"])])
