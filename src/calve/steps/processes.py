"""Runs a program under a supervisor, streams what it prints into the log, and ends it when the step is interrupted.

Why there is a supervisor between the worker and the program, and what it sees to, stands in ``supervisor``. How an
earlier process of the same attempt is found and ended stands in ``places``.
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

from calve.engine.logs import SPOOL
from calve.engine.ports import StepContext
from calve.steps.failures import fatal
from calve.steps.isolation import Sandbox, User
from calve.steps.places import Place, held, kill_orphans, machine, place_of, places_of
from calve.steps.streams import Frames, Output
from calve.steps.surroundings import Surroundings

MAIN = "main"
"""The name of the process that does a step's own work."""
_BOOT = "import sys; sys.path.append(sys.argv[1]); import os, supervisor; supervisor.main(); os._exit(0)"
_TICK_MS = 100
_CHUNK = 65_536


@dataclass(frozen=True, slots=True)
class Program:
    """What to run."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    cwd: Path | None = None
    """A fresh folder, if none is given."""


class How(StrEnum):
    """How a process came to its end."""

    EXITED = "EXITED"
    NOT_STARTED = "NOT_STARTED"
    STOPPED = "STOPPED"
    TIMED_OUT = "TIMED_OUT"
    LOST = "LOST"


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a process."""

    how: How
    place: Place
    code: int = 0
    """EXITED: the exit code, or minus the number of the signal that ended it."""
    tail: tuple[str, ...] = ()
    """The last lines of standard error, or why it was not started, or what its supervisor said at last."""
    printed: tuple[str, ...] = ()
    """EXITED: the last lines of standard output."""


class Owner(Protocol):
    """For whom a program runs: an attempt, or the worker itself."""

    @property
    def folder(self) -> Path:
        """Where a fresh folder for the program to run in is made."""
        ...

    @property
    def timeout(self) -> float | None:
        """How many seconds there are left."""
        ...

    def log(self, text: str) -> None:
        """Take what the program prints."""
        ...

    def mask(self, text: str) -> str:
        """Return a text with stars for secrets."""
        ...

    def is_interrupted(self) -> bool:
        """Tell whether the program is to end now."""
        ...


def run(
    context: StepContext, surroundings: Surroundings, make: Callable[[Place], Program], *, name: str = MAIN
) -> Ending:
    """Run one of an attempt's programs to its end, or take the end that it has come to under another worker.

    Nothing is made and nothing is started while an earlier process of the same name is alive: it is ended first.

    Raises:
        StepFailed: there is no such program to run, or its arguments hold a secret.
    """
    place = place_of(context, name)
    with held(place, surroundings.grace_seconds) as lock:
        code = None if context.is_first else place.exit_code()
        if code is not None:
            context.log(f"{name} ended with {code} while no worker looked on; that is taken as its end.\n")
            return Ending(How.EXITED, place, code)
        place.clear()
        _tell_loss(context)
        try:
            program = make(place)
            refuse_shown_secrets(context, program.argv)
            isolation = surroundings.isolation
            user = isolation.user_of(context.place.workflow_id)
            context.keep({"process": {**machine(), "key": context.key, "name": name}})
            return _Process(context, surroundings, place, program, user, isolation.sandbox).follow(lock)
        finally:
            place.forget()


def supervise(owner: Owner, surroundings: Surroundings, place: Place, make: Callable[[Place], Program]) -> Ending:
    """Run a program that belongs to no attempt to its end; it is gone when the worker is."""
    with held(place, surroundings.grace_seconds) as lock:
        place.clear()
        try:
            return _Process(owner, surroundings, place, make(place)).follow(lock)
        finally:
            place.forget()


def end(context: StepContext, surroundings: Surroundings) -> None:
    """End all processes that an attempt has on this machine; come back when they are gone."""
    for place in places_of(context):
        with held(place, surroundings.grace_seconds):
            pass


def refuse_shown_secrets(context: StepContext, argv: tuple[str, ...]) -> None:
    """Refuse a command line that would show a secret.

    Raises:
        StepFailed: a word of it holds one.
    """
    if any(context.holds_secret(word) for word in argv):
        raise fatal(
            "A secret cannot be an argument of a program: everybody on the machine could read it. "
            "Give it by env, or in the text of the command or script."
        )


def _tell_loss(context: StepContext) -> None:
    earlier = context.artifacts.get("process")
    if context.is_first or not isinstance(earlier, Mapping):
        return
    host = str(earlier.get("host"))
    where = "" if host == machine()["host"] else f" on {host}"
    context.log(f"The worker that carried this out{where} is gone, and its processes with it: it is run anew.\n")


class _Process:
    """A program that runs, as the worker sees it."""

    def __init__(
        self,
        owner: Owner,
        surroundings: Surroundings,
        place: Place,
        program: Program,
        user: User | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._user = user
        self._sandbox = sandbox
        self._owner = owner
        self._surroundings = surroundings
        self._place = place
        self._program = program
        self._output = Output(owner.log, owner.mask)
        timeout = owner.timeout
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._ending: Ending | None = None
        self._cause: How | None = None

    def follow(self, lock: int) -> Ending:
        """Start the program and come back with its end; whatever happens here, it does not outlive this call."""
        message = self._message(lock)
        with self._place.diagnosis.open("wb") as diagnosis, self._start(lock, diagnosis) as supervisor:
            try:
                self._instruct(supervisor, message)
                self._listen(supervisor)
            finally:
                _part(supervisor)
        self._output.close()
        return self._judged()

    def _start(self, lock: int, diagnosis: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - our own supervisor
            [self._surroundings.python, "-I", "-S", "-c", _BOOT, str(Path(__file__).parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=diagnosis,
            bufsize=0,
            pass_fds=(lock,),
            start_new_session=True,
            env=self._surroundings.allowed_environment,
        )

    def _message(self, lock: int) -> bytes:
        """Return the job as the supervisor wants it; it goes through a pipe, as others can read an argument list."""
        program = self._program
        if not program.argv or not program.argv[0]:
            raise fatal("There is nothing to run: the command is empty.")
        cwd = program.cwd or _fresh(self._owner.folder / "work")
        grace = str(self._surroundings.grace_seconds)
        who = [str(self._place.folder), "|".join(machine().values()), str(os.getpid())]
        environment = {**program.environment, "CALVE_OUTPUT": str(self._place.output)}
        sandbox = self._sandbox
        argv = program.argv if sandbox is None else sandbox.command(self._owner.folder, cwd, program.argv)
        words = [*argv, *(f"{name}={value}" for name, value in environment.items())]
        around = [_numbers(self._user), "0" if sandbox is None else "1"]
        fields = [*who, str(cwd), grace, str(lock), *around, str(len(argv)), *words]
        if self._user is not None:
            _hand_over(self._owner.folder, self._place, self._user)
        if any("\0" in word for word in fields):
            raise fatal("There is a NUL in the command, its arguments or its folder; no program can be given one.")
        content = b"\0".join(os.fsencode(word) for word in fields)
        return len(content).to_bytes(8, "big") + content

    def _instruct(self, supervisor: subprocess.Popen[bytes], message: bytes) -> None:
        view = memoryview(message)
        try:
            while view:
                view = view[os.write(_fileno(supervisor.stdin), view) :]
        except BrokenPipeError:
            return  # it is gone already: _judged says so

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
        """Ask for the end if the step is interrupted; the supervisor goes on until it has come."""
        if self._cause is not None:
            return
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._cause = How.TIMED_OUT
        elif self._owner.is_interrupted():
            self._cause = How.TIMED_OUT if self._is_out_of_time() else How.STOPPED
        if self._cause is not None:
            supervisor.send_signal(signal.SIGTERM)

    def _is_out_of_time(self) -> bool:
        timeout = self._owner.timeout
        return timeout is not None and timeout <= 0

    def _take(self, letter: str, content: bytes) -> None:
        if letter in {"O", "E"}:
            self._output.feed(letter, content)
        elif letter == "F":
            self._ending = Ending(How.NOT_STARTED, self._place, tail=(self._reason(content.decode()),))
        elif letter == "X":
            self._ending = Ending(How.EXITED, self._place, int(content))
        elif self._place.was_ended_by_us():
            self._ending = Ending(How.STOPPED, self._place)

    def _reason(self, failure: str) -> str:
        where, _, number = failure.partition(" ")
        known = {"cwd": f"the folder {self._program.cwd}", "program": self._program.argv[0]}
        if self._user is not None:
            known["user"] = f"the user {self._user.name}"
        what = known.get(where, where)
        return f"{what}: {os.strerror(int(number))}"

    def _judged(self) -> Ending:
        """Return the end; a supervisor that says nothing about it was killed from outside."""
        tail = tuple(self._output.tail)
        if self._cause is not None:
            return Ending(self._cause, self._place, tail=tail)
        if self._ending is None:
            kill_orphans(self._place)
            said = self._place.diagnosis.read_text("utf-8", "replace").splitlines()
            return Ending(How.LOST, self._place, tail=tuple(said[-1:]))
        if self._ending.how is How.EXITED:
            return Ending(How.EXITED, self._place, self._ending.code, tail, tuple(self._output.printed))
        return self._ending


def _part(supervisor: subprocess.Popen[bytes]) -> None:
    """Close the pipe that keeps the program alive, and wait until all of it is gone."""
    assert supervisor.stdin is not None  # noqa: S101 - it was asked for
    supervisor.stdin.close()
    assert supervisor.stdout is not None  # noqa: S101 - the same
    supervisor.stdout.close()
    supervisor.wait()


def _fileno(pipe: IO[bytes] | None) -> int:
    assert pipe is not None  # noqa: S101 - it was asked for
    return pipe.fileno()


def _numbers(user: User | None) -> str:
    return "" if user is None else " ".join(map(str, (user.uid, user.gid, *user.groups)))


def _hand_over(folder: Path, place: Place, user: User) -> None:
    """Give a program that runs as another user the folders of its attempt that are meant for it.

    The attempt's folder itself, and that of the process, stay ours: nobody can put a link there that we would follow.
    """
    for above in (folder, folder.parent):
        above.chmod(0o711)
    for path in folder.iterdir():
        if path.is_dir() and path.name != SPOOL and path != place.folder.parent:
            os.chown(path, user.uid, user.gid, follow_symlinks=False)
    place.hand_over(user)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
