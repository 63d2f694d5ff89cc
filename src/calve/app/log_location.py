"""Where whole logs are kept: a folder or an object store, to which workers take them part by part."""

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
    from calve.engine.model import Attempt, LogChunk, LogExtent, Snapshot
    from calve.retention import Key, Kind, Page, RetentionState

log = logging.getLogger(__name__)

PART = 16_000_000
"""How many bytes a file has at most, nearly."""


class Logs(Protocol):
    """Knows attempts and their logs: the part of the store that is needed here."""

    def attempt(self, attempt_uuid: str) -> "Attempt | None":
        """Return an attempt."""
        ...

    def load(self, run_uuid: str) -> "Snapshot | None":
        """Return a run."""
        ...

    def log_extents(self, attempt_uuid: str) -> "list[LogExtent]":
        """Return which pieces of a log are kept."""
        ...

    def append_log(self, chunk: "LogChunk") -> None:
        """Keep a piece of a log."""
        ...

    def keep_log_file(self, attempt_uuid: str, extent: "LogExtent") -> None:
        """Write down that a file holds a part of a log."""
        ...


@dataclass(slots=True)
class LogUploads:
    """Takes the logs that are spooled on this machine to where they are kept.

    A file goes as soon as the log has gone on to the next one; the last one goes again and again while the attempt
    runs, and for good when it is over. What cannot be taken there stays here and is tried again. Every worker on this
    machine does so, also for one that was killed.
    """

    folder: Path
    """That of the attempts."""
    location: str
    files: Files
    state: Logs
    _sizes: dict[Path, int] = field(default_factory=dict)
    """How much of a file was taken there when the log was not over."""
    _told: set[str] = field(default_factory=set)

    def turn(self) -> None:
        """Take there what is not there yet."""
        from calve.engine.logs import SPOOL

        for spool in sorted(self.folder.glob(f"*/{SPOOL}")):
            try:
                self._take(spool)
            except FileNotFoundError:
                continue  # another process on this machine was faster
            except CalveError as error:
                self._tell(spool.parent.name, error)

    def _take(self, spool: Path) -> None:
        from calve.engine.logs import spooled

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
            with suppress(OSError):  # the attempt's folder holds something else
                spool.rmdir()
                spool.parent.rmdir()

    def _upload(self, attempt: "Attempt", start: int, data: bytes) -> int:
        from calve.engine.model import LogExtent

        address = f"{self._address(attempt)}/{start:020d}.log"
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
        """Say it where somebody looks: in the log itself, once it is over, and in that of the worker."""
        from calve.engine.model import LogChunk

        log.warning("the log of %s cannot be taken to %s yet: %s", uuid, self.location, error.message)
        with suppress(CalveError):
            attempt = self.state.attempt(uuid)
            if uuid in self._told or attempt is None or not attempt.status.is_terminal:
                return
            extents = self.state.log_extents(uuid)
            last = extents[-1] if extents else None
            text = f"The whole log could not be kept in {self.location} yet: {error.message}\n"
            self.state.append_log(LogChunk(uuid, last.number + 1 if last else 0, text, last.end if last else 0))
            self._told.add(uuid)


def uploads_on(folder: Path, settings: StepLogSettings, project: Path, state: Logs) -> LogUploads | None:
    """Return what takes logs away, if they are to be kept somewhere."""
    if settings.location is None:
        return None
    location = settings.location
    if "://" not in location and not location.startswith("file:"):
        location = str((project / location).absolute())
    return LogUploads(folder, location, Files(settings.properties), state)


@dataclass(frozen=True, slots=True)
class RetentionWithFiles:
    """Implements ``calve.retention.RetentionState``: files of logs go before the rows that say where they are."""

    state: "RetentionState"
    files: Files

    def old(self, kind: "Kind", before: int, after: "Key", limit: int, followers: Sequence[str]) -> "Page":
        """Return what is older than a time."""
        return self.state.old(kind, before, after, limit, followers)

    def forget(self, kind: "Kind", keys: "Sequence[Key]", now: int) -> int:
        """Forget some of a kind; a file that cannot be deleted now stays known."""
        from calve.retention import Kind

        gone = [key for key in keys if self._is_deleted(str(key[-1]))] if kind is Kind.LOG_FILES else keys
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
        """Return how far somebody has come."""
        return self.state.position(name, first)

    def move(self, name: str, before: int, after: int) -> None:
        """Move somebody on."""
        self.state.move(name, before, after)
