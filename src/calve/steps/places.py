"""The folder of one process: who runs there, under whose lock, and what it left when it ended.

The lock tells for sure whether somebody still looks after a process here, since the kernel drops it with its last
holder: the worker takes it before it starts a supervisor, and the supervisor inherits it. The file ``process`` names
both processes by number and start, so that no other process is taken for them after the number was given out again.
"""

import errno
import fcntl
import os
import shutil
import signal
import socket
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from calve.engine.ports import StepContext
from calve.steps.isolation import User
from calve.steps.supervisor import start_of, stat_of

_TICK = 0.02
_MARGIN = 5.0
"""How long a supervisor may take beyond the grace period, in seconds, before it is killed itself."""


def machine() -> dict[str, str]:
    """Return what tells this machine, and this boot of it, from others: a process number means something only here."""
    boot_id = _known(Path("/proc/sys/kernel/random/boot_id").read_text).strip()
    namespace = _known(lambda: str(Path("/proc/self/ns/pid").readlink()))
    return {"host": socket.gethostname(), "boot_id": boot_id, "namespace": namespace}


def _known(ask: Callable[[], str]) -> str:
    """Return the answer; nothing where there is no /proc."""
    try:
        return ask()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, told apart from all others that ever had its number on this machine."""

    pid: int
    start: str

    def is_alive(self) -> bool:
        """Tell whether it still runs; where starts cannot be told (no /proc), any process of that number counts."""
        return start_of(self.pid) == self.start if self.start else _has_number(self.pid)

    def is_replaced(self) -> bool:
        """Tell whether another process has its number by now."""
        fields = stat_of(self.pid)
        return bool(fields) and fields[19] != self.start


def _has_number(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one process of an attempt."""

    folder: Path

    @property
    def results(self) -> Path:
        """The folder into which the program may write what it gives back."""
        return self.folder / "results"

    @property
    def output(self) -> Path:
        """The file into which the program may write its outputs."""
        return self.results / "output.json"

    @property
    def printed(self) -> tuple[Path, Path]:
        """The files with what it printed between markers."""
        return self.folder / "printed.out", self.folder / "printed.err"

    @property
    def diagnosis(self) -> Path:
        """The file with what went wrong in the supervisor."""
        return self.folder / "supervisor.err"

    def write(self, name: str, content: str) -> Path:
        """Write a file for the program, which may hold secrets: only the worker's user can read it, until the end."""
        path = self._private / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(content, "utf-8")
        return path

    def forget(self) -> None:
        """Delete the files that may hold secrets."""
        shutil.rmtree(self._private, ignore_errors=True)

    @property
    def _private(self) -> Path:
        return self.folder / "private"

    def clear(self) -> None:
        """Forget an earlier process."""
        for path in self.folder.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.results.mkdir(mode=0o700)

    def result(self, name: str, limit: int) -> bytes:
        """Return what the program wrote to one of its files: so many bytes at most.

        The program owns the folder, and may be another user's: what it put there is not followed elsewhere.

        Raises:
            FileNotFoundError: it wrote nothing.
            OSError: it is no plain file of its own.
        """
        file = os.open(self.results / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(file)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise OSError(errno.EINVAL, "It is not a plain file")
            return _read(file, limit)
        finally:
            os.close(file)

    def hand_over(self, user: User) -> None:
        """Let a program that runs as another user read what is meant for it, and write what it gives back."""
        for folder in (self.folder, self.folder.parent):
            folder.chmod(0o711)
        given = self._private.rglob("*") if self._private.exists() else ()
        for path in (self.results, self._private, *given):
            if path.exists():
                os.chown(path, user.uid, user.gid, follow_symlinks=False)

    def exit_code(self) -> int | None:
        """Return what the program ended with, minus the number of the signal that ended it; None if that is unknown."""
        try:
            return int((self.folder / "exit").read_text("ascii"))
        except (OSError, ValueError):
            return None

    def was_ended_by_us(self) -> bool:
        """Tell whether somebody asked for the end of the process."""
        return (self.folder / "ended").exists()

    def processes(self) -> tuple[Identity, Identity] | None:
        """Return the program and its supervisor, if they were started on this machine since it was booted."""
        try:
            program, supervisor, where = (self.folder / "process").read_text("utf-8").split("\n")
        except (OSError, ValueError):
            return None
        return (_identity(program), _identity(supervisor)) if where == "|".join(machine().values()) else None


def _read(file: int, limit: int) -> bytes:
    content = b""
    while len(content) < limit and (piece := os.read(file, limit - len(content))):
        content += piece
    return content


def _identity(line: str) -> Identity:
    pid, _, start = line.partition(" ")
    return Identity(int(pid), start)


def place_of(context: StepContext, name: str) -> Place:
    """Return the folder of one of an attempt's processes."""
    folder = context.folder / "processes" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Place(folder)


def places_of(context: StepContext) -> list[Place]:
    """Return the folders of all processes that an attempt has had on this machine."""
    folder = context.folder / "processes"
    return [Place(path) for path in sorted(folder.iterdir())] if folder.exists() else []


@contextmanager
def held(place: Place, grace_seconds: float) -> Iterator[int]:
    """Hold the lock of a process's folder, after ending whatever still runs there; yield the lock's descriptor."""
    lock = os.open(place.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _is_free(lock):
            _take_over(place, lock, grace_seconds)
        kill_orphans(place)
        yield lock
    finally:
        os.close(lock)


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_over(place: Place, lock: int, grace_seconds: float) -> None:
    """Have the supervisor end its program, and wait for it; one that does not get on with it is killed."""
    (place.folder / "ended").touch()
    deadline = time.monotonic() + grace_seconds + _MARGIN
    asked: set[Identity] = set()
    while not _is_free(lock):
        found = place.processes()
        if found and (found[1] not in asked or time.monotonic() >= deadline):
            _send(found[1], signal.SIGTERM if found[1] not in asked else signal.SIGKILL)
            asked.add(found[1])
        time.sleep(_TICK)


def _send(process: Identity, number: signal.Signals) -> None:
    if process.is_alive():
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def kill_orphans(place: Place) -> None:
    """Kill what is left of the program's group, should its supervisor have been killed.

    A number stays taken as long as a group has it. So if the program is over and the group is not, the group is the
    program's; and if another process has the number, the group is gone.
    """
    found = place.processes()
    if found is None or found[0].is_replaced():
        return
    while members(found[0].pid):
        with suppress(ProcessLookupError):
            os.killpg(found[0].pid, signal.SIGKILL)
        time.sleep(_TICK)


def members(group: int) -> list[int]:
    """Return the processes of a group that are not over."""
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    stats = {pid: stat_of(pid) for pid in numbers}
    return [pid for pid, fields in stats.items() if fields and fields[2] == str(group) and fields[0] not in {"Z", "X"}]
