"""Small tables with everything in them that calve reads of a table, and the questions that are asked of each."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pyroaring import BitMap64
from tests.unit.capture.tables import avro_field, manifest_file

from calve.capture import (
    CaptureLimits,
    CaptureReport,
    ManifestFile,
    Mode,
    OnGap,
    Operation,
    Source,
    StoredCheckpoint,
    Wanted,
    avro,
    write_manifest_list,
)
from calve.capture.changes import TableChange, find_change
from calve.capture.deletion_vectors import Blob, write_puffin
from calve.capture.lag import Backlog, uncommitted
from calve.capture.manifests import read_entries
from calve.capture.relations import Maker, make
from calve.capture.report import report
from calve.capture.snapshots import resolve
from calve.errors import CalveError
from calve.lake import Catalog, LoadedTable, SqlCatalog, TableName, metadata as raw

NAME = TableName("lake", ("db",), "t")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
FIRST = 1_767_225_600_000
RANGES = ("id", "name", "at", "amount")
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
        {"id": 3, "name": "at", "required": False, "type": "timestamptz"},
        {"id": 4, "name": "amount", "required": False, "type": "decimal(20, 2)"},
        {"id": 5, "name": "tags", "required": False, "type": {"type": "list", "element-id": 6, "element": "string"}},
    ],
}
SPEC = [
    {"source-id": 3, "field-id": 1000, "name": "at_day", "transform": "day"},
    {"source-id": 2, "field-id": 1001, "name": "name", "transform": "identity"},
]


def _map(fid: int, name: str, key: int, kind: str) -> dict[str, Any]:
    parts = [avro_field(key, "key", "int"), avro_field(key + 1, "value", kind)]
    items = {"type": "record", "name": f"k{key}_v{key + 1}", "fields": parts}
    return avro_field(fid, name, {"type": "array", "logicalType": "map", "items": items}, optional=True)


PARTITION = [
    avro_field(1000, "at_day", {"type": "int", "logicalType": "date"}, optional=True),
    avro_field(1001, "name", "string", optional=True),
]


def entry_schema(
    version: int, partition_fields: Sequence[dict[str, Any]], *, has_names: bool = False
) -> dict[str, Any]:
    """Return the schema of the entries of a manifest with metrics, for a partition spec with these fields.

    With ``has_names``, version 2 has the name of the one data file of a position-delete file, as newer writers do.
    """
    partition = {"type": "record", "name": "r102", "fields": list(partition_fields)}
    parts = [
        *([avro_field(134, "content", "int")] if version > 1 else []),
        avro_field(100, "file_path", "string"),
        avro_field(101, "file_format", "string"),
        avro_field(102, "partition", partition),
        avro_field(103, "record_count", "long"),
        avro_field(104, "file_size_in_bytes", "long"),
        _map(108, "column_sizes", 117, "long"),
        _map(109, "value_counts", 119, "long"),
        _map(110, "null_value_counts", 121, "long"),
        _map(125, "lower_bounds", 126, "bytes"),
        _map(128, "upper_bounds", 129, "bytes"),
        avro_field(132, "split_offsets", {"type": "array", "items": "long", "element-id": 133}, optional=True),
        avro_field(135, "equality_ids", {"type": "array", "items": "int", "element-id": 136}, optional=True),
    ]
    if version > 2:
        parts += [avro_field(142, "first_row_id", "long", optional=True)]
    if version > 2 or has_names:
        parts += [avro_field(143, "referenced_data_file", "string", optional=True)]
    if version > 2:
        parts += [avro_field(144, "content_offset", "long", optional=True)]
        parts += [avro_field(145, "content_size_in_bytes", "long", optional=True)]
    numbers = [avro_field(3, "sequence_number", "long", optional=True)]
    numbers += [avro_field(4, "file_sequence_number", "long", optional=True)]
    return {
        "type": "record",
        "name": "manifest_entry",
        "fields": [
            avro_field(0, "status", "int"),
            avro_field(1, "snapshot_id", "long", optional=True),
            *(numbers if version > 1 else []),
            avro_field(2, "data_file", {"type": "record", "name": "r2", "fields": parts}),
        ],
    }


@dataclass(frozen=True)
class Table:
    """A table in a folder."""

    folder: Path
    version: int
    deletes: str
    """The format of its position deletes; none in version 1."""

    @property
    def metadata(self) -> str:
        """Where its metadata lies."""
        return str(self.folder / "00003-a.metadata.json")

    @cached_property
    def files(self) -> dict[str, bytes]:
        """All its files but data, by kind and number, as they were written."""
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}

    def make(self) -> "Table":
        """Write the table: two appends, then files and rows taken out, then another append."""
        self.folder.mkdir(parents=True)
        first = [(1, 1, self._file(n)) for n in range(3)]
        second = [(1, 2, self._file(n)) for n in range(3, 6)]
        third = [(2, 1, self._file(0)), (1, 3, self._file(6))]
        rows = [self._manifest(1, 1, first)]
        self._snapshot(1, rows)
        rows += [self._manifest(2, 2, second)]
        self._snapshot(2, rows)
        is_first = self.version == 1
        if not is_first:
            rows = [self._manifest(3, 3, [*third, *((0, 1, self._file(n)) for n in (1, 2))]), rows[1]]
            rows += [self._delete_manifest()]
        self._snapshot(3, rows, "append" if is_first else "overwrite")
        rows += [self._manifest(4, 4, [(1, 4, self._file(n)) for n in (7, 8)])]
        self._snapshot(4, rows)
        (self.folder / "00003-a.metadata.json").write_bytes(raw.encode(self._document()))
        return self

    def _file(self, number: int) -> dict[str, Any]:
        low, high = number * 100, number * 100 + 99
        at = FIRST * 1000 + number * 3_600_000_000
        bounds = [
            {1: low.to_bytes(8, "little"), 2: b"a%d" % number, 3: at.to_bytes(8, "little"), 4: b"\1"},
            {1: high.to_bytes(8, "little"), 2: b"b%d" % number, 3: at.to_bytes(8, "little"), 4: b"\7\7"},
        ]
        pairs = [[{"key": key, "value": value} for key, value in side.items()] for side in bounds]
        counts = [{"key": key, "value": 100} for key in range(1, 6)]
        return {
            "content": 0,
            "file_path": f"{self.folder}/data/{number}.parquet",
            "file_format": "PARQUET",
            "partition": {"at_day": 20_454, "name": f"n{number % 2}"},
            "record_count": 100,
            "file_size_in_bytes": 1000 + number,
            "column_sizes": counts,
            "value_counts": counts,
            "null_value_counts": [{"key": key, "value": 0} for key in range(1, 6)],
            "lower_bounds": pairs[0],
            "upper_bounds": pairs[1],
            "split_offsets": [4, 400],
            "first_row_id": number * 100 if self.version > 2 else None,
        }

    def _manifest(
        self, snapshot_id: int, number: int, files: Sequence[tuple[int, int, Mapping[str, Any]]]
    ) -> ManifestFile:
        """Write a manifest of (status, snapshot that the file came with, file)."""
        records = [
            {
                "status": status,
                "snapshot_id": snapshot_id if status == 2 else came,
                "sequence_number": came if self.version > 1 else None,
                "file_sequence_number": came if self.version > 1 else None,
                "data_file": dict(file),
            }
            for status, came, file in files
        ]
        statuses = [status for status, _, _ in files]
        return self._written(f"m{number}.avro", records, snapshot_id, number, 0, statuses)

    def _delete_manifest(self) -> ManifestFile:
        gone = {f"{self.folder}/data/{n}.parquet": BitMap64([n, 10 + n, *range(40, 60)]) for n in (1, 4)}
        common = {"content": 1, "partition": {"at_day": 20_454, "name": None}, "file_format": self.deletes}
        files: list[dict[str, Any]] = []
        if self.deletes == "PUFFIN":
            blob, places = write_puffin([Blob(path, positions) for path, positions in gone.items()])
            (self.folder / "deletes.puffin").write_bytes(blob)
            for (path, positions), (offset, length) in zip(gone.items(), places, strict=True):
                place = {"referenced_data_file": path, "content_offset": offset, "content_size_in_bytes": length}
                files.append({"record_count": len(positions), **place})
        else:
            rows = [(path, position) for path, positions in gone.items() for position in positions]
            blob = position_deletes(rows, self.deletes)
            (self.folder / "deletes").write_bytes(blob)
            files.append({"record_count": len(rows)})
        name = "deletes.puffin" if self.deletes == "PUFFIN" else "deletes"
        where = {"file_path": f"{self.folder}/{name}", "file_size_in_bytes": len(blob)}
        records = [
            {
                "status": 1,
                "snapshot_id": 3,
                "sequence_number": 3,
                "file_sequence_number": 3,
                "data_file": common | where | file,
            }
            for file in files
        ]
        return self._written("d3.avro", records, 3, 3, 1, [1] * len(records))

    def _written(
        self,
        name: str,
        records: Sequence[Mapping[str, Any]],
        snapshot_id: int,
        number: int,
        content: int,
        statuses: Sequence[int],
    ) -> ManifestFile:
        schema = entry_schema(self.version, PARTITION)
        header = {
            "avro.schema": json.dumps(schema),
            "schema": json.dumps(SCHEMA),
            "partition-spec": json.dumps(SPEC),
            "partition-spec-id": "0",
            "format-version": str(self.version),
        }
        write = avro.writer(schema)
        payload = b"".join(write(record) for record in records)
        blob = avro.write_container({key: text.encode() for key, text in header.items()}, payload, len(records))
        (self.folder / name).write_bytes(blob)
        counts = [statuses.count(1), statuses.count(0), statuses.count(2)]
        names = [f"{what}_{of}_count" for of in ("files", "rows") for what in ("added", "existing", "deleted")]
        told = [*counts, *(count * 100 for count in counts)] if self.version > 1 else [None] * 6
        return manifest_file(
            manifest_path=f"{self.folder}/{name}",
            manifest_length=len(blob),
            content=content,
            sequence_number=number if self.version > 1 else 0,
            added_snapshot_id=snapshot_id,
            first_row_id=0 if self.version > 2 and not content else None,
            **dict(zip(names, told, strict=True)),
        )

    def _snapshot(self, number: int, rows: Sequence[ManifestFile], operation: str = "append") -> None:
        blob = write_manifest_list(
            self.version, rows, snapshot_id=number, sequence_number=number, next_row_id=0, parent_snapshot_id=None
        )
        (self.folder / f"snap-{number}.avro").write_bytes(blob)
        self.snapshots.append(
            {
                "snapshot-id": number,
                **({"parent-snapshot-id": number - 1} if number > 1 else {}),
                **({"sequence-number": number} if self.version > 1 else {}),
                **({"first-row-id": 0, "added-rows": 300} if self.version > 2 else {}),
                "timestamp-ms": FIRST + number,
                "manifest-list": f"{self.folder}/snap-{number}.avro",
                "schema-id": 0,
                "summary": {"operation": operation},
            }
        )

    @cached_property
    def snapshots(self) -> list[dict[str, Any]]:
        """The snapshots so far."""
        return []

    def _document(self) -> dict[str, Any]:
        return {
            "format-version": self.version,
            "table-uuid": "11111111-1111-1111-1111-111111111111",
            "location": str(self.folder),
            "last-updated-ms": FIRST + 4,
            "last-column-id": 6,
            **({"last-sequence-number": 4} if self.version > 1 else {"schema": SCHEMA, "partition-spec": SPEC}),
            **({"next-row-id": 900} if self.version > 2 else {}),
            "schemas": [SCHEMA],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": SPEC}],
            "default-spec-id": 0,
            "last-partition-id": 1001,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {"write.metadata.metrics.default": "truncate(16)", "history.expire.max-snapshot-age-ms": "1"},
            "current-snapshot-id": 4,
            "refs": {"main": {"snapshot-id": 4, "type": "branch"}, "t": {"snapshot-id": 2, "type": "tag"}},
            "snapshots": self.snapshots,
            "snapshot-log": [
                {"timestamp-ms": each["timestamp-ms"], "snapshot-id": each["snapshot-id"]} for each in self.snapshots
            ],
            "metadata-log": [],
        }


def position_deletes(rows: Sequence[tuple[Any, Any]], file_format: str, **options: Any) -> bytes:
    """Write position deletes."""
    if file_format == "AVRO":
        schema = {
            "type": "record",
            "name": "r",
            "fields": [avro_field(2147483546, "file_path", "string"), avro_field(2147483545, "pos", "long")],
        }
        write = avro.writer(schema)
        payload = b"".join(write({"file_path": path, "pos": position}) for path, position in rows)
        return avro.write_container({"avro.schema": json.dumps(schema).encode()}, payload, len(rows))
    import pyarrow as pa
    from pyarrow import orc, parquet

    table = pa.table({"file_path": [path for path, _ in rows], "pos": pa.array([pos for _, pos in rows], pa.int64())})
    out = io.BytesIO()
    if file_format == "ORC":
        orc.write_table(table, out)
    else:
        parquet.write_table(table, out, **options)
    return out.getvalue()


def tables(folder: Path, *, with_orc: bool = False) -> list[Table]:
    """Write one table of each format, and of each format of deletes."""
    made = [(1, "PARQUET"), (2, "PARQUET"), (2, "AVRO"), (3, "PUFFIN"), *([(2, "ORC")] if with_orc else [])]
    return [Table(folder / f"v{version}-{form.lower()}", version, form).make() for version, form in made]


# The questions.

ALL = frozenset(Operation)


QUESTIONS = (
    *("since 1", "since 2, without ranges", "everything", "two files", "upserts", "by time"),
    *("lag", "tag"),
)


def ask(table: Table, names: Sequence[str] = QUESTIONS) -> dict[str, Any]:
    """Return what calve says about a table: the answer, or the code of the error, to each question.

    An exception that is no error of calve's is not caught.
    """
    catalog = SqlCatalog("lake", {"type": "sql", "uri": "sqlite://"})
    location = table.metadata
    questions: dict[str, Callable[[], Any]] = {
        "since 1": lambda: _change(catalog, location, "1", Wanted(operations=ALL, ranges=RANGES)),
        "since 2, without ranges": lambda: _change(catalog, location, "2", Wanted(operations=ALL)),
        "everything": lambda: _change(catalog, location, None, Wanted(ranges=RANGES)),
        "two files": lambda: _change(catalog, location, "1", Wanted(operations=ALL, limits=CaptureLimits(2))),
        "upserts": lambda: _change(catalog, location, "1", Wanted(operations=ALL, on_gap=OnGap.UPSERTS)),
        "by time": lambda: _change(catalog, location, "2026-01-01T00:00:00.002Z", Wanted(operations=ALL)),
        "lag": lambda: _lag(catalog, location),
        "tag": lambda: raw.changed(
            raw.with_tag(catalog.load_at(location).metadata, "new", 4, 5), raw.TableCommit(properties={"a": "b"}), FIRST
        )["refs"],
    }
    return {name: _answer(questions[name]) for name in names}


def _answer(question: Any) -> Any:
    try:
        return json.loads(json.dumps(question()))
    except CalveError as error:
        told = json.loads(json.dumps(error.as_json()))
        return {"error": told["code"]}


def _source(catalog: Catalog, location: str) -> Source:
    loaded = catalog.load_at(location)
    return Source(LoadedTable(NAME, loaded.metadata, location, loaded.files))


def _change(catalog: Catalog, location: str, start: str | None, wanted: Wanted) -> Any:
    source = _source(catalog, location)
    checkpoint = None if start is None else source.checkpoint_as_of(resolve(source, start))
    change = find_change(source, checkpoint, wanted)
    maker = Maker(NAME, "/icdc", {"calve.capture-id": "x"}, FIRST, "lake")
    made, names = make(change, maker)
    document: CaptureReport = report(
        [change], [names], capture_id="x", consumer="c", mode=Mode.TABLE, default_catalog="lake", asked=wanted.as_json()
    )
    told = {**document.as_json(), "metadata_location": None}
    for each in told["tables"]:
        each["metadata_location"] = None
    return {"report": told, "made": [_listed(table.files) for table in made], "removed": _removed(change)}


def _removed(change: TableChange) -> list[Any]:
    return sorted((item.entry.file_path, item.records, list(islice(item.hidden, 50))) for item in change.removed)


def _listed(files: Mapping[str, bytes]) -> list[Any]:
    """Return what the manifests of a new table list."""
    found = []
    for path in sorted(files):
        if path.endswith("-m.avro"):
            row = manifest_file()
            entries = read_entries(files[path], row)
            found.append([(entry.file_path, entry.record_count, entry.sequence_number) for entry in entries])
    return found


def _lag(catalog: Catalog, location: str) -> Any:
    source = _source(catalog, location)
    start = source.checkpoint_as_of(2 if 2 in source.snapshots else None)
    found = Backlog(source).lag_of(StoredCheckpoint("c", NAME, start, 1, NOW, "x"), "db.t", NOW)
    later = uncommitted(source, location, "db.t", start, Wanted(operations=ALL))
    return [found.pending_files, found.pending_commits, found.age_seconds, [commit.files for commit in later.commits]]
