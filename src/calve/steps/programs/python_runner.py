"""Runs a Python function or script that a job file describes.

The interpreter that a step names runs this file, even if calve is not installed there: so it uses only the standard
library, and works with Python 3.8 or later. The job is in a file because other users can read a command line.
"""
# ruff: noqa: E402 - see the first statement

from __future__ import annotations

import os
import sys

# Modules in this folder could hide installed modules of the same name, such as java, git or python.
sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != os.path.realpath(os.path.dirname(__file__))]  # noqa: PTH120 - pathlib would be looked for there

import importlib
import inspect
import json
import runpy
import traceback
from pathlib import Path
from types import CoroutineType
from typing import Any

_OWN = {__file__, runpy.__file__, "<frozen runpy>"}


class Unusable(Exception):
    """The function does not exist or does not accept the arguments, or no param can hold its result."""


def main() -> None:
    """Run the job in the file that the first argument names; report exceptions in the job's ``failure`` file."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    try:
        _carry_out(job)
    except Unusable as error:
        _report(job, str(error), error)
        sys.exit(str(error))
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is to be told
        sys.stderr.write("".join(traceback.format_exception(type(error), error, _users_frames(error))))
        _report(job, _told(error), error)
        sys.exit(1)


def _carry_out(job: dict[str, Any]) -> None:
    if "callable" in job:
        sys.argv = [job["callable"]]
        _keep(job, _called(_function(job["callable"]), job))
    else:
        sys.argv = [job["file"], *job["args"]]
        sys.path.insert(job["script_index"], str(Path(job["file"]).parent))
        runpy.run_path(job["file"], run_name="__main__")


def _called(function: Any, job: dict[str, Any]) -> Any:
    try:
        inspect.signature(function).bind(*job["args"], **job["kwargs"])
    except TypeError as error:
        raise Unusable(f"{job['callable']} cannot be called like this: {error}.") from None
    except ValueError:
        pass  # a built-in function without a signature
    result = function(*job["args"], **job["kwargs"])
    if not isinstance(result, CoroutineType):
        return result
    import asyncio  # slow to import

    return asyncio.run(result)


def _function(name: str) -> Any:
    module_name, _, path = name.partition(":")
    try:
        found = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and f"{module_name}.".startswith(f"{error.name}."):
            raise Unusable(f"There is no module {error.name}; searched in {sys.path}.") from None
        raise
    for part in path.split("."):
        if not hasattr(found, part):
            raise Unusable(f"There is no {path} in the module {module_name}.")
        found = getattr(found, part)
    return found


def _keep(job: dict[str, Any], result: Any) -> None:
    if isinstance(result, dict):
        Path(job["returned"]).write_text(json.dumps({"params": result}, default=_as_json), "utf-8")
    elif result is not None:
        sys.stderr.write(f"The function did not return a map, so it sets no params: {type(result).__name__}\n")


def _as_json(value: Any) -> Any:
    """Convert a date, a NumPy number or array, a set, a path or a decimal to a type that JSON has."""
    for name in ("isoformat", "tolist", "__fspath__"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if type(value).__name__ == "Decimal":
        return str(value)
    raise Unusable(f"The function returned a {type(value).__name__}, which no param can hold.")


def _users_frames(error: BaseException) -> Any:
    """Return the traceback without the frames before the user's code."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename in _OWN:
        place = place.tb_next
    return place


def _report(job: dict[str, Any], message: str, error: BaseException) -> None:
    """Report an error with the evidence that decides on a retry: the names of its classes, and its SQLSTATE if any."""
    report = {
        "message": message,
        "exceptions": [kind.__name__ for kind in type(error).__mro__],
        "sqlstate": _sqlstate(error),
    }
    Path(job["failure"]).write_text(json.dumps(report), "utf-8")


def _told(error: BaseException) -> str:
    """Return the message of an error, starting with its class; Python prints the position of a SyntaxError first."""
    lines = traceback.format_exception_only(type(error), error)
    if isinstance(error, SyntaxError):
        lines = [*lines[-1:], *lines[:-1]]
    return "".join(lines).strip()


def _sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of an error from PySpark, a database driver or SQLAlchemy; empty if it has none."""
    for candidate in (error, getattr(error, "orig", None)):
        ask = getattr(candidate, "getSqlState", None)
        state = ask() if callable(ask) else getattr(candidate, "sqlstate", None)
        if isinstance(state, str):
            return state
    return ""


if __name__ == "__main__":
    main()
