"""What a consumer has not committed, by snapshots alone."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.capture.tables import Table

from calve.capture.changes import Wanted
from calve.capture.lag import Uncommitted, uncommitted
from calve.capture.model import Checkpoint, OnGap, Operation, Pending, PendingOf
from calve.capture.source import Source
from calve.errors import ChangeUnsupported, HistoryExpired, NotAnAncestor, TableRecreated

ALL = Wanted(operations=frozenset(Operation))


def _snapshot(number: int, operation: str = "append", **counts: int) -> dict[str, Any]:
    given = {key.replace("_", "-"): str(value) for key, value in counts.items()}
    summary = {"added-data-files": "1", "added-files-size": "100"} if operation == "append" and not given else given
    return {
        "snapshot-id": number,
        "parent-snapshot-id": number - 1 or None,
        "sequence-number": number,
        "timestamp-ms": number * 1_000,
        "summary": {"operation": operation, "total-data-files": "3", "total-files-size": "300", **summary},
    }


def _source(*snapshots: dict[str, Any], **metadata: Any) -> Source:
    head = snapshots[-1]["snapshot-id"] if snapshots else None
    return Table().source(**{"snapshots": list(snapshots), "current-snapshot-id": head} | metadata)


def _found(source: Source, start: Checkpoint | None, wanted: Wanted = ALL) -> Uncommitted:
    return uncommitted(source, "here", "db.t", start, wanted)


def test_what_came_after_the_checkpoint_is_counted_by_commit() -> None:
    """Tell of each snapshot when it came, and how much it brought."""
    source = _source(_snapshot(1), _snapshot(2, added_data_files=4, added_files_size=70), _snapshot(3))
    found = _found(source, source.checkpoint(1))
    assert [(each.snapshot_id, each.committed_at, each.files, each.bytes) for each in found.commits] == [
        (2, 2_000, 4, 70),
        (3, 3_000, 1, 100),
    ]
    assert (found.table, found.metadata_location, found.head.snapshot_id) == ("db.t", "here", 3)


def test_compaction_and_snapshots_that_hold_nothing_are_no_change() -> None:
    """Leave out what changed no row."""
    compaction = _snapshot(2, "replace", added_data_files=1, deleted_data_files=9)
    source = _source(_snapshot(1), compaction, _snapshot(3, added_data_files=0))
    assert _found(source, source.checkpoint(1)).commits == ()


def test_a_delete_counts_what_it_removes() -> None:
    """Count a snapshot that only takes rows out by the files that went."""
    source = _source(_snapshot(1), _snapshot(2, "delete", deleted_data_files=5, removed_files_size=50))
    (commit,) = _found(source, source.checkpoint(1)).commits
    assert (commit.operation, commit.files, commit.bytes) == (Operation.DELETE, 5, 50)


def test_a_writer_that_does_not_count_is_taken_to_have_changed_something() -> None:
    """Take a snapshot without numbers for a change of one file."""
    second = _snapshot(2)
    second["summary"] = {"operation": "append"}
    source = _source(_snapshot(1), second)
    (commit,) = _found(source, source.checkpoint(1)).commits
    assert (commit.files, commit.bytes) == (1, 0)


def test_without_a_checkpoint_everything_is_to_come() -> None:
    """Count all that is in the table, be it only a compaction that is left of its history."""
    assert len(_found(_source(_snapshot(1), _snapshot(2)), None).commits) == 2
    left = _snapshot(7, "replace", added_data_files=3)
    (commit,) = _found(_source(left), None).commits
    assert (commit.snapshot_id, commit.files, commit.bytes, commit.operation) == (7, 3, 300, None)


def test_an_empty_table_holds_nothing_to_come() -> None:
    """Find nothing in a table without snapshots, or without files."""
    assert _found(_source(), None).commits == ()
    emptied = _snapshot(2, "delete", deleted_data_files=1, total_data_files=0)
    assert _found(_source(_snapshot(1), emptied), None).commits == ()


def test_what_a_limit_left_of_a_snapshot_is_to_come_first() -> None:
    """Count the rest of the checkpoint's own snapshot."""
    source = _source(_snapshot(1, added_data_files=5, added_files_size=50), _snapshot(2))
    start = source.checkpoint(1, Pending(PendingOf.ADDED, 3))
    assert [(each.snapshot_id, each.files) for each in _found(source, start).commits] == [(1, 2), (2, 1)]


def test_an_end_that_was_asked_for_is_kept() -> None:
    """Look no further than the capture would."""
    source = _source(_snapshot(1), _snapshot(2), _snapshot(3))
    found = _found(source, source.checkpoint(1), replace(ALL, end="2"))
    assert [each.snapshot_id for each in found.commits] == [2]


def test_what_a_capture_would_refuse_is_refused() -> None:
    """Tell a broken history, another table and a wrong operation apart, as captures do."""
    source = _source(_snapshot(1), _snapshot(2, "overwrite", added_data_files=1))
    start = source.checkpoint(1)
    with pytest.raises(ChangeUnsupported):
        _found(source, start, Wanted())
    with pytest.raises(TableRecreated):
        _found(source, replace(start, table_uuid="other"))
    with pytest.raises(NotAnAncestor):
        _found(source, replace(start, snapshot_id=9, sequence_number=9))


def test_expired_history_is_refused_unless_the_capture_continues_over_it() -> None:
    """Take what is kept for the change where the step says what to do about a gap."""
    source = _source(_snapshot(5), _snapshot(6))
    start = replace(source.checkpoint(5), snapshot_id=2, sequence_number=2)
    with pytest.raises(HistoryExpired):
        _found(source, start)
    assert len(_found(source, start, replace(ALL, on_gap=OnGap.FULL)).commits) == 2
