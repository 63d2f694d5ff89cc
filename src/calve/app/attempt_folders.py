"""The folders in which steps have run on this machine, and when they may go."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from calve.settings import Settings

if TYPE_CHECKING:
    from calve.engine.model import RunEnd

log = logging.getLogger(__name__)

BATCH = 500
"""How many folders are asked about at once."""


class Ends(Protocol):
    """Knows how runs ended."""

    def run_ends(self, attempt_uuids: Sequence[str]) -> "Mapping[str, RunEnd]":
        """Return how far the runs of some attempts have come, by attempt; attempts that nobody knows are left out."""
        ...


@dataclass(frozen=True, slots=True)
class AttemptFolders:
    """The folders under ``<home>/attempts``, one for each attempt that needed one, named by its uuid.

    A folder goes when the run that its attempt belongs to has succeeded: until then, steps may read what others have
    left. If the run has failed, somebody may want to look, or to restart it: the folder is kept for a while. As long as
    the run is not over it stays, whoever works on it. What the database does not know is kept for a while too.
    """

    folder: Path
    keep_seconds: float
    state: Ends
    has_uploads: bool = False
    """Whether logs are taken from here to where they are kept; a folder waits for that, but not for ever."""
    now: Callable[[], float] = time.time

    def old(self) -> Iterator[Path]:
        """Yield the folders that may go."""
        found = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        for start in range(0, len(found), BATCH):
            some = found[start : start + BATCH]
            ends = self.state.run_ends([path.name for path in some])
            yield from (path for path in some if self._is_old(path, ends.get(path.name)))

    def sweep(self) -> int:
        """Remove the folders that may go; return how many went."""
        return sum(_is_removed(path) for path in self.old())

    def _is_old(self, path: Path, end: "RunEnd | None") -> bool:
        from calve.engine.logs import SPOOL

        if end is None:
            return self.now() - _touched(path) > self.keep_seconds
        if not end.status.is_terminal:
            return False
        is_done = end.is_success and not (self.has_uploads and (path / SPOOL).exists())
        return is_done or self.now() - (end.ended_at or 0) / 1_000 > self.keep_seconds


def folders_on(settings: Settings, state: Ends) -> AttemptFolders:
    """Return the folders of attempts of a project."""
    return AttemptFolders(
        settings.home / "attempts",
        settings.worker.keep_files.total_seconds(),
        state,
        settings.logs.location is not None,
    )


def _touched(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # another worker was faster
        return 0.0


def _is_removed(path: Path) -> bool:
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("the folder %s cannot be removed: %s", path, error)
        return False
    return True
