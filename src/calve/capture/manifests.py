"""Iceberg's manifest lists and manifests: read, filtered and written again without losing a byte of an entry."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field as attribute, replace
from enum import StrEnum
from functools import lru_cache
from operator import itemgetter
from types import NoneType
from typing import Any, NamedTuple, assert_never

from calve.capture import avro
from calve.errors import LakeCorrupt
from calve.lake import MAX_METADATA_BYTES, decoding, shown, too_large

ADDED, DELETED = 1, 2
EXISTING = 0
DATA, POSITION_DELETES, EQUALITY_DELETES = 0, 1, 2
DATA_MANIFEST, DELETE_MANIFEST = 0, 1
NO_METRICS: frozenset[int] = frozenset()
_CACHED = 1 << 18
"""Larger schemas, in bytes, are compiled each time, so that no writer can fill the memory."""


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


class ManifestEntry(NamedTuple):
    """One file of a manifest, with inherited values filled in, and its bytes to be copied."""

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
    """The block that holds the entry; ``cuts`` are positions in it."""
    cuts: tuple[int, int, int, int, int, int]
    """Where data_file starts, partition starts and ends, first_row_id starts and ends, and data_file ends."""

    @property
    def raw_partition(self) -> bytes:
        """The partition tuple as it was written."""
        return self.raw[self.cuts[1] : self.cuts[2]]


_FILES_AT_ONCE = 16


@dataclass(slots=True)
class Allowance:
    """How many bytes one manifest may have when decompressed, and all manifests read of one table together."""

    limit: int = MAX_METADATA_BYTES
    taken: dict[str, int] = attribute(default_factory=dict)
    total: int = 0

    def take(self, path: str, size: int) -> None:
        """Count a manifest that is read, each one once.

        Raises:
            LakeCorrupt: the sum exceeds the limit.
        """
        # Some requests read a manifest more than once; only the first time counts.
        self.total += size - self.taken.get(path, 0)
        self.taken[path] = size
        if self.total > self.limit * _FILES_AT_ONCE:
            raise too_large(f"the table's manifests have more than {self.limit * _FILES_AT_ONCE} bytes in all")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest in memory: its row in the list, its file, and the entries of it that count."""

    file: ManifestFile
    raw: bytes
    kept: tuple[ManifestEntry, ...] | None = None
    """None: all of them, and they have not been read."""
    is_whole: bool = True
    """Every entry counts, so the file can be copied as it is."""
    allowance: Allowance = attribute(default_factory=Allowance)

    def entries(self, *, metrics: frozenset[int] = NO_METRICS) -> tuple[ManifestEntry, ...]:
        """Return the entries that count, with the statistics of the columns whose ids are in ``metrics``."""
        if self.kept is not None:
            return self.kept
        with decoding(self.file.manifest_path):
            return read_entries(self.raw, self.file, metrics=metrics, allowance=self.allowance)

    def entries_in(
        self, is_wanted: Callable[[bytes], bool], *, metrics: frozenset[int] = NO_METRICS
    ) -> tuple[ManifestEntry, ...]:
        """Return the entries of the blocks that ``is_wanted`` selects by their bytes; others are not decoded."""
        with decoding(self.file.manifest_path):
            return read_entries(self.raw, self.file, metrics=metrics, allowance=self.allowance, is_wanted=is_wanted)

    def opened(self, *, metrics: frozenset[int]) -> "Manifest":
        """Return the manifest with its entries read."""
        return replace(self, kept=self.entries(metrics=metrics))

    def keeping(self, entries: Iterable[ManifestEntry]) -> "Manifest":
        """Return the manifest reduced to some of its entries."""
        return replace(self, kept=tuple(entries), is_whole=False)

    def partition_schema(self) -> avro.Schema:
        """Return the Avro schema of the partition tuples."""
        with decoding(self.file.manifest_path):
            schema = avro.parse_schema(avro.read_header(self.raw)[0]["avro.schema"])
            return _field_type(_data_file(schema), _PARTITION_ID)

    def field_ids(self) -> frozenset[int]:
        """Return the columns of the schema that the manifest was written with, nested ones too."""
        with decoding(self.file.manifest_path):
            schema = avro.read_header(self.raw)[0]["schema"]
            return (_cached_field_ids if len(schema) < _CACHED else _field_ids)(schema)


def _field_type(record: avro.Schema, wanted: int) -> avro.Schema:
    for fid, field in avro.fields(record):
        if fid == wanted:
            return field["type"]
    raise LakeCorrupt(f"its Avro schema has no field with the id {wanted}", offset=4)


def _data_file(schema: avro.Schema) -> avro.Schema:
    """Return the record of an entry that describes the file; the fields before it are the entry's head."""
    *_, (fid, last) = avro.fields(schema) or [(None, {})]
    if fid != _DATA_FILE_ID:
        raise LakeCorrupt("its Avro schema does not end with data_file", offset=4)
    return avro.compiler(schema).resolved(last["type"])[1]


def _field_ids(schema: bytes) -> frozenset[int]:
    found: set[int] = set()
    left: list[Any] = [avro.parse_schema(schema)]
    while left:
        here = left.pop()
        if isinstance(here, list):
            left += here
        elif isinstance(here, dict):
            found.update(here[key] for key in ("id", "element-id", "key-id", "value-id") if key in here)
            left += here.values()
    return frozenset(found)


_cached_field_ids = lru_cache(maxsize=64)(_field_ids)


# The kinds of values of fields. Names differ between format versions and writers; Iceberg's field ids never do.


class _Kind(StrEnum):
    """What kind of value a field must have."""

    NUMBER = "number"
    STRING = "string"
    BYTES = "bytes"
    BOOLEAN = "boolean"
    NUMBERS = "array of numbers"
    METRICS = "map from field ids to numbers"
    BOUNDS = "map from field ids to bytes"
    SUMMARIES = "array of records"
    PARTITION = "record of plain values"


_NUMBERS = ("int", "long")


def _typed_reader(
    compiler: avro.Compiler, field: avro.Schema, kind: _Kind, metrics: frozenset[int] = NO_METRICS
) -> avro.Read:
    """Return a reader of a field's values, which are of one kind, or null where the schema allows that.

    Raises:
        LakeCorrupt: the schema has another type for the field.
    """
    found, schema = compiler.resolved(field["type"])
    if found == "union" and "null" in schema and len(schema) == 2:
        found, schema = compiler.resolved(next((branch for branch in schema if branch != "null"), "null"))
    items = compiler.resolved(schema["items"])[0] if found == "array" else ""
    pair = avro.int_map(schema["items"]) if found == "array" else None
    match kind:
        case _Kind.NUMBER:
            fits = found in _NUMBERS
        case _Kind.STRING | _Kind.BYTES | _Kind.BOOLEAN:
            fits = found == kind.value
        case _Kind.NUMBERS:
            fits = items in _NUMBERS
        case _Kind.METRICS | _Kind.BOUNDS:
            fits = pair == ("long" if kind is _Kind.METRICS else "bytes")
        case _Kind.SUMMARIES:
            fits = items == "record" and all(_is_plain(compiler, part) for _, part in avro.fields(schema["items"]))
        case _Kind.PARTITION:
            fits = found == "record" and all(_is_plain(compiler, part) for _, part in avro.fields(schema))
        case _:
            assert_never(kind)
    if not fits:
        name = shown(field["name"])
        raise LakeCorrupt(f"its Avro schema has {shown(field['type'])} for {name}, which is a {kind}", offset=4)
    if pair is not None and kind in (_Kind.METRICS, _Kind.BOUNDS):
        read = avro.int_map_reader(pair, metrics)
        return avro.optional_reader(field["type"], read)
    return compiler.reader(field["type"])


def _is_plain(compiler: avro.Compiler, field: avro.Schema) -> bool:
    """Tell whether a field has a single value, or null."""
    kind, schema = compiler.resolved(field["type"])
    kinds = [compiler.resolved(branch)[0] for branch in schema] if kind == "union" else [kind]
    return not {"union", "record", "array", "map", "enum"} & set(kinds)


# The manifest list.

_LIST_FIELDS = {
    500: ("manifest_path", _Kind.STRING),
    501: ("manifest_length", _Kind.NUMBER),
    502: ("partition_spec_id", _Kind.NUMBER),
    517: ("content", _Kind.NUMBER),
    515: ("sequence_number", _Kind.NUMBER),
    516: ("min_sequence_number", _Kind.NUMBER),
    503: ("added_snapshot_id", _Kind.NUMBER),
    504: ("added_files_count", _Kind.NUMBER),
    505: ("existing_files_count", _Kind.NUMBER),
    506: ("deleted_files_count", _Kind.NUMBER),
    512: ("added_rows_count", _Kind.NUMBER),
    513: ("existing_rows_count", _Kind.NUMBER),
    514: ("deleted_rows_count", _Kind.NUMBER),
    507: ("partitions", _Kind.SUMMARIES),
    519: ("key_metadata", _Kind.BYTES),
    520: ("first_row_id", _Kind.NUMBER),
}
# Format v1 has none of these fields: the spec says to read them as data and as sequence number 0.
_LIST_DEFAULTS: dict[str, Any] = {"content": DATA_MANIFEST, "sequence_number": 0, "min_sequence_number": 0}
_LIST_REQUIRED = ("manifest_path", "manifest_length", "partition_spec_id", "added_snapshot_id")
_SUMMARY_IDS = {509: "contains_null", 518: "contains_nan", 510: "lower_bound", 511: "upper_bound"}


def read_manifest_list(raw: bytes, limit: int = MAX_METADATA_BYTES) -> list[ManifestFile]:
    """Read a snapshot's manifest list, whatever the format version.

    Raises:
        LakeCorrupt: it is damaged, or its values contradict each other.
    """
    container = avro.read_container(raw, limit)
    compiler = avro.compiler(container.schema)
    parts: list[tuple[str, avro.Read]] = []
    for fid, field in avro.fields(container.schema):
        name, kind = _LIST_FIELDS.get(-1 if fid is None else fid, ("", None))
        parts.append(
            (name, avro.skip_reader(compiler, field) if kind is None else _typed_reader(compiler, field, kind))
        )
    files = [_manifest_file(values) for values in container.records(avro.record_reader(parts))]
    # Files would be captured twice. No writer does this; a damaged list may.
    if len({file.manifest_path for file in files}) < len(files):
        raise LakeCorrupt("it lists a manifest twice")
    return files


def _manifest_file(values: dict[str, Any]) -> ManifestFile:
    found: dict[str, Any] = {name: values.get(name) for name, _ in _LIST_FIELDS.values()}
    found |= {name: default for name, default in _LIST_DEFAULTS.items() if found[name] is None}
    summaries = found["partitions"]
    found["partitions"] = None if summaries is None else tuple(_field_summary(summary) for summary in summaries)
    file = ManifestFile(**found)
    missing = [name for name in _LIST_REQUIRED if found[name] is None]
    counts = (*file[7:13], file.sequence_number, file.min_sequence_number, file.first_row_id)
    if missing or file.content not in (DATA_MANIFEST, DELETE_MANIFEST) or any(n is not None and n < 0 for n in counts):
        raise LakeCorrupt(f"the row of the manifest {shown(file.manifest_path)} says {shown(str(file[1:13]))}")
    return file


def _field_summary(record: Mapping[str, Any]) -> FieldSummary:
    found = FieldSummary(**{name: record.get(name) for name in _SUMMARY_IDS.values()})  # type: ignore[arg-type]
    if any(type(bound) not in (bytes, NoneType) for bound in (found.lower_bound, found.upper_bound)):
        raise LakeCorrupt("the bound of a partition is not of bytes")
    return found


def _field(fid: int, name: str, kind: Any, *, optional: bool = False) -> dict[str, Any]:
    if optional:
        return {"name": name, "type": ["null", kind], "default": None, "field-id": fid}
    return {"name": name, "type": kind, "field-id": fid}


def _list_schema(version: int) -> dict[str, Any]:
    """Return the Avro schema of a manifest list, as the spec defines it."""
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

# Order and presence of fields differ between format versions and writers, so everything goes by field id.
_HEAD_IDS = {0: "status", 1: "snapshot_id", 3: "sequence_number", 4: "file_sequence_number"}
_DATA_FILE_ID = 2
_PARTITION_ID = 102
_FIRST_ROW_ID = 142
_FILE_FIELDS = {
    134: ("content", _Kind.NUMBER),
    100: ("file_path", _Kind.STRING),
    101: ("file_format", _Kind.STRING),
    102: ("partition", _Kind.PARTITION),
    103: ("record_count", _Kind.NUMBER),
    104: ("file_size_in_bytes", _Kind.NUMBER),
    135: ("equality_ids", _Kind.NUMBERS),
    142: ("first_row_id", _Kind.NUMBER),
    143: ("referenced_data_file", _Kind.STRING),
    144: ("content_offset", _Kind.NUMBER),
    145: ("content_size_in_bytes", _Kind.NUMBER),
}
_METRIC_FIELDS = {
    109: ("value_counts", _Kind.METRICS),
    110: ("null_value_counts", _Kind.METRICS),
    137: ("nan_value_counts", _Kind.METRICS),
    125: ("lower_bounds", _Kind.BOUNDS),
    128: ("upper_bounds", _Kind.BOUNDS),
}
_SLOTS = {name: number for number, name in enumerate(ManifestEntry._fields)}
_STATUS, _SNAPSHOT, _SEQUENCE, _FILE_SEQUENCE, _CONTENT = range(5)
_ROW_ID, _INHERITS, _RAW, _CUTS = (_SLOTS[n] for n in ("first_row_id", "inherits_row_id", "raw", "cuts"))
_RECORDS = _SLOTS["record_count"]
_REQUIRED = tuple(
    _SLOTS[name] for name in ("status", "file_path", "file_format", "partition", "record_count", "file_size_in_bytes")
)
_required = itemgetter(*_REQUIRED)
_counts = itemgetter(
    *(
        _SLOTS[name]
        for name in (
            *("sequence_number", "file_sequence_number", "record_count", "file_size_in_bytes"),
            *("first_row_id", "content_offset", "content_size_in_bytes"),
        )
    )
)
_NO_PLACES = {_PARTITION_ID: (0, 0), _FIRST_ROW_ID: (0, 0)}
_MOST = 2**63 - 1


class _EntryReader:
    """Reads the entries of all manifests that share one Avro schema."""

    def __init__(self, schema: avro.Schema, metrics: frozenset[int]) -> None:
        compiler = avro.compiler(schema)
        record = _data_file(schema)
        wanted = _FILE_FIELDS | (_METRIC_FIELDS if metrics else {})
        heads = avro.fields(schema)[:-1]
        self.has_sequence_numbers = any(fid == 3 for fid, _ in heads)
        self._head = [self._head_part(compiler, fid, field) for fid, field in heads]
        self._file: list[tuple[int, int, Any]] = []
        """Of each field: its id if its place is needed, its slot in an entry or -1, and its reader or skipper."""
        for fid, field in avro.fields(record):
            name, kind = wanted.get(-1 if fid is None else fid, ("", None))
            place = fid if fid in (_PARTITION_ID, _FIRST_ROW_ID) else 0
            if kind is None:
                self._file.append((place or 0, -1, compiler.skipper(field["type"])))
            else:
                self._file.append((place or 0, _SLOTS[name], _typed_reader(compiler, field, kind, metrics)))

    @staticmethod
    def _head_part(compiler: avro.Compiler, fid: int | None, field: avro.Schema) -> tuple[int, Any]:
        name = _HEAD_IDS.get(-1 if fid is None else fid)
        if name is None:
            return -1, compiler.skipper(field["type"])
        return _SLOTS[name], _typed_reader(compiler, field, _Kind.NUMBER)

    def read(self, raw: avro.Block, at: int) -> tuple[list[Any], int]:
        """Read one entry, without inherited values."""
        values: list[Any] = [None] * len(_SLOTS)
        for slot, part in self._head:
            if slot >= 0:
                values[slot], at = part(raw, at)
            else:
                at = part(raw, at)
        start = at
        places = _NO_PLACES.copy()
        for place, slot, part in self._file:
            before = at
            if slot >= 0:
                values[slot], at = part(raw, at)
            else:
                at = part(raw, at)
            if place:
                places[place] = (before, at)
        values[_RAW] = raw
        values[_CUTS] = (start, *places[_PARTITION_ID], *places[_FIRST_ROW_ID], at)
        return values, at


def _entry_reader(schema: bytes, metrics: frozenset[int]) -> _EntryReader:
    return _EntryReader(avro.parse_schema(schema), metrics)


_cached_entry_reader = lru_cache(maxsize=64)(_entry_reader)


def read_entries(
    raw: bytes,
    manifest: ManifestFile,
    *,
    metrics: frozenset[int] = NO_METRICS,
    allowance: Allowance | None = None,
    is_wanted: Callable[[bytes], bool] | None = None,
) -> tuple[ManifestEntry, ...]:
    """Read the entries of a manifest, in order, with everything they inherit filled in.

    With ``is_wanted``, the entries of the blocks that it selects, and perhaps of others.

    Raises:
        LakeCorrupt: the manifest is damaged, or its values contradict each other.
    """
    allowance = allowance or Allowance()
    container = avro.read_container(raw, allowance.limit)
    allowance.take(manifest.manifest_path, sum(len(block) for _, block in container.blocks))
    if is_wanted is None:
        return _decoded(container, manifest, metrics)
    wanted = [number for number, (_, block) in enumerate(container.blocks) if is_wanted(block)]
    entries = _decoded(container.of_blocks(wanted), manifest, metrics) if wanted else ()
    # An inherited row id is counted from the first entry of the manifest on.
    if any(entry.inherits_row_id for entry in entries):
        entries = _decoded(container.of_blocks(range(wanted[-1] + 1)), manifest, metrics)
    return entries


def _decoded(container: avro.Container, manifest: ManifestFile, metrics: frozenset[int]) -> tuple[ManifestEntry, ...]:
    schema = container.header["avro.schema"]
    reader = (_cached_entry_reader if len(schema) < _CACHED else _entry_reader)(schema, metrics)
    # Iceberg spec, "First row ID inheritance": ids are handed out in the order of the manifest to live data files
    # that have none.
    next_row_id = manifest.first_row_id if manifest.content == DATA_MANIFEST else None
    # A v1 manifest has no such column: its files have sequence number 0 even where the list was rewritten by a v2
    # writer.
    inherited = manifest.sequence_number if reader.has_sequence_numbers else 0
    entries = []
    for values in container.records(reader.read):
        if values[_SNAPSHOT] is None:
            values[_SNAPSHOT] = manifest.added_snapshot_id
        if values[_SEQUENCE] is None:
            values[_SEQUENCE] = inherited
        if values[_FILE_SEQUENCE] is None:
            values[_FILE_SEQUENCE] = inherited
        if values[_CONTENT] is None:
            values[_CONTENT] = DATA
        _check(values)
        values[_INHERITS] = inherits = (
            next_row_id is not None and values[_ROW_ID] is None and values[_STATUS] != DELETED
        )
        if inherits and next_row_id is not None:
            values[_ROW_ID] = next_row_id
            next_row_id += values[_RECORDS]
            if next_row_id > _MOST:
                raise LakeCorrupt(f"the file {shown(values[_SLOTS['file_path']])} has row ids of more than 64 bits")
        entries.append(ManifestEntry._make(values))
    return tuple(entries)


def _check(values: Sequence[Any]) -> None:
    """Check that an entry's values are possible for a file.

    Raises:
        LakeCorrupt: they are not.
    """
    if None in _required(values):
        missing = [ManifestEntry._fields[slot] for slot in _REQUIRED if values[slot] is None]
        raise LakeCorrupt(f"an entry has no {missing[0]}")
    for count in _counts(values):
        if count is not None and count < 0:
            path = shown(values[_SLOTS["file_path"]])
            raise LakeCorrupt(f"the file {path} has a number below zero: {count}")
    if not (EXISTING <= values[_STATUS] <= DELETED and DATA <= values[_CONTENT] <= EQUALITY_DELETES):
        path = shown(values[_SLOTS["file_path"]])
        raise LakeCorrupt(f"the file {path} has the status {values[_STATUS]} and the content {values[_CONTENT]}")


def write_manifest(manifest: Manifest) -> tuple[ManifestFile, bytes]:
    """Write the kept entries of a manifest as EXISTING ones, and return its row for a manifest list with them."""
    # Byte by byte, so fields of later format versions survive.
    if manifest.is_whole or manifest.kept is None:
        return manifest.file, manifest.raw
    with decoding(manifest.file.manifest_path):
        header, _ = avro.read_header(manifest.raw)
        schema, extended = _with_row_ids(avro.parse_schema(header["avro.schema"]), manifest.kept)
        writers = [(name, avro.writer(field["type"])) for name, field in _heads(schema)]
        payload = b"".join(_spliced(entry, writers, extended=extended) for entry in manifest.kept)
        header = {**header, "avro.schema": json.dumps(schema).encode()} if extended else header
        blob = avro.write_container(header, payload, len(manifest.kept))
    return _with_counts(manifest.file, manifest.kept), blob


def _heads(schema: avro.Schema) -> list[tuple[str, avro.Schema]]:
    """Return the fields in front of data_file, by name.

    Raises:
        LakeCorrupt: a field is unknown, so it cannot be written.
    """
    heads = avro.fields(schema)[:-1]
    unknown = [field["name"] for fid, field in heads if fid not in _HEAD_IDS]
    if unknown:
        raise LakeCorrupt(f"its entries have the unknown field {shown(unknown[0])}", offset=4)
    return [(_HEAD_IDS[fid or 0], field) for fid, field in heads]


def write_added_manifest(manifest: Manifest, snapshot_id: int, sequence_number: int) -> tuple[ManifestFile, bytes]:
    """Write the kept entries of a data manifest as files that a new snapshot adds; return its row for the list.

    The entries have neither sequence numbers nor row ids of their own: they get the snapshot's.
    """
    entries = manifest.entries()
    # null: readers then inherit the number of the snapshot that adds the manifest (spec, "Sequence number
    # inheritance").
    values = {"status": ADDED, "snapshot_id": snapshot_id, "sequence_number": None, "file_sequence_number": None}
    with decoding(manifest.file.manifest_path):
        header, _ = avro.read_header(manifest.raw)
        heads = _heads(avro.parse_schema(header["avro.schema"]))
        start = b"".join(avro.writer(field["type"])(values[name]) for name, field in heads)
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
    ), avro.write_container(header, payload, len(entries))


def _without_row_id(entry: ManifestEntry) -> bytes:
    start, _, _, row_id_start, row_id_end, end = entry.cuts
    if row_id_start == row_id_end:  # the manifest has no such column
        return entry.raw[start:end]
    # A union's branch 0, null: the new snapshot assigns the ids.
    return entry.raw[start:row_id_start] + b"\0" + entry.raw[row_id_end:end]


def _with_row_ids(schema: avro.Schema, entries: Iterable[ManifestEntry]) -> tuple[avro.Schema, bool]:
    """Return a schema with a first_row_id at the end of data_file, where entries inherit one and it has none."""
    record = _data_file(schema)
    there = any(fid == _FIRST_ROW_ID for fid, _ in avro.fields(record))
    if there or not any(entry.inherits_row_id for entry in entries):
        return schema, False
    longer = {
        **record,
        "fields": [*record["fields"], _field(_FIRST_ROW_ID, "first_row_id", "long", optional=True)],
    }
    parts = [{**field, "type": longer} if fid == _DATA_FILE_ID else field for fid, field in avro.fields(schema)]
    return {**schema, "fields": parts}, True


def _spliced(entry: ManifestEntry, head: Sequence[tuple[str, avro.Write]], *, extended: bool) -> bytes:
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


def _with_counts(file: ManifestFile, entries: Sequence[ManifestEntry]) -> ManifestFile:
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


# Manifests that calve creates: inverted deletion vectors, and equality deletes read as data.


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
                # Branch 1 of the union with null, then the value.
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
