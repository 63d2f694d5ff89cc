"""The report of a capture: what ``--json`` prints, and the Python API returns."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import reduce
from typing import Any

from calve.capture.changes import TableChange
from calve.capture.model import Mode, Status, StoredCapture, StoredCheckpoint
from calve.capture.ranges import Range


@dataclass(frozen=True, slots=True)
class DeleteKeys:
    """A table of keys; all rows with such a key were deleted (equality deletes)."""

    table: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Names:
    """The names of what was created for one table's change; all None if nothing was written."""

    icdc_table: str | None = None
    relation: str | None = None
    filter: str | None = None
    deletes_table: str | None = None
    deletes_relation: str | None = None
    carried_table: str | None = None
    delete_keys: tuple[DeleteKeys, ...] = ()
    metadata_location: str | None = None


@dataclass(frozen=True, slots=True)
class TableReport:
    """The change of one table."""

    source_table: str
    table_uuid: str
    from_snapshot_id: int | None
    to_snapshot_id: int | None
    from_sequence_number: int | None
    to_sequence_number: int
    snapshots: list[dict[str, Any]]
    icdc_table: str | None
    """The table that references the new and changed rows; a path in mode path, a view in mode view."""
    relation: str | None
    """What to write after FROM or USING to get exactly the new and changed rows."""
    filter: str | None
    deletes_table: str | None
    deletes_relation: str | None
    """What to write after FROM to get exactly the removed rows, including old images of changed rows."""
    carried_table: str | None
    delete_keys: list[dict[str, Any]]
    metadata_location: str | None
    changed: bool
    files: int
    records: int
    bytes: int
    deleted_records: int | None
    exactness: str
    ranges: dict[str, dict[str, Any]]
    partitions: list[dict[str, Any]]
    pending: bool
    """Whether more changes follow: a limit cut the capture, or ``--to`` ended it early."""
    from_timestamp_ms: int | None = None
    """When the checkpoint's snapshot was written; None for captures of earlier versions."""


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """A capture, or the plan of one (without an id)."""

    capture_id: str | None
    consumer: str
    mode: str
    status: str
    changed: bool
    ranges: dict[str, dict[str, Any]]
    tables: list[TableReport] = field(default_factory=list)
    asked: dict[str, Any] = field(default_factory=dict)
    """The request; empty for captures of earlier versions, which did not store it."""

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON."""
        return {**_shallow(self), "tables": [_shallow(table) for table in self.tables]}

    @classmethod
    def from_json(cls, raw: dict[str, Any]) -> "CaptureReport":
        """Create a report from the result of ``as_json``."""
        return cls(**{**raw, "tables": [TableReport(**table) for table in raw["tables"]]})

    def table(self, source_table: str) -> TableReport:
        """Return the change of one of the tables, by the name used in the request."""
        return next(table for table in self.tables if table.source_table == source_table)


def nothing_changed(tables: Sequence[TableReport]) -> str:
    """Return a sentence that says since when nothing has changed in tables."""
    empty = [table.source_table for table in tables if table.from_snapshot_id is None]
    since = [f"in {table.source_table} since {_since(table)}" for table in tables if table.from_snapshot_id is not None]
    parts = [f"Nothing changed {', '.join(since)}"] if since else []
    if empty:
        parts.append(f"{', '.join(empty)} {'is' if len(empty) == 1 else 'are'} empty")
    return f"{'; '.join(parts)}."


def _since(table: TableReport) -> str:
    at = ""
    if table.from_timestamp_ms is not None:
        at = f" ({datetime.fromtimestamp(table.from_timestamp_ms / 1_000, UTC):%Y-%m-%d %H:%M:%S} UTC)"
    newer = [step["operation"] for step in table.snapshots]
    passed = f", though {len(newer)} newer ({', '.join(dict.fromkeys(newer))})" if newer else ""
    return f"snapshot {table.from_snapshot_id}{at}{passed}"


def _shallow(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass whose values are plain already."""
    return {item.name: getattr(value, item.name) for item in fields(value)}


def report(
    changes: Sequence[TableChange],
    names: Sequence[Names],
    *,
    capture_id: str | None,
    consumer: str,
    mode: Mode,
    default_catalog: str,
    asked: dict[str, Any],
) -> CaptureReport:
    """Return the report of some tables' changes."""
    tables = [_table(change, made, default_catalog) for change, made in zip(changes, names, strict=True)]
    columns = dict.fromkeys(column for change in changes for column in change.ranges)
    unions = {
        column: reduce(Range.union, [change.ranges[column] for change in changes if column in change.ranges])
        for column in columns
    }
    return CaptureReport(
        capture_id=capture_id,
        consumer=consumer,
        mode=mode.value,
        status=Status.OPEN.value if capture_id else "planned",
        changed=any(table.changed for table in tables),
        ranges={column: union.as_json() for column, union in unions.items()},
        tables=tables,
        asked=asked,
    )


def _table(change: TableChange, made: Names, default_catalog: str) -> TableReport:
    return TableReport(
        source_table=change.source.name.short(default_catalog),
        table_uuid=change.source.uuid,
        from_snapshot_id=change.start.snapshot_id if change.start else None,
        to_snapshot_id=change.to.snapshot_id,
        from_sequence_number=change.start.sequence_number if change.start else None,
        to_sequence_number=change.to.sequence_number,
        snapshots=[_shallow(step) for step in change.steps],
        changed=change.changed,
        files=change.files,
        records=change.records,
        bytes=change.bytes,
        deleted_records=change.deleted_records if change.deletes_known else None,
        exactness=change.exactness.value,
        ranges={column: found.as_json() for column, found in change.ranges.items()},
        partitions=list(change.partitions),
        pending=change.has_more,
        from_timestamp_ms=change.start.timestamp_ms if change.start and change.start.snapshot_id else None,
        **{**_shallow(made), "delete_keys": [asdict(keys) for keys in made.delete_keys]},
    )


_ABOUT = ("capture_id", "consumer", "number", "key", "status", "created_at", "closed_at", "collected_at")


def capture_json(stored: StoredCapture) -> dict[str, Any]:
    """Return a capture without the details of its tables."""
    tables = stored.document["tables"]
    return {
        **{name: getattr(stored, name) for name in _ABOUT},
        "changed": stored.document["changed"],
        "tables": [table["source_table"] for table in tables],
        "files": sum(table["files"] for table in tables),
        "records": sum(table["records"] for table in tables),
    }


def checkpoint_json(stored: StoredCheckpoint, table: str) -> dict[str, Any]:
    """Return a checkpoint as JSON, with the table's short name."""
    return {
        "consumer": stored.consumer,
        "table": table,
        **stored.checkpoint.as_json(),
        "version": stored.version,
        "moved_at": stored.moved_at,
        "moved_by": stored.moved_by,
    }
