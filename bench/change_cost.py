"""Does the cost of a capture follow the change, whatever the size of the table, the history, and the consumers?

CPU seconds, the least of a few rounds, over tables that exist as metadata alone: three rows deleted merge-on-read in
tables of 2,000 to 200,000 files; 5,000 snapshots since the checkpoint; the lag of 100 consumers of one table. Run with
``python -m bench.change_cost``; needs no Spark.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import click
from tests.merge_on_read import MergeOnRead

from calve.app import open_captures
from calve.capture import CaptureLimits, Operation, Wanted
from calve.capture.changes import find_change
from calve.lake import Catalog, Lake, metadata
from calve.lake.sql_catalog import SqlCatalog
from calve.settings import embedded, load

EVERYTHING = Wanted(operations=frozenset(Operation))
SIZES = (2_000, 20_000, 200_000)
SNAPSHOTS = 5_000
A_DAY = 100
"""How many files a day has."""
DAY, NONE = 1, 0
"""The partition specs."""


def least(action: Callable[[], Any], rounds: int) -> float:
    """Return the least CPU seconds of some rounds."""
    took = []
    for _ in range(rounds):
        start = time.process_time()
        action()
        took.append(time.process_time() - start)
    return min(took)


def captured(table: MergeOnRead, start: int, wanted: Wanted = EVERYTHING) -> Callable[[], Any]:
    """Return a function that finds what changed after a snapshot, as a new process would."""

    def find() -> Any:
        source = table.source()
        change = find_change(source, source.checkpoint(start), wanted)
        return change.files, change.deleted_records

    return find


def with_deletes(version: int, files: int, spec: int, listed: int, *, old: bool) -> tuple[MergeOnRead, int]:
    """Return a table of many files from which three rows were deleted last, and the snapshot before.

    Args:
        version: the format version.
        files: how many data files it has.
        spec: the partition spec of all.
        listed: how many files a manifest lists.
        old: whether every tenth file had lost a row before, a day at a time.
    """
    table = MergeOnRead(version=version, block=200)
    for first in range(0, files, listed):
        numbers = range(first, min(first + listed, files))
        table.append((spec, (20_000 + number // A_DAY,) if spec == DAY else (), 1_000) for number in numbers)
    paths = list(table.data)
    if old:
        for first in range(0, files, listed):
            table.delete_rows({path: [1] for path in paths[first : first + listed : 10]})
    start = table.snapshots[-1]["snapshot-id"]
    table.delete_rows({paths[files * part // 4 + 5]: [part] for part in (1, 2, 3)})
    return table, start


def long_history(*, merged: int, deleted: bool, compacted: bool) -> tuple[MergeOnRead, int]:
    """Return a table with thousands of appends since a snapshot, and that snapshot; manifests are merged at times."""
    table = MergeOnRead(version=2, block=200)
    table.append([(DAY, (20_000,), 10)])
    start = table.snapshots[-1]["snapshot-id"]
    for number in range(1, SNAPSHOTS + 1):
        if number % merged == 0:
            table.merge_manifests(DAY)
        if compacted and number == SNAPSHOTS // 2:
            table.rewrite(list(table.data)[1:100])
        else:
            table.append([(DAY, (20_000 + number // A_DAY,), 10)])
    if deleted:
        table.delete_rows({next(iter(table.data)): [1]})
    return table, start


def deletes(rounds: int, sizes: tuple[int, ...]) -> None:
    """Print what three deleted rows cost, by the size of the table."""
    for version, spec, listed, old, what in (
        (2, DAY, 1_000, False, "v2, by day, 1,000 files a manifest"),
        (3, DAY, 1_000, False, "v3, by day, 1,000 files a manifest"),
        (2, DAY, 20_000, False, "v2, by day, 20,000 files a manifest"),
        (3, DAY, 1_000, True, "v3, by day, a tenth with earlier deletes"),
        (2, DAY, 1_000, True, "v2, by day, a tenth with earlier deletes"),
        (2, NONE, 1_000, False, "v2, no partitions"),
    ):
        click.echo(f"\nthree rows deleted: {what}")
        for files in sizes:
            table, start = with_deletes(version, files, spec, listed, old=old)
            find = captured(table, start)
            assert find()[1] == 3  # noqa: S101 - a measurement of a wrong answer is none
            table.memory.read_paths.clear()
            find()
            reads = len(table.memory.read_paths)
            head = table.snapshots[-1]["snapshot-id"]
            lists = least(lambda: (table.source().manifest_list(head), table.source().manifest_list(start)), rounds)  # noqa: B023
            took = least(find, rounds)
            click.echo(f"  {files:>8,} files: {took:7.3f} CPU s, {reads:>6,} reads; two lists {lists:.3f}")


def histories(rounds: int) -> None:
    """Print what thousands of snapshots since the checkpoint cost."""
    limited = Wanted(operations=frozenset(Operation), limits=CaptureLimits(max_files=SNAPSHOTS - 500))
    for merged, deleted, compacted, wanted, what in (
        (25, False, False, EVERYTHING, "appends, merged"),
        (25, False, True, EVERYTHING, "appends, and one compaction"),
        (25, True, False, EVERYTHING, "appends, and a deleted row"),
        (25, False, False, limited, "appends, all but 500 of the files"),
        (SNAPSHOTS // 5, False, False, EVERYTHING, "appends, seldom merged"),
    ):
        table, start = long_history(merged=merged, deleted=deleted, compacted=compacted)
        find = captured(table, start, wanted)
        files, _ = find()
        table.memory.read_paths.clear()
        find()
        lists = sum("/snap-" in path for path in table.memory.read_paths)
        reads = len(table.memory.read_paths) - lists
        click.echo(
            f"  {what:<36}{files:>6,} files: {least(find, rounds):7.3f} CPU s, {lists:>5,} lists, {reads:>5,} manifests"
        )


@contextmanager
def counted(*owners: tuple[Any, str]) -> Iterator[dict[str, int]]:
    """Count the calls of some functions."""
    calls: dict[str, int] = {}
    with ExitStack() as stack:
        for owner, name in owners:
            real = getattr(owner, name)

            def call(*arguments: Any, _real: Any = real, _name: str = name, **options: Any) -> Any:
                calls[_name] = calls.get(_name, 0) + 1
                return _real(*arguments, **options)

            stack.enter_context(mock.patch.object(owner, name, call))
        yield calls


def lags(rounds: int) -> None:
    """Print what the lag of 100 consumers costs, beside that of one."""
    with tempfile.TemporaryDirectory(prefix="calve-bench-") as folder:
        settings = embedded(Path(folder), load())
        table = MergeOnRead(version=2, root=f"{folder}/t")
        for number in range(1_000):
            if number % 25 == 0:
                table.merge_manifests(DAY)
            table.append([(DAY, (20_000 + number // A_DAY,), 10)])
        for path, content in table.memory.contents.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
        place = Path(folder) / "t/metadata/00000-a.metadata.json"
        place.write_bytes(metadata.encode(table.document() | {"refs": {}}))
        lake = Lake(settings)
        lake.catalog(lake.default_catalog).register(lake.parse("db.t"), str(place))
        with open_captures(settings) as captures:
            for number in range(100):
                at = table.snapshots[(number + 1) * 9]["snapshot-id"]
                captures.set_checkpoint("db.t", f"c{number:02d}", str(at), "the benchmark starts here")
            one = least(lambda: captures.lag("c00"), rounds)
            every = least(captures.lag, rounds)
            watched = ((SqlCatalog, "load"), (SqlCatalog, "locations"), (Catalog, "_read"), (metadata, "decode"))
            with counted(*watched) as calls:
                assert len(captures.lag()) == 100  # noqa: S101
            click.echo(f"  one {one:.4f} CPU s, 100 {every:.4f}, ratio {every / one:.1f}; {calls}")
        lake.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=200_000, help="leave out larger tables")
    parser.add_argument("--part", choices=("deletes", "histories", "lags"), help="only this one")
    options = parser.parse_args()
    if options.part in (None, "deletes"):
        deletes(options.rounds, tuple(size for size in SIZES if size <= options.most))
    if options.part in (None, "histories"):
        click.echo(f"\n{SNAPSHOTS:,} snapshots since the checkpoint")
        histories(options.rounds)
    if options.part in (None, "lags"):
        click.echo("\nlag of one consumer of a table of 1,000 snapshots, and of 100")
        lags(options.rounds)


if __name__ == "__main__":
    main()
