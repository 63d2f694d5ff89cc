"""Captures in parts: whatever the sizes and the limits, the parts are everything, once, oldest first."""

from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.unit.capture.tables import Table

from calve.capture.appends import CaptureLimits
from calve.capture.artifacts import snapshots_to_hold
from calve.capture.changes import TableChange, Wanted, find_change
from calve.capture.model import Checkpoint, OnGap
from calve.errors import HistoryExpired

SIZES = st.lists(st.integers(1, 100), max_size=5)
LIMITS = st.builds(CaptureLimits, st.none() | st.integers(1, 6), st.none() | st.integers(1, 250)).filter(bool)
UPKEEP = st.lists(st.sampled_from(["append", "compact", "rewrite manifests", "nothing"]), max_size=4)


def _files(change: TableChange) -> list[str]:
    return [entry.file_path for manifest in change.data for entry in manifest.entries()]


def _sizes(change: TableChange) -> list[int]:
    return [entry.file_size_in_bytes for manifest in change.data for entry in manifest.entries()]


def _upkeep(table: Table, do: str) -> None:
    if do == "append":
        table.append([7, 8])
    elif do == "compact" and table.live:
        table.compact()
    elif do == "rewrite manifests" and table.live:
        table.rewrite_manifests()


def _all_held(table: Table, change: TableChange) -> bool:
    held: set[str] = set().union(*(table.history[snapshot] for snapshot in snapshots_to_hold(change)))
    return set(_files(change)) <= held


def _in_parts(table: Table, start: Checkpoint | None, limits: CaptureLimits, upkeep: list[str]) -> list[TableChange]:
    parts: list[TableChange] = []
    while upkeep or not parts or parts[-1].to.snapshot_id != table.source().head or parts[-1].has_more:
        change = find_change(table.source(), start, Wanted(limits=limits))
        assert _files(change) == _files(find_change(table.source(), start, Wanted(limits=limits)))
        assert _all_held(table, change)
        parts.append(change)
        start = change.to
        _upkeep(table, upkeep.pop() if upkeep else "nothing")
        assert len(parts) < 100
    return parts


def _check_within(limits: CaptureLimits, parts: list[TableChange]) -> None:
    for part in parts:
        sizes = _sizes(part)
        assert len(sizes) <= 1 or limits.max_files is None or len(sizes) <= limits.max_files
        assert len(sizes) <= 1 or limits.max_bytes is None or sum(sizes) <= limits.max_bytes


TABLES = st.builds(Table, version=st.just(2)) | st.builds(Table, version=st.just(1), counts=st.just(False))


@given(TABLES, st.lists(SIZES, min_size=1, max_size=5), LIMITS, UPKEEP)
def test_parts_of_appends_cover_them_once(
    table: Table, appends: list[list[int]], limits: CaptureLimits, upkeep: list[str]
) -> None:
    """With compaction, rewritten manifests and more appends between the parts."""
    table.append([1])
    start = table.source().checkpoint(table.source().head)
    before = len(table.appended)
    for sizes in appends:
        table.append(sizes)
    parts = _in_parts(table, start, limits, upkeep)
    assert [path for part in parts for path in _files(part)] == table.appended[before:]
    _check_within(limits, parts)


@given(TABLES, st.lists(SIZES, min_size=1, max_size=4), LIMITS, UPKEEP, UPKEEP)
def test_a_first_capture_in_parts_covers_the_table_once(
    table: Table, appends: list[list[int]], limits: CaptureLimits, before: list[str], between: list[str]
) -> None:
    """All that was live when it began, oldest first, then what was appended since."""
    for sizes in appends:
        table.append(sizes)
    for do in before:
        _upkeep(table, do)
    live, known = set(table.live), len(table.appended)
    ages = [number for _, number, _ in table.live.values()]
    parts = _in_parts(table, None, limits, between)
    taken = [path for part in parts for path in _files(part)]
    assert len(taken) == len(set(taken))
    assert set(taken[: len(live)]) == live
    assert taken[len(live) :] == table.appended[known:]
    found = [entry.sequence_number for part in parts for m in part.data for entry in m.entries()]
    assert table.version == 1 or found[: len(live)] == sorted(ages)  # v1 numbers no files
    _check_within(limits, parts)


@given(TABLES, st.lists(SIZES, min_size=1, max_size=5), UPKEEP)
def test_without_limits_it_is_one_part(table: Table, appends: list[list[int]], upkeep: list[str]) -> None:
    """The same files, read off as few manifests as will do."""
    table.append([1])
    start = table.source().checkpoint(table.source().head)
    for sizes in appends:
        table.append(sizes)
        _upkeep(table, upkeep.pop() if upkeep else "nothing")
    change = find_change(table.source(), start, Wanted())
    assert sorted(_files(change)) == table.appended[1:]
    assert (change.files, change.records, change.has_more) == (len(table.appended) - 1,) * 2 + (False,)
    assert change.bytes == sum(_sizes(change))
    assert _all_held(table, change)
    everything = find_change(table.source(), None, Wanted())
    assert set(_files(everything)) == set(table.live)


@given(LIMITS, st.data())
def test_more_is_told_exactly_when_there_is_more(limits: CaptureLimits, data: st.DataObject) -> None:
    """A capture that ended early, by a limit or by request, says so."""
    table = Table()
    places = [table.append(data.draw(SIZES.filter(bool))) for _ in range(3)]
    start = table.source().checkpoint(places[0])
    end = data.draw(st.sampled_from(places))
    change = find_change(table.source(), start, Wanted(end=str(end))) if end != places[0] else None
    assert change is None or change.has_more == (end != places[-1])
    first = find_change(table.source(), None, Wanted(end=str(end)))
    assert first.has_more == (end != places[-1])
    part = find_change(table.source(), start, Wanted(limits=limits))
    assert part.has_more == (part.files < len(table.appended) - len(table.history[places[0]]))


def test_a_part_whose_snapshot_is_gone_is_not_guessed() -> None:
    """Neither the files that were left of it nor which those are can be known."""
    table = Table()
    table.append([1])
    half = table.append([5, 5, 5])
    start = table.source().checkpoint(table.snapshots[0]["snapshot-id"])
    part = find_change(table.source(), start, Wanted(limits=CaptureLimits(max_files=1)))
    assert part.to.pending is not None
    table.append([9])
    table.expire(half)
    for policy in (OnGap.FAIL, OnGap.UPSERTS):
        with pytest.raises(HistoryExpired):
            find_change(table.source(), part.to, Wanted(on_gap=policy))
    full: Any = find_change(table.source(), part.to, Wanted(on_gap=OnGap.FULL))
    assert set(_files(full)) == set(table.live)
