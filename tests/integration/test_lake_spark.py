"""Spark, PyIceberg and calve on the same lake."""

import json
import signal
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from calve.cli import entry
from calve.errors import EnvironmentUnfit, JarsUnavailable
from calve.lake import Catalog, Lake, SparkProgress, SqlCatalog, TableName, catalog_conf, jars, java
from calve.lake.spark import session, watched
from calve.settings import CatalogSettings, Settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def catalog(lake: Lake) -> Catalog:
    """Return the embedded catalog."""
    return lake.catalog("lake")


@pytest.fixture
def namespace(spark: "SparkSession") -> str:
    """Return a fresh namespace, made by Spark."""
    name = f"ns_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE NAMESPACE {name}")
    return name


def _rows(spark: "SparkSession", query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in spark.sql(query).collect()]


def test_spark_replaces_nothing_in_statements_by_itself(
    spark: "SparkSession", lake_settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """A brace that is left is a brace; ``calve sql`` takes one only if it is escaped."""
    assert _rows(spark, "SELECT '${x}'") == [("${x}",)]
    assert entry.run(["-C", str(lake_settings.project), "sql", "SELECT '$${x}' AS s", "--json"]) == 0
    assert capsys.readouterr().out.strip().endswith('[{"s": "${x}"}]')


def test_what_spark_makes_is_seen_by_the_others(
    spark: "SparkSession", lake: Lake, catalog: Catalog, namespace: str
) -> None:
    """Namespace, table and rows, at once."""
    spark.sql(f"CREATE TABLE {namespace}.t (a BIGINT, b STRING)")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1, 'x'), (2, 'y')")
    known = catalog.pyiceberg().load_table(f"{namespace}.t")
    assert sorted(known.scan().to_arrow().column("a").to_pylist()) == [1, 2]
    loaded = catalog.load(lake.parse(f"{namespace}.t"))
    assert loaded.metadata_location == known.metadata_location
    assert loaded.metadata["table-uuid"] == str(known.metadata.table_uuid)


def test_what_the_others_make_is_seen_by_spark(
    spark: "SparkSession", lake: Lake, catalog: Catalog, namespace: str
) -> None:
    """Tables of PyIceberg, their later commits, registered copies and drops; Spark caches nothing stale."""
    import pyarrow as pa

    rows = pa.table({"a": pa.array([1, 2], pa.int64())})
    table = catalog.pyiceberg().create_table(f"{namespace}.t", rows.schema)
    table.append(rows)
    assert _rows(spark, f"SELECT sum(a) FROM {namespace}.t") == [(3,)]
    table.append(rows)
    assert _rows(spark, f"SELECT sum(a) FROM {namespace}.t") == [(6,)]
    copy = lake.parse(f"{namespace}_copies.c")
    catalog.register(copy, catalog.load(lake.parse(f"{namespace}.t")).metadata_location)
    assert _rows(spark, f"SELECT sum(a) FROM {copy.sql()}") == [(6,)]
    assert _rows(spark, f"SHOW TABLES IN {namespace}_copies") == [(f"{namespace}_copies", "c", False)]
    assert catalog.drop(copy)
    assert _rows(spark, f"SHOW TABLES IN {namespace}_copies") == []
    spark.sql(f"INSERT INTO {namespace}.t VALUES (10)")
    assert _rows(spark, f"SELECT sum(a) FROM {namespace}.t") == [(16,)]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tags_are_readable_by_spark(
    spark: "SparkSession", lake: Lake, catalog: Catalog, namespace: str, version: int
) -> None:
    """In every format version Spark lists the tag, reads by it, writes on, and sees it go."""
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (a INT) TBLPROPERTIES ('format-version' = '{version}')")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    table = lake.parse(name)
    snapshot = catalog.load(table).metadata["current-snapshot-id"]
    catalog.create_tag(table, "lease", snapshot, 60_000)
    query = f"SELECT name, type, snapshot_id, max_reference_age_in_ms FROM {name}.refs ORDER BY name"
    assert _rows(spark, query) == [("lease", "TAG", snapshot, 60_000), ("main", "BRANCH", snapshot, None)]
    spark.sql(f"INSERT INTO {name} VALUES (2)")
    assert _rows(spark, f"SELECT a FROM {name} VERSION AS OF 'lease'") == [(1,)]
    assert _rows(spark, f"SELECT sum(a) FROM {name}") == [(3,)]
    assert catalog.drop_tag(table, "lease")
    assert _rows(spark, f"SELECT name FROM {name}.refs") == [("main",)]
    spark.sql(f"INSERT INTO {name} VALUES (3)")
    assert _rows(spark, f"SELECT sum(a) FROM {name}") == [(6,)]


def test_a_registered_view_is_read_by_spark(
    spark: "SparkSession", lake: Lake, catalog: Catalog, namespace: str
) -> None:
    """A view written without a JVM answers, is listed, and goes."""
    spark.sql(f"CREATE TABLE {namespace}.t (a INT, b STRING)")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1, 'x'), (2, 'y')")
    schema = catalog.load(lake.parse(f"{namespace}.t")).metadata["schemas"][0]
    view = lake.parse(f"{namespace}.v")
    catalog.register_view(view, f"SELECT a, b FROM lake.{namespace}.t WHERE a > 1", schema, {"made-by": "test"})
    assert _rows(spark, f"SELECT * FROM {view.sql()}") == [(2, "y")]
    assert [row[1] for row in _rows(spark, f"SHOW VIEWS IN {namespace}")] == ["v"]
    assert catalog.drop_view(view)
    assert _rows(spark, f"SHOW VIEWS IN {namespace}") == []


def test_a_catalog_in_postgresql_is_shared(spark: "SparkSession", postgres_database: str, tmp_path: "Path") -> None:
    """The same holds for a catalog in PostgreSQL: tables both ways, tags, views."""
    definition = CatalogSettings.model_validate({"uri": postgres_database, "warehouse": str(tmp_path)})
    catalog = SqlCatalog("pg", definition.properties)
    other = spark.newSession()
    for key, value in catalog_conf("pg", definition).items():
        other.conf.set(key, value)
    other.sql("CREATE NAMESPACE pg.db")
    other.sql("CREATE TABLE pg.db.t (a INT) TBLPROPERTIES ('format-version' = '3')")
    other.sql("INSERT INTO pg.db.t VALUES (1), (2)")
    table = TableName("pg", ("db",), "t")
    loaded = catalog.load(table)
    snapshot = loaded.metadata["current-snapshot-id"]
    catalog.create_tag(table, "lease", snapshot, 60_000)
    assert _rows(other, "SELECT count(*) FROM pg.db.t.refs") == [(2,)]
    catalog.register(TableName("pg", ("icdc",), "c"), loaded.metadata_location)
    assert _rows(other, "SELECT sum(a) FROM pg.icdc.c") == [(3,)]
    schema = loaded.metadata["schemas"][0]
    catalog.register_view(TableName("pg", ("icdc",), "v"), "SELECT a FROM pg.db.t WHERE a = 2", schema, {})
    assert _rows(other, "SELECT * FROM pg.icdc.v") == [(2,)]
    assert len(catalog.pyiceberg().list_tables("icdc")) == 1
    catalog.close()


def test_the_second_start_resolves_nothing(spark: "SparkSession", lake_settings: Settings) -> None:
    """With Spark up, its jars are in the cache, so no program is run for them."""
    nobody = java.Java(lake_settings.home / "no-such-program", "17", 17)
    assert spark.version.startswith("4.1")
    found = jars.provide(lake_settings, nobody)
    assert {jar.suffix for jar in found} == {".jar"}
    with pytest.raises(JarsUnavailable):
        jars.provide(_with(lake_settings, packages=("no:such:1",)), nobody)


def test_our_own_spark_is_shared_and_others_are_left_alone(spark: "SparkSession", lake_settings: Settings) -> None:
    """The same settings give another session of the same Spark; other settings are refused."""
    other = session(lake_settings, "again")
    assert other.sparkContext is spark.sparkContext
    other.conf.set("spark.sql.shuffle.partitions", "3")
    assert spark.conf.get("spark.sql.shuffle.partitions") == "2"
    with pytest.raises(EnvironmentUnfit, match="Another Spark"):
        session(_with(lake_settings, conf={"spark.x": "y"}), "other")


def test_progress_is_shown_while_spark_works(spark: "SparkSession") -> None:
    """Stages and tasks of a running query are seen from another thread."""
    seen: list[SparkProgress] = []
    with watched(spark, seen.append, every=0.02):
        spark.sql("SELECT sum(a.id * b.id) FROM range(20000) a JOIN range(3000) b").collect()
    assert any(progress.tasks for progress in seen)


def test_the_sql_command_answers_and_fails_in_json(
    spark: "SparkSession", lake_settings: Settings, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line per statement; the failed one is named, and nothing after it runs."""
    assert spark is not None
    script = (
        f"CREATE TABLE {namespace}.t (a INT, d DECIMAL(5, 2)); INSERT INTO {namespace}.t VALUES (1, 1.50);\n"
        f"-- all of it; really\nSELECT *, named_struct('x', date'2024-01-01') s FROM {namespace}.t;\n"
        f"SELECT nope FROM {namespace}.t; DROP TABLE {namespace}.t"
    )
    assert entry.run(["-C", str(lake_settings.project), "sql", "--json", script]) == 1
    *lines, failure = capsys.readouterr().out.splitlines()
    assert lines == ["[]", "[]", '[{"a": 1, "d": "1.50", "s": {"x": "2024-01-01"}}]']
    assert '"statement": 4' in failure
    told = json.loads(failure)["error"]["message"]
    head, line, caret = told.split("\n")
    assert head.startswith("STATEMENTS, line 4 (statement 4 of 5): [UNRESOLVED_COLUMN")
    assert (line, caret) == (f"  4 | SELECT nope FROM {namespace}.t; DROP TABLE {namespace}.t", "    |        ^")
    assert _rows(spark, f"SELECT count(*) FROM {namespace}.t") == [(1,)]
    assert entry.run(["-C", str(lake_settings.project), "sql", f"SELECT a FROM {namespace}.t"]) == 0
    assert capsys.readouterr().out.split() == ["a", "─", "1"]


def _with(settings: Settings, **changes: Any) -> Settings:
    return settings.model_copy(update={"spark": settings.spark.model_copy(update=changes)})


def test_ctrl_c_stays_ours(spark: "SparkSession") -> None:
    """Spark does not take over what Ctrl-C does: its own answer breaks the call that is under way."""
    assert spark.version
    # A process that was started in the background ignores it from the start.
    assert signal.getsignal(signal.SIGINT) in {signal.default_int_handler, signal.SIG_IGN}
