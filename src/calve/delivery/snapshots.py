"""New snapshots for ``main``: append the files that a branch added to the current snapshot.

Data files are not rewritten: the branch's manifests are written again with the new snapshot's id, so that sequence
numbers and row ids are assigned again.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calve.capture import (
    ADDED,
    DATA_MANIFEST,
    Manifest,
    ManifestEntry,
    ManifestFile,
    Operation,
    Source,
    write_added_manifest,
    write_manifest_list,
)
from calve.lake import ancestors, metadata_folder

_TOTALS = {
    "total-data-files": "added-data-files",
    "total-records": "added-records",
    "total-files-size": "added-files-size",
    "total-delete-files": "",
    "total-position-deletes": "",
    "total-equality-deletes": "",
}
"""The totals of a summary, and the counts that they add up."""


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """A snapshot to commit, and the files that it needs."""

    snapshot: Mapping[str, Any]
    files: Mapping[str, bytes]


def appended_since(source: Source, start: int | None, end: int) -> list[Manifest] | None:
    """Return the manifests of files that were appended after a snapshot; None if there were other changes."""
    steps = []
    for snapshot in ancestors(dict(source.metadata), end):
        if snapshot["snapshot-id"] == start:
            break
        steps.append(snapshot)
    else:  # the start may have expired
        if not steps or steps[-1].get("parent-snapshot-id") != start:
            return None  # the branch does not start there, or that is unknown
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
    # Rows of older snapshots may sit in the same list: a branch starts with the manifests of main.
    own = [row for row in source.manifest_list(snapshot_id) if row.added_snapshot_id == snapshot_id]
    found = []
    for manifest in source.read(own):
        # a manifest that was merged from smaller ones holds older entries too
        entries = [entry for entry in manifest.entries() if entry.snapshot_id == snapshot_id]
        if any(entry.status != ADDED for entry in entries) or (entries and manifest.file.content != DATA_MANIFEST):
            return None
        if entries:
            found.append(manifest.keeping(entries))
    return found


def append_snapshot(
    source: Source, parent: int | None, added: Sequence[Manifest], now_ms: int, said: Mapping[str, str]
) -> NewSnapshot:
    """Return a snapshot that appends files to another one; without files, it only marks the delivery.

    Args:
        source: the table.
        parent: the snapshot to append to; None for an empty table.
        added: manifests of new files.
        now_ms: the time.
        said: further entries of the summary.
    """
    metadata = source.metadata
    snapshot_id = secrets.randbits(62)
    sequence_number = int(metadata.get("last-sequence-number", 0)) + 1
    unique, folder = f"{snapshot_id:x}", metadata_folder(dict(metadata))
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
        # Java refuses metadata whose snapshot log goes back in time, and the clocks of two writers differ.
        "timestamp-ms": max(now_ms, metadata["last-updated-ms"]),
        "manifest-list": manifest_list,
        "schema-id": source.schema_id,
        "summary": _summary(source, parent, entries, said),
    }
    if source.format_version > 1:
        snapshot["sequence-number"] = sequence_number
    if first_row_id is not None and next_row_id is not None:
        snapshot |= {"first-row-id": first_row_id, "added-rows": next_row_id - first_row_id}
    return NewSnapshot(snapshot, files)


def _with_row_ids(rows: Sequence[ManifestFile], next_row_id: int | None) -> tuple[list[ManifestFile], int | None]:
    """Assign row ids to data manifests without them, also to older ones of a table that was upgraded to v3."""
    found = []
    for row in rows:
        # Iceberg spec, "Row lineage for upgraded tables": the first commit after an upgrade numbers older manifests
        # as well.
        if next_row_id is not None and row.content == DATA_MANIFEST and row.first_row_id is None:
            found.append(row._replace(first_row_id=next_row_id))
            next_row_id += (row.added_rows_count or 0) + (row.existing_rows_count or 0)
        else:
            found.append(row)
    return found, next_row_id


def _summary(
    source: Source, parent: int | None, added: Sequence[tuple[Manifest, ManifestEntry]], said: Mapping[str, str]
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
