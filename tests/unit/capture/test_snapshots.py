"""The way from a checkpoint to a place in a table's history, or what bars it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.unit.capture.tables import SCHEMA, Table

from calve.capture import snapshots
from calve.capture.model import Checkpoint, Operation
from calve.capture.source import Source
from calve.errors import (
    ChangeUnsupported,
    HistoryExpired,
    NotAnAncestor,
    SchemaChanged,
    SnapshotUnknown,
    TableRecreated,
)


def _snapshot(number: int, parent: int | None, **more: Any) -> dict[str, Any]:
    summary = {"operation": "append", "added-data-files": "1", "total-data-files": str(number)}
    return {
        "snapshot-id": number,
        "parent-snapshot-id": parent,
        "sequence-number": number,
        "timestamp-ms": 1_700_000_000_000 + number * 60_000,
        "summary": summary | more.pop("summary", {}),
        **more,
    }


def _source(*snapshots: dict[str, Any], head: int | None = None, **metadata: Any) -> Source:
    current = head if head is not None else snapshots[-1]["snapshot-id"] if snapshots else None
    return Table().source(**{"snapshots": list(snapshots), "current-snapshot-id": current} | metadata)


def _chain(last: int, without: Any = (), **metadata: Any) -> Source:
    """Return a table with snapshots 1, 2, 3 and so on, but for some that are expired."""
    kept = [_snapshot(n, n - 1 or None) for n in range(1, last + 1) if n not in without]
    return _source(*kept, **metadata)


def _at(number: int, source: Source | None = None) -> Checkpoint:
    """Return the checkpoint that a snapshot gave when it was there."""
    return (source or _chain(number)).checkpoint(number)


def _walked(source: Source, start: Checkpoint | None, end: int | None) -> list[int]:
    return [step.snapshot_id for step in snapshots.steps_between(source, start, end)]


def test_a_range_is_what_lies_between() -> None:
    """The start is not in it, the end is; nothing lies between a place and itself."""
    source = _chain(5)
    assert _walked(source, _at(2), 5) == [3, 4, 5]
    assert _walked(source, _at(5), 5) == []
    assert _walked(source, None, 3) == [1, 2, 3]
    assert _walked(_source(), None, None) == []
    assert _walked(_source(), _source().checkpoint(None), None) == []
    assert _walked(source, _source().checkpoint(None), 2) == [1, 2]


def test_the_start_itself_is_not_needed() -> None:
    """Its successor still names it."""
    assert _walked(_chain(5, without={1, 2}), _at(2), 5) == [3, 4, 5]


@pytest.mark.parametrize("without", [{3}, {1, 2, 3}, {1, 2, 3, 4}, {4}])
def test_a_hole_is_expired_history(without: set[int]) -> None:
    """Any snapshot after the start that is gone."""
    with pytest.raises(HistoryExpired) as told:
        _walked(_chain(5, without=without), _at(2), 5)
    assert told.value.context["checkpoint_snapshot_id"] == 2
    assert told.value.context["oldest_snapshot_id"] == max(without) + 1
    assert "--on-gap full" in told.value.remedy
    assert "upserts" not in told.value.remedy


def test_row_lineage_is_offered_where_it_helps() -> None:
    """In format v3, from a checkpoint that knew row ids."""
    start = replace(_at(2), next_row_id=20)
    source = _chain(5, without={1, 2, 3}, **{"format-version": 3})
    with pytest.raises(HistoryExpired, match="expired") as told:
        _walked(source, start, 5)
    assert "--on-gap upserts" in told.value.remedy
    assert not snapshots.can_go_on_by_sequence_number(source, _at(2))


def test_a_rollback_names_what_both_share() -> None:
    """With and without commits after it, while all is kept."""
    kept = [_snapshot(n, n - 1 or None) for n in range(1, 5)]
    for source, end in ((_source(*kept, head=2), 2), (_source(*kept, _snapshot(5, 2)), 5)):
        with pytest.raises(NotAnAncestor) as told:
            _walked(source, _at(4), end)
        assert told.value.context["common_ancestor"] == 2
        assert "calve checkpoint set" in told.value.remedy


def test_a_rollback_is_seen_through_expiry() -> None:
    """A snapshot younger than all that is kept was not before them."""
    source = _source(_snapshot(2, 1), head=2)
    with pytest.raises(NotAnAncestor):
        _walked(source, _at(4), 2)


def test_a_table_that_was_emptied_of_history_is_not_a_continuation() -> None:
    """CREATE OR REPLACE starts again without a parent, or without a snapshot at all."""
    new = {"added-data-files": "4", "total-data-files": "4"}
    replaced = _source(_snapshot(1, None), _snapshot(2, None, summary=new), head=2)
    with pytest.raises(NotAnAncestor):
        _walked(replaced, _at(1), 2)
    with pytest.raises(NotAnAncestor):
        _walked(_source(_snapshot(1, None), **{"current-snapshot-id": -1}), _at(1), None)


def test_a_forgotten_parent_is_not_a_beginning() -> None:
    """PyIceberg takes the parent away from a snapshot when it expires that; older files are still there."""
    orphan = _snapshot(4, None, summary={"added-data-files": "1", "total-data-files": "4"})
    for start in (_at(2), _source().checkpoint(None), None):
        with pytest.raises(HistoryExpired):
            _walked(_source(orphan), start, 4)
    with pytest.raises(HistoryExpired):
        _walked(_source(_snapshot(2, 1), orphan), _at(2), 4)
    with pytest.raises(HistoryExpired):  # the parent may have been the checkpoint itself
        _walked(_source(orphan), _at(3), 4)


def test_a_range_that_begins_by_removing_files_needs_its_start() -> None:
    """Expiry deletes what only the start still had; what a later snapshot removed is kept by the first."""

    def steps(*removed: int, operation: str = "overwrite") -> list[snapshots.RangeSnapshot]:
        summaries = [{"operation": operation, "deleted-data-files": str(count)} for count in removed]
        return [snapshots.step_of(_snapshot(3 + n, 2 + n, summary=summary)) for n, summary in enumerate(summaries)]

    gone, there = _chain(5, without={1, 2}), _chain(5)
    with pytest.raises(HistoryExpired):
        snapshots.check_start_is_kept(gone, _at(2), steps(1, 0))
    snapshots.check_start_is_kept(gone, _at(2), steps(0, 1))
    snapshots.check_start_is_kept(gone, _at(2), steps(1, 1, operation="replace"))
    snapshots.check_start_is_kept(there, _at(2), steps(1, 0))
    snapshots.check_start_is_kept(there, _at(2), [])


def test_another_uuid_is_another_table() -> None:
    """Whatever its snapshots are called."""
    with pytest.raises(TableRecreated) as told:
        _walked(_chain(3, **{"table-uuid": "22222222-2222-2222-2222-222222222222"}), _at(1), 3)
    assert told.value.context["checkpoint_uuid"] != told.value.context["table_uuid"]


@st.composite
def _worlds(draw: st.DrawFn) -> tuple[dict[int, int | None], set[int], int, int]:
    """Draw a tree of snapshots, which of them are expired, and two of them."""
    parents: dict[int, int | None] = {1: None}
    for number in range(2, draw(st.integers(2, 9))):
        parents[number] = draw(st.sampled_from(sorted(parents)[-3:]))
    end = draw(st.sampled_from(sorted(parents)))
    start = draw(st.sampled_from(sorted(parents)))
    expired = draw(st.sets(st.sampled_from(sorted(parents)))) - {end}
    return parents, expired, start, end


@given(_worlds())
def test_a_range_is_right_or_refused(world: tuple[dict[int, int | None], set[int], int, int]) -> None:
    """Whatever was branched, rolled back and expired: the true way, or an error; the error of a way that is no way."""
    parents, expired, start, end = world
    path: list[int] = []
    here: int | None = end
    while here is not None and here != start:
        path.insert(0, here)
        here = parents[here]
    kept = [_snapshot(n, parent) for n, parent in parents.items() if n not in expired]
    source = _source(*kept, head=end)
    checkpoint = _at(start, _source(*(_snapshot(n, parent) for n, parent in parents.items())))
    if here == start and not expired & set(path):
        assert _walked(source, checkpoint, end) == path
        return
    with pytest.raises((NotAnAncestor, HistoryExpired)) as told:
        _walked(source, checkpoint, end)
    if here == start:
        assert told.type is HistoryExpired
    if start > end or not expired:
        assert told.type is NotAnAncestor


def test_steps_say_what_snapshots_say() -> None:
    """Operations that nobody knows are none, counts that a writer leaves out are zero, if it counts at all."""
    step = snapshots.step_of(_snapshot(3, 2, **{"first-row-id": 9}))
    assert (step.operation, step.has_row_ids, step.count("added-data-files")) == (Operation.APPEND, True, 1)
    assert step.count("deleted-data-files") == 0
    bare = snapshots.step_of({"snapshot-id": 1, "timestamp-ms": 5})
    assert (bare.operation, bare.has_row_ids, bare.count("added-data-files")) == (None, False, None)
    odd = snapshots.step_of(_snapshot(1, None, summary={"operation": "transmogrify"}))
    assert odd.operation is None


@pytest.mark.parametrize(
    ("summary", "may"),
    [
        ({"operation": "append"}, False),
        ({"operation": "overwrite", "added-data-files": "1", "deleted-data-files": "1"}, True),
        ({"operation": "overwrite", "added-data-files": "2", "deleted-data-files": "0"}, False),
        ({"operation": "delete", "added-data-files": "0", "deleted-data-files": "3"}, False),
        ({"operation": "replace", "added-data-files": "1", "deleted-data-files": "3"}, True),
    ],
)
def test_rows_can_only_be_carried_from_removed_into_added_files(summary: dict[str, str], may: bool) -> None:  # noqa: FBT001 - a parameter
    """That decides whether a change must be told from what was merely rewritten."""
    assert snapshots.step_of(_snapshot(1, None, summary=summary)).may_carry_rows() is may
    uncounted = {"snapshot-id": 1, "timestamp-ms": 5, "summary": {"operation": summary["operation"]}}
    assert snapshots.step_of(uncounted).may_carry_rows() is (summary["operation"] != "append")


def test_changes_not_asked_for_are_named() -> None:
    """All of them, with the option that asks for them; compaction is never a change."""
    source = _source(
        *(
            _snapshot(n, n - 1 or None, summary={"operation": operation})
            for n, operation in enumerate(["append", "overwrite", "replace", "delete", "unheard-of"], start=1)
        )
    )
    steps = snapshots.steps_between(source, None, 5)
    with pytest.raises(ChangeUnsupported) as told:
        snapshots.check_operations(source, steps, frozenset({Operation.APPEND}))
    assert [found["snapshot_id"] for found in told.value.context["snapshots"]] == [2, 4, 5]
    assert "--operations append,delete,overwrite" in told.value.remedy
    snapshots.check_operations(source, steps[:3], frozenset({Operation.APPEND, Operation.OVERWRITE}))


def test_a_schema_change_names_its_columns() -> None:
    """Added, dropped, renamed, retyped, nested; or only their order."""
    fields: list[Any] = SCHEMA["fields"]  # type: ignore[assignment]
    struct = {"type": "struct", "fields": [{"id": 5, "name": "a", "type": "int"}]}
    other = {"type": "struct", "fields": [{"id": 5, "name": "b", "type": "int"}]}
    cases = [
        ([*fields, {"id": 3, "name": "w", "type": "date"}], "w date added"),
        (fields[:1], "v string dropped"),
        ([fields[0], {**fields[1], "name": "text"}], "v string is now text string"),
        (fields[::-1], "columns reordered"),
    ]
    for after, message in cases:
        source = _chain(2, schemas=[SCHEMA, {**SCHEMA, "schema-id": 1, "fields": after}], **{"current-schema-id": 1})
        with pytest.raises(SchemaChanged, match=message):
            snapshots.check_schema(source, _at(1))
        snapshots.check_schema(source, source.checkpoint(2))
        snapshots.check_schema(source, None)
    nested = [
        {**SCHEMA, "schema-id": n, "fields": [{"id": 4, "name": "s", "type": k}]} for n, k in enumerate((struct, other))
    ]
    source = _chain(2, schemas=nested, **{"current-schema-id": 1})
    with pytest.raises(SchemaChanged, match="s struct<a int> is now s struct<b int>"):
        snapshots.check_schema(source, _at(1))


def test_places_are_ids_refs_and_times() -> None:
    """The newest snapshot that was there at a time; times without a zone are in UTC."""
    refs = {"main": {"snapshot-id": 4, "type": "branch"}, "tag": {"snapshot-id": 2, "type": "tag"}}
    source = _chain(4, refs=refs)
    assert snapshots.resolve(source, "latest") == 4
    assert snapshots.resolve(source, "tag") == 2
    assert snapshots.resolve(source, "3") == 3
    moment = 1_700_000_000 + 2 * 60
    iso = datetime.fromtimestamp(moment + 59, UTC).isoformat()
    assert snapshots.resolve(source, iso) == 2
    assert snapshots.resolve(source, iso.removesuffix("+00:00")) == 2
    assert snapshots.resolve(source, datetime.fromtimestamp(moment + 60, UTC).isoformat()) == 3
    assert snapshots.resolve(_source(), "latest") is None
    for nonsense in ("9", "nothing", "1999-01-01"):
        with pytest.raises(SnapshotUnknown):
            snapshots.resolve(source, nonsense)
