"""What Spark's plans and columns tell."""

import subprocess
import sys

import pytest

import calve
from calve.errors import RequestInvalid
from calve.merging import statistics
from calve.merging.execution import MergeLog, MergePart

_SCAN = """*(1) Project [id#1L]
+- *(1) Filter isnotnull(id#1L)
   +- *(1) BatchScan lake.db.src[id#1L] IcebergScan(table=lake.db.src)"""
_WINDOW = f"AdaptiveSparkPlan isFinalPlan=false\n+- Window [row_number()]\n   +- Exchange hashpartitioning(id)\n{_SCAN}"


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (_SCAN, False),
        (f"*(2) BroadcastHashJoin\n   :- BroadcastExchange Hashed\n{_SCAN}", False),
        (_WINDOW, True),
        (f"HashAggregate(keys=[id])\n{_SCAN}", True),
        (f"ArrowEvalPython [f(id)]\n{_SCAN}", True),
        ("Project [rand(5) AS x]\n+- Range (0, 10)", True),
        ("InMemoryTableScan [id]\n   +- InMemoryRelation\n         +- Exchange hashpartitioning(id)", False),
        ("BroadcastHashJoin\n:- InMemoryTableScan\n:     +- InMemoryRelation\n:           +- Sort\n+- Window", True),
    ],
)
def test_a_source_is_kept_where_reading_it_again_would_cost(*, plan: str, expected: bool) -> None:
    """Rows that are exchanged, computed together or by chance are computed once; others are cheap to read again."""
    assert statistics.is_worth_keeping(plan) is expected


@pytest.mark.parametrize(
    ("described", "expected"),
    [
        ([("id", "bigint"), ("Part 1", "int"), ("", ""), ("# Detailed Table Information", "")], ()),
        (
            [("id", "bigint"), ("# Partitioning", ""), ("Part 0", "days(at)"), ("Part 1", "day")],
            ("days(at)", "day"),
        ),
        (
            [("# Partition Information", ""), ("# col_name", "data_type"), ("day", "date"), ("k", "int"), ("", "")],
            ("day", "k"),
        ),
    ],
)
def test_partitions_are_reported_in_two_ways(described: list[tuple[str, str]], expected: tuple[str, ...]) -> None:
    """Spark has a form of its own for tables that are partitioned by columns as such."""
    assert statistics.partitioning(described) == expected


def test_a_source_that_reads_the_target_is_noticed() -> None:
    """And one that reads a table with a similar name is not."""
    assert statistics.reads(_SCAN, "lake.db.src")
    assert not statistics.reads(_SCAN, "lake.db.sr")
    assert not statistics.reads(_SCAN, "db.src")


def test_names_are_spelt_like_the_columns() -> None:
    """Spark does not mind upper and lower case, so neither do keys."""
    assert statistics.named_like(["ID"], {"Id": "bigint"}, "db.t") == ("Id",)
    with pytest.raises(RequestInvalid, match=r"db.t has no column x"):
        statistics.named_like(["x"], {"Id": "bigint"}, "db.t")


def test_the_journal_tells_each_part_with_its_seconds() -> None:
    """As it happens, one line each."""
    lines: list[str] = []
    ticks = iter([1.0, 3.5])
    journal = MergeLog(lines.append, lambda: next(ticks))
    with journal.part("merged") as tell:
        tell(3, "3 rows updated")
    assert lines == ["  merged    3 rows updated (2.5 s)"]
    assert journal.parts == [MergePart("merged", 3, 2.5)]


def test_calve_offers_merge_without_importing_it() -> None:
    """``import calve`` stays cheap, ``calve.merge`` is there when it is asked for, and nothing else is made up."""
    script = "import sys, calve; print([m for m in ('calve.merging', 'pyspark', 'pyarrow') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
    assert callable(calve.merge)
    with pytest.raises(AttributeError, match="No calve attribute nothing"):
        calve.nothing  # type: ignore[attr-defined]  # noqa: B018
