"""Bubblewrap for tests: installed if need and rights be, as PostgreSQL is."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "bubblewrap")


def bubblewrap() -> str:
    """Return where the program is; a test that needs it fails where it cannot be had."""
    if shutil.which("bwrap") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with (Path(tempfile.gettempdir()) / "calve-bubblewrap.lock").open("w") as lock:  # tests run side by side
            fcntl.flock(lock, fcntl.LOCK_EX)
            if shutil.which("bwrap") is None:
                subprocess.run(["apt-get", "update"], capture_output=True, check=False)
                subprocess.run(_INSTALL, capture_output=True, check=False)
    found = shutil.which("bwrap")
    assert found, f"bubblewrap is not here. Install it: {' '.join(_INSTALL)}"
    return found
