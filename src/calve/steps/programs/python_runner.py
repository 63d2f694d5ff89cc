"""Runs a Python function or script as a job file says.

This file is run by whichever Python a step asks for, also one that has no calve: it needs the standard library alone,
and Python 3.8 or later. What goes in is in a file, as others can read an argument list.
"""
# ruff: noqa: E402 - see the first statement

from __future__ import annotations

import os
import sys

# The modules beside this file have the names of others: http, say.
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
    """There is no such function, it does not take the arguments, or no param can hold what it returned."""


def main() -> None:
    """Execute the job whose file is the first argument; exceptions of the user's code are in the job's failure."""
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
        pass  # a function that does not tell what it takes
    result = function(*job["args"], **job["kwargs"])
    if not isinstance(result, CoroutineType):
        return result
    import asyncio  # takes long to import

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
    """Return a date, a number of numpy, a set, a path or a decimal as JSON can hold it."""
    for name in ("isoformat", "tolist", "__fspath__"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if type(value).__name__ == "Decimal":
        return str(value)
    raise Unusable(f"The function returned a {type(value).__name__}, which no param can hold.")


def _users_frames(error: BaseException) -> Any:
    """Return the traceback from the user's code on."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename in _OWN:
        place = place.tb_next
    return place


def _report(job: dict[str, Any], message: str, error: BaseException) -> None:
    """Tell of an error, with what calve judges it by: the names of its classes, and its SQLSTATE if it has one."""
    report = {
        "message": message,
        "exceptions": [kind.__name__ for kind in type(error).__mro__],
        "sqlstate": _sqlstate(error),
    }
    Path(job["failure"]).write_text(json.dumps(report), "utf-8")


def _told(error: BaseException) -> str:
    """Return what an error says, its name first: of a SyntaxError Python tells the place before that."""
    lines = traceback.format_exception_only(type(error), error)
    if isinstance(error, SyntaxError):
        lines = [*lines[-1:], *lines[:-1]]
    return "".join(lines).strip()


def _sqlstate(error: BaseException) -> str:
    """Return the SQLSTATE of an error of PySpark, of a database driver, or of SQLAlchemy."""
    for candidate in (error, getattr(error, "orig", None)):
        ask = getattr(candidate, "getSqlState", None)
        state = ask() if callable(ask) else getattr(candidate, "sqlstate", None)
        if isinstance(state, str):
            return state
    return ""


if __name__ == "__main__":
    main()
