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
import json
import runpy
import traceback
from pathlib import Path
from types import CoroutineType
from typing import Any

_OWN = {__file__, runpy.__file__, "<frozen runpy>"}


class Missing(Exception):
    """There is no such function."""


def main() -> None:
    """Carry out the job whose file is the first argument; what the user's code raises is told in the job's failure."""
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    try:
        _carry_out(job)
    except Missing as error:
        _report(job, str(error), is_fatal=True)
        sys.exit(str(error))
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is to be told
        sys.stderr.write("".join(traceback.format_exception(type(error), error, _users_frames(error))))
        _report(job, "".join(traceback.format_exception_only(type(error), error)).strip(), is_fatal=False)
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
            raise Missing(f"There is no module {error.name}; it was looked for in {sys.path}.") from None
        raise
    for part in path.split("."):
        if not hasattr(found, part):
            raise Missing(f"There is no {path} in the module {module_name}.")
        found = getattr(found, part)
    return found


def _keep(job: dict[str, Any], result: Any) -> None:
    if isinstance(result, dict):
        Path(job["returned"]).write_text(json.dumps({"params": result}, default=_as_json), "utf-8")
    elif result is not None:
        sys.stderr.write(f"What the function returned is no map, so it sets no params: {type(result).__name__}\n")


def _as_json(value: Any) -> Any:
    """Return a date, a number of numpy, a set, a path or a decimal as JSON can hold it."""
    for name in ("isoformat", "tolist", "__fspath__"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if type(value).__name__ == "Decimal":
        return str(value)
    raise TypeError(f"the function returned a {type(value).__name__}, which no param can hold")


def _users_frames(error: BaseException) -> Any:
    """Return the traceback from the user's code on."""
    place = error.__traceback__
    while place is not None and place.tb_frame.f_code.co_filename in _OWN:
        place = place.tb_next
    return place


def _report(job: dict[str, Any], message: str, *, is_fatal: bool) -> None:
    Path(job["failure"]).write_text(json.dumps({"message": message, "is_fatal": is_fatal}), "utf-8")


if __name__ == "__main__":
    main()
