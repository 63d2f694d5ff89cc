"""How far consumers are behind their tables, from snapshot summaries, and the manifests of a pending part."""

from dataclasses import dataclass
from datetime import datetime

from calve.capture.history import Step, steps_between
from calve.capture.model import Operation, StoredCheckpoint
from calve.capture.selection import pending_files
from calve.capture.source import Source
from calve.lake.validation import whole_number

DEFAULT_MAX_AGE_MS = 5 * 24 * 3600 * 1000
"""Iceberg's own default for ``history.expire.max-snapshot-age-ms``."""


@dataclass(frozen=True, slots=True)
class Lag:
    """What one consumer has not committed of one table."""

    consumer: str
    table: str
    snapshot_id: int | None
    pending_commits: int | None = None
    pending_files: int | None = None
    pending_records: int | None = None
    pending_bytes: int | None = None
    age_seconds: float | None = None
    """Since the oldest commit that is pending; None where none is."""
    expires_in_seconds: float | None = None
    """Until the source may expire the history that the next capture needs; below zero: any time."""
    error: str | None = None
    """Why nothing can be said, by the code of the error."""


def lag_of(source: Source, stored: StoredCheckpoint, table: str, now: datetime) -> Lag:
    """Return how far a consumer is behind a table.

    Raises:
        CaptureError: there is no unbroken way from the checkpoint to now.
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


def _sum(steps: list[Step], key: str) -> int:
    return sum(int(step.summary.get(key, 0)) for step in steps)
