"""Iceberg's manifest lists and manifests: read, filtered and written again without losing a byte of an entry."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from pyiceberg.avro.decoder import new_decoder

from calve.capture import avro

ADDED, DELETED = 1, 2
EXISTING = 0
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
DATA_MANIFEST, DELETE_MANIFEST = 0, 1


class FieldSummary(NamedTuple):
    """What a manifest list says about one partition field of a manifest."""

    contains_null: bool
    contains_nan: bool | None
    lower_bound: bytes | None
    upper_bound: bytes | None


class ManifestFile(NamedTuple):
    """One row of a manifest list. Counts that a v1 list may lack are None."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    content: int
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files_count: int | None
    existing_files_count: int | None
    deleted_files_count: int | None
    added_rows_count: int | None
    existing_rows_count: int | None
    deleted_rows_count: int | None
    partitions: tuple[FieldSummary, ...] | None
    key_metadata: bytes | None
    first_row_id: int | None


class Entry(NamedTuple):
    """One file of a manifest, with what it inherits filled in, and its bytes to be copied."""

    status: int
    snapshot_id: int
    sequence_number: int
    file_sequence_number: int
    content: int
    file_path: str
    file_format: str
    partition: dict[str, Any]
    record_count: int
    file_size_in_bytes: int
    value_counts: dict[int, int] | None
    null_value_counts: dict[int, int] | None
    nan_value_counts: dict[int, int] | None
    lower_bounds: dict[int, bytes] | None
    upper_bounds: dict[int, bytes] | None
    equality_ids: list[int] | None
    first_row_id: int | None
    referenced_data_file: str | None
    content_offset: int | None
    content_size_in_bytes: int | None
    inherits_row_id: bool
    raw: bytes
    """The block that the entry stands in; ``cuts`` are positions in it."""
    cuts: tuple[int, int, int, int, int, int]
    """Where data_file starts, partition starts and ends, first_row_id starts and ends, and data_file ends."""

    @property
    def raw_partition(self) -> bytes:
        """The partition tuple as it was written."""
        return self.raw[self.cuts[1] : self.cuts[2]]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest in memory: its row in the list, its file, and the entries of it that count."""

    file: ManifestFile
    raw: bytes
    kept: tuple[Entry, ...] | None = None
    """None: all, and they have not been read."""
    is_whole: bool = True
    """Every entry counts, so the file can be copied as it is."""

    def entries(self, *, metrics: bool = False) -> tuple[Entry, ...]:
        """Return the entries that count; without ``metrics`` the column statistics are skipped."""
        return read_entries(self.raw, self.file, metrics=metrics) if self.kept is None else self.kept

    def opened(self, *, metrics: bool) -> "Manifest":
        """Return the manifest with its entries read."""
        return replace(self, kept=self.entries(metrics=metrics))

    def keeping(self, entries: Iterable[Entry]) -> "Manifest":
        """Return the manifest cut down to some of its entries."""
        return replace(self, kept=tuple(entries), is_whole=False)

    def partition_schema(self) -> avro.Schema:
        """Return the Avro schema of the partition tuples."""
        schema = json.loads(avro.read_header(self.raw)[0]["avro.schema"])
        record = next(field["type"] for fid, field in avro.fields(schema) if fid == _DATA_FILE_ID)
        return next(field["type"] for fid, field in avro.fields(record) if fid == _PARTITION_ID)

    def field_ids(self) -> frozenset[int]:
        """Return the columns of the schema that the manifest was written with, nested ones too."""
        return _field_ids(avro.read_header(self.raw)[0]["schema"])


@lru_cache(maxsize=256)
def _field_ids(schema: bytes) -> frozenset[int]:
    found: set[int] = set()
    left: list[Any] = [json.loads(schema)]
    while left:
        here = left.pop()
        if isinstance(here, list):
            left += here
        elif isinstance(here, dict):
            found.update(here[key] for key in ("id", "element-id", "key-id", "value-id") if key in here)
            left += here.values()
    return frozenset(found)


# The manifest list. Field ids are Iceberg's; names differ between format versions and writers, ids never do.

_LIST_IDS = {
    500: "manifest_path",
    501: "manifest_length",
    502: "partition_spec_id",
    517: "content",
    515: "sequence_number",
    516: "min_sequence_number",
    503: "added_snapshot_id",
    504: "added_files_count",
    505: "existing_files_count",
    506: "deleted_files_count",
    512: "added_rows_count",
    513: "existing_rows_count",
    514: "deleted_rows_count",
    507: "partitions",
    519: "key_metadata",
    520: "first_row_id",
}
_LIST_DEFAULTS: dict[str, Any] = dict.fromkeys(_LIST_IDS.values()) | {
    "content": DATA_MANIFEST,
    "sequence_number": 0,
    "min_sequence_number": 0,
}
_SUMMARY_IDS = {509: "contains_null", 518: "contains_nan", 510: "lower_bound", 511: "upper_bound"}


def read_manifest_list(raw: bytes) -> list[ManifestFile]:
    """Read a snapshot's manifest list, whatever the format version."""
    container = avro.read_container(raw)
    names = {field["name"]: _LIST_IDS.get(fid or -1, field["name"]) for fid, field in avro.fields(container.schema)}
    files = []
    for record in avro.read_records(container):
        values = _LIST_DEFAULTS | {
            names[name]: value for name, value in record.items() if names[name] in _LIST_DEFAULTS
        }
        summaries = values["partitions"]
        values["partitions"] = summaries and tuple(_field_summary(summary) for summary in summaries)
        files.append(ManifestFile(**values))
    return files


def _field_summary(record: Mapping[str, Any]) -> FieldSummary:
    return FieldSummary(**{name: record.get(name) for name in _SUMMARY_IDS.values()})  # type: ignore[arg-type]


def _field(fid: int, name: str, kind: Any, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", kind], "default": None, "field-id": fid}
    return {"name": name, "type": kind, "field-id": fid}


def _list_schema(version: int) -> dict[str, Any]:
    """Return the Avro schema of a manifest list, as the spec words it."""
    summary = {
        "type": "record",
        "name": "r508",
        "fields": [
            _field(509, "contains_null", "boolean"),
            _field(518, "contains_nan", "boolean", optional=True),
            _field(510, "lower_bound", "bytes", optional=True),
            _field(511, "upper_bound", "bytes", optional=True),
        ],
    }
    counts = [
        *(
            (504, "added_files_count", "int"),
            (505, "existing_files_count", "int"),
            (506, "deleted_files_count", "int"),
        ),
        *(
            (512, "added_rows_count", "long"),
            (513, "existing_rows_count", "long"),
            (514, "deleted_rows_count", "long"),
        ),
    ]
    parts = [
        _field(500, "manifest_path", "string"),
        _field(501, "manifest_length", "long"),
        _field(502, "partition_spec_id", "int"),
    ]
    if version > 1:
        parts += [
            _field(517, "content", "int"),
            _field(515, "sequence_number", "long"),
            _field(516, "min_sequence_number", "long"),
        ]
    parts.append(_field(503, "added_snapshot_id", "long"))
    parts += [_field(fid, name, kind, optional=version == 1) for fid, name, kind in counts]
    parts.append(_field(507, "partitions", {"type": "array", "items": summary, "element-id": 508}, optional=True))
    parts.append(_field(519, "key_metadata", "bytes", optional=True))
    if version > 2:
        parts.append(_field(520, "first_row_id", "long", optional=True))
    return {"type": "record", "name": "manifest_file", "fields": parts}


def write_manifest_list(
    version: int,
    files: Sequence[ManifestFile],
    *,
    snapshot_id: int,
    sequence_number: int,
    next_row_id: int | None,
    parent_snapshot_id: int | None = None,
) -> bytes:
    """Write a manifest list for a table of the given format version."""
    schema = _list_schema(version)
    header = {
        "avro.schema": json.dumps(schema),
        "format-version": str(version),
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": "null" if parent_snapshot_id is None else str(parent_snapshot_id),
    }
    if version > 1:
        header["sequence-number"] = str(sequence_number)
    if version > 2:
        header["first-row-id"] = str(next_row_id)
    write = avro.writer(schema)
    payload = b"".join(write(_list_record(file, version)) for file in files)
    return avro.write_container({key: value.encode() for key, value in header.items()}, payload, len(files))


def _list_record(file: ManifestFile, version: int) -> dict[str, Any]:
    record = file._asdict()
    record["partitions"] = file.partitions and [summary._asdict() for summary in file.partitions]
    if version > 1:  # what a v1 list may leave out must be there from v2 on
        record |= {name: 0 for name in record if name.endswith("_count") and record[name] is None}
    return record


# Manifests.

_HEAD_IDS = {0: "status", 1: "snapshot_id", 3: "sequence_number", 4: "file_sequence_number"}
_DATA_FILE_ID = 2
_PARTITION_ID = 102
_FILE_IDS = {
    134: "content",
    100: "file_path",
    101: "file_format",
    102: "partition",
    103: "record_count",
    104: "file_size_in_bytes",
    135: "equality_ids",
    142: "first_row_id",
    143: "referenced_data_file",
    144: "content_offset",
    145: "content_size_in_bytes",
}
_METRIC_IDS = {
    109: "value_counts",
    110: "null_value_counts",
    137: "nan_value_counts",
    125: "lower_bounds",
    128: "upper_bounds",
}
_ENTRY_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(_HEAD_IDS.values()),
    **dict.fromkeys(_FILE_IDS.values()),
    **dict.fromkeys(_METRIC_IDS.values()),
    "content": DATA,
}
_FIRST_ROW_ID = 142


class _EntryReader:
    """Reads the entries of all manifests that share one Avro schema."""

    def __init__(self, schema: avro.Schema, *, metrics: bool) -> None:
        names = avro.named_types(schema)
        wanted = _FILE_IDS | (_METRIC_IDS if metrics else {})
        self.has_sequence_numbers = any(fid == 3 for fid, _ in avro.fields(schema))
        self.head: list[tuple[str, avro.Read]] = []
        self.file: list[tuple[int, str, avro.Read]] = []
        for fid, field in avro.fields(schema):
            if fid == _DATA_FILE_ID:
                record = names[field["type"]] if isinstance(field["type"], str) else field["type"]
                for inner_id, inner in avro.fields(record):
                    name = wanted.get(inner_id or -1, "")
                    read = (avro.reader if name else avro.skipper)(inner["type"], names)
                    self.file.append((inner_id or -1, name, read))
            else:
                self.head.append((_HEAD_IDS[fid or 0], avro.reader(field["type"], names)))

    def read(self, decoder: Any, raw: bytes, manifest: ManifestFile) -> dict[str, Any]:
        """Read one entry into a dictionary of everything but what depends on its neighbours."""
        values = _ENTRY_DEFAULTS.copy()
        for name, read in self.head:
            values[name] = read(decoder)
        tell = decoder.tell
        start = tell()
        places = {_PARTITION_ID: (0, 0), _FIRST_ROW_ID: (0, 0)}
        for fid, field_name, read in self.file:
            before = tell() if fid in places else 0
            value = read(decoder)
            if field_name:
                values[field_name] = value
            if before:
                places[fid] = (before, tell())
        values["raw"] = raw
        values["cuts"] = (start, *places[_PARTITION_ID], *places[_FIRST_ROW_ID], tell())
        if values["snapshot_id"] is None:
            values["snapshot_id"] = manifest.added_snapshot_id
        for name in ("sequence_number", "file_sequence_number"):
            if values[name] is None:
                values[name] = manifest.sequence_number if self.has_sequence_numbers else 0
        return values


@lru_cache(maxsize=256)
def _entry_reader(schema_json: bytes, *, metrics: bool) -> _EntryReader:
    return _EntryReader(json.loads(schema_json), metrics=metrics)


def read_entries(raw: bytes, manifest: ManifestFile, *, metrics: bool) -> tuple[Entry, ...]:
    """Read the entries of a manifest, in order, with everything they inherit filled in."""
    container = avro.read_container(raw)
    read = _entry_reader(container.header["avro.schema"], metrics=metrics).read
    next_row_id = manifest.first_row_id if manifest.content == DATA_MANIFEST else None
    entries = []
    for count, data in container.blocks:
        decoder = new_decoder(data)
        for _ in range(count):
            values = read(decoder, data, manifest)
            inherits = next_row_id is not None and values["first_row_id"] is None and values["status"] != DELETED
            if inherits and next_row_id is not None:
                values["first_row_id"] = next_row_id
                next_row_id += values["record_count"]
            entries.append(Entry(inherits_row_id=inherits, **values))
    return tuple(entries)


def write_manifest(manifest: Manifest) -> tuple[ManifestFile, bytes]:
    """Write the kept entries of a manifest as EXISTING ones, and return its row for a manifest list with them."""
    if manifest.is_whole or manifest.kept is None:
        return manifest.file, manifest.raw
    container = avro.read_container(manifest.raw)
    schema, extended = _with_row_ids(container.schema, manifest.kept)
    head = [(field, _HEAD_IDS[fid or 0]) for fid, field in avro.fields(schema) if fid != _DATA_FILE_ID]
    writers = [(name, avro.writer(field["type"])) for field, name in head]
    payload = b"".join(_spliced(entry, writers, extended=extended) for entry in manifest.kept)
    header = {**container.header, "avro.schema": json.dumps(schema).encode()} if extended else container.header
    blob = avro.write_container(header, payload, len(manifest.kept))
    return _with_counts(manifest.file, manifest.kept), blob


def write_added_manifest(manifest: Manifest, snapshot_id: int, sequence_number: int) -> tuple[ManifestFile, bytes]:
    """Write the kept entries of a data manifest as files that a new snapshot adds, and return its row for the list.

    The entries have neither sequence numbers nor row ids of their own: they get the snapshot's.
    """
    entries = manifest.entries()
    container = avro.read_container(manifest.raw)
    head = [(field, _HEAD_IDS[fid or 0]) for fid, field in avro.fields(container.schema) if fid != _DATA_FILE_ID]
    values = {"status": ADDED, "snapshot_id": snapshot_id, "sequence_number": None, "file_sequence_number": None}
    start = b"".join(avro.writer(field["type"])(values[name]) for field, name in head)
    payload = b"".join(start + _without_row_id(entry) for entry in entries)
    return manifest.file._replace(
        sequence_number=sequence_number,
        min_sequence_number=sequence_number,
        added_snapshot_id=snapshot_id,
        added_files_count=len(entries),
        existing_files_count=0,
        deleted_files_count=0,
        added_rows_count=sum(entry.record_count for entry in entries),
        existing_rows_count=0,
        deleted_rows_count=0,
        first_row_id=None,
    ), avro.write_container(container.header, payload, len(entries))


def _without_row_id(entry: Entry) -> bytes:
    start, _, _, row_id_start, row_id_end, end = entry.cuts
    if row_id_start == row_id_end:  # the manifest has no such column
        return entry.raw[start:end]
    return entry.raw[start:row_id_start] + b"\0" + entry.raw[row_id_end:end]


def _with_row_ids(schema: avro.Schema, entries: Iterable[Entry]) -> tuple[avro.Schema, bool]:
    """Return a schema with a first_row_id at the end of data_file, where entries inherit one and it has none."""
    record = next(field["type"] for fid, field in avro.fields(schema) if fid == _DATA_FILE_ID)
    there = any(fid == _FIRST_ROW_ID for fid, _ in avro.fields(record))
    if there or not any(entry.inherits_row_id for entry in entries):
        return schema, False
    longer = {
        **record,
        "fields": [*record["fields"], _field(_FIRST_ROW_ID, "first_row_id", "long", optional=True)],
    }
    parts = [{**field, "type": longer} if fid == _DATA_FILE_ID else field for fid, field in avro.fields(schema)]
    return {**schema, "fields": parts}, True


def _spliced(entry: Entry, head: Sequence[tuple[str, avro.Write]], *, extended: bool) -> bytes:
    """Return an entry with a new head, and the bytes of its data_file but for an inherited first_row_id."""
    values = {
        "status": EXISTING,
        "snapshot_id": entry.snapshot_id,
        "sequence_number": entry.sequence_number,
        "file_sequence_number": entry.file_sequence_number,
    }
    start, _, _, row_id_start, row_id_end, end = entry.cuts
    row_id = b"\x02" + avro.encode_long(entry.first_row_id) if entry.first_row_id is not None else b"\0"
    if extended:
        body = entry.raw[start:end] + row_id
    elif entry.inherits_row_id:
        body = entry.raw[start:row_id_start] + row_id + entry.raw[row_id_end:end]
    else:
        body = entry.raw[start:end]
    return b"".join([write(values[name]) for name, write in head]) + body


def _with_counts(file: ManifestFile, entries: Sequence[Entry]) -> ManifestFile:
    row_ids = [entry.first_row_id for entry in entries if entry.first_row_id is not None]
    return file._replace(
        added_files_count=0,
        existing_files_count=len(entries),
        deleted_files_count=0,
        added_rows_count=0,
        existing_rows_count=sum(entry.record_count for entry in entries),
        deleted_rows_count=0,
        min_sequence_number=min((entry.sequence_number for entry in entries), default=0),
        # readers ignore the entries' own ids where the list has none for the manifest, and hand out ids where it has
        first_row_id=min(row_ids) if row_ids and len(row_ids) == len(entries) else None,
    )


# Manifests of our own making: inverted deletion vectors, and equality deletes read as data.


def new_manifest(
    file: ManifestFile,
    partition: avro.Schema,
    records: Sequence[tuple[dict[str, Any], bytes]],
    *,
    header: Mapping[str, str],
) -> tuple[ManifestFile, bytes]:
    """Write a v3 manifest from records of (values by name, raw partition tuple)."""
    schema = _entry_schema(partition)
    data_file = schema["fields"][-1]["type"]
    writers = [(field["name"], avro.writer(field["type"])) for field in data_file["fields"]]
    payload = b"".join(
        b"".join(
            [
                avro.encode_long(EXISTING),
                *(b"\x02" + avro.encode_long(values[name]) for name in list(_HEAD_IDS.values())[1:]),
                *(raw if name == "partition" else write(values.get(name)) for name, write in writers),
            ]
        )
        for values, raw in records
    )
    content = "deletes" if file.content == DELETE_MANIFEST else "data"
    meta = {**header, "avro.schema": json.dumps(schema), "format-version": "3", "content": content}
    blob = avro.write_container({key: value.encode() for key, value in meta.items()}, payload, len(records))
    return file._replace(
        added_files_count=0,
        existing_files_count=len(records),
        deleted_files_count=0,
        added_rows_count=0,
        existing_rows_count=sum(values["record_count"] for values, _ in records),
        deleted_rows_count=0,
        min_sequence_number=min(values["sequence_number"] for values, _ in records),
    ), blob


NO_PARTITION: avro.Schema = {"type": "record", "name": "r102", "fields": []}


def _entry_schema(partition: avro.Schema) -> avro.Schema:
    data_file = {
        "type": "record",
        "name": "r2",
        "fields": [
            _field(134, "content", "int"),
            _field(100, "file_path", "string"),
            _field(101, "file_format", "string"),
            _field(102, "partition", partition),
            _field(103, "record_count", "long"),
            _field(104, "file_size_in_bytes", "long"),
            _field(142, "first_row_id", "long", optional=True),
            _field(143, "referenced_data_file", "string", optional=True),
            _field(144, "content_offset", "long", optional=True),
            _field(145, "content_size_in_bytes", "long", optional=True),
        ],
    }
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            _field(0, "status", "int"),
            _field(1, "snapshot_id", "long", optional=True),
            _field(3, "sequence_number", "long", optional=True),
            _field(4, "file_sequence_number", "long", optional=True),
            _field(2, "data_file", data_file),
        ],
    }
