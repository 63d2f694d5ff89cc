"""Uploads of whole logs to a folder or an object store, by workers and in parts."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from calve.errors import CalveError, FilesLost
from calve.lake import Files
from calve.settings import StepLogSettings

if TYPE_CHECKING:
    from calve.engine import Attempt, LogChunk, LogExtent, Snapshot
    from calve.retention import Key, RecordKind, RecordPage, RetentionState

log = logging.getLogger(__name__)

PART = 16_000_000
"""How many bytes a file has at most, approximately."""


class LogState(Protocol):
    """The part of the store that knows attempts and their logs."""

    def attempt(self, attempt_uuid: str) -> "Attempt | None":
        """Return an attempt."""
        ...

    def load(self, run_uuid: str) -> "Snapshot | None":
        """Return a run."""
        ...

    def log_extents(self, attempt_uuid: str) -> "list[LogExtent]":
        """Return which parts of a log are stored."""
        ...

    def append_log(self, chunk: "LogChunk") -> None:
        """Store a part of a log."""
        ...

    def keep_log_file(self, attempt_uuid: str, extent: "LogExtent") -> None:
        """Record that a file has a part of a log."""
        ...


@dataclass(slots=True)
class LogUploads:
    """Uploads the logs that are spooled on this machine.

    A file is uploaded and deleted when the log continues in the next one. The last file is uploaded whenever it has
    grown, and deleted when the attempt has ended. A failed upload is tried again. Every worker on this machine uploads
    all logs on this machine, including those of a worker that was killed.
    """

    folder: Path
    """The folder of the attempts."""
    location: str
    files: Files
    state: LogState
    _sizes: dict[Path, int] = field(default_factory=dict)
    """How many bytes of each file have been uploaded."""
    _told: set[str] = field(default_factory=set)

    def turn(self) -> None:
        """Upload the parts of logs that have not been uploaded yet."""
        from calve.engine import SPOOL

        for spool in sorted(self.folder.glob(f"*/{SPOOL}")):
            try:
                self._take(spool)
            except FileNotFoundError:
                continue  # another process on this machine has uploaded it
            except CalveError as error:
                self._tell(spool.parent.name, error)

    def _take(self, spool: Path) -> None:
        from calve.engine import spooled

        uuid = spool.parent.name
        attempt = self.state.attempt(uuid)
        found = spooled(spool)
        is_over = attempt is None or attempt.status.is_terminal
        for number, (start, path) in enumerate(found):
            is_last = number == len(found) - 1
            if attempt is not None and self._sizes.get(path) != path.stat().st_size:
                self._sizes[path] = self._upload(attempt, start, path.read_bytes())
            if is_over or not is_last:
                path.unlink()
                self._sizes.pop(path, None)
        if is_over:
            self._told.discard(uuid)
            with suppress(OSError):  # the attempt's folder has other files
                spool.rmdir()
                spool.parent.rmdir()

    def _upload(self, attempt: "Attempt", start: int, data: bytes) -> int:
        from calve.engine import LogExtent

        address = f"{self._address(attempt)}/{start:020d}.log"
        # Recorded before it is written: retention would never find, and delete, a file without a record.
        self.state.keep_log_file(attempt.uuid, LogExtent(start, 0, address=address))
        self.files.write(address, data)
        self.state.keep_log_file(attempt.uuid, LogExtent(start, len(data), address=address))
        return len(data)

    def _address(self, attempt: "Attempt") -> str:
        found = self.state.load(attempt.run_uuid)
        run = [] if found is None else [found.run.workflow_id, str(found.run.instance_id), str(found.run.run_id)]
        names = [*run, attempt.step_id, f"{attempt.attempt_id}-{attempt.uuid}"]
        return "/".join([self.location.rstrip("/"), *(quote(name, safe="") for name in names)])

    def _tell(self, uuid: str, error: CalveError) -> None:
        """Report a failed upload: in the log of the worker, and in the log itself once the attempt has ended."""
        from calve.engine import LogChunk

        log.warning("the log of %s cannot be uploaded to %s yet: %s", uuid, self.location, error.message)
        with suppress(CalveError):
            attempt = self.state.attempt(uuid)
            if uuid in self._told or attempt is None or not attempt.status.is_terminal:
                return
            extents = self.state.log_extents(uuid)
            last = extents[-1] if extents else None
            text = f"The whole log could not be uploaded to {self.location} yet: {error.message}\n"
            self.state.append_log(LogChunk(uuid, last.number + 1 if last else 0, text, last.end if last else 0))
            self._told.add(uuid)


def uploads_on(folder: Path, settings: StepLogSettings, project: Path, state: LogState) -> LogUploads | None:
    """Return the uploads of logs, if the settings have a location for whole logs."""
    if settings.location is None:
        return None
    location = settings.location
    if "://" not in location and not location.startswith("file:"):
        location = str((project / location).absolute())
    return LogUploads(folder, location, Files(settings.properties), state)


@dataclass(frozen=True, slots=True)
class RetentionWithFiles:
    """Implements ``calve.retention.RetentionState``: deletes the files of logs before the rows that name them."""

    state: "RetentionState"
    files: Files

    def old(self, kind: "RecordKind", before: int, after: "Key", limit: int, followers: Sequence[str]) -> "RecordPage":
        """Return records older than a time."""
        return self.state.old(kind, before, after, limit, followers)

    def forget(self, kind: "RecordKind", keys: "Sequence[Key]", now: int) -> int:
        """Delete records of a kind; that of a file that cannot be deleted now is kept."""
        from calve.retention import RecordKind

        gone = [key for key in keys if self._is_deleted(str(key[-1]))] if kind is RecordKind.LOG_FILES else keys
        return self.state.forget(kind, gone, now)

    def _is_deleted(self, address: str) -> bool:
        try:
            self.files.delete(address)
        except FilesLost:
            return True
        except CalveError as error:
            log.warning("%s cannot be deleted yet: %s", address, error.message)
            return False
        return True

    def position(self, name: str, first: int | None = None) -> int:
        """Return the position of a follower."""
        return self.state.position(name, first)

    def move(self, name: str, before: int, after: int) -> None:
        """Move the position of a follower."""
        self.state.move(name, before, after)
