"""What a source's metadata says, in whichever version it is written."""

import json
from typing import Any

import pytest
from pyroaring import BitMap64
from tests.unit.capture.tables import NAME, SCHEMA, Table, entry, manifest_file

from calve.capture.changes import Wanted, find_change
from calve.capture.icdc import Site, clone, removed_rows
from calve.capture.manifests import FieldSummary, Manifest, read_manifest_list
from calve.capture.model import Checkpoint, Pending, PendingOf
from calve.capture.partitions import has_one_partition, partitions_of
from calve.capture.snapshot_diff import Removed
from calve.capture.source import Source
from calve.errors import FormatVersionUnknown, LakeError, TableEncrypted
from calve.lake import Files, LoadedTable, TableName

SITE = Site(TableName("lake", ("icdc",), "t_1"), "/icdc/t_1", {"calve.capture-id": "x"}, 5)


def _document(files: Any, location: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(files[location])
    return document


def test_an_unknown_version_is_refused() -> None:
    """Better than reading it half right."""
    with pytest.raises(FormatVersionUnknown, match="4"):
        Table(version=4).source()


def test_the_oldest_metadata_is_understood() -> None:
    """One schema, one spec, no numbers."""
    fields = [{"name": "v", "transform": "identity", "source-id": 2, "field-id": 1000}]
    document = {"format-version": 1, "table-uuid": "u", "last-updated-ms": 0, "last-column-id": 2}
    document |= {"schema": {"type": "struct", "fields": SCHEMA["fields"]}, "partition-spec": fields}
    source = Source(LoadedTable(NAME, document, "metadata.json", Files()))
    assert (source.schema_id, source.specs) == (0, {0: fields})
    assert [field["name"] for field in source.schema["fields"]] == ["id", "v"]
    made = removed_rows(source, SITE, [], [])
    document = _document(made.files, made.metadata_location)
    assert document["format-version"] == 3
    assert {key: document[key] for key in ("current-schema-id", "default-spec-id", "next-row-id")} == {
        "current-schema-id": 0,
        "default-spec-id": 0,
        "next-row-id": 0,
    }
    assert "schema" not in document


def test_no_snapshot_is_a_place_too() -> None:
    """A table without one has no head, and its checkpoint says so; minus one is what v1 wrote."""
    assert Table().source().head is None
    source = Table(version=3).source(**{"current-snapshot-id": -1})
    assert source.head is None
    place = source.checkpoint(None)
    assert (place.snapshot_id, place.sequence_number, place.next_row_id) == (None, 0, 0)
    assert Table(version=2).source().checkpoint(None).next_row_id is None


def test_checkpoints_survive_json() -> None:
    """With a part pending and without."""
    place = Table().source().checkpoint(None)
    for pending in (None, Pending(PendingOf.LIVE, 4)):
        checkpoint = Checkpoint.from_json(json.loads(json.dumps({**place.as_json()})))
        assert checkpoint == place
        whole = Checkpoint("u", 1, 2, 3, 4, 5, pending)
        assert Checkpoint.from_json(json.loads(json.dumps(whole.as_json()))) == whole


def test_encrypted_tables_are_refused() -> None:
    """By the table's property, the snapshot's key, or a manifest's."""
    table = Table()
    table.append([1])
    with pytest.raises(TableEncrypted):
        find_change(table.source(properties={"encryption.key-id": "k"}), None, Wanted())
    keyed = [{**snapshot, "key-id": "k"} for snapshot in table.snapshots]
    with pytest.raises(TableEncrypted):
        find_change(table.source(snapshots=keyed), None, Wanted())
    table.manifests = [row._replace(key_metadata=b"k") for row in table.manifests]
    table.append([1])
    with pytest.raises(TableEncrypted):
        find_change(table.source(), None, Wanted())


def test_inline_manifests_are_refused() -> None:
    """Very old writers had no manifest list."""
    table = Table()
    table.append([1])
    bare = [{key: value for key, value in snapshot.items() if key != "manifest-list"} for snapshot in table.snapshots]
    with pytest.raises(LakeError, match="inline"):
        find_change(table.source(snapshots=bare), None, Wanted())


def test_a_clone_keeps_what_readers_go_by_and_owns_nothing() -> None:
    """Schemas, specs, sort orders and numbers are the source's; identity, place and properties are its own."""
    table = Table(version=3)
    table.append([1, 2])
    properties = {"schema.name-mapping.default": "[]", "write.data.path": "/elsewhere", "gc.enabled": "true"}
    source = table.source(
        properties=properties, location="/source", **{"next-row-id": 40, "last-column-id": 9, "refs": {"tag": {}}}
    )
    change = find_change(source, None, Wanted())
    made = clone(source, SITE, change.data)
    document = _document(made.files, made.metadata_location)
    assert document["properties"] == {
        "schema.name-mapping.default": "[]",
        "calve.capture-id": "x",
        "gc.enabled": "false",
    }
    for key in ("schemas", "partition-specs", "last-column-id", "next-row-id", "last-sequence-number"):
        assert document[key] == source.metadata[key]
    assert document["table-uuid"] != source.uuid
    assert document["location"] == "/icdc/t_1"
    assert all(path.startswith("/icdc/t_1/") for path in made.files)
    (snapshot,) = document["snapshots"]
    assert list(document["refs"]) == ["main"]
    assert snapshot["summary"]["total-records"] == "2"
    (row,) = read_manifest_list(made.files[snapshot["manifest-list"]])
    assert made.files[row.manifest_path] == change.data[0].raw
    assert row.manifest_length == len(made.files[row.manifest_path])


def test_removed_rows_are_hidden_by_file() -> None:
    """One Puffin file, one vector for each file of which rows stay hidden; none where all left."""
    table = Table(version=2)
    table.append([1, 2])
    source = table.source()
    (manifest,) = source.read(source.manifest_list(1000))
    first, second = manifest.entries()
    removed = [Removed(manifest, first, BitMap64()), Removed(manifest, second, BitMap64([0]))]
    assert [item.records for item in removed] == [1, 0]
    made = removed_rows(source, SITE, removed, [])
    document = _document(made.files, made.metadata_location)
    rows = read_manifest_list(made.files[document["snapshots"][0]["manifest-list"]])
    assert [(row.content, row.existing_files_count) for row in rows] == [(0, 2), (1, 1)]
    (vector,) = Manifest(rows[1], made.files[rows[1].manifest_path]).entries()
    assert (vector.referenced_data_file, vector.record_count) == (second.file_path, 1)
    assert vector.file_path in made.files


def test_partitions_are_reported_once_and_by_spec() -> None:
    """From entries, or from the list alone where a manifest has one partition."""
    fields = [
        {"name": "v", "transform": "identity", "source-id": 2, "field-id": 1000},
        {"name": "old", "transform": "void", "source-id": 1, "field-id": 1001},
        {"name": "id_bucket", "transform": "bucket[4]", "source-id": 1, "field-id": 1002},
    ]
    source = Table().source(**{"partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": fields}]})
    rows = [
        entry(partition={"v": v, "old": None, "id_bucket": b}) for v, b in (("b", 1), ("a", 2), ("b", 1), (None, 0))
    ]
    listed = Manifest(manifest_file(partition_spec_id=1), b"").keeping(rows)
    assert partitions_of(source, [listed]) == [
        {"spec_id": 1, "values": {"v": None, "id_bucket": 0}},
        {"spec_id": 1, "values": {"v": "a", "id_bucket": 2}},
        {"spec_id": 1, "values": {"v": "b", "id_bucket": 1}},
    ]
    one = (1).to_bytes(4, "little")
    summaries = (
        FieldSummary(contains_null=False, contains_nan=None, lower_bound=b"b", upper_bound=b"b"),
        FieldSummary(contains_null=False, contains_nan=None, lower_bound=one, upper_bound=one),
        FieldSummary(contains_null=False, contains_nan=None, lower_bound=one, upper_bound=one),
    )
    single = Manifest(manifest_file(partition_spec_id=1, partitions=summaries), b"")
    assert has_one_partition(single)
    assert partitions_of(source, [single, listed])[-1] == {"spec_id": 1, "values": {"v": "b", "id_bucket": 1}}
    assert len(partitions_of(source, [single])) == 1
    assert partitions_of(source, [Manifest(manifest_file(), b"")]) == []
    several = single.file._replace(partitions=(summaries[0]._replace(contains_null=True), *summaries[1:]))
    assert not has_one_partition(Manifest(several, b""))
