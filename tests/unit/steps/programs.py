"""What tests of steps that run programs share: workspace, contexts, and waiting for what is bound to happen."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.unit.steps.contexts import FakeContext

from calve.steps.processes.supervisor import start_of
from calve.steps.processes.workspace import Workspace

SLOW = "sleep 600"
"""A program that ends only if it is ended."""


def workspace(folder: Path, **changes: Any) -> Workspace:
    """Return the workspace of a project in ``folder``, on this machine."""
    environment = {**os.environ, "CALVE_STORE__URL": "postgresql://user:canary@host/db"}  # noqa: TID251 - a worker's
    given = {"project": folder, "environment": environment, "python": sys.executable, "grace_seconds": 5.0, **changes}
    return Workspace(**given)


def shell(folder: Path, command: Any, **more: Any) -> FakeContext:
    """Return the context of a Shell step."""
    return FakeContext(folder, {"shell": {"command": command, **more}})


def until(condition: Callable[[], bool]) -> None:
    """Wait for what must happen; fail if it does not, in a time that only a broken machine would take."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def number_in(path: Path) -> int:
    """Return the process number that a program wrote to a file, once it did."""
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def is_gone(pid: int) -> bool:
    """Tell whether a process is over."""
    return not start_of(pid)


def killed(_job: object, context: Any) -> None:
    """Die as a process does that a driver has crashed; the work of a fork."""
    context.log("was killed here\n")
    os.kill(os.getpid(), signal.SIGKILL)
