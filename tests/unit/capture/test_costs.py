"""How much of a table's metadata a capture reads: it follows the change, whatever the size of table and history."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.merge_on_read import MergeOnRead

from calve.capture import CaptureLimits, Operation, Wanted
from calve.capture.changes import TableChange, find_change
from calve.capture.delete_scopes import Partitions
from calve.capture.file_search import PathSearch
from calve.capture.lag import Backlog
from calve.capture.model import Pending, PendingOf, StoredCheckpoint

EVERYTHING = Wanted(operations=frozenset(Operation))
DAY = 1


def _change(table: MergeOnRead, start: int, wanted: Wanted = EVERYTHING) -> tuple[TableChange, int, int]:
    """Return a change, and how many manifest lists and manifests were read for it."""
    source = table.source()
    table.memory.read_paths.clear()
    change = find_change(source, source.checkpoint(start), wanted)
    lists = sum("/snap-" in path for path in table.memory.read_paths)
    return change, lists, sum(path.endswith("-m.avro") for path in table.memory.read_paths)


def _by_day(files: int, version: int, root: str = "/t") -> MergeOnRead:
    """Return a table with a manifest for each ten files of a day."""
    table = MergeOnRead(version=version, root=root)
    for day in range(files // 10):
        table.append([(DAY, (day,), 9)] * 10)
    return table


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("root", ["/t", "s3://lake/t"])
def test_a_deleted_row_costs_the_same_in_a_larger_table(version: int, root: str) -> None:
    """Of the data manifests, only that of the delete's partition is read; of the deletes before, only its own."""
    reads = []
    for files in (50, 500):
        table = _by_day(files, version, root)
        paths = list(table.data)
        table.delete_rows({path: [0] for path in paths[::3]})
        start = table.snapshots[-1]["snapshot-id"]
        table.delete_rows({paths[12]: [3]})
        change, *counts = _change(table, start)
        assert change.deleted_records == 1
        reads.append(counts)
    assert reads[0] == reads[1]


def test_a_file_that_is_not_where_its_delete_says_is_found() -> None:
    """A writer that wrote the wrong partition costs time, and no row."""
    table = _by_day(100, 2)
    start = table.snapshots[-1]["snapshot-id"]
    path = list(table.data)[42]
    (delete,) = table._position_deletes({path: frozenset({1})}, "partition")
    table.commit("overwrite", added_deletes=[replace(delete, partition=(99_999,))])
    change, _, _ = _change(table, start)
    assert [item.entry.file_path for item in change.removed] == [path]


def test_a_delete_of_a_file_that_came_and_went_reads_no_more() -> None:
    """A compaction leaves position deletes of v2 behind, which name a file that nobody has."""
    table = _by_day(200, 2)
    start = table.snapshots[-1]["snapshot-id"]
    table.append([(DAY, (3,), 9)])
    path = list(table.data)[-1]
    table.delete_rows({path: [0]})
    table.rewrite([path])
    change, _, manifests = _change(table, start)
    assert (change.deleted_records, change.files) == (0, 1)
    assert manifests < 8


def test_a_long_history_of_appends_needs_few_manifest_lists() -> None:
    """A later list shows what earlier appends wrote, also where compaction took some of it away."""
    table = MergeOnRead()
    table.append([(DAY, (0,), 1)])
    for number in range(200):
        if number % 20 == 0:
            table.merge_manifests(DAY)
        table.append([(DAY, (number // 20,), 1)])
    table.rewrite(list(table.data)[100:110])
    change, lists, _ = _change(table, 1_000_000)
    assert change.files == 200
    assert lists <= 3
    table.delete_rows({next(iter(table.data)): [0]})
    change, lists, _ = _change(table, 1_000_000)
    assert change.deleted_records == 1
    assert lists <= 3
    limited = Wanted(operations=frozenset(Operation), limits=CaptureLimits(max_files=150))
    change, lists, _ = _change(table, 1_000_000, limited)
    assert change.files == 150
    assert lists <= 4


@pytest.mark.parametrize("key", ["added-data-files", "deleted-data-files"])
def test_a_summary_that_does_not_add_up_is_not_believed(key: str) -> None:
    """What a writer left out of its counts is found in the manifests."""
    table = _by_day(100, 2)
    start = table.snapshots[-1]["snapshot-id"]
    gone = list(table.data)[3]
    if key == "added-data-files":
        table.append([(DAY, (1,), 9)])
        table.rewrite(list(table.data)[-1:])
    else:
        table.remove([gone])
    del table.snapshots[10]["summary"][key]
    change, _, _ = _change(table, start)
    if key == "added-data-files":
        assert change.files == 1
    else:
        assert gone in {item.entry.file_path for item in change.removed}


def test_lists_of_a_remote_table_are_read_several_at_once() -> None:
    """Where compaction follows each append, each has a list of its own to be read."""
    table = MergeOnRead(root="s3://lake/t")
    table.append([(DAY, (0,), 1)])
    for _ in range(30):
        table.append([(DAY, (0,), 1)])
        table.rewrite(list(table.data)[-1:])
    change, lists, _ = _change(table, 1_000_000)
    assert (change.files, lists) == (30, 31)


def test_blocks_are_told_apart_by_the_paths_in_them() -> None:
    """Few paths are looked for one by one, many by what they have in common."""
    paths = [f"/t/data/{number:03d}.parquet" for number in range(50)]
    for some in (paths[:2], paths):
        search = PathSearch(some)
        assert search(b"\x30" + some[-1].encode() + b"\x0ePARQUET")
        assert not search(b"\x30/t/data/999.parquet\x0ePARQUET")
        assert some[0] in search
    assert PathSearch([f"{number}/x" for number in range(50)])(b"anything")


def test_a_damaged_summary_rules_nothing_out() -> None:
    """A bound that cannot be decoded says nothing about a partition."""
    table = _by_day(20, 2)
    source = table.source()
    row = source.manifest_list(table.snapshots[-1]["snapshot-id"])[0]
    where = Partitions(source, [(DAY, (7,))])
    assert not where.may_list(row)
    assert row.partitions is not None
    for bound in (b"", b"abc", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"):
        damaged = row._replace(partitions=(row.partitions[0]._replace(lower_bound=bound),))
        assert where.may_list(damaged)
    assert where.may_list(row._replace(partitions=None))
    assert not Partitions(source, [(2, (0, "a"))]).may_list(row)


def test_a_promoted_date_is_compared_with_nothing() -> None:
    """A column that was a date and is a timestamp has partitions in days and in microseconds."""
    table = _by_day(20, 2)
    document = table.document()
    fields = [{**one, "type": "timestamp"} if one["name"] == "day" else one for one in document["schemas"][0]["fields"]]
    source = table.source(schemas=[*document["schemas"], {"type": "struct", "schema-id": 1, "fields": fields}])
    assert Partitions(source, [(DAY, (7,))]).may_hold(DAY, (604_800_000_000,))
    assert not Partitions(table.source(), [(DAY, (7,))]).may_hold(DAY, (604_800_000_000,))


def test_many_partitions_are_ruled_out_field_by_field() -> None:
    """More of them than are compared one by one."""
    source = _by_day(20, 2).source()
    row = source.manifest_list(source.head or 0)[0]
    assert not Partitions(source, [(DAY, (day,)) for day in range(100, 300)]).may_list(row)
    assert Partitions(source, [(DAY, (day,)) for day in range(300)]).may_list(row)


def test_the_consumers_of_a_table_share_what_is_read() -> None:
    """The history is walked once, and the manifests of a part that a limit left are read once."""
    table = _by_day(100, 2)
    source = table.source()
    backlog = Backlog(source)
    table.memory.read_paths.clear()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    first = 1_000_003
    for taken in (2, 2, 7):
        start = source.checkpoint(first, Pending(PendingOf.ADDED, taken))
        found = backlog.lag_of(StoredCheckpoint("c", source.name, start, 1, now, "x"), "db.t", now)
        assert (found.pending_commits, found.pending_files) == (7, 60 + 10 - taken)
        assert found.pending_records == 9 * (10 - taken)
    assert len(table.memory.read_paths) == 2
