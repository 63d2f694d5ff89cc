"""Edits of raw metadata keep what they do not know."""

import gzip
from typing import Any

import pytest

from calve.errors import LakeError, SnapshotUnknown
from calve.lake import metadata as raw

BASE: dict[str, Any] = {
    "format-version": 2,
    "location": "/wh/db/t",
    "last-updated-ms": 1000,
    "current-snapshot-id": 7,
    "snapshots": [{"snapshot-id": 7}, {"snapshot-id": 8}],
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
    with pytest.raises(LakeError, match="x exists already, at snapshot 8"):
        raw.with_tag(tagged, "x", 7, 1)
    with pytest.raises(LakeError, match="main exists already"):
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
    base = raw.changed(base, raw.Change(branches={"old": 8}, branch_age_ms=5), 2000)
    snapshot = {"snapshot-id": 9, "sequence-number": 5, "first-row-id": 10, "added-rows": 3}
    change = raw.Change(snapshot, {"main": 9, "new": 7}, 60, ("old", "absent"), {"b": "2"})
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
    made = raw.changed(BASE, raw.Change(branches={"x": 7}, branch_age_ms=5), 2000)
    moved = raw.changed(made, raw.Change(branches={"x": 8, "main": 8}, branch_age_ms=99), 1)
    assert moved["refs"]["x"] == {"snapshot-id": 8, "type": "branch", "max-ref-age-ms": 5}
    assert moved["snapshot-log"] == [{"timestamp-ms": 2000, "snapshot-id": 8}]
    after = raw.successor(moved, of=made, at="/wh/1.json", now_ms=1500)
    assert after["last-updated-ms"] == 2000


def test_lineage_goes_as_far_back_as_is_known() -> None:
    """An expired parent is where it ends."""
    snapshots = [{"snapshot-id": n, "parent-snapshot-id": n - 1} for n in (5, 6, 8, 9)]
    metadata = BASE | {"snapshots": snapshots}
    assert [found["snapshot-id"] for found in raw.lineage(metadata, 9)] == [9, 8]
    assert list(raw.lineage(metadata, None)) == []
