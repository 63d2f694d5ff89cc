"""calve.merge gives what MERGE gives."""

import random
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import calve
from calve.errors import RequestInvalid, TableMissing
from calve.merging import Merged

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
        self.run(f"ALTER TABLE {{t}} DROP BRANCH {name}")


@pytest.fixture
def merging(quick_spark: "SparkSession") -> "SparkSession":
    """Return a session of the test's own."""
    session = quick_spark.newSession()
    for key in ("codegen.wholeStage", "adaptive.enabled"):
        session.conf.set(f"spark.sql.{key}", "false")
    session.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    session.conf.set("spark.sql.shuffle.partitions", "1")
    return session


def _twins(spark: "SparkSession", version: int, partition: str) -> Twins:
    twins = Twins(spark, f"db.one{uuid.uuid4().hex[:8]}", f"db.other{uuid.uuid4().hex[:8]}")
    mode = _MODES[version]
    properties = ", ".join(f"'write.{what}.mode'='{mode}'" for what in ("merge", "update", "delete"))
    by = f"PARTITIONED BY ({partition})" if partition else ""
    twins.run(
        f"CREATE TABLE {{t}} ({_COLUMNS}) USING iceberg {by} "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.wap.enabled'='true', {properties})"
    )
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


def _both(twins: Twins, frame: "DataFrame", keys: tuple[str, ...], what: Mapping[str, Any], **more: Any) -> Merged:
    """Merge into both tables, and check that they hold the same."""
    from pyspark.sql import functions

    marked = frame.withColumn("gone", functions.lit(False))
    if (deletes := what.get("deletes")) is not None:
        gone = deletes.select(*keys).dropna().distinct().join(frame, list(keys), "left_anti")
        marked = marked.unionByName(gone.withColumn("gone", functions.lit(True)), allowMissingColumns=True)
    marked.createOrReplaceTempView("source")
    merged = calve.merge(twins.spark, into=twins.one, using=frame, keys=keys, log=lambda _: None, **what, **more)
    twins.spark.sql(_plain(keys, twins.other, what))
    assert twins.rows(twins.one) == twins.rows(twins.other), (keys, what, merged)
    return merged


@pytest.mark.parametrize("seed", range(8))
def test_gives_what_merge_gives(merging: "SparkSession", seed: int) -> None:
    """Any history of merges leaves the rows that MERGE leaves, whatever plan is chosen."""
    chance = random.Random(seed)
    version = 2 + seed % 2
    partition = _PARTITIONS[seed % len(_PARTITIONS)]
    twins = _twins(merging, version, partition)
    if seed != 3:
        twins.run(f"INSERT INTO {{t}} SELECT * FROM VALUES {', '.join(_values(chance, 20, range(1, 4)))}")
    for _ in range(3):
        keys, what = chance.choice(_KEYS), dict(chance.choice(_WHATS))
        frame = _frame(merging, _values(chance, chance.choice((0, 3, 9)), range(2, 6)), keys)
        if chance.random() < 0.4:
            what["deletes"] = _frame(merging, _values(chance, 4, range(1, 6)), keys)
        if chance.random() < 0.7:
            with twins.branch():
                _both(twins, frame, keys, what)
        else:
            _both(twins, frame, keys, what, atomic=chance.random() < 0.5)
