"""The commits for REST catalogs, as JSON."""

from typing import Any

import pytest

from calve.errors import LakeError
from calve.lake import TableCommit, metadata as raw
from calve.lake.rest_commits import change_commit, tag_commit, untag_commit

SNAPSHOT = {"snapshot-id": 7, "sequence-number": 3, "first-row-id": 5, "added-rows": 2, "future-field": {"a": 1}}


def _table(**refs: Any) -> raw.Metadata:
    ids = dict.fromkeys([1, *(ref["snapshot-id"] for ref in refs.values())])
    return {
        "table-uuid": "u",
        "last-sequence-number": 2,
        "next-row-id": 5,
        "current-snapshot-id": 1,
        "snapshots": [{"snapshot-id": each} for each in ids],
        "refs": refs,
    }


def test_a_snapshot_arrives_as_it_is() -> None:
    """Also with fields that no client knows; the branches concerned must not have moved."""
    metadata = _table(job={"snapshot-id": 2, "type": "branch", "min-snapshots-to-keep": 3})
    change = TableCommit(SNAPSHOT, {"main": 7, "job": 7, "new": 1}, 60, ("gone",), {"x": "y"})
    body = change_commit(metadata, change).as_json(("db",), "t")
    assert body["identifier"] == {"namespace": ["db"], "name": "t"}
    assert body["requirements"][0] == {"type": "assert-table-uuid", "uuid": "u"}
    assert {need["ref"]: need["snapshot-id"] for need in body["requirements"][1:]} == {
        "main": 1,
        "job": 2,
        "new": None,
        "gone": None,
    }
    added, main, job, new, properties = body["updates"]
    assert added == {"action": "add-snapshot", "snapshot": SNAPSHOT}
    assert main == {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 7}
    assert job["min-snapshots-to-keep"] == 3
    assert (job.get("max-ref-age-ms"), new["max-ref-age-ms"]) == (None, 60)
    assert properties == {"action": "set-properties", "updates": {"x": "y"}}


def test_a_commit_knows_whether_it_happened() -> None:
    """By its snapshot, or else by everything that it puts there."""
    before = _table(job={"snapshot-id": 2, "type": "branch"})
    with_snapshot = change_commit(before, TableCommit(SNAPSHOT, {"main": 7}))
    assert not with_snapshot.happened(before)
    assert with_snapshot.happened(before | {"snapshots": [{"snapshot-id": 7}]})
    moved = change_commit(before, TableCommit(None, {"main": 2}, None, ("job",), {"x": "y"}))
    after = _table(main={"snapshot-id": 2, "type": "branch"}) | {"properties": {"x": "y", "z": "z"}}
    assert moved.happened(after)
    assert not moved.happened(after | {"properties": {"x": "other"}})
    assert not moved.happened(after | {"refs": {**after["refs"], "job": {"snapshot-id": 2}}})


@pytest.mark.parametrize(
    ("later", "is_late"),
    [
        ({}, False),
        ({"properties": {"a": "b"}}, False),
        ({"table-uuid": "other"}, True),
        ({"current-snapshot-id": 2}, True),
        ({"last-sequence-number": 3}, True),
        ({"next-row-id": 6}, True),
    ],
)
def test_a_commit_knows_when_it_can_no_longer_happen(later: raw.Metadata, is_late: bool) -> None:  # noqa: FBT001 - a table
    """Only then may another one be planned, which deletes the files of the first."""
    before = _table()
    assert change_commit(before, TableCommit(SNAPSHOT, {"main": 7})).is_late(before | later) is is_late


def test_a_tag_is_compared_and_set() -> None:
    """It happened if the tag is there with the same snapshot and age."""
    before = _table()
    commit = tag_commit(before, "lease", 1, 60)
    assert commit is not None
    wanted = {"snapshot-id": 1, "type": "tag", "max-ref-age-ms": 60}
    assert commit.updates == ({"action": "set-snapshot-ref", "ref-name": "lease", **wanted},)
    after = _table(lease=wanted)
    assert (commit.happened(before), commit.happened(after)) == (False, True)
    assert tag_commit(after, "lease", 1, 60) is None
    with pytest.raises(LakeError, match="already exists"):
        tag_commit(_table(lease=wanted | {"snapshot-id": 2}), "lease", 1, 60)
    removal = untag_commit(after, "lease")
    assert removal is not None
    assert removal.updates == ({"action": "remove-snapshot-ref", "ref-name": "lease"},)
    assert (removal.happened(before), removal.happened(after)) == (True, False)
    assert untag_commit(before, "lease") is None
