"""Iceberg tables in memory, with real manifests, for tests of capture that need neither a JVM nor a catalog."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from calve.capture import avro
from calve.capture.manifests import (
    ADDED,
    DATA_MANIFEST,
    DELETED,
    EXISTING,
    ManifestEntry,
    ManifestFile,
    write_manifest_list,
)
from calve.capture.source import Source
from calve.lake import MAX_METADATA_BYTES, Files, LoadedTable, TableName

NAME = TableName("lake", ("db",), "t")
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "v", "required": False, "type": "string"},
    ],
}


def avro_field(fid: int, name: str, kind: Any, *, optional: bool = False) -> dict[str, Any]:
    """Return a field of an Avro schema as Iceberg writes it."""
    if optional:
        return {"name": name, "type": ["null", kind], "default": None, "field-id": fid}
    return {"name": name, "type": kind, "field-id": fid}


def entry_schema(*more: dict[str, Any], row_ids: bool = False) -> avro.Schema:
    """Return the Avro schema of an unpartitioned manifest, with fields that a later version of Iceberg may add."""
    parts = [
        avro_field(134, "content", "int"),
        avro_field(100, "file_path", "string"),
        avro_field(101, "file_format", "string"),
        avro_field(102, "partition", {"type": "record", "name": "r102", "fields": []}),
        avro_field(103, "record_count", "long"),
        avro_field(104, "file_size_in_bytes", "long"),
        *([avro_field(142, "first_row_id", "long", optional=True)] if row_ids else []),
        *more,
    ]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            avro_field(0, "status", "int"),
            avro_field(1, "snapshot_id", "long", optional=True),
            avro_field(3, "sequence_number", "long", optional=True),
            avro_field(4, "file_sequence_number", "long", optional=True),
            avro_field(2, "data_file", {"type": "record", "name": "r2", "fields": parts}),
        ],
    }


def write_entries(records: Sequence[dict[str, Any]], schema: avro.Schema | None = None) -> bytes:
    """Write a manifest from records of the entry schema."""
    schema = schema or entry_schema()
    write = avro.writer(schema)
    header = {"avro.schema": json.dumps(schema), "schema": json.dumps(SCHEMA), "format-version": "2"}
    payload = b"".join(write(record) for record in records)
    return avro.write_container({key: value.encode() for key, value in header.items()}, payload, len(records))


def manifest_file(**values: Any) -> ManifestFile:
    """Return the row of a manifest, with some values."""
    row: dict[str, Any] = dict.fromkeys(ManifestFile._fields)
    row |= {"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "content": DATA_MANIFEST}
    row |= {"sequence_number": 1, "min_sequence_number": 1, "added_snapshot_id": 1}
    counts = ("added", "existing", "deleted")
    row |= {f"{what}_{of}_count": 0 for what in counts for of in ("files", "rows")}
    return ManifestFile(**row | values)


def entry(**values: Any) -> ManifestEntry:
    """Return an entry of a file of ten rows, with some values."""
    row: dict[str, Any] = dict.fromkeys(ManifestEntry._fields)
    row |= {"status": ADDED, "snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1, "content": 0}
    row |= {"file_path": "f", "file_format": "PARQUET", "partition": {}, "record_count": 10}
    row |= {"file_size_in_bytes": 1, "inherits_row_id": False, "raw": b"", "cuts": (0,) * 6}
    return ManifestEntry(**row | values)


@dataclass
class Memory:
    """Files in memory."""

    contents: dict[str, bytes] = field(default_factory=dict)
    max_bytes: int = MAX_METADATA_BYTES

    def read(self, path: str, *, times: int = 1) -> bytes:  # noqa: ARG002 - as Files has it
        """Return a file's content."""
        return self.contents[path]


@dataclass
class Table:
    """A table that is written file by file, each of one row."""

    version: int = 2
    counts: bool = True
    """Whether summaries and manifest lists count files, which they need not in format v1."""
    memory: Memory = field(default_factory=Memory)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    manifests: list[ManifestFile] = field(default_factory=list)
    live: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """Of each file: the snapshot that added it, its sequence number, its size."""
    history: dict[int, set[str]] = field(default_factory=dict)
    """The files that were there at each snapshot."""
    appended: list[str] = field(default_factory=list)
    files_made: int = 0

    def append(self, sizes: Iterable[int]) -> int:
        """Append files of some sizes; return the snapshot."""
        snapshot_id = self._next()
        paths = [self._new(snapshot_id, size) for size in sizes]
        self.appended += paths
        if paths:
            self.manifests.append(self._manifest(snapshot_id, [(ADDED, path) for path in paths]))
        return self._commit(snapshot_id, "append", added=len(paths))

    def compact(self) -> int:
        """Replace all files by one; return the snapshot."""
        snapshot_id, gone = self._next(), list(self.live)
        size = sum(size for _, _, size in self.live.values())
        removed = self._manifest(snapshot_id, [(DELETED, path) for path in gone])
        self.live.clear()
        made = self._new(snapshot_id, size)
        self.manifests = [removed, self._manifest(snapshot_id, [(ADDED, made)])]
        return self._commit(snapshot_id, "replace", added=1, removed=len(gone))

    def rewrite_manifests(self) -> int:
        """List all files in one new manifest; return the snapshot."""
        snapshot_id = self._next()
        self.manifests = [self._manifest(snapshot_id, [(EXISTING, path) for path in self.live])]
        return self._commit(snapshot_id, "replace")

    def expire(self, *snapshots: int) -> None:
        """Forget some snapshots."""
        self.snapshots = [known for known in self.snapshots if known["snapshot-id"] not in snapshots]

    def source(self, **metadata: Any) -> Source:
        """Return the table as capture sees it."""
        document = {
            "format-version": self.version,
            "table-uuid": "11111111-1111-1111-1111-111111111111",
            "last-updated-ms": 0,
            "last-sequence-number": len(self.history),
            "schemas": [SCHEMA],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "current-snapshot-id": self.snapshots[-1]["snapshot-id"] if self.snapshots else None,
            "snapshots": list(self.snapshots),
            **metadata,
        }
        return Source(LoadedTable(NAME, document, "metadata.json", cast("Files", self.memory)))

    def _next(self) -> int:
        return 1000 + len(self.history)

    def _new(self, snapshot_id: int, size: int) -> str:
        self.files_made += 1
        path = f"data/{self.files_made:04d}"
        self.live[path] = (snapshot_id, len(self.history) + 1, size)
        return path

    def _manifest(self, snapshot_id: int, files: Sequence[tuple[int, str]]) -> ManifestFile:
        path = f"metadata/m{len(self.memory.contents)}"
        records = []
        for status, file in files:
            added_by, sequence_number, size = self.live[file]
            inherits = status == ADDED
            values = {"content": 0, "file_path": file, "file_format": "PARQUET", "partition": {}}
            records.append(
                {
                    "status": status,
                    "snapshot_id": None if inherits else snapshot_id if status == DELETED else added_by,
                    "sequence_number": None if inherits else sequence_number,
                    "file_sequence_number": None if inherits else sequence_number,
                    "data_file": values | {"record_count": 1, "file_size_in_bytes": size},
                }
            )
        self.memory.contents[path] = write_entries(records)
        counts = {name: [s for s, _ in files].count(status) for name, status in _COUNTED.items()}
        return manifest_file(
            manifest_path=path,
            manifest_length=len(self.memory.contents[path]),
            sequence_number=len(self.history) + 1,
            min_sequence_number=min(self.live[file][1] for _, file in files),
            added_snapshot_id=snapshot_id,
            **{f"{name}_{of}_count": count for name, count in counts.items() for of in ("files", "rows")},
        )

    def _commit(self, snapshot_id: int, operation: str, *, added: int = 0, removed: int = 0) -> int:
        number = len(self.history) + 1
        path = f"metadata/snap-{snapshot_id}"
        rows = self.manifests
        if not self.counts:
            none: dict[str, Any] = dict.fromkeys(name for name in ManifestFile._fields if name.endswith("_count"))
            rows = [row._replace(**none) for row in rows]
        self.memory.contents[path] = write_manifest_list(
            2 if self.counts else 1, rows, snapshot_id=snapshot_id, sequence_number=number, next_row_id=None
        )
        self.manifests = [row for row in self.manifests if row.added_files_count or row.existing_files_count]
        counted = {"added-data-files": added, "deleted-data-files": removed, "total-data-files": len(self.live)}
        if not self.counts:
            counted = {}
        self.snapshots.append(
            {
                "snapshot-id": snapshot_id,
                "parent-snapshot-id": self.snapshots[-1]["snapshot-id"] if self.snapshots else None,
                "sequence-number": number,
                "timestamp-ms": 1_700_000_000_000 + number * 1000,
                "manifest-list": path,
                "summary": {"operation": operation, **{key: str(value) for key, value in counted.items()}},
            }
        )
        self.history[snapshot_id] = set(self.live)
        return snapshot_id


_COUNTED = {"added": ADDED, "existing": EXISTING, "deleted": DELETED}
