"""Tables written merge-on-read, as metadata and delete files alone, with the rows that each snapshot shows.

They have several partition specs, manifests of several blocks, merged and rewritten ones, and delete files of each
kind: for a partition, for one file with and without its name, deletion vectors, and equality deletes. No data file
exists: a row is the position in its file.
"""

import json
import os
import random
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, cast

from pyroaring import BitMap64
from tests.fuzz.lake_tables import entry_schema, position_deletes
from tests.unit.capture.tables import NAME, avro_field, manifest_file

from calve.capture import avro
from calve.capture.deletion_vectors import Blob, write_puffin
from calve.capture.manifests import (
    ADDED,
    DATA,
    DATA_MANIFEST,
    DELETE_MANIFEST,
    DELETED,
    EQUALITY_DELETES,
    EXISTING,
    POSITION_DELETES,
    FieldSummary,
    ManifestFile,
    write_manifest_list,
)
from calve.capture.source import Source
from calve.lake import MAX_METADATA_BYTES, Files, LoadedTable

PATH_COLUMN = 2147483546
"""The field id of ``file_path`` in position-delete files."""
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
        {"id": 3, "name": "day", "required": False, "type": "date"},
        {"id": 4, "name": "amount", "required": False, "type": "decimal(9, 2)"},
        {"id": 5, "name": "ratio", "required": False, "type": "double"},
        {"id": 6, "name": "at", "required": False, "type": "timestamptz"},
    ],
}
_DATE = {"type": "int", "logicalType": "date"}
_DECIMAL = {"type": "fixed", "name": "d9", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 2}


@dataclass(frozen=True, slots=True)
class SpecField:
    """A field of a partition spec: its transform, its Avro type, and the values that tests use."""

    name: str
    source_id: int
    transform: str
    kind: Any
    values: tuple[Any, ...]


_DAY = SpecField("day", 3, "identity", _DATE, (None, -3, 0, 19_000, 20_454))
_NAME = SpecField("name", 2, "identity", "string", (None, "", "a", "b", "zé", "\ue000", "\U0001f600"))
SPECS: tuple[tuple[SpecField, ...], ...] = (
    (),
    (_DAY,),
    (SpecField("bucket", 1, "bucket[4]", "int", (None, 0, 1, 3)), _NAME),
    (SpecField("gone", 3, "void", _DATE, (None,)), SpecField("amount", 4, "identity", _DECIMAL, (None, -5, 0, 700))),
    (SpecField("ratio", 5, "identity", "double", (float("nan"), float("nan"), 0.5)),),
    (SpecField("gone", 3, "void", _DATE, (None,)),),
    (
        SpecField("at_month", 6, "month", "int", (None, 0, 600)),
        SpecField("cut", 2, "truncate[1]", "string", ("a", "b")),
    ),
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A file that a manifest lists."""

    path: str
    content: int
    spec_id: int
    partition: tuple[Any, ...]
    records: int
    snapshot_id: int = 0
    number: int = 0
    first_row_id: int | None = None
    positions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The rows that a position-delete file hides, by data file."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other values of its entry."""

    def hides(self, data: "Listed") -> bool:
        """Tell whether Iceberg applies it to a data file (spec, "Scan planning")."""
        is_same = (self.spec_id, repr(self.partition)) == (data.spec_id, repr(data.partition))
        if self.content == EQUALITY_DELETES:
            is_global = all(part.transform == "void" for part in SPECS[self.spec_id])
            return self.number > data.number and (is_global or is_same)
        return self.number >= data.number and data.path in self.positions


@dataclass
class Memory:
    """Files in memory, which counts what is read of it."""

    contents: dict[str, bytes] = field(default_factory=dict)
    max_bytes: int = MAX_METADATA_BYTES
    read_paths: list[str] = field(default_factory=list)

    def read(self, path: str, *, times: int = 1) -> bytes:  # noqa: ARG002 - as Files has it
        """Return a file's content."""
        self.read_paths.append(path)
        return self.contents[path]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return a part of a file."""
        self.read_paths.append(path)
        return self.contents[path][offset : offset + length]


@dataclass
class MergeOnRead:
    """A table that is written snapshot by snapshot."""

    version: int = 2
    chance: random.Random = field(default_factory=lambda: random.Random(0))
    block: int = 3
    """How many entries a block of a manifest has."""
    summaries: str = "exact"
    """What manifest lists say about partitions: exact, wide, or nothing."""
    root: str = "/t"
    memory: Memory = field(default_factory=Memory)
    snapshots: list[dict[str, Any]] = field(default_factory=list)
    manifests: list[tuple[ManifestFile, list[tuple[int, Listed]]]] = field(default_factory=list)
    data: dict[str, Listed] = field(default_factory=dict)
    deletes: dict[str, Listed] = field(default_factory=dict)
    states: dict[int, tuple[dict[str, Listed], dict[str, Listed]]] = field(default_factory=dict)
    """The data and delete files that were live at each snapshot."""
    appended: dict[int, list[str]] = field(default_factory=dict)
    """The files that each append added."""
    row_ids: dict[str, int] = field(default_factory=dict)
    """The id of the first row of each data file, in version 3."""
    next_row_id: int = 0
    made: int = 0

    # What writers do.

    def append(self, files: Iterable[tuple[int, Sequence[Any], int]]) -> int:
        """Append data files, each of a spec, a partition and a number of rows; return the snapshot."""
        added = [self.new_file(*each) for each in files]
        snapshot_id = self.commit("append", added=added)
        self.appended[snapshot_id] = [file.path for file in added]
        return snapshot_id

    def delete_rows(self, positions: Mapping[str, Iterable[int]], how: str = "partition") -> int:
        """Delete rows: by deletion vectors in v3, otherwise by files for a partition or for one data file."""
        gone = {path: frozenset(found) for path, found in positions.items()}
        added, removed = self._vectors(gone) if self.version > 2 else (self._position_deletes(gone, how), [])
        return self.commit("overwrite", added_deletes=added, removed_deletes=removed)

    def delete_keys(self, spec_id: int, partition: Sequence[Any]) -> int:
        """Delete by key in one partition, or everywhere if the spec has no fields; return the snapshot."""
        keys = self._listed("eq", EQUALITY_DELETES, spec_id, tuple(partition), 2, more={"equality_ids": [1]})
        return self.commit("delete", added_deletes=[keys])

    def rewrite(self, paths: Sequence[str], *, operation: str = "replace", more: int = 0) -> int:
        """Replace data files by one each; with ``overwrite``, all their rows count as changed."""
        old = [self.data[path] for path in paths]
        new = [self.new_file(each.spec_id, each.partition, each.records + more) for each in old]
        gone = [d.path for d in self.deletes.values() if d.more.get("referenced_data_file") in paths]
        return self.commit(operation, added=new, removed=paths, removed_deletes=gone if self.version > 2 else ())

    def remove(self, paths: Sequence[str]) -> int:
        """Delete whole files; delete files for them alone stay, as they do in v2."""
        gone = [d.path for d in self.deletes.values() if d.more.get("referenced_data_file") in paths]
        return self.commit("delete", removed=paths, removed_deletes=gone if self.version > 2 else ())

    def rewrite_manifests(self) -> int:
        """List all files in other manifests."""
        snapshot_id = self._next()
        entries = [entry for _, found in self.manifests for status, entry in found if status != DELETED]
        self.chance.shuffle(entries)
        self.manifests = []
        for content in (DATA_MANIFEST, DELETE_MANIFEST):
            for spec_id in range(len(SPECS)):
                some = [e for e in entries if (e.content != DATA) == bool(content) and e.spec_id == spec_id]
                size = self.chance.randint(1, 7)
                parts = [some[start : start + size] for start in range(0, len(some), size)]
                self.manifests += [self._manifest(snapshot_id, [(EXISTING, e) for e in part]) for part in parts]
        return self._commit(snapshot_id, "replace", {})

    def commit(
        self,
        operation: str,
        *,
        added: Sequence[Listed] = (),
        removed: Sequence[str] = (),
        added_deletes: Sequence[Listed] = (),
        removed_deletes: Sequence[str] = (),
    ) -> int:
        """Write a snapshot; return its id."""
        snapshot_id = self._next()
        gone = {*removed, *removed_deletes}
        self.manifests = [self._without(manifest, gone, snapshot_id) for manifest in self.manifests]
        for file in (*added, *added_deletes):
            new = replace(file, snapshot_id=snapshot_id, number=self._number())
            (self.data if file.content == DATA else self.deletes)[file.path] = new
        for path in gone:
            self.data.pop(path, None)
            self.deletes.pop(path, None)
        groups: dict[tuple[bool, int], list[Listed]] = {}
        for file in (*added, *added_deletes):
            groups.setdefault((file.content == DATA, file.spec_id), []).append(file)
        self.manifests += [self._manifest(snapshot_id, [(ADDED, f) for f in some]) for some in groups.values()]
        counts = {"added-data-files": len(added), "deleted-data-files": len(removed)}
        return self._commit(snapshot_id, operation, counts)

    def merge_manifests(self, spec_id: int) -> None:
        """Let the next commit be written beside one manifest with the data files of a spec, as merging writers do."""
        mine = [m for m in self.manifests if m[0].partition_spec_id == spec_id and m[0].content == DATA_MANIFEST]
        live = [(EXISTING, entry) for _, found in mine for status, entry in found if status != DELETED]
        if len(mine) > 1 and live:
            self.manifests = [m for m in self.manifests if m not in mine]
            self.manifests.append(self._manifest(self._next(), live))

    # The truth.

    def visible(self, snapshot_id: int) -> set[tuple[str, int]]:
        """Return the rows at a snapshot, as if there were no equality deletes."""
        data, deletes = self.states[snapshot_id]
        hidden: dict[str, set[int]] = {}
        for delete in deletes.values():
            for path, positions in delete.positions.items():
                if path in data and delete.hides(data[path]):
                    hidden.setdefault(path, set()).update(positions)
        return {(p, n) for p, f in data.items() for n in range(f.records) if n not in hidden.get(p, ())}

    def source(self, **metadata: Any) -> Source:
        """Return the table as capture sees it."""
        return Source(LoadedTable(NAME, self.document() | metadata, "metadata.json", cast("Files", self.memory)))

    def document(self) -> dict[str, Any]:
        """Return its metadata."""
        return {
            "format-version": self.version,
            "table-uuid": "11111111-1111-1111-1111-111111111111",
            "location": self.root,
            "last-updated-ms": len(self.snapshots),
            "last-column-id": 6,
            "last-sequence-number": len(self.snapshots),
            "next-row-id": self.next_row_id,
            "schemas": [SCHEMA],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": n, "fields": _spec(n)} for n in range(len(SPECS))],
            "default-spec-id": 0,
            "last-partition-id": 1999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {},
            "current-snapshot-id": self.snapshots[-1]["snapshot-id"] if self.snapshots else -1,
            "snapshots": self.snapshots,
        }

    # Files.

    def new_file(self, spec_id: int, partition: Sequence[Any], records: int) -> Listed:
        """Return a data file that no snapshot has yet."""
        return self._listed("data", DATA, spec_id, tuple(partition), records)

    def _listed(
        self,
        kind: str,
        content: int,
        spec_id: int,
        partition: tuple[Any, ...],
        records: int,
        more: Mapping[str, Any] | None = None,
        positions: Mapping[str, frozenset[int]] | None = None,
    ) -> Listed:
        self.made += 1
        path = f"{self.root}/{kind}/{self.made * 7_919 % 1_000_003:07d}-{self.made:08d}.parquet"
        return Listed(path, content, spec_id, partition, records, more=more or {}, positions=positions or {})

    def _position_deletes(self, gone: Mapping[str, frozenset[int]], how: str) -> list[Listed]:
        groups: dict[Any, list[str]] = {}
        for path in sorted(gone):
            data = self.data[path]
            key = (data.spec_id, repr(data.partition), "" if how == "partition" else path)
            groups.setdefault(key, []).append(path)
        return [self._position_file({path: gone[path] for path in paths}, how) for paths in groups.values()]

    def _position_file(self, gone: Mapping[str, frozenset[int]], how: str) -> Listed:
        rows = [(path, position) for path in sorted(gone) for position in sorted(gone[path])]
        data = self.data[rows[0][0]]
        file = self._listed("pos", POSITION_DELETES, data.spec_id, data.partition, len(rows), positions=dict(gone))
        self.memory.contents[file.path] = position_deletes(rows, "AVRO")
        low, high = min(gone).encode(), max(gone).encode()
        more: dict[str, Any] = {"file_format": "AVRO"}
        if how == "named":
            more |= {"referenced_data_file": rows[0][0]}
        elif how == "truncated":  # an upper bound that was cut is the next larger text of that length
            low, high = low[:16], high[:15] + bytes([high[15] + 1])
        if how != "without bounds":
            more |= {"lower_bounds": {PATH_COLUMN: low}, "upper_bounds": {PATH_COLUMN: high}}
        return replace(file, more=more)

    def _vectors(self, gone: Mapping[str, frozenset[int]]) -> tuple[list[Listed], list[str]]:
        """Return new deletion vectors, which hold what earlier deletes of the same files did, and those replaced."""
        old = {d.more["referenced_data_file"]: d for d in self.deletes.values() if "referenced_data_file" in d.more}
        before: dict[str, frozenset[int]] = {path: old[path].positions[path] for path in gone if path in old}
        whole = {path: found | before.get(path, frozenset()) for path, found in gone.items()}
        blob, places = write_puffin([Blob(path, BitMap64(found)) for path, found in whole.items()])
        self.made += 1
        puffin = f"{self.root}/data/{self.made:08d}.puffin"
        self.memory.contents[puffin] = blob
        made = []
        for (path, positions), (offset, length) in zip(whole.items(), places, strict=True):
            more = {"referenced_data_file": path, "content_offset": offset, "content_size_in_bytes": length}
            more |= {"file_path": puffin, "file_format": "PUFFIN"}
            data = self.data[path]
            found = {path: positions}
            at = len(positions)
            made.append(self._listed("dv", POSITION_DELETES, data.spec_id, data.partition, at, more, found))
        return made, [old[path].path for path in gone if path in old]

    # Manifests.

    def _without(
        self, manifest: tuple[ManifestFile, list[tuple[int, Listed]]], gone: set[str], snapshot_id: int
    ) -> tuple[ManifestFile, list[tuple[int, Listed]]]:
        _, entries = manifest
        if not any(entry.path in gone and status != DELETED for status, entry in entries):
            return manifest
        live = [entry for status, entry in entries if status != DELETED]
        return self._manifest(snapshot_id, [(DELETED if e.path in gone else EXISTING, e) for e in live])

    def _manifest(
        self, snapshot_id: int, entries: list[tuple[int, Listed]]
    ) -> tuple[ManifestFile, list[tuple[int, Listed]]]:
        """Write a manifest; return its row, and its entries with what they inherit."""
        first = entries[0][1]
        spec, content = SPECS[first.spec_id], DATA_MANIFEST if first.content == DATA else DELETE_MANIFEST
        self.made += 1
        path = f"{self.root}/metadata/{self.made:08d}-m.avro"
        first_row_id, filled = self.next_row_id, []
        encode = _encoder(self.version, first.spec_id)
        records = [encode(status, snapshot_id, entry) for status, entry in entries]
        for status, entry in entries:
            given = entry
            if status == ADDED:
                given = replace(entry, snapshot_id=snapshot_id, number=self._number())
            if given.content == DATA and given.first_row_id is None and self.version > 2 and status != DELETED:
                given = replace(given, first_row_id=self.next_row_id)
                self.row_ids[given.path] = self.next_row_id
                self.next_row_id += given.records
            filled.append((status, given))
        self.memory.contents[path] = _container(_header(self.version, first.spec_id), records, self.block)
        statuses = [status for status, _ in entries]
        counts = {"added": ADDED, "existing": EXISTING, "deleted": DELETED}
        numbers = [entry.number for status, entry in filled if status != DELETED]
        row = manifest_file(
            manifest_path=path,
            manifest_length=len(self.memory.contents[path]),
            partition_spec_id=first.spec_id,
            content=content,
            sequence_number=self._number(),
            min_sequence_number=min(numbers, default=0),
            added_snapshot_id=snapshot_id,
            partitions=self._summaries(spec, [entry.partition for _, entry in filled]),
            first_row_id=first_row_id if self.version > 2 and content == DATA_MANIFEST else None,
            **{f"{name}_files_count": statuses.count(status) for name, status in counts.items()},
            **{
                f"{name}_rows_count": sum(e.records for s, e in filled if s == status)
                for name, status in counts.items()
            },
        )
        return row, filled

    def _summaries(
        self, spec: Sequence[SpecField], partitions: Sequence[tuple[Any, ...]]
    ) -> tuple[FieldSummary, ...] | None:
        if self.summaries == "nothing":
            return None
        return tuple(
            _summary(part, [values[n] for values in partitions], is_wide=self.summaries == "wide")
            for n, part in enumerate(spec)
        )

    def _commit(self, snapshot_id: int, operation: str, counts: Mapping[str, int]) -> int:
        path = f"{self.root}/metadata/snap-{snapshot_id}.avro"
        number = self._number()
        rows = [row for row, _ in self.manifests]
        self.memory.contents[path] = write_manifest_list(
            self.version, rows, snapshot_id=snapshot_id, sequence_number=number, next_row_id=self.next_row_id
        )
        self.manifests = [m for m in self.manifests if any(status != DELETED for status, _ in m[1])]
        told = {"total-data-files": len(self.data)} | {key: count for key, count in counts.items() if count}
        self.snapshots.append(
            {
                "snapshot-id": snapshot_id,
                **({"parent-snapshot-id": self.snapshots[-1]["snapshot-id"]} if self.snapshots else {}),
                "sequence-number": number,
                **({"first-row-id": 0, "added-rows": self.next_row_id} if self.version > 2 else {}),
                "timestamp-ms": number,
                "manifest-list": path,
                "schema-id": 0,
                "summary": {"operation": operation, **{key: str(value) for key, value in told.items()}},
            }
        )
        self.states[snapshot_id] = (dict(self.data), dict(self.deletes))
        return snapshot_id

    def _next(self) -> int:
        return 1_000_000 + len(self.snapshots)

    def _number(self) -> int:
        return len(self.snapshots) + 1


def _spec(spec_id: int) -> list[dict[str, Any]]:
    return [
        {
            "source-id": part.source_id,
            "field-id": 1000 + 10 * spec_id + n,
            "name": part.name,
            "transform": part.transform,
        }
        for n, part in enumerate(SPECS[spec_id])
    ]


@lru_cache
def _header(version: int, spec_id: int) -> dict[str, bytes]:
    header = {
        "avro.schema": json.dumps(_avro_schema(version, spec_id)),
        "schema": json.dumps(SCHEMA),
        "partition-spec": json.dumps(_spec(spec_id)),
        "partition-spec-id": str(spec_id),
        "format-version": str(version),
    }
    return {key: value.encode() for key, value in header.items()}


@lru_cache
def _avro_schema(version: int, spec_id: int) -> dict[str, Any]:
    parts = enumerate(SPECS[spec_id])
    partition = [avro_field(1000 + 10 * spec_id + n, part.name, part.kind, optional=True) for n, part in parts]
    return entry_schema(version, partition, has_names=True)


_VARIANTS = 500
"""How many different metrics data files have, so that manifests compress as real ones do."""


def _metrics(number: int) -> dict[str, Any]:
    """Return metrics of a data file."""
    chance = random.Random(number)
    counts = [{"key": key, "value": chance.randrange(100_000)} for key in range(1, 7)]
    return {
        "column_sizes": counts,
        "value_counts": [{"key": key, "value": 12_345} for key in range(1, 7)],
        "null_value_counts": [{"key": key, "value": 0} for key in range(1, 7)],
        "lower_bounds": [{"key": key, "value": chance.randbytes(8)} for key in range(1, 7)],
        "upper_bounds": [{"key": key, "value": chance.randbytes(8)} for key in range(1, 7)],
        "split_offsets": [4],
    }


@lru_cache
def _encoder(version: int, spec_id: int) -> Any:
    """Return a function that writes an entry; the bytes of metrics are kept."""
    schema = _avro_schema(version, spec_id)
    head = [(part["name"], avro.writer(part["type"])) for part in schema["fields"][:-1]]
    parts = [(part["name"], avro.writer(part["type"])) for part in schema["fields"][-1]["type"]["fields"]]
    writers = dict(parts)

    @lru_cache(_VARIANTS)
    def kept(number: int) -> dict[str, bytes]:
        return {name: writers[name](value) for name, value in _metrics(number).items()}

    fields = SPECS[spec_id]

    def encode(status: int, snapshot_id: int, entry: Listed) -> bytes:
        is_old = status != ADDED
        values: dict[str, Any] = {
            "status": status,
            "snapshot_id": snapshot_id if status == DELETED else entry.snapshot_id if is_old else None,
            "sequence_number": entry.number if is_old else None,
            "file_sequence_number": entry.number if is_old else None,
            "content": entry.content,
            "file_path": entry.path,
            "file_format": "PARQUET",
            "partition": {f.name: _raw(f, value) for f, value in zip(fields, entry.partition, strict=True)},
            "record_count": entry.records,
            "file_size_in_bytes": 1_000,
            "first_row_id": entry.first_row_id,
        }
        values |= entry.more
        for name in ("lower_bounds", "upper_bounds"):
            if name in entry.more:
                values[name] = [{"key": key, "value": value} for key, value in entry.more[name].items()]
        known = kept(zlib.crc32(entry.path.encode()) % _VARIANTS) if entry.content == DATA else {}
        body = [known[name] if name in known else write(values.get(name)) for name, write in parts]
        return b"".join([*(write(values[name]) for name, write in head), *body])

    return encode


def _raw(part: SpecField, value: Any) -> Any:
    return value.to_bytes(4, "big", signed=True) if value is not None and part.kind is _DECIMAL else value


def _summary(part: SpecField, values: Sequence[Any], *, is_wide: bool) -> FieldSummary:
    """Return a summary as Iceberg writes it; a wide one has bounds that no value has, as cut ones are."""
    there = [value for value in values if value is not None]
    numbers = [value for value in there if value == value]  # noqa: PLR0124 - NaN
    has_nan = len(numbers) < len(there)
    if not numbers:
        return FieldSummary(None in values, has_nan, None, None)
    low, high = min(numbers), max(numbers)
    if is_wide:
        low, high = (low[:-1], high + "~") if isinstance(low, str) else (low - 1, high + 1)
    return FieldSummary(None in values, has_nan, _bound(part, low), _bound(part, high))


def _bound(part: SpecField, value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return struct.pack("<d", value)
    if part.kind is _DECIMAL:
        return int(value).to_bytes(max(1, (value.bit_length() + 8) // 8), "big", signed=True)
    return int(value).to_bytes(4, "little", signed=True)


def _container(header: Mapping[str, bytes], records: Sequence[bytes], block: int) -> bytes:
    """Write an Avro file with so many records in a block."""
    sync = os.urandom(16)
    entries = {**header, "avro.codec": b"deflate"}
    found = [b"Obj\x01", avro.encode_long(len(entries))]
    found += [avro.encode_bytes(key.encode()) + avro.encode_bytes(value) for key, value in entries.items()]
    found += [b"\0", sync]
    for start in range(0, len(records), block):
        some = records[start : start + block]
        squeeze = zlib.compressobj(wbits=-15)
        data = squeeze.compress(b"".join(some)) + squeeze.flush()
        found += [avro.encode_long(len(some)), avro.encode_bytes(data), sync]
    return b"".join(found)
