"""calve.merge gives what MERGE gives."""

import random
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.tables import quick_session

import calve
from calve.errors import RequestInvalid, SourceUnstable, TableMissing
from calve.merging import Merged, plans, statistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

_COLUMNS = "id BIGINT, day DATE, at TIMESTAMP, name STRING, n BIGINT"
_MODES = {2: "copy-on-write", 3: "merge-on-read"}
_PARTITIONS = ("", "day", "days(at)", "bucket(3, id)", "name", "truncate(2, name)")
_KEYS = (("id",), ("id", "day"), ("id", "at"), ("name", "id"), ("day",))
_ADD = {"n": "coalesce(t.n, 0) + coalesce(s.n, 0)", "name": "s.name"}
_WHATS: tuple[dict[str, Any], ...] = (
    {},
    {"when_matched": "ignore"},
    {"when_matched": "delete"},
    {"when_not_matched": "ignore"},
    {"when_matched": _ADD},
    {"when_matched": _ADD, "delete_when": "t.n + s.n = 0"},
    {"delete_when": "s.n < 0"},
)
Row = tuple[Any, ...]


@dataclass
class Twins:
    """Two tables with the same rows: calve merges into one, MERGE into the other."""

    spark: "SparkSession"
    one: str
    other: str

    def rows(self, name: str) -> Counter[Row]:
        """Return a table's rows, counted."""
        return Counter(tuple(row) for row in self.spark.sql(f"SELECT * FROM {name}").collect())

    def run(self, statement: str) -> None:
        """Run a statement on both; ``{t}`` is the table."""
        for name in (self.one, self.other):
            self.spark.sql(statement.replace("{t}", name))

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Let all writes go to a branch, and publish it in the end."""
        name = f"b{uuid.uuid4().hex[:6]}"
        self.run(f"ALTER TABLE {{t}} CREATE BRANCH IF NOT EXISTS {name}")
        self.spark.conf.set("spark.wap.branch", name)
        try:
            yield
        finally:
            self.spark.conf.unset("spark.wap.branch")
        for table in (self.one, self.other):
            self.spark.sql(f"CALL lake.system.fast_forward('{table}', 'main', '{name}')")
        self.run(f"ALTER TABLE {{t}} DROP BRANCH IF EXISTS {name}")


@pytest.fixture
def merging(spark: "SparkSession") -> "SparkSession":
    """Return a session of the test's own."""
    return quick_session(spark)


def _twins(spark: "SparkSession", version: int, partition: str, identifiers: tuple[str, ...] = ()) -> Twins:
    twins = Twins(spark, f"db.one{uuid.uuid4().hex[:8]}", f"db.other{uuid.uuid4().hex[:8]}")
    mode = _MODES[version]
    properties = ", ".join(f"'write.{what}.mode'='{mode}'" for what in ("merge", "update", "delete"))
    by = f"PARTITIONED BY ({partition})" if partition else ""
    columns = ", ".join(f"{name} {kind}{' NOT NULL' * (name in identifiers)}" for name, kind in _named())
    twins.run(
        f"CREATE TABLE {{t}} ({columns}) USING iceberg {by} "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.wap.enabled'='true', {properties})"
    )
    if identifiers:
        twins.run(f"ALTER TABLE {{t}} SET IDENTIFIER FIELDS {', '.join(identifiers)}")
    return twins


def _values(chance: random.Random, rows: int, days: range) -> list[str]:
    """Return rows as SQL, some of them with nulls."""
    made = []
    for _ in range(rows):
        day = chance.choice(days)
        row = [
            str(chance.randrange(12)),
            f"DATE'2024-03-{day:02}'",
            f"TIMESTAMP'2024-03-{day:02} {chance.choice((0, 12, 23)):02}:59:59.123456'",
            f"'{chance.choice(('ann', 'bob', 'bo’b', 'o”x', chr(92) * 2 + chr(92) + chr(39)))}'",
            str(chance.randrange(-2, 3)),
        ]
        made.append("(" + ", ".join("NULL" if chance.random() < 0.06 else value for value in row) + ")")
    return made


def _frame(spark: "SparkSession", values: list[str], keys: tuple[str, ...]) -> "DataFrame":
    """Return rows with one for each key, but all that have a null in it."""
    types = [column.split() for column in _COLUMNS.split(", ")]
    casts = ", ".join(f"CAST(col{at} AS {kind}) AS {name}" for at, (name, kind) in enumerate(types, 1))
    rows = spark.sql(f"SELECT {casts} FROM VALUES {', '.join(values or ['(NULL, NULL, NULL, NULL, NULL)'])}").collect()
    seen: set[Row] = set()
    unique = []
    for row in rows if values else []:
        key = tuple(row[name] for name in keys)
        if None in key or key not in seen:
            unique.append(row)
        seen.add(key)
    return spark.createDataFrame(unique, _COLUMNS)


def _plain(keys: tuple[str, ...], into: str, what: Mapping[str, Any]) -> str:
    on = " AND ".join(f"t.{key} = s.{key}" for key in keys)
    clauses = []
    if what.get("deletes") is not None:
        clauses.append("WHEN MATCHED AND s.gone THEN DELETE")
    if "delete_when" in what:
        clauses.append(f"WHEN MATCHED AND {what['delete_when']} THEN DELETE")
    match what.get("when_matched", "update"):
        case "update":
            clauses.append("WHEN MATCHED THEN UPDATE SET *")
        case "delete":
            clauses.append("WHEN MATCHED THEN DELETE")
        case dict() as assigned:
            clauses.append("WHEN MATCHED THEN UPDATE SET " + ", ".join(f"{k} = {v}" for k, v in assigned.items()))
    if what.get("when_not_matched", "insert") == "insert":
        clauses.append("WHEN NOT MATCHED AND NOT coalesce(s.gone, false) THEN INSERT *")
    return f"MERGE INTO {into} t USING source s ON {on} " + " ".join(clauses)


def _both(
    twins: Twins,
    frame: "DataFrame",
    keys: tuple[str, ...],
    what: Mapping[str, Any],
    told: Callable[[str], None] = lambda _: None,
    **more: Any,
) -> Merged:
    """Merge into both tables, and check that they hold the same."""
    from pyspark.sql import functions

    marked = frame.withColumn("gone", functions.lit(False))
    if (deletes := what.get("deletes")) is not None:
        gone = deletes.select(*keys).dropna().distinct().join(frame, list(keys), "left_anti")
        marked = marked.unionByName(gone.withColumn("gone", functions.lit(True)), allowMissingColumns=True)
    marked.createOrReplaceTempView("source")
    merged = calve.merge(twins.spark, into=twins.one, using=frame, keys=keys, log=told, **what, **more)
    twins.spark.sql(_plain(keys, twins.other, what))
    assert twins.rows(twins.one) == twins.rows(twins.other), (keys, what, merged)
    return merged


@pytest.mark.parametrize("seed", range(6))
def test_gives_what_merge_gives(merging: "SparkSession", seed: int) -> None:
    """Any history of merges leaves the rows that MERGE leaves, whatever plan is chosen."""
    chance = random.Random(seed)
    version = 2 + seed % 2
    partition = _PARTITIONS[seed % len(_PARTITIONS)]
    twins = _twins(merging, version, partition)
    if seed != 3:
        twins.run(f"INSERT INTO {{t}} SELECT * FROM VALUES {', '.join(_values(chance, 20, range(1, 4)))}")
    for _ in range(2):
        keys, what = chance.choice(_KEYS), dict(chance.choice(_WHATS))
        frame = _frame(merging, _values(chance, chance.choice((0, 3, 9)), range(2, 6)), keys)
        if chance.random() < 0.4:
            what["deletes"] = _frame(merging, _values(chance, 4, range(1, 6)), keys)
        if chance.random() < 0.7:
            with twins.branch():
                _both(twins, frame, keys, what)
        else:
            _both(twins, frame, keys, what, atomic=chance.random() < 0.5)


def _insert(twins: Twins, rows: str) -> None:
    twins.run(f"INSERT INTO {{t}} SELECT col1, col2, col3, col4, col5 FROM VALUES {rows}")


def _rows(spark: "SparkSession", rows: str) -> "DataFrame":
    columns = ", ".join(f"CAST(col{at} AS {kind}) {name}" for at, (name, kind) in enumerate(_named(), 1))
    return spark.sql(f"SELECT {columns} FROM VALUES {rows}")


def _named() -> list[tuple[str, str]]:
    return [(name, kind) for name, kind in (column.split() for column in _COLUMNS.split(", "))]


def _event(key: int, day: int, n: int = 1) -> str:
    return f"({key}L, DATE'2024-03-{day:02}', TIMESTAMP'2024-03-{day:02} 10:00:00', 'x', {n}L)"


def _late(
    merging: "SparkSession",
    partition: str,
    what: Mapping[str, Any],
    identifiers: tuple[str, ...] = (),
    *,
    version: int = 3,
) -> tuple[Merged, list[str], int]:
    """Merge a new day with two late rows; return also what was told, and how many files hold one row."""
    twins = _twins(merging, version, partition, identifiers)
    _insert(twins, ", ".join(_event(key, day) for day in (1, 2, 3) for key in range(4)))
    change = _rows(merging, ", ".join(_event(key, 4) for key in range(20)) + f", {_event(0, 1, 5)}, {_event(9, 2)}")
    lines: list[str] = []
    with twins.branch():
        merged = _both(twins, change.repartition(3), ("id", "day", "at"), what, told=lines.append)
    small = merging.sql(f"SELECT count(*) FROM {twins.one}.files WHERE content = 0 AND record_count = 1").first()
    assert small is not None
    return merged, [line.split()[0] for line in lines[1:]], small[0]


@pytest.mark.parametrize("partition", ["days(at)", "day"])
def test_a_new_day_is_appended_and_late_rows_are_looked_up(merging: "SparkSession", partition: str) -> None:
    """Only what matches is merged; late rows make one file a partition; each part is told in the log."""
    merged, told, files = _late(merging, partition, {"when_matched": _ADD}, version=2)
    assert (merged.plan, merged.rows, merged.matched, merged.appended) == ("LookUp", 22, 1, 21)
    assert told == ["target", "source", "chosen", "because", "looked", "merged", "appended"]
    assert files == 1  # the one that was appended; the other is in the file that was written anew


@pytest.mark.parametrize("what", [{}, {"when_matched": _ADD}], ids=["update", "expressions"])
@pytest.mark.parametrize("partition", ["days(at)", "day"])
def test_what_matches_is_deleted_and_appended_where_that_is_cheap(
    merging: "SparkSession", partition: str, what: dict[str, Any]
) -> None:
    """MERGE carries whole rows of the target to the writer; a look-up reads them, and a delete the keys alone."""
    merged, told, files = _late(merging, partition, what)
    assert (merged.plan, merged.rows, merged.matched, merged.appended) == ("LookUp", 22, 1, 22)
    assert told == ["target", "source", "chosen", "because", "looked", "deleted", "appended"]
    assert files == 2


def test_identifier_fields_spare_looking_up(merging: "SparkSession") -> None:
    """By them a key matches one row at most, so what has a key of the source is deleted as it is found."""
    merged, told, files = _late(merging, "day", {}, ("id", "day"))
    assert (merged.plan, merged.rows, merged.matched, merged.appended) == ("Replace", 22, 1, 22)
    assert told == ["target", "source", "chosen", "because", "deleted", "appended"]
    assert files == 2


def test_identifier_fields_do_not_make_the_source_unique(merging: "SparkSession") -> None:
    """Two rows of the source that match are refused; merges one after the other see what is deleted already."""
    from pyspark.errors import PySparkException

    twins = _twins(merging, 3, "day", ("id", "day"))
    _insert(twins, ", ".join(_event(key, 1) for key in range(5)))
    for n, expected in ((7, 2), (8, 3)):
        with twins.branch():
            rows = ", ".join(_event(key, 1, n) for key in range(expected)) + f", {_event(n, 1)}"
            merged = _both(twins, _rows(merging, rows), ("id", "day"), {})
        assert (merged.plan, merged.matched, merged.appended) == ("Replace", expected, expected + 1)
    with pytest.raises(PySparkException, match="MERGE_CARDINALITY_VIOLATION"), twins.branch():
        _both(twins, _rows(merging, f"{_event(1, 1, 8)}, {_event(1, 1, 9)}"), ("id", "day"), {})


def test_rows_that_have_one_key_are_all_updated_as_by_merge(merging: "SparkSession") -> None:
    """What is not one to one is not deleted and appended: that would leave one row of two."""
    twins = _twins(merging, 3, "day")
    _insert(twins, f"{_event(1, 1)}, {_event(1, 1)}, {_event(2, 1)}")
    with twins.branch():
        _both(twins, _rows(merging, f"{_event(1, 1, 7)}, {_event(2, 1, 8)}"), ("id", "day"), {})
    assert sorted(row[4] for row in twins.rows(twins.one).elements()) == [7, 7, 8]


def test_an_update_moves_a_row_to_another_partition(merging: "SparkSession") -> None:
    """A key without the partition's column matches in every partition, also when the row's new one is new."""
    twins = _twins(merging, 3, "day")
    _insert(twins, ", ".join(_event(key, day) for key, day in ((1, 1), (2, 2), (3, 3))))
    with twins.branch():
        merged = _both(twins, _rows(merging, f"{_event(1, 9)}, {_event(7, 9)}"), ("id",), {})
    assert (merged.matched, merged.appended) == (1, 2)


def test_nothing_that_can_match_is_a_plain_append(merging: "SparkSession") -> None:
    """A new day, and a target without rows, need no join at all."""
    twins = _twins(merging, 3, "day")
    for day in (1, 2):
        with twins.branch():
            merged = _both(twins, _rows(merging, f"{_event(1, day)}, {_event(2, day)}"), ("id", "day"), {})
        assert (merged.plan, merged.appended) == ("AppendAll", 2)


def test_two_rows_for_one_match_are_refused_as_by_merge(merging: "SparkSession") -> None:
    """None of the two is picked; without a match both are inserted."""
    from pyspark.errors import PySparkException

    twins = _twins(merging, 3, "day")
    _insert(twins, f"{_event(1, 1)}, {_event(2, 1)}")
    twice = _rows(merging, f"{_event(1, 1, 8)}, {_event(1, 1, 9)}")
    with pytest.raises(PySparkException, match="MERGE_CARDINALITY_VIOLATION"), twins.branch():
        _both(twins, twice, ("id", "day"), {})
    assert twins.rows(twins.one)[next(iter(twins.rows(twins.other)))] == 1
    with twins.branch():
        unmatched = _rows(merging, f"{_event(5, 1, 8)}, {_event(5, 1, 9)}, {_event(1, 1, 3)}")
        assert _both(twins, unmatched, ("id", "day"), {}).appended == 3


def test_rows_whose_bounds_cannot_be_written_are_not_lost(
    merging: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name with a quote in it bounds nothing; what lies beyond the target's names is inserted all the same."""
    monkeypatch.setattr(plans, "MOST_BROADCAST", 1)
    twins = _twins(merging, 3, "day")
    _insert(twins, f"{_event(1, 1)}, {_event(2, 1)}")
    names = merging.sql("SELECT 'a' AS name UNION ALL SELECT 'zoe' UNION ALL SELECT 'o\\'brien'")
    change = _rows(merging, _event(1, 1, 9)).drop("name").crossJoin(names).select("id", "day", "at", "name", "n")
    with twins.branch():
        merged = _both(twins, change, ("name", "day"), {})
    assert merged.plan == "MergeSome"
    assert sorted(row[3] for row in twins.rows(twins.one).elements()) == ["a", "o'brien", "x", "x", "zoe"]


def test_deletes_are_taken_in_the_types_of_the_target(merging: "SparkSession") -> None:
    """Keys that come as text are compared as numbers, not by their first digit."""
    twins = _twins(merging, 3, "day")
    _insert(twins, ", ".join(_event(key, 1) for key in (9, 10, 500)))
    gone = merging.sql("SELECT '9' AS id, '2024-03-01' AS day UNION ALL SELECT '500', '2024-03-01'")
    with twins.branch():
        _both(twins, _rows(merging, _event(10, 1, 3)), ("id", "day"), {"deletes": gone})
    assert [row[0] for row in twins.rows(twins.one)] == [10]


def test_columns_may_have_the_names_that_a_merge_uses(merging: "SparkSession") -> None:
    """One called t is not taken for the target, and one called Name does not name it."""
    table = f"db.named{uuid.uuid4().hex[:8]}"
    merging.sql(
        f"CREATE TABLE {table} (t BIGINT NOT NULL, Name STRING, n BIGINT) USING iceberg TBLPROPERTIES "
        "('format-version'='3', 'write.wap.enabled'='true', 'write.delete.mode'='merge-on-read')"
    )
    merging.sql(f"ALTER TABLE {table} SET IDENTIFIER FIELDS t")
    merging.sql(f"INSERT INTO {table} VALUES (1, 'a', 1), (2, 'b', 1), (3, 'c', 1)")
    twins = Twins(merging, table, table)
    with twins.branch():
        changed = calve.merge(merging, into=table, using="SELECT 2L AS t, 'B' AS Name, 5L AS n", keys=["t"])
    assert (changed.plan, changed.matched) == ("Replace", 1)
    with twins.branch():
        read = calve.merge(merging, into=table, using=f"SELECT t, Name, n + 1 AS n FROM {table}", keys=["t"])
    assert "reads the target itself" in read.reason
    assert sorted(map(tuple, twins.rows(table))) == [(1, "a", 2), (2, "B", 6), (3, "c", 2)]


def test_what_is_taken_back_is_subtracted(merging: "SparkSession") -> None:
    """Groups accumulate what came and what left, and go with their last row."""
    twins = _twins(merging, 3, "day")
    _insert(twins, f"{_event(1, 1, 5)}, {_event(2, 1, 3)}")
    change = _rows(merging, f"{_event(1, 1, -2)}, {_event(2, 1, -3)}, {_event(3, 2, 4)}")
    what = {"when_matched": {"n": "t.n + s.n"}, "delete_when": "t.n + s.n = 0"}
    with twins.branch():
        _both(twins, change, ("id", "day"), what)
    assert sorted((row[0], row[4]) for row in twins.rows(twins.one)) == [(1, 3), (3, 4)]


def test_a_source_that_reads_the_target_goes_through_one_merge(merging: "SparkSession") -> None:
    """It would see what is half merged otherwise."""
    twins = _twins(merging, 3, "day")
    _insert(twins, f"{_event(1, 1)}, {_event(2, 1)}")
    using = f"SELECT id + 1 AS id, day, at, name, n FROM {twins.one}"
    with twins.branch():
        merged = calve.merge(merging, into=twins.one, using=using, keys=["id", "day"], log=lambda _: None)
    assert "reads the target itself" in merged.reason
    assert sorted(row[0] for row in twins.rows(twins.one)) == [1, 2, 3]


def test_a_source_that_changes_meanwhile_is_noticed(merging: "SparkSession", monkeypatch: pytest.MonkeyPatch) -> None:
    """What was appended is compared with what was counted."""
    twins = _twins(merging, 3, "day")
    twins.run(f"INSERT INTO {{t}} VALUES {_event(9, 2)}")
    counted = statistics.source
    monkeypatch.setattr(statistics, "source", lambda *of: replace(counted(*of), rows=3, elsewhere=3))
    with pytest.raises(SourceUnstable, match="3 rows were to be appended"), twins.branch():
        _both(twins, _rows(merging, _event(1, 1)), ("id", "day"), {})


def test_a_merge_that_cannot_be_is_refused(merging: "SparkSession") -> None:
    """A missing table and missing columns are named."""
    twins = _twins(merging, 3, "day")
    with pytest.raises(TableMissing, match=r"no table db\.nowhere"):
        calve.merge(merging, into="db.nowhere", using=twins.one, keys=["id"])
    with pytest.raises(RequestInvalid, match="no column nokey"):
        calve.merge(merging, into=twins.one, using=twins.other, keys=["nokey"])
    with pytest.raises(RequestInvalid, match=r"The source has no column day, at, name, n\."):
        calve.merge(merging, into=twins.one, using="SELECT 1L AS id", keys=["id"])
