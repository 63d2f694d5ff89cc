"""Edits of raw metadata keep what they do not know."""

import gzip
import json
from typing import Any

import pytest

from calve.errors import LakeCorrupt, LakeError, SnapshotUnknown
from calve.lake import metadata as raw

BASE: dict[str, Any] = {
    "format-version": 2,
    "last-sequence-number": 4,
    "table-uuid": "11111111-1111-1111-1111-111111111111",
    "location": "/wh/db/t",
    "last-updated-ms": 1000,
    "schemas": [{"schema-id": 0, "type": "struct", "fields": [{"id": 1, "name": "a", "type": "long"}]}],
    "current-schema-id": 0,
    "current-snapshot-id": 7,
    "snapshots": [{"snapshot-id": 7, "timestamp-ms": 1}, {"snapshot-id": 8, "timestamp-ms": 2}],
    "unknown-field": {"kept": True},
}


def test_a_tag_keeps_main_and_everything_else() -> None:
    """Metadata without refs has a main branch all the same."""
    tagged = raw.with_tag(BASE, "x", 8, 60_000)
    assert tagged["refs"] == {
        "main": {"snapshot-id": 7, "type": "branch"},
        "x": {"snapshot-id": 8, "type": "tag", "max-ref-age-ms": 60_000},
    }
    assert {key: value for key, value in tagged.items() if key != "refs"} == BASE
    assert "refs" not in BASE


def test_the_same_tag_again_changes_nothing() -> None:
    """Repeating is harmless, and needs no commit; another age does."""
    tagged = raw.with_tag(BASE, "x", 8, 60_000)
    assert raw.with_tag(tagged, "x", 8, 60_000) is tagged
    assert raw.with_tag(tagged, "x", 8, 1)["refs"]["x"]["max-ref-age-ms"] == 1


def test_a_tag_is_not_moved_and_needs_its_snapshot() -> None:
    """A name that is taken, by a tag or a branch, and an unknown snapshot are refused."""
    tagged = raw.with_tag(BASE, "x", 8, 1)
    with pytest.raises(LakeError, match="x already exists, at snapshot 8"):
        raw.with_tag(tagged, "x", 7, 1)
    with pytest.raises(LakeError, match="main already exists"):
        raw.with_tag(BASE, "main", 7, 1)
    with pytest.raises(SnapshotUnknown):
        raw.with_tag(BASE, "y", 9, 1)


def test_only_tags_are_removed() -> None:
    """A branch is never taken for a tag, and an absent tag is no change."""
    tagged = raw.with_tag(BASE, "x", 8, 1)
    assert raw.without_tag(tagged, "x")["refs"] == {"main": {"snapshot-id": 7, "type": "branch"}}
    assert raw.without_tag(tagged, "main") is tagged
    assert raw.without_tag(BASE, "x") is BASE


@pytest.mark.parametrize("current", [None, -1])
def test_an_empty_table_has_no_main(current: int | None) -> None:
    """Both spellings of no snapshot are known."""
    assert raw.refs({"current-snapshot-id": current}) == {}


def test_the_successor_remembers_its_predecessor() -> None:
    """The log grows by the version before, up to its limit, and time never runs backward."""
    follows = raw.successor(BASE | {"new": 1}, of=BASE, at="/m/00003-a.metadata.json", now_ms=5)
    assert follows["last-updated-ms"] == 1000
    assert follows["new"] == 1
    assert follows["metadata-log"] == [{"metadata-file": "/m/00003-a.metadata.json", "timestamp-ms": 1000}]
    limited = BASE | {"properties": {"write.metadata.previous-versions-max": "2"}, "metadata-log": [1, 2]}
    assert len(raw.successor(limited, of=limited, at="x", now_ms=2000)["metadata-log"]) == 2
    assert raw.successor(limited, of=limited, at="x", now_ms=2000)["last-updated-ms"] == 2000


@pytest.mark.parametrize(
    ("at", "location"),
    [
        ("/wh/db/t/metadata/00009-a.metadata.json", "/wh/db/t/metadata/00010-u.metadata.json"),
        ("s3://b/00001-a.gz.metadata.json", "/wh/db/t/metadata/00002-u.metadata.json"),
        ("/x/v3.metadata.json", "/wh/db/t/metadata/00000-u.metadata.json"),
    ],
)
def test_versions_are_counted_in_the_name(at: str, location: str) -> None:
    """The next file goes to the table's own folder, numbered on."""
    assert raw.successor_location(BASE, at, "u") == location


def test_the_metadata_folder_can_be_elsewhere() -> None:
    """``write.metadata.path`` is respected."""
    moved = BASE | {"properties": {"write.metadata.path": "s3://m/"}}
    assert raw.successor_location(moved, "00000-x", "u") == "s3://m/00001-u.metadata.json"


def test_gzipped_metadata_is_read() -> None:
    """Both forms of a metadata file are understood."""
    assert raw.decode(raw.encode(BASE)) == BASE
    assert raw.decode(gzip.compress(raw.encode(BASE))) == BASE


def test_a_change_moves_everything_at_once_and_keeps_the_rest() -> None:
    """A new snapshot, main, a branch, one branch less and a property; nothing else is touched."""
    base = BASE | {"properties": {"a": "1"}, "last-sequence-number": 4, "next-row-id": 10, "snapshot-log": []}
    base = raw.changed(base, raw.TableCommit(branches={"old": 8}, branch_age_ms=5), 2000)
    snapshot = {"snapshot-id": 9, "sequence-number": 5, "first-row-id": 10, "added-rows": 3}
    change = raw.TableCommit(snapshot, {"main": 9, "new": 7}, 60, ("old", "absent"), {"b": "2"})
    changed = raw.changed(base, change, 3000)
    assert changed["refs"] == {
        "main": {"snapshot-id": 9, "type": "branch"},
        "new": {"snapshot-id": 7, "type": "branch", "max-ref-age-ms": 60},
    }
    assert changed["current-snapshot-id"] == 9
    assert changed["snapshots"] == [*BASE["snapshots"], snapshot]
    assert (changed["last-sequence-number"], changed["next-row-id"]) == (5, 13)
    assert changed["snapshot-log"] == [{"timestamp-ms": 3000, "snapshot-id": 9}]
    assert changed["properties"] == {"a": "1", "b": "2"}
    assert changed["unknown-field"] == {"kept": True}
    assert base["refs"]["old"] == {"snapshot-id": 8, "type": "branch", "max-ref-age-ms": 5}


def test_a_branch_that_moves_keeps_its_age() -> None:
    """An age is given only to branches that are new; and a clock that goes back does not take the table along."""
    made = raw.changed(BASE, raw.TableCommit(branches={"x": 7}, branch_age_ms=5), 2000)
    moved = raw.changed(made, raw.TableCommit(branches={"x": 8, "main": 8}, branch_age_ms=99), 1)
    assert moved["refs"]["x"] == {"snapshot-id": 8, "type": "branch", "max-ref-age-ms": 5}
    assert moved["snapshot-log"] == [{"timestamp-ms": 2000, "snapshot-id": 8}]
    after = raw.successor(moved, of=made, at="/wh/1.json", now_ms=1500)
    assert after["last-updated-ms"] == 2000


def test_lineage_goes_as_far_back_as_is_known() -> None:
    """An expired parent is where it ends."""
    snapshots = [{"snapshot-id": n, "parent-snapshot-id": n - 1} for n in (5, 6, 8, 9)]
    metadata = BASE | {"snapshots": snapshots}
    assert [found["snapshot-id"] for found in raw.ancestors(metadata, 9)] == [9, 8]
    assert list(raw.ancestors(metadata, None)) == []


def _snapshot(number: int, **more: Any) -> dict[str, Any]:
    return {"snapshot-id": number, "timestamp-ms": number, **{key.replace("_", "-"): more[key] for key in more}}


def _columns(*kinds: Any) -> dict[str, Any]:
    fields = [{"id": number, "name": f"c{number}", "type": kind} for number, kind in enumerate(kinds, 1)]
    return {"schemas": [{"schema-id": 0, "type": "struct", "fields": fields}]}


DEEP: Any = "long"
for _ in range(200):
    DEEP = {"type": "list", "element-id": _ + 2, "element": DEEP}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "its own parent": ({"snapshots": [_snapshot(7, parent_snapshot_id=7)]}, "snapshot 7 is its own ancestor"),
    "parents in a circle": (
        {"snapshots": [_snapshot(7, parent_snapshot_id=8), _snapshot(8, parent_snapshot_id=7)]},
        "is its own ancestor",
    ),
    "a snapshot twice": ({"snapshots": [_snapshot(7), _snapshot(7)]}, "which another snapshot also has"),
    "a snapshot that is none": ({"snapshots": [7]}, r"snapshots\[0\] is 7, not an object"),
    "snapshots that are none": ({"snapshots": {}}, "snapshots is an object, not a list"),
    "a current one that is not there": ({"current-snapshot-id": 9}, "which does not exist"),
    "a current one that is a text": ({"current-snapshot-id": "7"}, "current-snapshot-id is 7, not a number"),
    "a branch to nowhere": ({"refs": {"b": {"snapshot-id": 9, "type": "branch"}}}, "refs.b.snapshot-id is 9"),
    "a ref of no type": ({"refs": {"b": {"snapshot-id": 7}}}, "refs.b.type is None"),
    "main elsewhere": ({"refs": {"main": {"snapshot-id": 8, "type": "branch"}}}, "but main is at 8"),
    "a time of the year 300000": ({"last-updated-ms": 10**16}, "last-updated-ms is 10000000000000000"),
    "an id of 70 bits": ({"snapshots": [_snapshot(2**69)]}, "snapshot-id is 590295810358705651712"),
    "a truth for a number": ({"last-updated-ms": True}, "last-updated-ms is True"),
    "a number for a truth": ({"last-sequence-number": 1.0}, "last-sequence-number is 1.0"),
    "no place": ({"location": None}, "location is missing"),
    "a property that is a list": ({"properties": {"a": []}}, "properties.a is a list"),
    "a count that is none": (
        {"snapshots": [_snapshot(7, summary={"added-data-files": "many"})]},
        "summary.added-data-files is many, not a number",
    ),
    "a manifest list that is a number": ({"snapshots": [_snapshot(7, manifest_list=7)]}, "manifest-list is 7"),
    "no columns": ({"schemas": [{"schema-id": 0}]}, "fields is missing, not a list"),
    "another current schema": ({"current-schema-id": 3}, "current-schema-id is 3"),
    "a column without a name": ({"schemas": [{"fields": [{"id": 1, "type": "long"}]}]}, "name is missing"),
    "two columns of one id": (_columns("long", {"type": "list", "element-id": 1, "element": "int"}), "another column"),
    "a type of nobody": (_columns({"type": "tree"}), "type is tree, not struct, list or map"),
    "types without end": (_columns(DEEP), "nested 100 levels"),
    "a decimal of 99 digits": (_columns("decimal(99, 2)"), "is not a type"),
    "a spec twice": (
        {"partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 0, "fields": []}]},
        "which another spec also has",
    ),
    "a spec without a source": (
        {"partition-specs": [{"spec-id": 0, "fields": [{"name": "a", "transform": "day"}]}]},
        "source-id is missing",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_metadata_that_cannot_be_is_refused(case: str) -> None:
    """By the place in the document, and what is there."""
    more, problem = WRONG[case]
    with pytest.raises(LakeCorrupt, match=problem):
        raw.decode(json.dumps(BASE | more).encode())


TEXTS = {
    "nothing": (b"", "not JSON"),
    "half": (b'{"format-version": 2', "not JSON"),
    "a list": (b"[]", "a list, not an object"),
    "a key twice": (b'{"format-version": 2, "format-version": 1}', "format-version is a duplicate key"),
    "many keys": (b"{" + b",".join(b'"%d":1' % n for n in range(100_001)) + b"}", "an object has 100001 keys"),
    "no number": (b'{"format-version": NaN}', "NaN is not a number"),
    "a long number": (b'{"format-version": ' + b"9" * 5_000 + b"}", "not JSON"),
    "brackets": (b"[" * 100_000, "not JSON"),
    "half a character": (b'{"format-version": 2, "a": "\\ud800"}', "not UTF-8"),
    "other bytes": (b'{"format-version": "\xff"}', "not UTF-8"),
    "half a zip": (gzip.compress(b'{"format-version": 2}')[:-4], "compressed data is truncated"),
    "no zip": (b"\x1f\x8b nothing of the kind", "cannot be decompressed"),
    "a bomb": (gzip.compress(bytes(65 << 20), 1), "more than 67108864 bytes"),
    "many values": (b'{"a": [' + b"{}," * 2_200_000 + b"{}]}", "more than 1048576 values"),
    "rare characters": (b'{"a": "' + b"\xf0\x9f\x98\x80" * (5 << 20) + b'"}', "not only ASCII"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_that_is_not_metadata_is_refused(case: str) -> None:
    """Whatever is wrong with it, and whatever it would cost to find out more."""
    content, problem = TEXTS[case]
    with pytest.raises(LakeCorrupt, match=problem):
        raw.decode(content)


def test_metadata_of_a_later_version_is_left_alone() -> None:
    """Who reads it says that calve has to be upgraded, and not that it is damaged."""
    assert raw.decode(b'{"format-version": 4, "snapshots": 7}') == {"format-version": 4, "snapshots": 7}


def test_old_metadata_is_read() -> None:
    """Format v1 has one schema and one spec, no sequence numbers, and nulls where later versions have nothing."""
    fields = BASE["schemas"][0]["fields"]
    old = {key: BASE[key] for key in ("table-uuid", "location", "last-updated-ms")} | {
        "format-version": 1,
        "schema": {"type": "struct", "fields": fields},
        "partition-spec": [{"source-id": 1, "field-id": 1000, "name": "a", "transform": "identity"}],
        "current-snapshot-id": -1,
        "snapshots": None,
        "refs": None,
    }
    assert raw.refs(raw.decode(raw.encode(old))) == {}
