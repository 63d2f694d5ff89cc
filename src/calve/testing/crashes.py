"""Processes that really crash: work runs in a child process that kills itself (``kill -9``) at the N-th failpoint.

The children are forks of one small server process without connections, threads or a JVM, so a crash costs
milliseconds and affects nothing else.
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
from calve.lake import Files, SqlCatalog
from calve.settings import Settings, load

Work = Callable[[Captures, Any], Any]
"""Work for a child: an importable function of captures and an argument."""

_PATIENCE = 120
_ONE_BY_ONE = Lock()
_LASTING = (
    (Path, "replace", "before"),  # a temporary file is written, but not yet renamed
    (Files, "write", "after"),
    (Files, "delete", "after"),
    (SqlCatalog, "_execute", "after"),  # a row of the catalog
)
"""Every durable operation in the lake: what it wrote survives a crash."""


@dataclass(frozen=True, slots=True)
class Request:
    """The work of a child, and where it must crash."""

    settings: Settings
    work: Work
    argument: Any
    plan: str | None
    everywhere: bool


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child ended."""

    killed: bool
    result: Any = None
    points: tuple[str, ...] = ()
    """The failpoints that it passed, if the plan was to count them."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Errand:
    """A consumer's request; the argument of the functions below."""

    tables: tuple[str, ...]
    consumer: str
    wanted: Wanted = field(default_factory=Wanted)
    lease: bool = False


def capture(captures: Captures, errand: Errand) -> str:
    """Capture, and return the capture's id; an open capture is superseded."""
    report = captures.capture(errand.tables, errand.consumer, errand.wanted, lease=errand.lease, supersede=True)
    return str(report.capture_id)


def commit(captures: Captures, errand: Errand) -> None:
    """Commit the open capture, if there is one."""
    for capture_id in _open(captures, errand):
        captures.commit(capture_id)


def abandon(captures: Captures, errand: Errand) -> None:
    """Abandon the open capture, if there is one."""
    for capture_id in _open(captures, errand):
        captures.abandon(capture_id)


def collect(captures: Captures, _: Errand) -> None:
    """Collect all garbage.

    Raises:
        AssertionError: some of the garbage cannot be removed.
    """
    problems = [problem for collected in captures.collect_garbage(timedelta(0)) for problem in collected.problems]
    if problems:
        raise AssertionError(f"garbage is left: {problems}")


def resume(captures: Captures, errand: Errand) -> None:
    """Continue after a crash, up to an open capture: clean up, and capture unless a capture is open."""
    collect(captures, errand)
    if not _open(captures, errand):
        capture(captures, errand)


def finish(captures: Captures, errand: Errand) -> None:
    """Commit the open capture, and clean up."""
    commit(captures, errand)
    collect(captures, errand)


def _open(captures: Captures, errand: Errand) -> list[str]:
    return [stored.capture_id for stored in captures.captures(errand.consumer) if stored.status is Status.OPEN]


class Crashes:
    """Runs work in processes that may be killed; close it after use."""

    def __init__(self) -> None:
        self._line, far = Pipe()
        start = f"from calve.testing import crashes; crashes.serve({far.fileno()})"
        self._server = subprocess.Popen([sys.executable, "-c", start], pass_fds=[far.fileno()])  # noqa: S603 - ours
        far.close()

    def close(self) -> None:
        """Stop the server."""
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
    ) -> ChildResult:
        """Run work on new ``Captures`` in a new process.

        Args:
            settings: the lake and the store.
            work: the function.
            argument: its argument.
            plan: arms failpoints, as ``CALVE_FAILPOINTS`` does.
            everywhere: add a failpoint at every durable operation in the lake, besides those in the code.

        Raises:
            AssertionError: the work failed in another way than by being killed.
        """
        self._line.send(Request(settings, work, argument, plan, everywhere))
        if not self._line.poll(_PATIENCE):
            raise AssertionError(f"{work.__name__} took more than {_PATIENCE} s in its process")
        ended: ChildResult = self._line.recv()
        if ended.error is not None:
            raise AssertionError(f"{work.__name__} failed in its process:\n{ended.error}")
        return ended


def serve(handle: int) -> None:
    """Fork a child for every request, and return how it ended; the server's side of ``Crashes``."""
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


def _in_child(request: Request) -> ChildResult:
    near, far = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        near.close()
        _work(far, request)
    far.close()
    try:
        ended: ChildResult | None = near.recv()
    except EOFError:
        ended = None
    near.close()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return ChildResult(killed=True)
    return ended or ChildResult(killed=False, error=f"it ended with status {status} and without a result")


def _work(line: Connection, request: Request) -> None:
    """Run the work, send the result, and exit without any clean-up."""
    try:
        if request.everywhere:
            for owner, name, when in _LASTING:
                _put_failpoint(owner, name, when)
        with redirect_stderr(StringIO()) as said, open_captures(request.settings) as captures:
            failpoints.arm(request.plan)
            result = request.work(captures, request.argument)
            failpoints.arm(None)
        told = [text.partition("failpoint ")[2] for text in said.getvalue().splitlines()]
        line.send(ChildResult(killed=False, result=result, points=tuple(point for point in told if point)))
    except BaseException:  # noqa: BLE001 - whatever it is, the parent raises it
        line.send(ChildResult(killed=False, error=traceback.format_exc()))
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
