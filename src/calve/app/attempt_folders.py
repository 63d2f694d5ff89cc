"""The working folders of steps on this machine, and when they are deleted."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from calve.settings import Settings

if TYPE_CHECKING:
    from calve.engine import RunEnd

log = logging.getLogger(__name__)

BATCH = 500
"""How many folders to look up in one query."""


class RunEnds(Protocol):
    """The part of the store that knows how runs ended."""

    def run_ends(self, attempt_uuids: Sequence[str]) -> "Mapping[str, RunEnd]":
        """Return the status of the runs of some attempts, by attempt; unknown attempts are left out."""
        ...


@dataclass(frozen=True, slots=True)
class AttemptFolders:
    """The folders under ``<home>/attempts``, one for each attempt that needed one, named by its uuid.

    A folder is deleted when the run of its attempt has succeeded: until then, later steps may read it. If the run has
    failed, the folder is kept for ``keep_seconds``, for inspection and for a restart. A folder whose attempt is not in
    the database is kept as long after its last change.
    """

    folder: Path
    keep_seconds: float
    state: RunEnds
    has_uploads: bool = False
    """Whether logs are uploaded from the folders: a folder waits for its upload, but at most ``keep_seconds``."""
    now: Callable[[], float] = time.time

    def old(self) -> Iterator[Path]:
        """Yield the folders that are no longer needed."""
        found = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        for start in range(0, len(found), BATCH):
            some = found[start : start + BATCH]
            ends = self.state.run_ends([path.name for path in some])
            yield from (path for path in some if self._is_old(path, ends.get(path.name)))

    def sweep(self, *, is_dry_run: bool = False) -> int:
        """Delete the folders that are no longer needed, or only count them; return how many."""
        return sum(is_dry_run or _is_removed(path) for path in self.old())

    def _is_old(self, path: Path, end: "RunEnd | None") -> bool:
        from calve.engine import SPOOL

        if end is None:
            return self.now() - _touched(path) > self.keep_seconds
        if not end.status.is_terminal:
            return False
        is_done = end.is_success and not (self.has_uploads and (path / SPOOL).exists())
        return is_done or self.now() - (end.ended_at or 0) / 1_000 > self.keep_seconds


def folders_on(settings: Settings, state: RunEnds) -> AttemptFolders:
    """Return the working folders of a project."""
    return AttemptFolders(
        settings.home / "attempts",
        settings.worker.keep_files.total_seconds(),
        state,
        settings.logs.location is not None,
    )


def _touched(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another worker has deleted it
        return 0.0


def _is_removed(path: Path) -> bool:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("the folder %s cannot be deleted: %s", path, error)
        return False
    return True
