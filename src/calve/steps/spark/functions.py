"""Runs a user's Python function in a process of its own, with the session that was opened for the step."""

import json
import os
from collections.abc import Mapping
from typing import Any

from calve.engine.ports import Outcome, State, StepContext
from calve.steps import python_runner
from calve.steps.endings import outcome
from calve.steps.places import Place
from calve.steps.processes import MAIN, Program, run
from calve.steps.python import FAILURE, RETURNED, explained
from calve.steps.spark.failing import LOST, brief
from calve.steps.spark.opening import Opened
from calve.steps.surroundings import Surroundings


def run_function(opened: Opened, surroundings: Surroundings, config: Mapping[str, Any], branch: str) -> Outcome:
    """Call the function; what it returns becomes outputs, if that is a map."""
    context = opened.context

    def program(place: Place) -> Program:
        job = place.write("job.json", json.dumps(_job(opened, surroundings, config, place)))
        return Program(
            (surroundings.python, str(python_runner.__file__), str(job)), _environment(context, surroundings)
        )

    # What ended on another branch has written nothing to this one.
    ending = run(context, surroundings, program, name=branch or MAIN)
    found = explained(outcome(ending, context, more=[RETURNED]), ending.place)
    if found.state not in {State.DONE, State.STOPPED, State.TIMED_OUT} and (words := opened.last_words()) is not None:
        context.log(f"-- what Spark printed last:{words}\n")
        return Outcome(State.PLATFORM_ERROR, message=f"{config['function']}: {LOST}")
    outputs = {name: value for name, value in found.outputs.items() if name != "exit_code"}
    return Outcome(found.state, outputs, found.artifacts, _told(found.message))


def _told(message: str) -> str:
    """Return the cause of an error in one line, where it is one of Spark's; the rest stands in the log."""
    kind, colon, text = message.partition(": ")
    return f"{kind.rpartition('.')[2]}: {brief(text)}" if colon and kind.startswith("pyspark.") else message


def _job(opened: Opened, surroundings: Surroundings, config: Mapping[str, Any], place: Place) -> dict[str, Any]:
    given = {
        "function": _located(str(config["function"]), surroundings),
        "url": opened.url,
        "args": list(config.get("args", ())),
        "parameters": dict(config.get("parameters", {})),
    }
    return {
        "callable": "calve.steps.spark.calling:call",
        "args": [],
        "kwargs": given,
        "returned": str(place.results / RETURNED),
        "failure": str(place.results / FAILURE),
    }


def _located(function: str, surroundings: Surroundings) -> str:
    """Return the name of a function with the file it is in, if it names one, where that lies."""
    where, colon, name = function.rpartition(":")
    return f"{surroundings.locate(where, 'The Python file')}{colon}{name}" if where.endswith(".py") else function


def _environment(context: StepContext, surroundings: Surroundings) -> dict[str, str]:
    environment = surroundings.environment_for(context, {})
    search = [str(surroundings.project), *filter(None, [environment.get("PYTHONPATH")])]
    return {"PYTHONUNBUFFERED": "1", **environment, "PYTHONPATH": os.pathsep.join(search)}
