"""What this host provides: the clock, random ids, and this process as other workers know it."""

import os
import secrets
import socket
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from calve import __version__

if TYPE_CHECKING:
    from calve.engine import WorkerRecord


def utc_now() -> datetime:
    """Return the current time."""
    return datetime.now(UTC)  # noqa: TID251 - the only clock; it is passed to everything else


def now_ms() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"


def new_id() -> str:
    """Return a random id, short enough to type and without characters that look alike."""
    return "".join(secrets.choice(_LETTERS) for _ in range(8))


def new_uuid() -> str:
    """Return a UUID of version 7: it starts with the time, so that new ids are close to each other in an index."""
    value = now_ms() << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


_PROCESS = secrets.token_hex(4)
"""Distinguishes this process from earlier ones with the same pid."""


def this_machine() -> str:
    """Return a name of this machine and its boot, within which pids are unique."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    since = boot.read_text().strip()[:8] if boot.exists() else ""
    return f"{socket.gethostname()}/{since}"


def this_process() -> "WorkerRecord":
    """Return the record of a worker in this process."""
    from calve.engine import WorkerRecord

    return WorkerRecord("", f"{this_machine()}/{_PROCESS}", os.getpid(), 0, 0, 0, version=__version__)


def is_gone(worker: "WorkerRecord") -> bool:
    """Tell whether a worker's process is certainly gone: it was on this machine, and no longer runs."""
    machine, _, process = worker.host.rpartition("/")
    if machine != this_machine():
        return False
    if worker.pid == os.getpid():
        return process != _PROCESS  # an earlier process with the same pid, as in a restarted container
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
