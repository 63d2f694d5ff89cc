"""Bubblewrap for tests: installed if need and rights be, as PostgreSQL is."""

import os
import shutil
import subprocess

_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "bubblewrap")


def bubblewrap() -> str:
    """Return where the program is; a test that needs it fails where it cannot be had."""
    if shutil.which("bwrap") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        subprocess.run(_INSTALL, capture_output=True, check=False)
    found = shutil.which("bwrap")
    assert found, f"bubblewrap is not here. Install it: {' '.join(_INSTALL)}"
    return found
