"""How fast is a capture, against what Spark and PyIceberg offer for the same question?

Run by ``make bench``. Builds tables of 100, 1,000 and 10,000 added files in a temporary folder, asks each peer for the
change of the same range in the same run, and prints milliseconds and ratios. Every peer is warm: Spark runs already,
and each figure is the median of a few runs.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from calve.app import open_captures
from calve.capture import Captures, Wanted
from calve.lake import Lake
from calve.lake.spark import session
from calve.settings import Settings, embedded, load

RANGES = ("id", "day")
CONSUMER = "bench"


@dataclass(frozen=True, slots=True)
class Case:
    """A table with so many files in so many snapshots after its first one."""

    files: int
    snapshots: int

    @property
    def table(self) -> str:
        """The table's name."""
        return f"bench.added_{self.files}"


CASES = (Case(100, 10), Case(1_000, 50), Case(10_000, 100))


def timed(action: Callable[[], Any], *, runs: int) -> float:
    """Return the median of some runs, in milliseconds."""
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        action()
        took.append((time.perf_counter() - start) * 1000)
    return statistics.median(took)


class Tables:
    """Makes tables of many tiny files, by PyIceberg: no figure depends on how."""

    def __init__(self, lake: Lake, folder: Path) -> None:
        self._catalog = lake.catalog(lake.default_catalog).pyiceberg()
        self._folder = folder
        self._made = 0
        self._catalog.create_namespace_if_not_exists("bench")

    def create(self, name: str, *, partitioned: bool = True) -> Any:
        """Create an empty table of events, partitioned by day."""
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.schema import Schema
        from pyiceberg.transforms import IdentityTransform
        from pyiceberg.types import DateType, DoubleType, LongType, NestedField, StringType

        schema = Schema(
            NestedField(1, "id", LongType()),
            NestedField(2, "day", DateType()),
            NestedField(3, "country", StringType()),
            NestedField(4, "watched", DoubleType()),
        )
        spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day")) if partitioned else PartitionSpec()
        return self._catalog.create_table(name, schema, partition_spec=spec, properties={"format-version": "2"})

    def append(self, table: Any, files: int) -> None:
        """Add one snapshot of so many files, all of one day."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        day = self._made // 100 % 365
        paths = []
        for _ in range(files):
            ids = [self._made * 10 + i for i in range(10)]
            rows = pa.table(
                {
                    "id": pa.array(ids, pa.int64()),
                    "day": pa.array([day + 20_000] * 10, pa.date32()),
                    "country": ["NL", "DE", "FR", "BR", "US"] * 2,
                    "watched": [float(i % 97) for i in ids],
                }
            )
            path = self._folder / f"{self._made:06d}.parquet"
            pq.write_table(rows, path)
            paths.append(str(path))
            self._made += 1
        table.add_files(paths, check_duplicate_files=False)


@contextmanager
def project() -> Iterator[tuple[Settings, Path]]:
    """Yield settings for an empty lake in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="calve-bench-") as folder:
        yield embedded(Path(folder), load()), Path(folder)


def ours(captures: Captures, table: str, ranges: tuple[str, ...], *, runs: int) -> float:
    """Return how long a capture takes, record and all."""
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        change = captures.capture([table], CONSUMER, Wanted(ranges=ranges))
        took.append((time.perf_counter() - start) * 1000)
        captures.abandon(str(change.capture_id))
    return statistics.median(took)


def compare(spark: Any, captures: Captures, lake: Lake, case: Case, first: int) -> dict[str, float]:
    """Return the milliseconds of everybody for one table."""
    name, start = case.table, first
    plain = lake.catalog(lake.default_catalog).pyiceberg()

    def changelog() -> None:
        spark.sql(
            f"CALL lake.system.create_changelog_view(table => '{name}', changelog_view => 'changes', "
            f"options => map('start-snapshot-id', '{start}'))"
        )
        spark.sql("SELECT count(1), sum(id) FROM changes").collect()

    def incremental() -> None:
        frame = spark.read.format("iceberg").option("start-snapshot-id", str(start)).load(name)
        frame.createOrReplaceTempView("added")
        spark.sql("SELECT count(1), sum(id) FROM added").collect()

    def planner() -> None:
        list(plain.load_table(name).incremental_append_scan(from_snapshot_id_exclusive=start).plan_files())

    change = captures.capture([name], CONSUMER)
    relation = change.tables[0].relation
    truth = spark.sql(f"SELECT count(1), sum(id) FROM {relation}").collect()
    changelog()
    if truth != spark.sql("SELECT count(1), sum(id) FROM changes").collect():
        raise SystemExit(f"{name}: the capture and the changelog view disagree")
    read = timed(lambda: spark.sql(f"SELECT count(1), sum(id) FROM {relation}").collect(), runs=3)
    captures.abandon(str(change.capture_id))
    return {
        "capture": ours(captures, name, (), runs=7),
        "capture with two ranges": ours(captures, name, RANGES, runs=5),
        "PyIceberg planner": timed(planner, runs=3),
        "Spark incremental read, count and sum": timed(incremental, runs=3),
        "create_changelog_view, count and sum": timed(changelog, runs=3),
        "(reading the ICDC table, count and sum)": read,
    }


def against_table_size(captures: Captures, tables: Tables) -> dict[str, float]:
    """Return the cost of capturing 100 files from a small and from a large table."""
    found = {}
    for total in (1_000, 20_000):
        name = f"bench.total_{total}"
        table = tables.create(name)
        for _ in range(total // 500):
            tables.append(table, 500)
        captures.set_checkpoint(name, CONSUMER, "latest", "the benchmark starts here")
        tables.append(table, 100)
        found[f"100 of {total}"] = ours(captures, name, (), runs=15)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--files", type=int, default=10_000, help="leave out cases with more files")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    with project() as (settings, folder), open_captures(settings) as captures:
        lake = Lake(settings)
        tables = Tables(lake, folder)
        (folder / "data").mkdir()
        spark = session(settings, "bench")
        for case in CASES:
            if case.files > options.files:
                continue
            click.echo(f"making {case.table} …", err=True)
            table = tables.create(case.table)
            tables.append(table, 1)
            captures.set_checkpoint(case.table, CONSUMER, "latest", "the benchmark starts here")
            first = captures.checkpoints(CONSUMER)[-1].checkpoint.snapshot_id
            for _ in range(case.snapshots):
                tables.append(table, case.files // case.snapshots)
            click.echo(f"measuring {case.table} …", err=True)
            results[str(case.files)] = compare(spark, captures, lake, case, int(first or 0))
        click.echo("making tables of 1,000 and 20,000 files …", err=True)
        results["table size"] = against_table_size(captures, tables)
        spark.stop()
        lake.close()
    show(results, as_json=options.json)


def show(results: dict[str, Any], *, as_json: bool) -> None:
    """Print milliseconds, and how many times slower than ours each is."""
    if as_json:
        click.echo(json.dumps(results))
        return
    for files, figures in results.items():
        if files == "table size":
            continue
        click.echo(f"\n{int(files):,} added files{'ms':>34}{'× capture':>12}{'× with ranges':>16}")
        for name, took in figures.items():
            by_plain, by_ranges = took / figures["capture"], took / figures["capture with two ranges"]
            click.echo(f"  {name:<42}{took:>9,.1f}{by_plain:>12,.1f}{by_ranges:>16,.1f}")
    small, large = results["table size"].values()
    click.echo(
        f"\n100 added files, table of 1,000: {small:.1f} ms; of 20,000: {large:.1f} ms; ratio {large / small:.2f}"
    )


if __name__ == "__main__":
    main()
