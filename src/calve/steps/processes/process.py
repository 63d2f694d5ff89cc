"""Runs a program under a supervisor, logs what it prints, and ends it when the step is interrupted.

``supervisor`` explains why there is a supervisor between the worker and the program. ``folders`` finds and ends an
earlier process of the same attempt.
"""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import IO, Protocol

from calve.engine import SPOOL, StepContext
from calve.steps.failures import fatal
from calve.steps.processes.folders import ProcessFolder, kill_orphans, locked, machine, process_folder, process_folders
from calve.steps.processes.isolation import Sandbox, SystemUser
from calve.steps.processes.streams import Frames, Output
from calve.steps.processes.workspace import Workspace

MAIN = "main"
"""The name of a step's main process."""
_BOOT = "import sys; sys.path.append(sys.argv[1]); import os, supervisor; supervisor.main(); os._exit(0)"
_TICK_MS = 100
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Program:
    """What to run."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path | None = None
    """None: a fresh folder."""


class EndReason(StrEnum):
    """Why a process ended."""

    EXITED = "EXITED"
    NOT_STARTED = "NOT_STARTED"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"
    LOST = "LOST"


@dataclass(frozen=True, slots=True)
class CompletedProcess:
    """A process that has ended."""

    reason: EndReason
    folder: ProcessFolder
    code: int = 0
    """EXITED: the exit code, or minus the number of the signal that ended it."""
    tail: tuple[str, ...] = ()
    """The last lines of standard error; or why it was not started; or the last line of its supervisor."""
    stdout_tail: tuple[str, ...] = ()
    """EXITED: the last lines of standard output."""


class Owner(Protocol):
    """What a program runs for: an attempt, or the worker itself."""

    @property
    def folder(self) -> Path:
        """Where a fresh working directory is made."""
        ...

    @property
    def timeout(self) -> float | None:
        """How many seconds are left."""
        ...

    def log(self, text: str) -> None:
        """Log what the program prints."""
        ...

    def mask(self, text: str) -> str:
        """Return a text with its secrets masked."""
        ...

    def is_interrupted(self) -> bool:
        """Return whether the program must end now."""
        ...


def run_program(
    context: StepContext, workspace: Workspace, make: Callable[[ProcessFolder], Program], *, name: str = MAIN
) -> CompletedProcess:
    """Run one of an attempt's programs until it ends; if it ended while no worker watched it, return that result.

    An earlier process of the same name is ended first, before ``make`` is called.

    Raises:
        StepFailed: the program cannot be run, or its arguments hold a secret.
    """
    folder = process_folder(context, name)
    with locked(folder, workspace.grace_seconds) as lock:
        code = None if context.is_first else folder.exit_code()
        if code is not None:
            context.log(f"{name} ended with exit code {code} while no worker watched it; it does not run again.\n")
            return CompletedProcess(EndReason.EXITED, folder, code)
        folder.clear()
        _log_loss(context)
        try:
            program = make(folder)
            refuse_shown_secrets(context, program.argv)
            isolation = workspace.isolation
            user = isolation.user_of(context.place.workflow_id)
            context.keep({"process": {**machine(), "key": context.key, "name": name}})
            return _Process(context, workspace, folder, program, user, isolation.sandbox).follow(lock)
        finally:
            folder.forget()


def supervise(
    owner: Owner, workspace: Workspace, folder: ProcessFolder, make: Callable[[ProcessFolder], Program]
) -> CompletedProcess:
    """Run a program of the worker itself to its end; it does not outlive the worker."""
    with locked(folder, workspace.grace_seconds) as lock:
        folder.clear()
        try:
            return _Process(owner, workspace, folder, make(folder)).follow(lock)
        finally:
            folder.forget()


def terminate_programs(context: StepContext, workspace: Workspace) -> None:
    """End all processes of an attempt on this machine; return when they are gone."""
    for folder in process_folders(context):
        with locked(folder, workspace.grace_seconds):
            pass


def refuse_shown_secrets(context: StepContext, argv: tuple[str, ...]) -> None:
    """Refuse a command line that would show a secret.

    Raises:
        StepFailed: an argument holds one.
    """
    if any(context.holds_secret(word) for word in argv):
        raise fatal(
            "A secret cannot be an argument of a program: every user of the machine could read it. "
            "Pass it in env, or write it in the text of the command or script."
        )


def _log_loss(context: StepContext) -> None:
    earlier = context.artifacts.get("process")
    if context.is_first or not isinstance(earlier, Mapping):
        return
    host = str(earlier.get("host"))
    where = "" if host == machine()["host"] else f" on {host}"
    context.log(f"The worker that ran this step{where} died, and its processes with it; the program starts again.\n")


class _Process:
    """A running program, as the worker sees it."""

    def __init__(
        self,
        owner: Owner,
        workspace: Workspace,
        folder: ProcessFolder,
        program: Program,
        user: SystemUser | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._user = user
        self._sandbox = sandbox
        self._owner = owner
        self._workspace = workspace
        self._folder = folder
        self._program = program
        self._output = Output(owner.log, owner.mask)
        timeout = owner.timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._completed: CompletedProcess | None = None
        self._end_reason: EndReason | None = None

    def follow(self, lock: int) -> CompletedProcess:
        """Run the program to its end; it does not outlive this call, even if that raises."""
        message = self._message(lock)
        with self._folder.diagnosis.open("wb") as diagnosis, self._start(lock, diagnosis) as supervisor:
            try:
                self._instruct(supervisor, message)
                self._listen(supervisor)
            finally:
                _close(supervisor)
        self._output.close()
        return self._result()

    def _start(self, lock: int, diagnosis: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own supervisor
            [self._workspace.python, "-I", "-S", "-c", _BOOT, str(Path(__file__).parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=diagnosis,
            bufsize=0,
            pass_fds=(lock,),
            start_new_session=True,
            env=self._workspace.allowed_environment,
        )

    def _message(self, lock: int) -> bytes:
        """Encode the job for the supervisor; it goes through a pipe, because other users can read a command line."""
        program = self._program
        if not program.argv or not program.argv[0]:
            raise fatal("There is nothing to run: the command is empty.")
        cwd = program.cwd or _fresh(self._owner.folder / "work")
        grace = str(self._workspace.grace_seconds)
        who = [str(self._folder.path), "|".join(machine().values()), str(os.getpid())]
        environment = {**program.environment, "CALVE_OUTPUT": str(self._folder.output)}
        sandbox = self._sandbox
        argv = program.argv if sandbox is None else sandbox.command(self._owner.folder, cwd, program.argv)
        words = [*argv, *(f"{name}={value}" for name, value in environment.items())]
        around = [_numbers(self._user), "0" if sandbox is None else "1"]
        fields = [*who, str(cwd), grace, str(lock), *around, str(len(argv)), *words]
        if self._user is not None:
            _hand_over(self._owner.folder, self._folder, self._user)
        if any("\0" in word for word in fields):
            raise fatal("The command, its arguments or its working directory contain a NUL character.")
        content = b"\0".join(os.fsencode(word) for word in fields)
        return len(content).to_bytes(8, "big") + content

    def _instruct(self, supervisor: subprocess.Popen[bytes], message: bytes) -> None:
        view = memoryview(message)
        try:
            while view:
                view = view[os.write(_fileno(supervisor.stdin), view) :]
        except BrokenPipeError:
            return  # it died already, which _result reports

    def _listen(self, supervisor: subprocess.Popen[bytes]) -> None:
        frames = Frames()
        source = _fileno(supervisor.stdout)
        poller = select.poll()
        poller.register(source, select.POLLIN)
        while True:
            self._check(supervisor)
            if not poller.poll(_TICK_MS):
                continue
            data = os.read(source, _CHUNK)
            if not data:
                return
            for letter, content in frames.feed(data):
                self._take(letter, content)

    def _check(self, supervisor: subprocess.Popen[bytes]) -> None:
        """Ask the supervisor to end the program if the step is interrupted or its time is up."""
        if self._end_reason is not None:
            return
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._end_reason = EndReason.TIMED_OUT
        elif self._owner.is_interrupted():
            self._end_reason = EndReason.TIMED_OUT if self._is_out_of_time() else EndReason.STOPPED
        if self._end_reason is not None:
            supervisor.send_signal(signal.SIGTERM)

    def _is_out_of_time(self) -> bool:
        timeout = self._owner.timeout
        return timeout is not None and timeout <= 0

    def _take(self, letter: str, content: bytes) -> None:
        if letter in {"O", "E"}:
            self._output.feed(letter, content)
        elif letter == "F":
            self._completed = CompletedProcess(
                EndReason.NOT_STARTED, self._folder, tail=(self._start_failure(content.decode()),)
            )
        elif letter == "X":
            self._completed = CompletedProcess(EndReason.EXITED, self._folder, int(content))
        elif self._folder.was_ended_by_us():
            self._completed = CompletedProcess(EndReason.STOPPED, self._folder)

    def _start_failure(self, failure: str) -> str:
        where, _, number = failure.partition(" ")
        known = {"cwd": f"the folder {self._program.cwd}", "program": self._program.argv[0]}
        if self._user is not None:
            known["user"] = f"the user {self._user.name}"
        what = known.get(where, where)
        return f"{what}: {os.strerror(int(number))}"

    def _result(self) -> CompletedProcess:
        """Return how the process ended; a supervisor that reported nothing was killed by something else."""
        tail = tuple(self._output.tail)
        if self._end_reason is not None:
            return CompletedProcess(self._end_reason, self._folder, tail=tail)
        if self._completed is None:
            kill_orphans(self._folder)
            said = self._folder.diagnosis.read_text("utf-8", "replace").splitlines()
            return CompletedProcess(EndReason.LOST, self._folder, tail=tuple(said[-1:]))
        if self._completed.reason is EndReason.EXITED:
            return CompletedProcess(
                EndReason.EXITED, self._folder, self._completed.code, tail, tuple(self._output.stdout_tail)
            )
        return self._completed


def _close(supervisor: subprocess.Popen[bytes]) -> None:
    """Close the pipe that keeps the program alive, and wait until program and supervisor are gone."""
    assert supervisor.stdin is not None  # noqa: S101 - it was asked for
    supervisor.stdin.close()
    assert supervisor.stdout is not None  # noqa: S101 - the same
    supervisor.stdout.close()
    supervisor.wait()


def _fileno(pipe: IO[bytes] | None) -> int:
    assert pipe is not None  # noqa: S101 - it was asked for
    return pipe.fileno()


def _numbers(user: SystemUser | None) -> str:
    return "" if user is None else " ".join(map(str, (user.uid, user.gid, *user.groups)))


def _hand_over(attempt: Path, folder: ProcessFolder, user: SystemUser) -> None:
    """Give a program that runs as another user the folders of its attempt that are meant for it.

    The attempt's folder itself, and the process's, stay ours: nobody can put a link there that we would follow.
    """
    for above in (attempt, attempt.parent):
        above.chmod(0o711)
    for path in attempt.iterdir():
        if path.is_dir() and path.name != SPOOL and path != folder.path.parent:
            os.chown(path, user.uid, user.gid, follow_symlinks=False)
    folder.hand_over(user)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
