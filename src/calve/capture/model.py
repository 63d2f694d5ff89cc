"""The values of the capture package."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from calve.lake import TableName


class Operation(StrEnum):
    """What a snapshot did to its table; the values are those of Iceberg's snapshot summary."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    REPLACE = "replace"


CHANGES = tuple(operation for operation in Operation if operation is not Operation.REPLACE)
"""What may be captured: compaction is never a change."""


class Mode(StrEnum):
    """What a capture creates."""

    TABLE = "table"
    RANGE = "range"
    PATH = "path"
    VIEW = "view"


class Exactness(StrEnum):
    """How a relation yields exactly the new and changed rows."""

    EXACT = "exact"
    EXACT_WITH_FILTER = "exact-with-filter"
    EXCEPT_ALL = "except-all"


class OnGap(StrEnum):
    """What to do if the history after the checkpoint has expired."""

    FAIL = "fail"
    UPSERTS = "upserts"
    FULL = "full"


class OnSchemaChange(StrEnum):
    """What to do if the schema changed since the checkpoint."""

    EVOLVE = "evolve"
    FAIL = "fail"


class Status(StrEnum):
    """The status of a capture."""

    WRITING = "writing"
    OPEN = "open"
    COMMITTED = "committed"
    ABANDONED = "abandoned"


class PendingOf(StrEnum):
    """Which files of a snapshot a pending part is counted in."""

    ADDED = "added"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class Pending:
    """The part of a checkpoint's snapshot that has not been captured yet: all its files but the first ``taken``.

    The order is that of the snapshot's own manifest list, a file that never changes, so it is the same for ever.
    """

    of: PendingOf
    taken: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A consumer's position in one table: everything up to the snapshot, except for its pending part."""

    table_uuid: str
    snapshot_id: int | None
    """None if the table had no snapshot yet."""
    sequence_number: int
    next_row_id: int | None
    """Rows with this id or a higher one were added later; None for tables without row lineage."""
    schema_id: int
    timestamp_ms: int
    pending: Pending | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the checkpoint as plain JSON."""
        pending = self.pending and {"of": self.pending.of.value, "taken": self.pending.taken}
        return {
            "table_uuid": self.table_uuid,
            "snapshot_id": self.snapshot_id,
            "sequence_number": self.sequence_number,
            "next_row_id": self.next_row_id,
            "schema_id": self.schema_id,
            "timestamp_ms": self.timestamp_ms,
            "pending": pending,
        }

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "Checkpoint":
        """Create a checkpoint from the result of ``as_json``."""
        pending = raw["pending"] and Pending(PendingOf(raw["pending"]["of"]), raw["pending"]["taken"])
        return cls(**{**raw, "pending": pending})


@dataclass(frozen=True, slots=True)
class SnapshotStep:
    """One snapshot of a range, and whether its change is in the capture."""

    snapshot_id: int
    operation: str
    included: bool
    reason: str


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """A checkpoint as stored; the version changes with every move."""

    consumer: str
    table: TableName
    checkpoint: Checkpoint
    version: int
    moved_at: datetime
    moved_by: str
    """The capture's id, or the reason given for a move by hand."""


@dataclass(frozen=True, slots=True)
class Move:
    """A move of one table's checkpoint by a commit, from a known version."""

    table: TableName
    expected_version: int
    """0 if there is no checkpoint yet."""
    to: Checkpoint
    position: int | None = field(default=None, compare=False)
    """How often the checkpoint had moved when the capture was opened, resets included; set by the store."""


@dataclass(frozen=True, slots=True)
class DeliveredUpTo:
    """The last capture that was delivered to a target, as the target records it; sources have their full names."""

    capture_id: str
    versions: Mapping[str, int]
    """How often each checkpoint will have moved once everything delivered is committed."""
    ends: Mapping[str, int | None]
    """The snapshot up to which each source was completely captured."""


@dataclass(frozen=True, slots=True)
class Adoption:
    """A checkpoint move that skips versions: the moves in between are lost."""

    move: Move
    version: int


@dataclass(frozen=True, slots=True)
class Artifacts:
    """Everything that a capture may create outside the store; recorded before any of it is created."""

    files: tuple[tuple[str, str], ...] = ()
    """The catalog whose file system it is on, and its path."""
    tables: tuple[TableName, ...] = ()
    """Including views."""
    tags: tuple[tuple[TableName, str], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredCapture:
    """A capture as stored."""

    capture_id: str
    consumer: str
    number: int
    """Counts the consumer's captures, from 1."""
    key: str | None
    """Identifies a request: repeating it returns the same capture. For example, the path of a step."""
    status: Status
    created_at: datetime
    closed_at: datetime | None
    moves: tuple[Move, ...]
    artifacts: Artifacts
    document: dict[str, Any] = field(default_factory=dict)
    """What ``--json`` prints, with ``capture_id``; empty while the capture is being written."""
    collected_at: datetime | None = None
