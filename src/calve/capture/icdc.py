"""The ICDC table: a clone of the source's metadata with only the files of the change. Bytes in, bytes out.

Field ids, schemas, partition specs, sort orders, sequence numbers and row ids stay the same, so reading the files gives
the same rows as in the source. The table owns none of them: ``gc.enabled`` is false, and its own few metadata files are
outside the source's location.
"""

import json
import secrets
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calve.capture import deletion_vectors
from calve.capture.appends import Placed, regrouped
from calve.capture.manifests import (
    DATA,
    DATA_MANIFEST,
    DELETE_MANIFEST,
    NO_PARTITION,
    POSITION_DELETES,
    Manifest,
    ManifestFile,
    new_manifest,
    write_manifest,
    write_manifest_list,
)
from calve.capture.ranges import NAME_MAPPING
from calve.capture.snapshot_diff import Removed
from calve.capture.source import Source
from calve.errors import ChangeUnsupported
from calve.lake import TableName

# Nothing else is taken over: write.* paths and table locations of the source would point readers into its folders.
KEPT_PROPERTIES = (NAME_MAPPING,)


@dataclass(frozen=True, slots=True)
class NewTable:
    """A table that is not written or registered yet."""

    name: TableName
    metadata_location: str
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Site:
    """The name, location and properties of a new table."""

    name: TableName
    location: str
    properties: Mapping[str, str]
    now_ms: int


def clone(source: Source, site: Site, data: Iterable[Manifest], deletes: Iterable[Manifest] = ()) -> NewTable:
    """Return a table in the source's format with some of its files."""
    written = [write_manifest(manifest) for manifest in (*data, *deletes)]
    return _table(source, site, source.metadata, source.format_version, written)


def removed_rows(source: Source, site: Site, removed: Sequence[Removed], deletes: Iterable[Manifest]) -> NewTable:
    """Return a v3 table that shows exactly the removed rows: deletion vectors hide all others."""
    data = regrouped((item.manifest, item.entry) for item in removed)
    written = [write_manifest(manifest) for manifest in (*data, *deletes)]
    hiding = [item for item in removed if item.hidden]
    extra: dict[str, bytes] = {}
    if hiding:
        puffin = f"{site.location}/data/deletes.puffin"
        blobs = [deletion_vectors.Blob(item.entry.file_path, item.hidden) for item in hiding]
        extra[puffin], places = deletion_vectors.write_puffin(blobs)
        written += _vector_manifests(source, puffin, len(extra[puffin]), list(zip(hiding, places, strict=True)))
    return _table(source, site, _as_v3(source), 3, written, extra)


def _vector_manifests(
    source: Source, puffin: str, size: int, vectors: Sequence[tuple[Removed, tuple[int, int]]]
) -> list[tuple[ManifestFile, bytes]]:
    """Return the delete manifests for inverted deletion vectors, one for each shape of partition tuple."""
    # The table's last number: a deletion vector has to be at least as new as the data file that it hides rows of.
    sequence_number = int(source.metadata.get("last-sequence-number", 0))
    groups: dict[str, tuple[Manifest, list[tuple[dict[str, Any], bytes]]]] = {}
    for item, (offset, length) in vectors:
        values = {
            "snapshot_id": item.entry.snapshot_id,
            "sequence_number": sequence_number,
            "file_sequence_number": sequence_number,
            "content": POSITION_DELETES,
            "file_path": puffin,
            "file_format": "PUFFIN",
            "record_count": len(item.hidden),
            "file_size_in_bytes": size,
            "referenced_data_file": item.entry.file_path,
            "content_offset": offset,
            "content_size_in_bytes": length,
        }
        # A manifest holds entries of one partition spec, and one Avro schema of the tuple: a column may have been
        # promoted.
        key = json.dumps([item.manifest.file.partition_spec_id, item.manifest.partition_schema()])
        groups.setdefault(key, (item.manifest, []))[1].append((values, item.entry.raw_partition))
    return [
        new_manifest(
            _row(source, manifest.file.partition_spec_id, DELETE_MANIFEST, manifest.file.added_snapshot_id),
            manifest.partition_schema(),
            records,
            header=_header(
                source.schema, source.specs[manifest.file.partition_spec_id], manifest.file.partition_spec_id
            ),
        )
        for manifest, records in groups.values()
    ]


def equality_keys(source: Source, site: Site, field_ids: Sequence[int], deletes: Sequence[Placed]) -> NewTable:
    """Return a v3 table whose data are equality-delete files: their keys, read as rows."""
    columns = [field for field in source.schema["fields"] if field["id"] in field_ids]
    if len(columns) != len(set(field_ids)):
        raise ChangeUnsupported(
            f"{source.name}: rows were deleted by columns inside structs, or by columns dropped since.",
            remedy="Capture before columns are dropped, or compact the table and reset the checkpoint.",
            table=str(source.name),
            field_ids=list(field_ids),
        )
    schema = {"type": "struct", "schema-id": 0, "fields": columns}
    records = [
        (
            {
                "snapshot_id": entry.snapshot_id,
                "sequence_number": entry.sequence_number,
                "file_sequence_number": entry.file_sequence_number,
                # Content DATA: the same Parquet files, read as rows that are the keys.
                "content": DATA,
                "file_path": entry.file_path,
                "file_format": entry.file_format,
                "record_count": entry.record_count,
                "file_size_in_bytes": entry.file_size_in_bytes,
            },
            b"",
        )
        for _, entry in deletes
    ]
    row = _row(source, 0, DATA_MANIFEST, deletes[0][0].file.added_snapshot_id)
    written = new_manifest(row, NO_PARTITION, records, header=_header(schema, (), 0))
    metadata = {
        **_as_v3(source),
        "schemas": [schema],
        "current-schema-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "default-spec-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
    }
    return _table(source, site, metadata, 3, [written])


def _header(schema: Mapping[str, Any], spec: Sequence[Mapping[str, Any]], spec_id: int) -> dict[str, str]:
    return {
        "schema": json.dumps(schema),
        "partition-spec": json.dumps(list(spec)),
        "partition-spec-id": str(spec_id),
    }


def _row(source: Source, spec_id: int, content: int, snapshot_id: int) -> ManifestFile:
    """Return the row of a manifest that calve writes; its counts are set when it is written."""
    sequence_number = int(source.metadata.get("last-sequence-number", 0))
    return ManifestFile(
        *("", 0, spec_id, content, sequence_number, 0, snapshot_id),
        *(None, None, None, None, None, None),
        partitions=None,
        key_metadata=None,
        first_row_id=None,
    )


def _as_v3(source: Source) -> dict[str, Any]:
    """Return the source's metadata in format v3, which deletion vectors require."""
    metadata = {key: value for key, value in source.metadata.items() if key not in {"schema", "partition-spec"}}
    return {
        "schemas": list(source.schemas.values()),
        "current-schema-id": source.schema_id,
        "partition-specs": [{"spec-id": spec_id, "fields": fields} for spec_id, fields in source.specs.items()],
        "default-spec-id": 0,
        "last-partition-id": 999,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "default-sort-order-id": 0,
        "last-sequence-number": 0,
        "next-row-id": 0,
    } | metadata


def _table(
    source: Source,
    site: Site,
    metadata: Mapping[str, Any],
    version: int,
    manifests: Sequence[tuple[ManifestFile, bytes]],
    extra: Mapping[str, bytes] | None = None,
) -> NewTable:
    """Return the files of a table with one snapshot that lists some manifests."""
    folder = f"{site.location}/metadata"
    files: dict[str, bytes] = dict(extra or {})
    rows = []
    for number, (row, blob) in enumerate(manifests):
        path = f"{folder}/{number:05d}-m.avro"
        files[path] = blob
        rows.append(row._replace(manifest_path=path, manifest_length=len(blob)))
    sequence_number = int(metadata.get("last-sequence-number", 0))
    # As Iceberg does: positive, and safe for readers that keep ids in a signed 64-bit number.
    snapshot_id = secrets.randbits(62)
    manifest_list = f"{folder}/snap-{snapshot_id}.avro"
    files[manifest_list] = write_manifest_list(
        version,
        rows,
        snapshot_id=snapshot_id,
        sequence_number=sequence_number,
        next_row_id=metadata.get("next-row-id"),
    )
    snapshot: dict[str, Any] = {
        "snapshot-id": snapshot_id,
        "timestamp-ms": site.now_ms,
        "manifest-list": manifest_list,
        "schema-id": metadata.get("current-schema-id", 0),
        "summary": {"operation": "append", **_totals(rows)},
    }
    if version > 1:
        snapshot["sequence-number"] = sequence_number
    if version > 2:
        # added-rows is 0 because every file brings its own first_row_id: readers must not assign new ones.
        snapshot |= {"first-row-id": metadata["next-row-id"], "added-rows": 0}
    kept = {key: value for key, value in source.properties.items() if key in KEPT_PROPERTIES}
    table_uuid = str(uuid.uuid4())
    location = f"{folder}/00000-{table_uuid}.metadata.json"
    document = {
        **metadata,
        "format-version": version,
        "table-uuid": table_uuid,
        "location": site.location,
        "last-updated-ms": site.now_ms,
        "properties": {**kept, **site.properties, "gc.enabled": "false"},
        "current-snapshot-id": snapshot_id,
        "snapshots": [snapshot],
        "refs": {"main": {"snapshot-id": snapshot_id, "type": "branch"}},
        "snapshot-log": [{"timestamp-ms": site.now_ms, "snapshot-id": snapshot_id}],
        "metadata-log": [],
        "statistics": [],
        "partition-statistics": [],
    }
    files[location] = json.dumps(document).encode()
    return NewTable(site.name, location, files)


def _totals(rows: Sequence[ManifestFile]) -> dict[str, str]:
    def total(content: int, *names: str) -> str:
        return str(sum(getattr(row, name) or 0 for row in rows if row.content == content for name in names))

    return {
        "total-data-files": total(DATA_MANIFEST, "added_files_count", "existing_files_count"),
        "total-delete-files": total(DELETE_MANIFEST, "added_files_count", "existing_files_count"),
        "total-records": total(DATA_MANIFEST, "added_rows_count", "existing_rows_count"),
    }
