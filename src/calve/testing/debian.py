"""Programs of Debian packages, which are installed if the process is root."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from calve.errors import EnvironmentUnfit

_WAIT = "DPkg::Lock::Timeout=600"
"""How long apt-get waits for another one, in seconds; by default it fails at once."""


def program(find: Callable[[], Path | None], *packages: str) -> Path:
    """Return what ``find`` returns, after installing packages if it returns None.

    Raises:
        EnvironmentUnfit: it is not there, and the packages could not be installed.
    """
    said = ""
    apt = shutil.which("apt-get")
    if find() is None and os.geteuid() == 0 and apt is not None:
        with (Path(tempfile.gettempdir()) / "calve-debian.lock").open("w") as lock:  # tests run in parallel
            fcntl.flock(lock, fcntl.LOCK_EX)
            for command in (["update"], ["install", "-y", "--no-install-recommends", *packages]):
                if find() is None:
                    done = subprocess.run([apt, "-o", _WAIT, *command], capture_output=True, text=True, check=False)  # noqa: S603 - Debian's own
                    said = done.stderr.strip()
    if (found := find()) is None:
        name = packages[0]
        raise EnvironmentUnfit(
            f"{name} is not installed.{said and f' apt-get failed: {said}'}",
            remedy=f"Install it: apt-get install -y --no-install-recommends {' '.join(packages)}",
        )
    return found


def on_path(name: str) -> Path | None:
    """Return the path of a program; None if it is not installed."""
    found = shutil.which(name)
    return Path(found) if found else None
