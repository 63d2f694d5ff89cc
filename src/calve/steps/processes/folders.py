"""The folder of one process: its lock, the processes that run there, its files, and its exit code.

The lock shows whether a process is still supervised, because the kernel releases it with its last holder: the worker
takes it before it starts a supervisor, and the supervisor inherits it. The file ``process`` identifies program and
supervisor by pid and start time, so that a later process with the same pid is not mistaken for them.
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

from calve.engine import StepContext
from calve.steps.processes.isolation import SystemUser
from calve.steps.processes.supervisor import start_of, stat_of

_TICK = 0.02
_MARGIN = 5.0
"""How many seconds a supervisor may take beyond the grace period before it is killed itself."""


def machine() -> dict[str, str]:
    """Return what identifies this machine, its current boot and the pid namespace: a pid is valid only there."""
    boot_id = _known(Path("/proc/sys/kernel/random/boot_id").read_text).strip()
    namespace = _known(lambda: str(Path("/proc/self/ns/pid").readlink()))
    return {"host": socket.gethostname(), "boot_id": boot_id, "namespace": namespace}


def _known(ask: Callable[[], str]) -> str:
    """Return the answer; an empty text where there is no /proc."""
    try:
        return ask()
    except OSError:
        return ""


@dataclass(frozen=True, slots=True)
class Identity:
    """A process, identified by its pid and start time."""

    pid: int
    start: str

    def is_alive(self) -> bool:
        """Return whether it still runs; without /proc, any process with its pid counts."""
        return start_of(self.pid) == self.start if self.start else _has_number(self.pid)

    def is_replaced(self) -> bool:
        """Return whether another process has its pid by now."""
        fields = stat_of(self.pid)
        return bool(fields) and fields[19] != self.start


def _has_number(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ProcessFolder:
    """The folder of one process of an attempt."""

    path: Path

    @property
    def results(self) -> Path:
        """The folder that the program may write its results to."""
        return self.path / "results"

    @property
    def output(self) -> Path:
        """The file that the program may write its outputs to."""
        return self.results / "output.json"

    @property
    def printed(self) -> tuple[Path, Path]:
        """The files with what the program printed between markers, of each stream."""
        return self.path / "printed.out", self.path / "printed.err"

    @property
    def diagnosis(self) -> Path:
        """The supervisor's standard error."""
        return self.path / "supervisor.err"

    def write(self, name: str, content: str) -> Path:
        """Write a file for the program; it may hold secrets: only its user can read it, and ``forget`` deletes it."""
        path = self._private / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(content, "utf-8")
        return path

    def forget(self) -> None:
        """Delete the files that may hold secrets."""
        shutil.rmtree(self._private, ignore_errors=True)

    @property
    def _private(self) -> Path:
        return self.path / "private"

    def clear(self) -> None:
        """Delete the files of an earlier process."""
        for path in self.path.iterdir():
            if path.name != "lock":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.results.mkdir(mode=0o700)

    def result(self, name: str, limit: int) -> bytes:
        """Return a limited number of bytes of a file that the program wrote.

        The program owns the folder, and may run as another user: links are not followed.

        Raises:
            FileNotFoundError: there is no such file.
            OSError: it is not a regular file, or has several links.
        """
        file = os.open(self.results / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(file)
            if stat.S_ISDIR(status.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
                raise OSError(errno.EINVAL, "It is not a regular file")
            return _read(file, limit)
        finally:
            os.close(file)

    def hand_over(self, user: SystemUser) -> None:
        """Give a program that runs as another user access to its files and results."""
        for folder in (self.path, self.path.parent):
            folder.chmod(0o711)
        given = self._private.rglob("*") if self._private.exists() else ()
        for path in (self.results, self._private, *given):
            if path.exists():
                os.chown(path, user.uid, user.gid, follow_symlinks=False)

    def exit_code(self) -> int | None:
        """Return the program's exit code, or minus the number of the signal that ended it; None if it is unknown."""
        try:
            return int((self.path / "exit").read_text("ascii"))
        except (OSError, ValueError):
            return None

    def was_ended_by_us(self) -> bool:
        """Return whether calve asked the process to end."""
        return (self.path / "ended").exists()

    def processes(self) -> tuple[Identity, Identity] | None:
        """Return the program and its supervisor if they were started on this machine since its last boot."""
        try:
            program, supervisor, where = (self.path / "process").read_text("utf-8").split("\n")
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


def process_folder(context: StepContext, name: str) -> ProcessFolder:
    """Return the folder of one of an attempt's processes."""
    folder = context.folder / "processes" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return ProcessFolder(folder)


def process_folders(context: StepContext) -> list[ProcessFolder]:
    """Return the folders of all processes that an attempt has had on this machine."""
    folder = context.folder / "processes"
    return [ProcessFolder(path) for path in sorted(folder.iterdir())] if folder.exists() else []


@contextmanager
def locked(folder: ProcessFolder, grace_seconds: float) -> Iterator[int]:
    """Lock a process's folder, after ending what still runs there; yield the file descriptor of the lock."""
    lock = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _is_free(lock):
            _take_over(folder, lock, grace_seconds)
        kill_orphans(folder)
        yield lock
    finally:
        os.close(lock)


def _is_free(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _take_over(folder: ProcessFolder, lock: int, grace_seconds: float) -> None:
    """Tell the supervisor to end its program, and wait; kill a supervisor that takes too long."""
    (folder.path / "ended").touch()
    deadline = time.monotonic() + grace_seconds + _MARGIN
    asked: set[Identity] = set()
    while not _is_free(lock):
        found = folder.processes()
        if found and (found[1] not in asked or time.monotonic() >= deadline):
            _send(found[1], signal.SIGTERM if found[1] not in asked else signal.SIGKILL)
            asked.add(found[1])
        time.sleep(_TICK)


def _send(process: Identity, number: signal.Signals) -> None:
    if process.is_alive():
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def kill_orphans(folder: ProcessFolder) -> None:
    """Kill what is left of the program's process group if its supervisor was killed.

    A number is not reused while a process group has it. So if the program has ended and a group of its number exists,
    it is the program's; and if another process has the number, the program's group is gone.
    """
    found = folder.processes()
    if found is None or found[0].is_replaced():
        return
    while members(found[0].pid):
        with suppress(ProcessLookupError):
            os.killpg(found[0].pid, signal.SIGKILL)
        time.sleep(_TICK)


def members(group: int) -> list[int]:
    """Return the pids of a process group that have not ended."""
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    stats = {pid: stat_of(pid) for pid in numbers}
    return [pid for pid, fields in stats.items() if fields and fields[2] == str(group) and fields[0] not in {"Z", "X"}]
