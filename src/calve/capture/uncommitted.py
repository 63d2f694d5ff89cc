"""What a consumer has not committed of a table, by snapshots alone: cheap, and enough to know when to capture. Pure."""

from dataclasses import dataclass

from calve.capture.changes import Wanted
from calve.capture.history import (
    Step,
    ancestors,
    check_operations,
    check_start_is_kept,
    resolve,
    step_of,
    steps_between,
)
from calve.capture.model import Checkpoint, OnGap, Operation
from calve.capture.source import Source
from calve.errors import HistoryExpired

_FILES = (("added-data-files", "added-delete-files"), ("deleted-data-files", "removed-delete-files"))
_BYTES = (("added-files-size",), ("removed-files-size",))


@dataclass(frozen=True, slots=True)
class Commit:
    """One snapshot that changed rows."""

    snapshot_id: int
    operation: Operation | None
    committed_at: int
    """In milliseconds, by the clock of whoever wrote it."""
    files: int
    """How many it added; of one that only takes rows out, how many it removed."""
    bytes: int


@dataclass(frozen=True, slots=True)
class Uncommitted:
    """What came into one table after a checkpoint."""

    table: str
    table_uuid: str
    metadata_location: str
    start: Checkpoint | None
    """None: the consumer has no checkpoint yet, so that everything is to come."""
    head: Checkpoint
    commits: tuple[Commit, ...]
    """Oldest first; compaction is none, nor is a snapshot that holds nothing."""


def uncommitted(source: Source, location: str, table: str, start: Checkpoint | None, wanted: Wanted) -> Uncommitted:
    """Return what came into a table after a checkpoint.

    Raises:
        CaptureError: a capture would be refused, in the same words.
    """
    end = source.head if wanted.end is None else resolve(source, wanted.end)
    commits = tuple(commit for step in _steps(source, start, end, wanted) if (commit := _commit(step)).files)
    if start is None:
        commits = _everything(source, end, commits)
    elif start.pending is not None:
        commits = (_rest(source, start), *commits)
    return Uncommitted(table, source.uuid, location, start, source.checkpoint(end), commits)


def _steps(source: Source, start: Checkpoint | None, end: int | None, wanted: Wanted) -> list[Step]:
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
    """Return the commits behind all that is in a table, as far as they are kept; none where it is empty."""
    if end is None:
        return ()
    last = step_of(source.snapshots[end])
    files = last.count("total-data-files")
    if known or files is None or not files:
        return () if files == 0 else known
    return (Commit(end, None, last.timestamp_ms, files, last.count("total-files-size") or 0),)


def _commit(step: Step) -> Commit:
    is_compaction = step.operation is Operation.REPLACE
    files = 0 if is_compaction else _first_of(step, _FILES, unknown=1)
    return Commit(step.snapshot_id, step.operation, step.timestamp_ms, files, _first_of(step, _BYTES, unknown=0))


def _first_of(step: Step, groups: tuple[tuple[str, ...], ...], *, unknown: int) -> int:
    """Return the first sum that is not nothing; ``unknown`` where the writer did not count."""
    if step.count("total-data-files") is None:
        return unknown
    sums = [sum(step.count(key) or 0 for key in keys) for keys in groups]
    return next((found for found in sums if found), 0)


def _rest(source: Source, start: Checkpoint) -> Commit:
    """Return the part of the checkpoint's own snapshot that a limit has left for later."""
    whole = step_of(source.snapshots[start.snapshot_id or 0])
    taken = start.pending.taken if start.pending else 0
    files = max(_first_of(whole, _FILES, unknown=1) - taken, 1)
    return Commit(whole.snapshot_id, whole.operation, whole.timestamp_ms, files, _first_of(whole, _BYTES, unknown=0))
