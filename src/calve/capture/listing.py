"""Captures and checkpoints as they stand in lists, for programs. Pure."""

from typing import Any

from calve.capture.model import StoredCapture, StoredCheckpoint

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
    """Return a checkpoint of a table, by the name that the table goes by."""
    return {
        "consumer": stored.consumer,
        "table": table,
        **stored.checkpoint.as_json(),
        "version": stored.version,
        "moved_at": stored.moved_at,
        "moved_by": stored.moved_by,
    }
