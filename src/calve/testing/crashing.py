"""Processes that really die: work is done in a child, which kills itself (``kill -9``) at the N-th failpoint.

The children are forks of one small server process that holds no connection, no thread and no JVM, so that a crash
costs milliseconds and disturbs nobody.
"""

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass
from io import StringIO
from multiprocessing.connection import Connection, Pipe
from typing import Any

from calve import failpoints
from calve.app import open_captures
from calve.capture import Captures
from calve.settings import Settings

Work = Callable[[Captures, Any], Any]
"""What a child does; a function that can be imported, and its argument."""

_PATIENCE = 120


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended."""

    killed: bool
    result: Any = None
    points: tuple[str, ...] = ()
    """The failpoints it passed, where it was told to count."""
    error: str | None = None


class Crashes:
    """Runs work in processes that may be killed; close it when done."""

    def __init__(self) -> None:
        self._line, far = Pipe()
        start = f"from calve.testing import crashing; crashing.serve({far.fileno()})"
        self._server = subprocess.Popen([sys.executable, "-c", start], pass_fds=[far.fileno()])  # noqa: S603 - ours
        far.close()

    def close(self) -> None:
        """End the server."""
        self._line.close()
        self._server.wait(_PATIENCE)

    def run(self, settings: Settings, work: Work, argument: Any = None, *, plan: str | None = None) -> Ended:
        """Do work on a fresh ``Captures`` in a new process, with failpoints armed by ``plan``.

        Raises:
            AssertionError: the work failed otherwise than by being killed.
        """
        self._line.send((settings, work, argument, plan))
        if not self._line.poll(_PATIENCE):
            raise AssertionError(f"{work.__name__} took more than {_PATIENCE} s in its process")
        ended: Ended = self._line.recv()
        if ended.error is not None:
            raise AssertionError(f"{work.__name__} failed in its process:\n{ended.error}")
        return ended


def serve(handle: int) -> None:
    """Fork a child for every request that comes in, and tell how it ended; the server's side of ``Crashes``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    line = Connection(handle)
    while True:
        try:
            settings, work, argument, plan = line.recv()
        except EOFError:
            return
        line.send(_in_child(settings, work, argument, plan))


def _in_child(settings: Settings, work: Work, argument: Any, plan: str | None) -> Ended:
    near, far = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        near.close()
        _work(far, settings, work, argument, plan)
    far.close()
    try:
        ended: Ended | None = near.recv()
    except EOFError:
        ended = None
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return Ended(killed=True)
    return ended or Ended(killed=False, error=f"it ended with status {status} and no word")


def _work(line: Connection, settings: Settings, work: Work, argument: Any, plan: str | None) -> None:
    """Do the work, say what came of it, and end without any clean-up."""
    try:
        failpoints.arm(plan)
        with redirect_stderr(StringIO()) as said, open_captures(settings) as captures:
            result = work(captures, argument)
        points = [word for word in said.getvalue().split() if "." in word]
        line.send(Ended(killed=False, result=result, points=tuple(points)))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent raises it
        line.send(Ended(killed=False, error=traceback.format_exc()))
    finally:
        os._exit(0)
