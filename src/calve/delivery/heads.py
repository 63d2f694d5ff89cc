"""New snapshots for ``main``: files that a branch appended, on top of whatever is there now.

Nothing is computed again: the branch's manifests are written once more, under the new snapshot's id and with sequence
numbers and row ids to be given out anew.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calve.capture import Operation
from calve.capture.manifests import (
    ADDED,
    DATA_MANIFEST,
    Entry,
    Manifest,
    ManifestFile,
    write_added_manifest,
    write_manifest_list,
)
from calve.capture.source import Source
from calve.lake import metadata as raw

_TOTALS = {
    "total-data-files": "added-data-files",
    "total-records": "added-records",
    "total-files-size": "added-files-size",
    "total-delete-files": "",
    "total-position-deletes": "",
    "total-equality-deletes": "",
}
"""What a summary adds up, and by which of its own figures."""


@dataclass(frozen=True, slots=True)
class NewHead:
    """A snapshot that is yet to be committed, and the files that it needs."""

    snapshot: Mapping[str, Any]
    files: Mapping[str, bytes]


def appended_since(source: Source, start: int | None, end: int) -> list[Manifest] | None:
    """Return the manifests of files that were appended after a snapshot; None where more was done than that."""
    steps = []
    for snapshot in raw.lineage(dict(source.metadata), end):
        if snapshot["snapshot-id"] == start:
            break
        steps.append(snapshot)
    else:  # the start itself may be expired by now
        if not steps or steps[-1].get("parent-snapshot-id") != start:
            return None  # the branch does not come from there, or nobody can tell
    found: list[Manifest] = []
    for snapshot in reversed(steps):
        added = _added_by(source, snapshot)
        if added is None:
            return None
        found += added
    return found


def _added_by(source: Source, snapshot: Mapping[str, Any]) -> list[Manifest] | None:
    if snapshot.get("summary", {}).get("operation") != Operation.APPEND:
        return None
    snapshot_id = snapshot["snapshot-id"]
    own = [row for row in source.manifest_list(snapshot_id) if row.added_snapshot_id == snapshot_id]
    found = []
    for manifest in source.read(own):
        # a manifest of the snapshot may hold older entries too, where it was merged from smaller ones
        entries = [entry for entry in manifest.entries() if entry.snapshot_id == snapshot_id]
        if any(entry.status != ADDED for entry in entries) or (entries and manifest.file.content != DATA_MANIFEST):
            return None
        if entries:
            found.append(manifest.keeping(entries))
    return found


def on_top(
    source: Source, parent: int | None, added: Sequence[Manifest], now_ms: int, said: Mapping[str, str]
) -> NewHead:
    """Return a snapshot that appends files to another one; with none, it says only that something was delivered.

    Args:
        source: the table.
        parent: the snapshot to append to; None: the table is empty.
        added: manifests of new files.
        now_ms: the time.
        said: what else to say in the summary.
    """
    metadata = source.metadata
    snapshot_id = secrets.randbits(62)
    sequence_number = int(metadata.get("last-sequence-number", 0)) + 1
    unique, folder = f"{snapshot_id:x}", raw.folder(dict(metadata))
    files: dict[str, bytes] = {}
    rows = [] if parent is None else list(source.manifest_list(parent))
    for number, manifest in enumerate(added):
        path = f"{folder}/calve-{unique}-m{number}.avro"
        row, files[path] = write_added_manifest(manifest, snapshot_id, sequence_number)
        rows.append(row._replace(manifest_path=path, manifest_length=len(files[path])))
    first_row_id = metadata.get("next-row-id") if source.format_version > 2 else None
    rows, next_row_id = _with_row_ids(rows, first_row_id)
    manifest_list = f"{folder}/snap-{snapshot_id}-1-calve-{unique}.avro"
    files[manifest_list] = write_manifest_list(
        source.format_version,
        rows,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        next_row_id=first_row_id,
        parent_snapshot_id=parent,
    )
    entries = [(manifest, entry) for manifest in added for entry in manifest.entries()]
    snapshot: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        **({} if parent is None else {"parent-snapshot-id": parent}),
        "timestamp-ms": max(now_ms, metadata["last-updated-ms"]),
        "manifest-list": manifest_list,
        "schema-id": source.schema_id,
        "summary": _summary(source, parent, entries, said),
    }
    if source.format_version > 1:
        snapshot["sequence-number"] = sequence_number
    if first_row_id is not None and next_row_id is not None:
        snapshot |= {"first-row-id": first_row_id, "added-rows": next_row_id - first_row_id}
    return NewHead(snapshot, files)


def _with_row_ids(rows: Sequence[ManifestFile], next_row_id: int | None) -> tuple[list[ManifestFile], int | None]:
    """Give row ids to data manifests that have none yet, older ones of a table that was upgraded to v3 too."""
    found = []
    for row in rows:
        if next_row_id is not None and row.content == DATA_MANIFEST and row.first_row_id is None:
            found.append(row._replace(first_row_id=next_row_id))
            next_row_id += (row.added_rows_count or 0) + (row.existing_rows_count or 0)
        else:
            found.append(row)
    return found, next_row_id


def _summary(
    source: Source, parent: int | None, added: Sequence[tuple[Manifest, Entry]], said: Mapping[str, str]
) -> dict[str, str]:
    counts = {
        "added-data-files": len(added),
        "added-records": sum(entry.record_count for _, entry in added),
        "added-files-size": sum(entry.file_size_in_bytes for _, entry in added),
    }
    before = {} if parent is None else source.snapshots[parent].get("summary", {})
    totals = {
        name: str(int(before.get(name, 0)) + counts.get(by, 0))
        for name, by in _TOTALS.items()
        if parent is None or name in before
    }
    partitions = {(manifest.file.partition_spec_id, entry.raw_partition) for manifest, entry in added}
    return {
        "operation": Operation.APPEND.value,
        **({name: str(count) for name, count in counts.items()} if added else {}),
        "changed-partition-count": str(len(partitions)),
        **totals,
        **said,
    }
