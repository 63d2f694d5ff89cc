"""Folders in memory, for files that are deleted soon and need no disk."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of one's own is made in it
_ROOM = 4 * 1024**3


def memory() -> Path | None:
    """Return where files stay in memory; None where there is no such place, or too little room in it."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM else None


def new_folder() -> Path:
    """Make a folder, in memory where that can be: a process that is killed leaves what it wrote there all the same."""
    return Path(tempfile.mkdtemp(prefix="calve-", dir=memory()))


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """Give a folder, in memory where that can be, and remove it."""
    made = new_folder()
    try:
        yield made
    finally:
        shutil.rmtree(made)
