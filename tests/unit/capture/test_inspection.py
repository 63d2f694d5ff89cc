"""What the metadata of a table tells about its history."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from hypothesis import given, strategies as st
from tests.unit.capture.tables import NAME, Table, entry

from calve.capture import Checkpoint, Operation, Pending, PendingOf
from calve.capture.inspection.change_map import Reader, change_map
from calve.capture.inspection.facts import Cell, Cells, FactsCache, FactsReader
from calve.capture.inspection.history import TableHistory
from calve.capture.inspection.lag_history import Behind, LagSample, forecast, usual_interval
from calve.capture.inspection.lateness import lateness
from calve.capture.inspection.periods import DAY, HOUR, Partition, partitions_by_spec, time_column
from calve.capture.snapshots import RangeSnapshot
from calve.errors import RequestInvalid
from calve.lake import LoadedTable

NOON = 20_000 * DAY + 12 * HOUR
"""A day of 2024, at noon."""


def facts_of(table: Table, **options: Any) -> tuple[TableHistory, dict[int, Cells]]:
    """Read a table's history, and what its commits did."""
    source = table.source()
    loaded = LoadedTable(source.name, dict(source.metadata), "metadata.json", source.files)
    history = TableHistory(loaded)
    reader = FactsReader(loaded, partitions_by_spec(source), **options)
    return history, reader.read(history.commits, {})


def files(facts: dict[int, Cells]) -> dict[int, int]:
    """Return how many files each commit touched."""
    return {snapshot_id: sum(cell.files for cell in cells) for snapshot_id, cells in facts.items()}


def test_each_commit_has_its_own_files() -> None:
    """Whatever was merged or rewritten later: what is no longer listed is found in the commit's own list."""
    table = Table()
    first, second = table.append([1, 1]), table.append([1])
    merged, third = table.rewrite_manifests(), table.append([1, 1, 1])
    compacted, empty, last = table.compact(), table.append([]), table.append([1])
    _, facts = facts_of(table)
    assert files(facts) == {first: 2, second: 1, merged: 0, third: 3, compacted: 7, empty: 0, last: 1}


def test_one_manifest_list_reports_all_appends() -> None:
    """However many there are, as long as nothing was rewritten."""
    table = Table()
    commits = [table.append([1]) for _ in range(20)]
    for snapshot_id in commits[:-1]:
        del table.memory.contents[f"metadata/snap-{snapshot_id}"]
    _, facts = facts_of(table)
    assert files(facts) == dict.fromkeys(commits, 1)


def test_reading_stops_when_the_time_is_over_and_continues_the_next_time() -> None:
    """The newest commits come first."""
    table = Table(counts=False)  # so that each commit takes its own list
    commits = [table.append([1]) for _ in range(5)]
    ticks = count()
    history, facts = facts_of(table, seconds=2, clock=lambda: float(next(ticks)))
    assert list(facts) == commits[::-1][: len(facts)]
    assert 0 < len(facts) < 5
    source = table.source()
    reader = FactsReader(history.loaded, partitions_by_spec(source))
    assert facts.keys() | reader.read(history.commits, facts).keys() == set(commits)


def test_the_cache_forgets_the_table_that_was_asked_for_longest_ago() -> None:
    """It holds so many cells, and always the table that was read last."""
    cells = (Cell(Partition("a"), 1, 1, 1),) * 4
    cache = FactsCache(most=12)
    cache.put(("a", None), {1: cells})
    cache.put(("b", None), {1: cells})
    assert cache.known(("a", None))
    cache.put(("c", None), {1: cells})
    assert [bool(cache.known((name, None))) for name in "abc"] == [True, False, True]
    cache.put(("d", None), dict.fromkeys(range(10), cells))
    assert [len(cache.known((name, None))) for name in "acd"] == [0, 0, 10]


@pytest.mark.parametrize(
    ("transform", "kind", "value", "name", "period"),
    [
        ("day", "timestamp", 20_000, "p=2024-10-04", (20_000 * DAY, 20_001 * DAY)),
        ("hour", "timestamp", 480_001, "p=2024-10-04-01", (20_000 * DAY + HOUR, 20_000 * DAY + 2 * HOUR)),
        ("month", "date", 657, "p=2024-10", (19_997 * DAY, 20_028 * DAY)),
        ("year", "date", 54, "p=2024", (19_723 * DAY, 20_089 * DAY)),
        ("identity", "date", 20_000, "p=2024-10-04", (20_000 * DAY, 20_001 * DAY)),
        ("identity", "string", "2024-10-04", "p=2024-10-04", (20_000 * DAY, 20_001 * DAY)),
        ("identity", "timestamptz", NOON * 1_000, "p=2024-10-04 12:00:00+00:00", (NOON, NOON + 1)),
        ("identity", "string", "eu", "p=eu", (None, None)),
        ("identity", "int", 3, "p=3", (None, None)),
        ("bucket[4]", "int", 3, "p=3", (None, None)),
        ("year", "date", 90_000, "p=91970", (None, None)),
        ("day", "timestamp", None, "p=None", (None, None)),
    ],
)
def test_a_partition_tells_its_time(
    transform: str, kind: str, value: Any, name: str, period: tuple[int | None, int | None]
) -> None:
    """By the transform, or the type of an identity; what is no time has none."""
    spec = {"spec-id": 0, "fields": [{"name": "p", "transform": transform, "source-id": 9, "field-id": 1000}]}
    schema = {"schema-id": 0, "type": "struct", "fields": [{"id": 9, "name": "c", "type": kind, "required": False}]}
    source = Table().source(**{"partition-specs": [spec], "schemas": [schema]})
    found = partitions_by_spec(source)(entry(partition={"p": value}), 0)
    assert found == Partition(name, *period)


def test_bounds_tell_the_time_of_a_file() -> None:
    """To the minute; a file without bounds has none, and only dates and timestamps will do."""
    fields = [
        {"id": n, "name": kind, "type": kind, "required": False} for n, kind in enumerate(("timestamp", "int"), 1)
    ]
    source = Table().source(schemas=[{"schema-id": 0, "type": "struct", "fields": fields}])
    field_id, partition_of = time_column(source, "timestamp")
    bound = (NOON * 1_000 + 1).to_bytes(8, "little")
    found = partition_of(entry(lower_bounds={field_id: bound}, upper_bounds={field_id: bound}), 0)
    assert (found.start, found.end) == (NOON, NOON + 60_000)
    assert partition_of(entry(), 0).end is None
    with pytest.raises(RequestInvalid, match="needs a date"):
        time_column(source, "int")


def commit(number: int, at: int, operation: Operation = Operation.APPEND) -> RangeSnapshot:
    """Return a commit."""
    return RangeSnapshot(number, operation, {}, has_row_ids=False, timestamp_ms=at)


def day(days: int, rows: int = 1) -> Cell:
    """Return what a commit did to the partition of a day, counted from that of ``NOON``."""
    start = NOON // DAY * DAY + days * DAY
    return Cell(Partition(f"day={days}", start, start + DAY), 1, rows, 10 * rows)


def checkpoint(snapshot_id: int, at: int, pending: Pending | None = None) -> Checkpoint:
    """Return a checkpoint."""
    return Checkpoint("uuid", snapshot_id, 0, None, 0, at, pending)


def letters(commits: list[RangeSnapshot], facts: Mapping[int, Cells], reader: Reader | None) -> list[str]:
    """Return the cells of each row."""
    return [row.cells for row in change_map(commits[::-1], facts, reader, slice(100)).rows]


def test_a_map_shows_what_each_commit_is_to_a_consumer() -> None:
    """Committed, open, pending, late, replaced or refused."""
    commits = [
        commit(1, NOON),
        commit(2, NOON, Operation.REPLACE),
        commit(3, NOON),
        commit(4, NOON),
        commit(5, NOON, Operation.OVERWRITE),
    ]
    facts = {number: (day(0), day(-1)) for number in range(1, 6)}
    reader = Reader(checkpoint(1, NOON), checkpoint(3, NOON))
    assert letters(commits, facts, reader) == ["cropx", "Lrolx"]
    everything = Reader(checkpoint(1, NOON), None, frozenset(Operation))
    assert letters(commits, facts, everything) == ["crppp", "Lrlll"]
    assert letters(commits, facts, None) == ["crccc", "LrLLL"]


def test_a_checkpoint_may_lie_inside_a_commit_or_before_all_that_are_shown() -> None:
    """What is left of a commit is pending; an expired one is placed by its time."""
    commits = [commit(number, NOON + number) for number in (1, 2, 3)]
    facts = {number: (day(0),) for number in (1, 2, 3)}
    partly = Reader(checkpoint(2, NOON + 2, Pending(PendingOf.ADDED, 1)))
    assert letters(commits, facts, partly) == ["cpp"]
    assert letters(commits, facts, Reader(checkpoint(99, NOON + 1))) == ["cpp"]
    assert letters(commits, facts, Reader()) == ["ppp"]
    drawn = change_map(commits[::-1], {1: facts[1]}, Reader(), slice(100))
    assert (drawn.checkpoint_column, drawn.unread) == (-1, 2)
    assert [row.cells for row in drawn.rows] == ["p??"]
    done = change_map(commits[::-1], facts, Reader(checkpoint(3, NOON + 3)), slice(100))
    assert done.checkpoint_column == 2


def test_more_than_400_commits_are_shown_by_day() -> None:
    """What matters most of a day is shown; partitions of no time come last, and not all are shown."""
    commits = [commit(number, NOON + number % 5 * DAY + number) for number in range(500)]
    commits.sort(key=lambda step: step.timestamp_ms)
    facts: dict[int, Cells] = {step.snapshot_id: (day(0), Cell(Partition("none"), 1, 1, 1)) for step in commits}
    last_of_first_day = commits[99]
    reader = Reader(checkpoint(last_of_first_day.snapshot_id, last_of_first_day.timestamp_ms))
    drawn = change_map(commits[::-1], facts, reader, slice(1))
    assert drawn.is_by_day
    assert [(column.commits, column.at % DAY) for column in drawn.columns] == [(100, 0)] * 5
    assert [(row.partition, row.cells, row.rows) for row in drawn.rows] == [("day=0", "cllll", 500)]
    assert (drawn.partitions, drawn.checkpoint_column) == (2, 0)
    older = change_map(commits[::-1], facts, reader, slice(1, 3))
    assert [row.partition for row in older.rows] == ["none"]
    some = {step.snapshot_id: facts[step.snapshot_id] for step in commits[50:400]}
    partly = change_map(commits[::-1], some, reader, slice(1))
    assert [row.cells for row in partly.rows] == ["clll?"]


def test_lateness_counts_rows_by_their_delay() -> None:
    """Compaction brings no rows; an event ahead of its commit is not late."""
    commits = [commit(1, NOON), commit(2, NOON, Operation.REPLACE), commit(3, NOON)]
    facts: dict[int, Cells] = {
        1: (day(0, 60), day(1, 10), day(-2, 20)),
        2: (day(-9, 1_000),),
        3: (day(-10, 10), Cell(Partition("none"), 1, 7, 1)),
    }
    found = lateness(commits, facts)
    assert (found.commits, found.rows, found.late_rows, found.unknown_rows) == (2, 100, 30, 7)
    assert found.misses_none_days == 10
    missed = {one.days: (one.missed_rows, one.missed_share) for one in found.lookbacks}
    assert (missed[1], missed[3], missed[10]) == ((30, 0.3), (10, 0.1), (0, 0.0))
    assert {one.days: one.times_re_read for one in found.lookbacks}[3] == 2.3
    assert [(point.within_ms // HOUR, point.share_at_least, point.share_at_most) for point in found.curve] == [
        (0, 0.1, 0.7),
        (12, 0.7, 0.7),
        (36, 0.7, 0.9),
        (60, 0.9, 0.9),
        (228, 0.9, 1.0),
        (252, 1.0, 1.0),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 9), st.integers(0, 40)), max_size=30),
    st.integers(0, 40),
    st.integers(0, 45),
)
def test_any_lookback_is_counted(arrivals: list[tuple[int, int, int]], month: int, lookback: int) -> None:
    """Not taken from another one: a day is missed once it is no longer read, and read again on each day until then."""
    commits = [commit(number, NOON + number * DAY) for number in range(13)]
    start = NOON // DAY * DAY - month * DAY
    whole = Cell(Partition("month", start, start + 31 * DAY), 1, 3, 1)
    facts: dict[int, Cells] = dict.fromkeys(range(13), ())
    for number, rows, ago in arrivals:
        facts[number] += (day(number - ago, rows),)
    facts[5] += (whole,)
    found = lateness(commits, facts, lookback).lookback
    assert found is not None
    newest, oldest = max(0, 5 + month - 30), 5 + month
    delays = [(ago, ago, rows) for _, rows, ago in arrivals] + [(newest, oldest, 3)]
    total = sum(rows for _, _, rows in delays)
    assert found.days == lookback
    assert found.missed_rows == sum(rows for least, _, rows in delays if least > lookback)
    assert found.missed_rows_at_most == sum(rows for _, most, rows in delays if most > lookback)
    assert found.missed_share == round(found.missed_rows / total, 6)
    again = sum(rows for least, _, rows in delays for _ in range(least, lookback))
    assert found.times_re_read == round(again / total, 2)


def test_the_curve_has_at_most_200_points() -> None:
    """The first and the last among them."""
    commits = [commit(number, NOON + number * 60_000) for number in range(1_000)]
    found = lateness(commits, {number: (day(-1),) for number in range(1_000)})
    assert len(found.curve) == 200
    assert (found.curve[0].within_ms, found.curve[-1].share_at_least) == (0, 1.0)


def test_without_rows_there_is_no_curve() -> None:
    """Nor anything that a lookback could miss."""
    found = lateness([], {})
    assert (found.rows, found.curve, found.lookbacks, found.misses_none_days) == (0, (), (), None)
    assert found.lookback is None


def sample(at: int, expires_at: int | None, commits: int = 1) -> LagSample:
    """Return a sample."""
    return LagSample("demo.daily", NAME, at, commits, 1, 1, 1, 0, 0, expires_at)


def test_a_consumer_that_stands_still_is_too_late_when_its_history_expires() -> None:
    """One that is slower than time meets the end later, one that keeps up never does."""
    age = 10 * DAY
    still = [sample(number * HOUR, 20 * DAY) for number in range(24)]
    assert forecast(still, age, 23 * HOUR) == 20 * DAY - 23 * HOUR
    half = [sample(number * HOUR, 20 * DAY + number * HOUR // 2) for number in range(24)]
    assert forecast(half, age, 23 * HOUR) == pytest.approx(2 * (half[-1].expires_at or 0) - 2 * 23 * HOUR, rel=1e-6)
    assert forecast([sample(number * HOUR, number * HOUR + age) for number in range(24)], age, 0) is None
    assert forecast([sample(HOUR, None)], age, HOUR) is None
    assert forecast([], age, HOUR) is None
    assert forecast([sample(HOUR, 0)], age, HOUR) == 0


def test_history_that_ends_before_two_more_commits_is_critical() -> None:
    """By the usual interval between commits; what is gone is critical in any case."""
    assert Behind(sample(0, 2 * HOUR), HOUR + 1, 0).is_critical
    assert not Behind(sample(0, 2 * HOUR), HOUR, 0).is_critical
    assert Behind(sample(0, 0), None, 0).is_critical
    assert not Behind(sample(0, None), HOUR, 0).is_critical


def test_the_usual_interval_is_the_median() -> None:
    """Of the newest commits; one commit has none."""
    table = Table()
    table.append([1])
    assert usual_interval(facts_of(table)[0]) is None
    for _ in range(3):
        table.append([1])
    assert usual_interval(facts_of(table)[0]) == 1_000
