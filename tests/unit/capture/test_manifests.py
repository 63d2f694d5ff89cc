"""Manifests: read as PyIceberg reads them, and cut down without losing a byte of an entry."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile as TheirManifestFile,
    read_manifest_list as their_read_manifest_list,
    write_manifest as their_write_manifest,
    write_manifest_list as their_write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import DecimalType, LongType, NestedField, StringType, TimestampType
from tests.unit.capture.tables import avro_field, entry_schema, manifest_file, write_entries

from calve.capture import avro
from calve.capture.manifests import (
    ADDED,
    DELETED,
    EXISTING,
    Manifest,
    ManifestFile,
    read_entries,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)

SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "city", StringType()),
    NestedField(3, "at", TimestampType()),
    NestedField(4, "amount", DecimalType(20, 2)),
)
SPEC = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "city"),
    PartitionField(3, 1001, DayTransform(), "at_day"),
    PartitionField(1, 1002, BucketTransform(4), "id_bucket"),
)
SNAPSHOT = 77


def _their_entries(version: int) -> list[ManifestEntry]:
    inherited = SNAPSHOT if version == 1 else None  # v1 must write what later versions may leave out
    statuses = [ManifestEntryStatus.ADDED, ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED]
    return [
        ManifestEntry.from_args(
            status=status,
            snapshot_id=50 + number if status is not ManifestEntryStatus.ADDED else inherited,
            sequence_number=None if status is ManifestEntryStatus.ADDED else 3 + number,
            file_sequence_number=None if status is ManifestEntryStatus.ADDED else 4 + number,
            data_file=DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"data/{number}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(None if number == 2 else f"city {number}", 20_000 + number, number % 4),
                record_count=10 + number,
                file_size_in_bytes=1000 + number,
                column_sizes={1: 80},
                value_counts={1: 10 + number, 2: 10},
                null_value_counts={1: 0, 2: number},
                nan_value_counts={},
                lower_bounds={1: number.to_bytes(8, "little"), 2: b"a"},
                upper_bounds={1: (number + 9).to_bytes(8, "little")},
                key_metadata=None,
                split_offsets=[4, 400],
                equality_ids=None,
                sort_order_id=0,
            ),
        )
        for number, status in enumerate(statuses * 3)
    ]


def _theirs(folder: Path, version: Any) -> tuple[TheirManifestFile, bytes]:
    path = str(folder / f"m{version}.avro")
    output = PyArrowFileIO().new_output(path)
    with their_write_manifest(version, SPEC, SCHEMA, output, SNAPSHOT, "deflate") as writer:
        for found in _their_entries(version):
            writer.add_entry(writer.prepare_entry(found))
    return writer.to_manifest_file(), Path(path).read_bytes()


def _ours(theirs: TheirManifestFile) -> ManifestFile:
    names = [name for name in ManifestFile._fields if hasattr(theirs, name) and name != "partitions"]
    values = {name: getattr(theirs, name) for name in names}
    return manifest_file(**values | {"content": 0, "sequence_number": 9, "added_snapshot_id": SNAPSHOT})


@pytest.mark.parametrize("version", [1, 2])
def test_entries_read_as_pyiceberg_wrote_them(tmp_path: Path, version: int) -> None:
    """Every value, with what is inherited from the manifest filled in."""
    theirs, raw = _theirs(tmp_path, version)
    found = read_entries(raw, _ours(theirs), metrics=frozenset({1, 2}))
    for ours, wrote in zip(found, _their_entries(version), strict=True):
        file = wrote.data_file
        added = wrote.status is ManifestEntryStatus.ADDED
        assert (ours.status, ours.file_path) == (wrote.status, file.file_path)
        assert (ours.record_count, ours.file_size_in_bytes) == (file.record_count, file.file_size_in_bytes)
        assert ours.snapshot_id == (SNAPSHOT if added else wrote.snapshot_id)
        number = 0 if version == 1 else 9 if added else wrote.sequence_number
        assert ours.sequence_number == number
        assert list(ours.partition.values()) == [file.partition[n] for n in range(3)]
        assert (ours.value_counts, ours.null_value_counts) == (file.value_counts, file.null_value_counts)
        assert (ours.lower_bounds, ours.upper_bounds) == (file.lower_bounds, file.upper_bounds)
    bare = read_entries(raw, _ours(theirs), metrics=frozenset())
    assert [entry.lower_bounds for entry in bare] == [None] * 9
    assert [entry.file_path for entry in bare] == [entry.file_path for entry in found]


@pytest.mark.parametrize("version", [1, 2])
def test_a_cut_manifest_reads_the_same_to_pyiceberg(tmp_path: Path, version: int) -> None:
    """The entries that are kept are EXISTING, with numbers of their own, and otherwise as they were."""
    theirs, raw = _theirs(tmp_path, version)
    manifest = Manifest(_ours(theirs), raw)
    kept = [entry for entry in manifest.entries() if entry.status != DELETED][1:]
    row, blob = write_manifest(manifest.keeping(kept))
    assert (row.added_files_count, row.existing_files_count, row.deleted_files_count) == (0, 5, 0)
    assert row.existing_rows_count == sum(entry.record_count for entry in kept)
    assert row.min_sequence_number == min(entry.sequence_number for entry in kept)
    path = tmp_path / "cut.avro"
    path.write_bytes(blob)
    again = TheirManifestFile.from_args(
        **row._asdict() | {"manifest_path": str(path), "manifest_length": len(blob), "partitions": None}
    )
    read = again.fetch_manifest_entry(PyArrowFileIO())
    before = {found.data_file.file_path: found.data_file for found in _their_entries(version)}
    assert len(read) == 5
    for ours, found in zip(kept, read, strict=True):
        assert (found.status, found.snapshot_id) == (ManifestEntryStatus.EXISTING, ours.snapshot_id)
        assert version == 1 or found.sequence_number == ours.sequence_number
        assert version == 1 or found.file_sequence_number == ours.file_sequence_number
        for name in ("record_count", "split_offsets", "column_sizes", "lower_bounds", "sort_order_id", "partition"):
            assert getattr(found.data_file, name) == getattr(before[found.data_file.file_path], name)


@pytest.mark.parametrize("version", [1, 2])
def test_lists_go_both_ways(tmp_path: Path, version: Any) -> None:
    """A list of PyIceberg's is read whole, and one of ours is read by it."""
    theirs, _ = _theirs(tmp_path, version)
    path = str(tmp_path / "list.avro")
    output = PyArrowFileIO().new_output(path)
    with their_write_manifest_list(version, output, SNAPSHOT, None, 9, "deflate") as writer:
        writer.add_manifests([theirs])
    (ours,) = read_manifest_list(Path(path).read_bytes())
    assert (ours.manifest_path, ours.added_snapshot_id) == (theirs.manifest_path, SNAPSHOT)
    assert (ours.added_files_count, ours.existing_files_count, ours.deleted_files_count) == (3, 3, 3)
    assert ours.sequence_number == (9 if version == 2 else 0)
    assert ours.partitions is not None
    assert [summary.contains_null for summary in ours.partitions] == [True, False, False]
    assert ours.partitions[2].lower_bound == (0).to_bytes(4, "little")
    raw = write_manifest_list(version, [ours], snapshot_id=5, sequence_number=9, next_row_id=None)
    Path(path).write_bytes(raw)
    (again,) = their_read_manifest_list(PyArrowFileIO().new_input(path))
    assert again.manifest_path == theirs.manifest_path
    assert again.partitions == theirs.partitions
    assert read_manifest_list(raw) == [ours]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ADDED, DELETED, EXISTING]),
            st.integers(0, 10**6),
            st.text(),
            st.none() | st.lists(st.text(max_size=5)),
        ),
        max_size=6,
    ),
    st.data(),
)
def test_fields_of_a_later_version_survive(files: list[tuple[Any, ...]], data: st.DataObject) -> None:
    """What this code has never heard of is copied with the rest."""
    future = [
        avro_field(901, "mood", "string"),
        avro_field(902, "tags", {"type": "array", "items": "string", "element-id": 903}, optional=True),
    ]
    schema = entry_schema(*future)
    file = {"content": 0, "file_format": "PARQUET", "partition": {}, "file_size_in_bytes": 5}
    records = [
        {
            "status": status,
            "snapshot_id": 4,
            "sequence_number": 2,
            "file_sequence_number": 2,
            "data_file": file | {"file_path": f"f{number}", "record_count": rows, "mood": mood, "tags": tags},
        }
        for number, (status, rows, mood, tags) in enumerate(files)
    ]
    manifest = Manifest(manifest_file(), write_entries(records, schema))
    kept = data.draw(st.sets(st.sampled_from(range(len(files))))) if files else set()
    cut = manifest.keeping(entry for number, entry in enumerate(manifest.entries()) if number in kept)
    _, blob = write_manifest(cut)
    container = avro.read_container(blob)
    found = list(container.records(avro.reader(container.schema)))
    expected = [record["data_file"] for number, record in enumerate(records) if number in kept]
    assert [record["data_file"] for record in found] == expected
    assert {record["status"] for record in found} <= {EXISTING}


@given(
    st.lists(
        st.tuples(st.sampled_from([ADDED, DELETED, EXISTING]), st.integers(0, 50), st.none() | st.integers(0, 9)),
        max_size=6,
    ),
    st.booleans(),
)
def test_row_ids_are_handed_out_as_the_spec_says(files: list[tuple[int, int, int | None]], has_field: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
    """In order, by the rows of the files that have none and are not deleted; and written out when cut."""
    schema = entry_schema(row_ids=has_field)
    records = [
        {
            "status": status,
            "snapshot_id": 4,
            "sequence_number": 2,
            "file_sequence_number": 2,
            "data_file": {"content": 0, "file_path": f"f{number}", "file_format": "PARQUET", "partition": {}}
            | {"record_count": rows, "file_size_in_bytes": 5, "first_row_id": own},
        }
        for number, (status, rows, own) in enumerate(files)
    ]
    manifest = Manifest(manifest_file(first_row_id=1000), write_entries(records, schema))
    expected, following = [], 1000
    for status, rows, own in files:
        known = own if has_field else None
        if known is None and status != DELETED:
            known, following = following, following + rows
        expected.append(known)
    found = manifest.entries()
    assert [entry.first_row_id for entry in found] == expected
    row, blob = write_manifest(manifest.keeping(found))
    again = read_entries(blob, row, metrics=frozenset())
    if row.first_row_id is not None:
        assert [entry.first_row_id for entry in again] == expected
    else:  # then readers give none out
        assert not files or None in expected
    none = read_entries(manifest.raw, manifest.file._replace(first_row_id=None), metrics=frozenset())
    assert all(
        entry.first_row_id == (own if has_field else None) for entry, (_, _, own) in zip(none, files, strict=True)
    )


def test_a_whole_manifest_is_copied_byte_by_byte() -> None:
    """Nothing is decoded that need not be."""
    raw = write_entries([])
    manifest = Manifest(manifest_file(), raw)
    assert write_manifest(manifest) == (manifest.file, raw)
    assert manifest.field_ids() == {1, 2}
    assert json.loads(avro.read_header(raw)[0]["schema"])["type"] == "struct"
