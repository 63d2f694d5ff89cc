"""This process, as workers of other processes and machines know it."""

import os
import secrets
import socket
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calve.engine import WorkerRecord

_PROCESS = secrets.token_hex(4)
"""Tells this process from others that had its number."""


def this_machine() -> str:
    """Return a name of this machine since it was started: process numbers mean something only there."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    since = boot.read_text().strip()[:8] if boot.exists() else ""
    return f"{socket.gethostname()}/{since}"


def this_process() -> "WorkerRecord":
    """Return how a worker of this process is known to others."""
    from calve.engine import WorkerRecord

    return WorkerRecord("", f"{this_machine()}/{_PROCESS}", os.getpid(), 0, 0, 0)


def is_gone(worker: "WorkerRecord") -> bool:
    """Tell whether a worker's process is gone for sure: it was on this machine, and is no more."""
    machine, _, process = worker.host.rpartition("/")
    if machine != this_machine():
        return False
    if worker.pid == os.getpid():
        return process != _PROCESS  # a process that had our number before us, as in a container that was restarted
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
