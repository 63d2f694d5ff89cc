"""Runs a user's Python function in a process of its own, with the session of the step."""

from collections.abc import Mapping
from typing import Any

from calve.engine import Outcome, State
from calve.steps.processes import MAIN, ProcessFolder, Workspace
from calve.steps.programs import PythonJob, python_environment, run_python
from calve.steps.spark.errors import LOST, brief
from calve.steps.spark.sessions import StepSession


def run_function(session: StepSession, workspace: Workspace, config: Mapping[str, Any], branch: str) -> Outcome:
    """Call the function; if it returns a map, its entries become outputs."""
    context = session.context

    def job(_: ProcessFolder) -> PythonJob:
        called = {
            "function": _located(str(config["function"]), workspace),
            "url": session.url,
            "args": list(config.get("args", ())),
            "parameters": dict(config.get("parameters", {})),
        }
        what = {"callable": "calve.steps.spark.function_call:call", "args": [], "kwargs": called}
        environment = python_environment(workspace, workspace.environment_for(context, {}))
        return PythonJob(what, workspace.python, environment)

    # A process that ended on another branch has written nothing to this one.
    found = run_python(context, workspace, job, name=branch or MAIN)
    is_failure = found.state not in {State.DONE, State.STOPPED, State.TIMED_OUT}
    if is_failure and (output := session.last_output()) is not None:
        context.log(f"-- what Spark printed last:{output}\n")
        return Outcome(State.INFRASTRUCTURE_ERROR, message=f"{config['function']}: {LOST}")
    outputs = {name: value for name, value in found.outputs.items() if name != "exit_code"}
    return Outcome(found.state, outputs, found.artifacts, _shortened(found.message))


def _shortened(message: str) -> str:
    """Return an error from Spark in one line; the log contains all of it."""
    kind, colon, text = message.partition(": ")
    return f"{kind.rpartition('.')[2]}: {brief(text)}" if colon and kind.startswith("pyspark.") else message


def _located(function: str, workspace: Workspace) -> str:
    """Return ``path.py:name`` with the absolute path; return ``module:name`` unchanged."""
    where, colon, name = function.rpartition(":")
    return f"{workspace.locate(where, 'The Python file')}{colon}{name}" if where.endswith(".py") else function
