"""How far consumers are behind their tables, from snapshot summaries, and the manifests of a pending part."""

from dataclasses import dataclass
from datetime import datetime

from calve.capture.appends import pending_files
from calve.capture.changes import Wanted
from calve.capture.model import Checkpoint, OnGap, Operation, StoredCheckpoint
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


def lag_of(source: Source, stored: StoredCheckpoint, table: str, now: datetime) -> Lag:
    """Return how far a consumer is behind a table.

    Raises:
        CaptureError: the history from the checkpoint to now has a gap.
    """
    checkpoint = stored.checkpoint
    steps = [s for s in steps_between(source, checkpoint, source.head) if s.operation is not Operation.REPLACE]
    files, records, size = (_sum(steps, key) for key in ("added-data-files", "added-records", "added-files-size"))
    oldest = min((step.timestamp_ms for step in steps), default=None)
    if checkpoint.pending is not None:
        rest = [entry for _, entry in pending_files(source, checkpoint)]
        files += len(rest)
        records += sum(entry.record_count for entry in rest)
        size += sum(entry.file_size_in_bytes for entry in rest)
        oldest = checkpoint.timestamp_ms
    now_ms = now.timestamp() * 1000
    max_age = whole_number(source.properties, "history.expire.max-snapshot-age-ms", DEFAULT_MAX_AGE_MS)
    return Lag(
        consumer=stored.consumer,
        table=table,
        snapshot_id=checkpoint.snapshot_id,
        pending_commits=len(steps) + (checkpoint.pending is not None),
        pending_files=files,
        pending_records=records,
        pending_bytes=size,
        age_seconds=None if oldest is None else (now_ms - oldest) / 1000,
        expires_in_seconds=None if oldest is None else (oldest + max_age - now_ms) / 1000,
    )


def _sum(steps: list[RangeSnapshot], key: str) -> int:
    return sum(int(step.summary.get(key, 0)) for step in steps)


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
