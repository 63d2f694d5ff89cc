"""File locks of the operating system next to a SQLite file; they end with the process that holds them."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calve.errors import StoreBusy

_PAUSES = (0.0005, 0.001, 0.002, 0.005, 0.01)
"""How long to wait before each retry, in seconds; the last value repeats."""
_ASKED_SECONDS = 0.05
"""How long a scheduler tries to take its lock: has_scheduler holds it for a moment."""


class FileLock:
    """A lock between processes; without a file, it locks nothing.

    It does not exclude the threads of its own process, which share a connection.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._file: int | None = None

    @contextmanager
    def held(self, seconds: float) -> Iterator[None]:
        """Hold the lock.

        Raises:
            TimeoutError: another process did not release it in time.
        """
        if self._path is None:
            yield
            return
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        if not _is_taken_within(self._file, seconds):
            raise TimeoutError(f"another process holds {self._path}")
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


@contextmanager
def only_scheduler(path: Path) -> Iterator[None]:
    """Be the only process that schedules on the SQLite file of this lock.

    Raises:
        StoreBusy: another process schedules; the message names it.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _is_taken_within(file, _ASKED_SECONDS):
            raise _busy(os.read(file, 1000).decode("utf-8", "replace"), path)
        os.ftruncate(file, 0)
        # Only names the holder, for the message. The lock itself ends with the process, so a crash leaves none behind.
        os.pwrite(file, f"{os.getpid()} {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(file)


def has_scheduler(path: Path) -> bool:
    """Tell whether a process, including this one, schedules on the SQLite file of this lock."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return not _is_taken(file, fcntl.LOCK_SH)  # shared: two askers must not take each other for a scheduler
    finally:
        os.close(file)


def _is_taken_within(file: int, seconds: float) -> bool:
    """Take a lock, polling for up to some seconds, because flock cannot wait with a timeout."""
    until, tried = time.monotonic() + seconds, 0
    while not _is_taken(file):
        if time.monotonic() > until:
            return False
        time.sleep(_PAUSES[min(tried, len(_PAUSES) - 1)])
        tried += 1
    return True


def _is_taken(file: int, how: int = fcntl.LOCK_EX) -> bool:
    try:
        # flock, not fcntl locks: those are released when the process closes any other descriptor of the file.
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(holder: str, path: Path) -> StoreBusy:
    pid, _, host = holder.partition(" ")
    who = f"Process {pid} on {host}" if host else "Another process"
    return StoreBusy(
        f"{who} already runs the workflows of this database.",
        remedy="Use that process, stop it first, or keep the state in PostgreSQL, which many processes can share.",
        pid=int(pid) if pid.isdigit() else None,
        host=host or None,
        file=str(path),
    )
