"""Several processes of a server or of workers: restarted when they crash, and ended together."""

import logging
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

import click

from calve.cli.interrupts import counted, within
from calve.cli.state import State
from calve.environment import start, withdraw
from calve.errors import CalveError, EnvironmentUnfit

if TYPE_CHECKING:
    import socket
    import subprocess
    from multiprocessing.connection import Connection
    from types import FrameType

    from calve.settings import Settings

_LOG = logging.getLogger(__name__)
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds to wait before a restart after the first, second … crash in a row; after more crashes, the last value."""
STEADY = 60.0
"""Seconds after which a process counts as healthy, so that its next restart waits for the first of ``PAUSES``."""
END_SECONDS = 7.0
"""Seconds that processes may take to end before they are killed."""


class Process(Protocol):
    """A process, such as ``multiprocessing.Process``."""

    @property
    def pid(self) -> int | None:
        """The process id."""

    @property
    def exitcode(self) -> int | None:
        """The exit code; None while the process runs."""

    def terminate(self) -> None:
        """Ask the process to end."""

    def kill(self) -> None:
        """Kill the process."""

    def join(self, timeout: float | None = None) -> None:
        """Wait for the process to end."""


@dataclass(slots=True)
class Slot:
    """One of the processes, and its crashes."""

    process: Process
    began: float
    crashes: int = 0
    """The number of crashes in a row, each soon after a start."""
    due: float | None = None
    """When to restart the process, if it has crashed."""


class Supervisor:
    """Starts processes, and restarts those that crash."""

    def __init__(self, number: int, start: Callable[[], Process], clock: Callable[[], float] = time.monotonic) -> None:
        self._start, self._clock = start, clock
        self._slots: list[Slot] = []
        try:
            for _ in range(number):
                self._slots.append(Slot(start(), clock()))
        except BaseException:
            self.kill()
            raise

    @property
    def processes(self) -> list[Process]:
        """The processes, running or not."""
        return [slot.process for slot in self._slots]

    def look(self) -> None:
        """Restart crashed processes, each after a wait that grows with every crash; callers call this often."""
        now = self._clock()
        for slot in self._slots:
            if slot.due is not None:
                if now >= slot.due:
                    slot.process, slot.began, slot.due = self._start(), now, None
            elif slot.process.exitcode is not None:
                slot.crashes = 1 if now - slot.began >= STEADY else slot.crashes + 1
                pause = PAUSES[min(slot.crashes, len(PAUSES)) - 1]
                slot.due = now + pause
                died = "Process %s of the server has ended (exit code %s); it is restarted in %g s."
                _LOG.warning(died, slot.process.pid, slot.process.exitcode, pause)

    def end(self) -> None:
        """Ask all processes to end, wait for them, and kill those that do not."""
        until = self._clock() + END_SECONDS
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.join(max(0.0, until - self._clock()))
        self.kill()

    def kill(self) -> None:
        """Kill all processes that still run."""
        for process in self.processes:
            process.kill()


_LOG = logging.getLogger(__name__)
_OFTEN = 0.2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def server_processes(settings: "Settings", host: str, reserved: "socket.socket", number: int) -> Iterator[Supervisor]:
    """Serve a project with several processes until the block ends, which also closes the socket.

    Args:
        settings: the settings of the project.
        host: the address to listen on.
        reserved: the socket that reserves the address.
        number: how many processes.

    Raises:
        EnvironmentUnfit: no process has started.
    """
    context = multiprocessing.get_context("spawn")
    signs: WeakKeyDictionary[Process, Connection] = WeakKeyDictionary()  # removed with the process

    def start() -> Process:
        sign, theirs = context.Pipe(duplex=False)
        with closing(theirs), _held_back():
            process = context.Process(target=serve_in_process, args=(settings, host, reserved, theirs), name="server")
            process.start()
        signs[process] = sign
        return process

    with closing(reserved):
        supervisor = Supervisor(number, start)
        try:
            if not sum(_is_up(sign) for sign in signs.values()):
                raise EnvironmentUnfit(
                    "No process of the server has started.", remedy="See what they have logged, or run calve doctor."
                )
            yield supervisor
        finally:
            supervisor.end()


def serve_in_process(settings: "Settings", host: str, reserved: "socket.socket", sign: "Connection") -> None:
    """Serve in a child process, until SIGTERM arrives, the server ends by itself, or the parent is gone."""
    withdraw()
    is_told = False

    def tell(_: int, __: "FrameType | None") -> None:
        nonlocal is_told
        is_told = True

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all processes; the parent sends SIGTERM
    signal.signal(signal.SIGTERM, tell)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    parent = multiprocessing.parent_process()
    try:
        with _serving(settings, host, reserved) as is_over:
            sign.send_bytes(b"up")
            while not is_told and not is_over() and parent is not None and parent.is_alive():
                parent.join(_OFTEN)
    except CalveError as error:
        _LOG.error("%s", error)
        sys.exit(1)


@contextmanager
def _serving(settings: "Settings", host: str, reserved: "socket.socket") -> "Iterator[Callable[[], bool]]":
    """Serve; yield a function that tells whether the server has ended by itself."""
    from calve import failpoints
    from calve.api import listen_beside, serve
    from calve.app import open_project, web_on
    from calve.telemetry import set_up

    set_up(settings.log)
    failpoints.arm(settings.failpoints)
    threads = settings.server.threads
    with open_project(settings) as project:
        app = web_on(project, host)
        with serve(app, listen_beside(reserved), threads=threads) as serving:
            yield lambda: serving.is_over


@contextmanager
def _held_back() -> Iterator[None]:
    """Block signals while a process starts: it inherits the mask, and unblocks them when its handlers are set."""
    resource_tracker.ensure_running()  # otherwise the first start runs it, which unblocks the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_up(sign: "Connection") -> bool:
    try:
        return bool(sign.recv_bytes())
    except EOFError:  # it has died
        return False


_OFTEN = 0.2
_PAUSE = 1.0
"""Minimum number of seconds between two starts of the same worker."""


class WorkerProcesses:
    """Several ``calve worker`` processes."""

    def __init__(self, state: State, size: int, options: tuple[str, ...]) -> None:
        self._settings = state.settings
        project = str(state.settings.project)
        self._command = [sys.executable, "-m", "calve", "-C", project, "worker", "--parent", str(os.getpid()), *options]
        self._command += ["--json"] if state.json else []
        self._size = size
        self._processes: dict[int, tuple[subprocess.Popen[bytes], float]] = {}

    def run(self, greet: Callable[[], None], check: Callable[[], None] = lambda: None) -> None:
        """Keep the workers running until SIGINT or SIGTERM, or until ``check`` raises; then let them finish."""
        with counted(self._kill, within=within(self._settings)) as signals:
            greet()
            try:
                while not signals():
                    check()
                    self._restart()
                    time.sleep(_OFTEN)
            finally:
                for process, _ in self._processes.values():
                    process.terminate()
                for process, _ in self._processes.values():
                    process.wait()

    def _restart(self) -> None:
        for slot in range(self._size):
            process, since = self._processes.get(slot, (None, 0.0))
            if process is not None and process.poll() is None:
                continue
            if process is not None and time.monotonic() - since < _PAUSE:
                continue
            if process is not None:
                click.echo(f"worker {process.pid} exited with code {process.returncode}; restarting it", err=True)
            # Each worker is in its own session, so that Ctrl-C only reaches this process, which sends SIGTERM to them.
            self._processes[slot] = (start(self._command), time.monotonic())

    def _kill(self) -> None:
        for process, _ in self._processes.values():
            process.kill()
