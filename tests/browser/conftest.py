"""A browser for tests: Debian's chromium, installed if need and rights be, as PostgreSQL and bubblewrap are."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

expect.set_options(timeout=15_000)  # the machine may be busy with other tests
_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "chromium", "fonts-dejavu-core")


def chromium() -> str:
    """Return where the program is; a test that needs it fails where it cannot be had."""
    if shutil.which("chromium") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        with (Path(tempfile.gettempdir()) / "calve-chromium.lock").open("w") as lock:  # tests run side by side
            fcntl.flock(lock, fcntl.LOCK_EX)
            if shutil.which("chromium") is None:
                subprocess.run(["apt-get", "update"], capture_output=True, check=False)
                subprocess.run(_INSTALL, capture_output=True, check=False)
    found = shutil.which("chromium")
    assert found, f"chromium is not here. Install it: {' '.join(_INSTALL)}"
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser. It ends with the module, as Playwright's event loop would disturb others' in the same process."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield opened
        opened.close()
