"""Which plan is chosen."""

from collections.abc import Mapping
from dataclasses import replace
from unittest.mock import ANY

import pytest

from calve.merging.bounds import Interval, KeyRange, Value
from calve.merging.plans import (
    MOST_BROADCAST,
    AppendAll,
    LookUp,
    MergeSome,
    MergeSource,
    MergeTarget,
    Nothing,
    OneMerge,
    Plan,
    Replace,
    choose,
    is_worth_bounding,
    only_merge,
)
from calve.merging.request import MergeRequest, request

_TYPES = {"id": "bigint", "day": "date", "n": "bigint"}
_DAYS = KeyRange("day", "date", (Interval(1, 1), Interval(3, 3)))
_IDS = KeyRange("id", "bigint", (Interval(0, 99),))
_TARGET = MergeTarget(
    name="lake.db.t",
    columns=_TYPES,
    properties={"write.wap.enabled": "true"},
    partitioning=("day",),
    branch="attempt",
    head=1,
    rows=100,
    files=2,
    slices=2,
    ranges=(_IDS, _DAYS),
)


def _asked(
    *, when_matched: str | Mapping[str, str] = "update", when_not_matched: str = "insert", has_deletes: bool = False
) -> MergeRequest:
    return request(
        into="db.t",
        keys=["id", "day"],
        when_matched=when_matched,
        when_not_matched=when_not_matched,
        delete_when=None,
        has_deletes=has_deletes,
    )


@pytest.mark.parametrize(
    ("asked", "source", "expected"),
    [
        (_asked(), MergeSource(0, 0, 0), Nothing),
        (_asked(), MergeSource(10, 2, 8), AppendAll),
        (_asked(when_not_matched="ignore"), MergeSource(10, 2, 8), Nothing),
        (_asked(when_not_matched="ignore"), MergeSource(10, 0, 8), MergeSome),
        (_asked(), MergeSource(10, 0, 8), LookUp),
        (_asked(has_deletes=True), MergeSource(10, 0, 10, deleting=1), LookUp),
        (_asked(has_deletes=True), MergeSource(0, 0, 0, deleting=1), LookUp),
        (_asked(), MergeSource(MOST_BROADCAST + 1, 0, 0), MergeSome),
    ],
)
def test_the_cheapest_plan_is_chosen(asked: MergeRequest, source: MergeSource, expected: type[Plan]) -> None:
    """What cannot match is appended; what may match is looked up while it is small."""
    chosen = choose(asked, _TARGET, source)
    assert type(chosen) is expected
    assert chosen.reason


def test_rows_are_written_again_where_a_delete_is_cheap_and_nobody_looks() -> None:
    """On a branch, in a table whose deletes are marks; without looking them up only where whole rows are replaced."""
    source = MergeSource(10, 0, 4)
    cheap = replace(_TARGET, properties={**_TARGET.properties, "write.delete.mode": "merge-on-read"})
    assert choose(_asked(), cheap, source) == LookUp(ANY, (), rewrites=True)
    declared = replace(cheap, properties={**cheap.properties, "identifier-fields": "[day,id]"})
    assert choose(_asked(), declared, source) == Replace(ANY, ())
    assert choose(_asked(when_matched={"n": "s.n"}), declared, source) == LookUp(ANY, (), rewrites=True)
    more = replace(cheap, properties={**cheap.properties, "identifier-fields": "[day,id,n]"})
    assert choose(_asked(), more, source) == LookUp(ANY, (), rewrites=True)
    for asked, target in (
        (_asked(when_matched="ignore"), cheap),
        (_asked(has_deletes=True), cheap),
        (_asked(), replace(cheap, branch=None)),
        (_asked(), _TARGET),
    ):
        assert choose(asked, target, source) == LookUp(ANY, ())


def test_many_rows_are_not_broadcast() -> None:
    """Neither to look them up nor to merge them."""
    many = MergeSource(MOST_BROADCAST + 1, 0, 0)
    for asked in (_asked(), _asked(when_not_matched="ignore")):
        chosen = choose(asked, _TARGET, many)
        assert isinstance(chosen, MergeSome)
        assert not chosen.broadcasts


@pytest.mark.parametrize(
    ("asked", "branch", "atomic", "types", "expected"),
    [
        (_asked(), "attempt", True, _TYPES, None),
        (_asked(), None, False, _TYPES, None),
        (_asked(), None, True, _TYPES, "without a branch"),
        (_asked(when_matched={"n": "t.n + s.n"}), "attempt", True, _TYPES, None),
        (_asked(when_matched={"n": "t.n + s.n"}), None, False, _TYPES, "could repeat it"),
        (_asked(), "attempt", True, _TYPES | {"id": "int"}, "id is int in the source and bigint in the target"),
    ],
)
def test_several_commits_need_a_branch_or_a_promise(
    *, asked: MergeRequest, branch: str | None, atomic: bool, types: dict[str, str], expected: str | None
) -> None:
    """Where a crash between them could give wrong rows, one MERGE does it all."""
    reason = only_merge(asked, replace(_TARGET, branch=branch), types, atomic=atomic)
    assert reason == expected if expected is None else expected in (reason or "")


def test_a_single_merge_is_bounded_where_that_can_spare_something() -> None:
    """A target in one piece is read in any case."""
    assert is_worth_bounding(_asked(), _TARGET, _TYPES)
    assert not is_worth_bounding(_asked(), replace(_TARGET, ranges=(_IDS,)), _TYPES)
    assert not is_worth_bounding(_asked(), _TARGET, _TYPES | {"id": "int"})
    assert OneMerge("why").ranges == ()


def test_the_column_in_most_pieces_leads() -> None:
    """It tells most about where rows can match."""
    assert replace(_TARGET, partitioning=()).leading == _DAYS
    assert replace(_TARGET, partitioning=("bucket(4, id)",)).leading == _DAYS
    assert replace(_TARGET, ranges=()).leading is None


def test_partitions_by_time_place_rows_alone() -> None:
    """So that late rows are told apart from those of a new day; elsewhere every key helps."""
    assert _TARGET.placing == (_DAYS,)
    assert replace(_TARGET, partitioning=("days(id)",)).placing == (_IDS,)
    assert replace(_TARGET, partitioning=("id",)).placing == (_IDS, _DAYS)


def _new(low: Value, high: Value, late: int = 1) -> MergeSource:
    """Return a source with new rows, and late ones on so many days."""
    days = KeyRange("day", "date", tuple(Interval(-2 * day, -2 * day) for day in range(late, 0, -1)))
    return MergeSource(9, 0, 5, ranges=(days,), new=Interval(low, high))


def test_late_rows_of_many_partitions_are_written_with_a_shuffle() -> None:
    """They are gathered in one task, which would have to open a file for each."""
    assert _TARGET.takes_as_they_lie(_new(4, 5, late=50))
    assert not _TARGET.takes_as_they_lie(_new(4, 5, late=51))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"partitioning": ("days(id)",)}, True),
        ({"partitioning": ("days(at)",)}, False),
        ({"partitioning": ("id",)}, False),
        ({"partitioning": ("day", "bucket(16, id)")}, False),
        ({"partitioning": ()}, False),
        ({"properties": {"write.distribution-mode": "hash"}}, False),
        ({"properties": {"sort-order": "id ASC"}}, False),
        ({"rows": 0}, False),
    ],
)
def test_rows_are_written_where_they_lie_only_into_few_partitions(
    *, changed: dict[str, object], expected: bool
) -> None:
    """The owner's choice of a distribution or an order is kept."""
    assert replace(_TARGET, **changed).takes_as_they_lie(_new(4, 5)) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("transform", "type_name", "low", "high", "expected"),
    [
        ("day", "date", 4, 6, True),
        ("day", "date", 4, 9, False),
        ("days(day)", "timestamp", 0, 86_400_000_000, True),
        ("hours(day)", "timestamp", 0, 86_400_000_000, False),
        ("months(day)", "timestamp_ntz", "2024-01-01 00:00:00", "2024-03-01 00:00:00.5", True),
        ("days(day)", "timestamp_ntz", "2024-01-01 00:00:00", "2024-03-01 00:00:00.5", False),
    ],
)
def test_many_new_partitions_are_written_with_a_shuffle(
    *, transform: str, type_name: str, low: Value, high: Value, expected: bool
) -> None:
    """Else each task would write a file for each."""
    days = KeyRange("day", type_name, (Interval(low, low),))
    target = replace(_TARGET, partitioning=(transform,), columns=_TYPES | {"day": type_name}, ranges=(days,))
    assert target.takes_as_they_lie(_new(low, high)) is expected
    assert not target.takes_as_they_lie(MergeSource(1, 0, 1))


def test_rows_that_only_delete_count_as_rows_that_may_match() -> None:
    """They are not appended, so they are counted apart."""
    source = MergeSource(10, 1, 2, (_IDS,), (_IDS,))
    far = KeyRange("id", "bigint", (Interval(500, 500),))
    both = source.with_deletes(MergeSource(5, 0, 4, (far,), (far,)))
    assert (both.rows, both.deleting, both.may_match) == (10, 1, 8)
    assert both.ranges == (KeyRange("id", "bigint", (Interval(0, 99), Interval(500, 500))),)
