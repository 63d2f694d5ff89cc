"""How far consumers are behind their tables, from snapshot summaries, and the manifests of a pending part."""

from array import array
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from calve.capture.appends import pending_files
from calve.capture.changes import Wanted
from calve.capture.model import Checkpoint, OnGap, Operation, Pending, PendingOf, StoredCheckpoint
from calve.capture.snapshots import (
    RangeSnapshot,
    ancestors,
    check_operations,
    check_start_is_kept,
    resolve,
    step_of,
    steps_between,
)
from calve.capture.source import Source
from calve.errors import HistoryExpired
from calve.lake import whole_number

DEFAULT_MAX_AGE_MS = 5 * 24 * 3600 * 1000
"""Iceberg's own default for ``history.expire.max-snapshot-age-ms``."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one consumer is behind one table."""

    consumer: str
    table: str
    snapshot_id: int | None
    pending_commits: int | None = None
    pending_files: int | None = None
    pending_records: int | None = None
    pending_bytes: int | None = None
    age_seconds: float | None = None
    """Since the oldest pending commit; None if nothing is pending."""
    expires_in_seconds: float | None = None
    """Until the source may expire the history that the next capture needs; negative: at any time."""
    error: str | None = None
    """The code of the error that prevented the calculation."""


@dataclass(frozen=True, slots=True)
class _Pending:
    """What came after a snapshot, without compactions."""

    commits: int = 0
    files: int = 0
    records: int = 0
    bytes: int = 0
    oldest: int | None = None

    def with_step(self, step: RangeSnapshot) -> "_Pending":
        """Return this with one more snapshot."""
        if step.operation is Operation.REPLACE:
            return self
        files, records, size = (
            int(step.summary.get(key, 0)) for key in ("added-data-files", "added-records", "added-files-size")
        )
        oldest = step.timestamp_ms if self.oldest is None else min(self.oldest, step.timestamp_ms)
        return _Pending(self.commits + 1, self.files + files, self.records + records, self.bytes + size, oldest)


class Backlog:
    """What came after each snapshot of a table: its history is walked once for all consumers; threads may share it."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._parts: dict[tuple[int | None, PendingOf], tuple[array[int], array[int]]] = {}

    def lag_of(self, stored: StoredCheckpoint, table: str, now: datetime) -> Lag:
        """Return how far a consumer is behind the table.

        Raises:
            CaptureError: the history from the checkpoint to now has a gap.
        """
        checkpoint, now_ms = stored.checkpoint, now.timestamp() * 1000
        found = self._with_part(checkpoint, self._after(checkpoint))
        max_age = whole_number(self._source.properties, "history.expire.max-snapshot-age-ms", DEFAULT_MAX_AGE_MS)
        return Lag(
            consumer=stored.consumer,
            table=table,
            snapshot_id=checkpoint.snapshot_id,
            pending_commits=found.commits,
            pending_files=found.files,
            pending_records=found.records,
            pending_bytes=found.bytes,
            age_seconds=None if found.oldest is None else (now_ms - found.oldest) / 1000,
            expires_in_seconds=None if found.oldest is None else (found.oldest + max_age - now_ms) / 1000,
        )

    def _after(self, checkpoint: Checkpoint) -> _Pending:
        is_ours = checkpoint.table_uuid == self._source.uuid and checkpoint.snapshot_id is not None
        if is_ours and (known := self._by_snapshot.get(checkpoint.snapshot_id or 0)) is not None:
            return known
        found = _Pending()
        for step in steps_between(self._source, checkpoint, self._source.head):
            found = found.with_step(step)
        return found

    @cached_property
    def _by_snapshot(self) -> dict[int, _Pending]:
        """What came after each snapshot of the main branch."""
        found: dict[int, _Pending] = {}
        after = _Pending()
        for snapshot in ancestors(self._source, self._source.head):
            found[snapshot["snapshot-id"]] = after
            after = after.with_step(step_of(snapshot))
        return found

    def _with_part(self, checkpoint: Checkpoint, after: _Pending) -> _Pending:
        """Add the files of the checkpoint's own snapshot that a limit left."""
        if checkpoint.pending is None:
            return after
        records, sizes = self._part(checkpoint, checkpoint.pending)
        taken = checkpoint.pending.taken
        return _Pending(
            commits=after.commits + 1,
            files=after.files + len(sizes[taken:]),
            records=after.records + sum(records[taken:]),
            bytes=after.bytes + sum(sizes[taken:]),
            oldest=checkpoint.timestamp_ms,
        )

    def _part(self, checkpoint: Checkpoint, pending: Pending) -> "tuple[array[int], array[int]]":
        """Return the rows and the size of each file of a snapshot, read once for all consumers at that snapshot."""
        key = (checkpoint.snapshot_id, pending.of)
        if key not in self._parts:
            files = pending_files(self._source, replace(checkpoint, pending=replace(pending, taken=0)))
            self._parts[key] = (
                array("q", [entry.record_count for _, entry in files]),
                array("q", [entry.file_size_in_bytes for _, entry in files]),
            )
        return self._parts[key]


_FILES = (("added-data-files", "added-delete-files"), ("deleted-data-files", "removed-delete-files"))
_BYTES = (("added-files-size",), ("removed-files-size",))


@dataclass(frozen=True, slots=True)
class Commit:
    """One snapshot that changed rows."""

    snapshot_id: int
    operation: Operation | None
    committed_at: int
    """In milliseconds, by the clock of the writer."""
    files: int
    """The number of files added; for a snapshot that only removes rows, the number of files removed."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """What was committed to one table after a checkpoint."""

    table: str
    table_uuid: str
    metadata_location: str
    start: Checkpoint | None
    """None: the consumer has no checkpoint yet, so everything is uncommitted."""
    head: Checkpoint
    commits: tuple[Commit, ...]
    """Oldest first, without compactions and empty snapshots."""


def uncommitted(source: Source, location: str, table: str, start: Checkpoint | None, wanted: Wanted) -> Uncommitted:
    """Return what was committed to a table after a checkpoint.

    Raises:
        CaptureError: a capture would be refused for the same reason.
    """
    end = source.head if wanted.end is None else resolve(source, wanted.end)
    commits = tuple(commit for step in _steps(source, start, end, wanted) if (commit := _commit(step)).files)
    if start is None:
        commits = _everything(source, end, commits)
    elif start.pending is not None:
        commits = (_rest(source, start), *commits)
    return Uncommitted(table, source.uuid, location, start, source.checkpoint(end), commits)


def _steps(source: Source, start: Checkpoint | None, end: int | None, wanted: Wanted) -> list[RangeSnapshot]:
    if start is None:
        return [step_of(snapshot) for snapshot in reversed(list(ancestors(source, end)))]
    try:
        steps = steps_between(source, start, end)
        check_start_is_kept(source, start, steps)
    except HistoryExpired:
        if wanted.on_gap is OnGap.FAIL:
            raise
        return [step_of(snapshot) for snapshot in reversed(list(ancestors(source, end)))]
    check_operations(source, steps, wanted.operations)
    return steps


def _everything(source: Source, end: int | None, known: tuple[Commit, ...]) -> tuple[Commit, ...]:
    """Return all commits of a table that have not expired; none if it is empty."""
    if end is None:
        return ()
    last = step_of(source.snapshots[end])
    files = last.count("total-data-files")
    if known or files is None or not files:
        return () if files == 0 else known
    return (Commit(end, None, last.timestamp_ms, files, last.count("total-files-size") or 0),)


def _commit(step: RangeSnapshot) -> Commit:
    is_compaction = step.operation is Operation.REPLACE
    # A writer without counts may have added anything: one file, so that the commit is not taken for an empty one.
    files = 0 if is_compaction else _first_of(step, _FILES, unknown=1)
    return Commit(step.snapshot_id, step.operation, step.timestamp_ms, files, _first_of(step, _BYTES, unknown=0))


def _first_of(step: RangeSnapshot, groups: tuple[tuple[str, ...], ...], *, unknown: int) -> int:
    """Return the first sum that is not zero; ``unknown`` if the writer did not count."""
    if step.count("total-data-files") is None:
        return unknown
    sums = [sum(step.count(key) or 0 for key in keys) for keys in groups]
    return next((found for found in sums if found), 0)


def _rest(source: Source, start: Checkpoint) -> Commit:
    """Return the part of the checkpoint's own snapshot that a limit left for later."""
    whole = step_of(source.snapshots[start.snapshot_id or 0])
    taken = start.pending.taken if start.pending else 0
    files = max(_first_of(whole, _FILES, unknown=1) - taken, 1)
    return Commit(whole.snapshot_id, whole.operation, whole.timestamp_ms, files, _first_of(whole, _BYTES, unknown=0))
