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
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from io import StringIO
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from calve import failpoints
from calve.app import open_captures
from calve.capture import Captures, Status, Wanted
from calve.errors import TableMissing
from calve.lake import Files
from calve.lake.sql_catalog import SqlCatalog
from calve.settings import Settings, load

Work = Callable[[Captures, Any], Any]
"""What a child does; a function that can be imported, and its argument."""

_PATIENCE = 120
_ONE_BY_ONE = Lock()
_LASTING = (
    (Path, "replace", "before"),  # a file is written, but not in its place
    (Files, "write", "after"),
    (Files, "delete", "after"),
    (SqlCatalog, "_execute", "after"),  # a row of the catalog
)
"""Everything in the lake that lasts once it is done."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a child is to do, and where it is to die."""

    settings: Settings
    work: Work
    argument: Any
    plan: str | None
    everywhere: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended."""

    killed: bool
    result: Any = None
    points: tuple[str, ...] = ()
    """The failpoints it passed, where it was told to count."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Errand:
    """What a consumer wants; the argument of the works below."""

    tables: tuple[str, ...]
    consumer: str
    wanted: Wanted = field(default_factory=Wanted)
    lease: bool = False


def capture(captures: Captures, errand: Errand) -> str:
    """Capture, and return the capture's id; whatever is open is superseded."""
    report = captures.capture(errand.tables, errand.consumer, errand.wanted, lease=errand.lease, supersede=True)
    return str(report.capture_id)


def commit(captures: Captures, errand: Errand) -> None:
    """Commit what is open, if anything is."""
    for capture_id in _open(captures, errand):
        captures.commit(capture_id)


def abandon(captures: Captures, errand: Errand) -> None:
    """Give up what is open, if anything is."""
    for capture_id in _open(captures, errand):
        captures.abandon(capture_id)


def collect(captures: Captures, _: Errand) -> None:
    """Collect all garbage there is.

    Raises:
        AssertionError: some of it cannot be removed.
    """
    problems = [problem for collected in captures.collect_garbage(timedelta(0)) for problem in collected.problems]
    if problems:
        raise AssertionError(f"garbage is left: {problems}")


def resume(captures: Captures, errand: Errand) -> None:
    """Go on after a crash, as far as an open capture: clean up, and capture unless there is one."""
    collect(captures, errand)
    if not _open(captures, errand):
        capture(captures, errand)


def finish(captures: Captures, errand: Errand) -> None:
    """Commit what is open, and clean up."""
    commit(captures, errand)
    collect(captures, errand)


def _open(captures: Captures, errand: Errand) -> list[str]:
    return [stored.capture_id for stored in captures.captures(errand.consumer) if stored.status is Status.OPEN]


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

    def run(
        self,
        settings: Settings,
        work: Work,
        argument: Any = None,
        *,
        plan: str | None = None,
        everywhere: bool = False,
    ) -> Ended:
        """Do work on a fresh ``Captures`` in a new process.

        Args:
            settings: the lake and the store.
            work: what to do.
            argument: its argument.
            plan: arms failpoints, as ``CALVE_FAILPOINTS`` does.
            everywhere: put a failpoint at everything that lasts in the lake, besides those in the code.

        Raises:
            AssertionError: the work failed otherwise than by being killed.
        """
        self._line.send(Request(settings, work, argument, plan, everywhere))
        if not self._line.poll(_PATIENCE):
            raise AssertionError(f"{work.__name__} took more than {_PATIENCE} s in its process")
        ended: Ended = self._line.recv()
        if ended.error is not None:
            raise AssertionError(f"{work.__name__} failed in its process:\n{ended.error}")
        return ended


def serve(handle: int) -> None:
    """Fork a child for every request that comes in, and tell how it ended; the server's side of ``Crashes``."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with TemporaryDirectory() as folder, open_captures(load(Path(folder), {})) as captures, suppress(TableMissing):
        captures.capture(["no.table"], "nobody")  # so that everything is imported once, not by every child
    line = Connection(handle)
    while True:
        try:
            request = line.recv()
        except EOFError:
            return
        line.send(_in_child(request))


def _in_child(request: Request) -> Ended:
    near, far = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        near.close()
        _work(far, request)
    far.close()
    try:
        ended: Ended | None = near.recv()
    except EOFError:
        ended = None
    near.close()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return Ended(killed=True)
    return ended or Ended(killed=False, error=f"it ended with status {status} and no word")


def _work(line: Connection, request: Request) -> None:
    """Do the work, say what came of it, and end without any clean-up."""
    try:
        if request.everywhere:
            for owner, name, when in _LASTING:
                _put_failpoint(owner, name, when)
        with redirect_stderr(StringIO()) as said, open_captures(request.settings) as captures:
            failpoints.arm(request.plan)
            result = request.work(captures, request.argument)
            failpoints.arm(None)
        told = [text.partition("failpoint ")[2] for text in said.getvalue().splitlines()]
        line.send(Ended(killed=False, result=result, points=tuple(point for point in told if point)))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent raises it
        line.send(Ended(killed=False, error=traceback.format_exc()))
    finally:
        os._exit(0)


def _put_failpoint(owner: type, name: str, when: str) -> None:
    """Put a failpoint before or after a method."""
    real, point = getattr(owner, name), f"{when}.{owner.__name__}.{name}"

    def reach() -> None:
        with _ONE_BY_ONE:  # files are written by several threads
            failpoints.reach(point)

    @wraps(real)
    def pointed(*arguments: Any, **options: Any) -> Any:
        if when == "before":
            reach()
        result = real(*arguments, **options)
        if when == "after":
            reach()
        return result

    setattr(owner, name, pointed)
