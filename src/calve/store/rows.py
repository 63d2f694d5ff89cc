"""Capture's values as rows and JSON, and back."""

from typing import Any

from sqlalchemy import ColumnElement, Row, Table, and_, true

from calve.capture.model import Artifacts, Checkpoint, Move, Status, StoredCapture, StoredCheckpoint
from calve.errors import RequestInvalid
from calve.lake import TableName


def dotted(table: TableName) -> str:
    """Return the name inside its catalog as the database keeps it.

    Raises:
        RequestInvalid: a part of the name holds a dot.
    """
    if any("." in part for part in table.identifier):
        raise RequestInvalid(f"{table}: a part of the name holds a dot.", table=str(table))
    return ".".join(table.identifier)


def table_of(row: Row[Any]) -> TableName:
    """Read the table that a row is about."""
    *namespace, name = row.table_name.split(".")
    return TableName(row.catalog, tuple(namespace), name)


def is_of(columns: Table, consumer: str, table: TableName) -> ColumnElement[bool]:
    """Match the rows of one checkpoint."""
    return and_(
        columns.c.consumer == consumer,
        columns.c.catalog == table.catalog,
        columns.c.table_name == dotted(table),
    )


def is_of_consumer(columns: Table, consumer: str | None) -> ColumnElement[bool]:
    """Match the rows of one consumer, or of all."""
    return true() if consumer is None else columns.c.consumer == consumer


def checkpoint_of(row: Row[Any]) -> StoredCheckpoint:
    """Read a row of ``checkpoint``."""
    return StoredCheckpoint(
        consumer=row.consumer,
        table=table_of(row),
        checkpoint=Checkpoint.from_json(row.checkpoint),
        version=row.version,
        moved_at=row.moved_at,
        moved_by=row.moved_by,
    )


def log_entry_of(row: Row[Any]) -> dict[str, Any]:
    """Read a row of ``checkpoint_log`` as plain JSON."""
    return {
        "seq": row.seq,
        "at": row.at.isoformat(),
        "consumer": row.consumer,
        "table": str(table_of(row)),
        "version": row.version,
        "reason": row.reason,
        "before": row.before,
        "after": row.after,
    }


def capture_of(row: Row[Any]) -> StoredCapture:
    """Read a row of ``capture``."""
    return StoredCapture(
        capture_id=row.id,
        consumer=row.consumer,
        number=row.number,
        key=row.key,
        status=Status(row.status),
        created_at=row.created_at,
        closed_at=row.closed_at,
        moves=tuple(move_of(raw) for raw in row.moves),
        artifacts=_artifacts_of(row.artifacts),
        document=row.document,
        collected_at=row.collected_at,
    )


def move_json(move: Move, position: int) -> dict[str, Any]:
    """Return a move as the capture's row keeps it, with the position from which it may be carried out."""
    return {
        "table": _name_json(move.table),
        "expected_version": move.expected_version,
        "position": position,
        "to": move.to.as_json(),
    }


def move_of(raw: dict[str, Any]) -> Move:
    """Read what ``move_json`` wrote."""
    return Move(
        _name_of(raw["table"]), raw["expected_version"], Checkpoint.from_json(raw["to"]), position=raw["position"]
    )


def artifacts_json(artifacts: Artifacts) -> dict[str, Any]:
    """Return artifacts as the capture's row keeps them."""
    return {
        "files": [list(file) for file in artifacts.files],
        "tables": [_name_json(table) for table in artifacts.tables],
        "tags": [[_name_json(table), tag] for table, tag in artifacts.tags],
    }


def _artifacts_of(raw: dict[str, Any]) -> Artifacts:
    return Artifacts(
        files=tuple((catalog, path) for catalog, path in raw["files"]),
        tables=tuple(_name_of(table) for table in raw["tables"]),
        tags=tuple((_name_of(table), tag) for table, tag in raw["tags"]),
    )


def _name_json(table: TableName) -> list[str]:
    return [table.catalog, *table.identifier]


def _name_of(raw: list[str]) -> TableName:
    catalog, *namespace, name = raw
    return TableName(catalog, tuple(namespace), name)
