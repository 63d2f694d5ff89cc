"""A pipeline on Spark and calve in a Hive metastore, which both read and write."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.services.hive import HiveMetastore, Version, throwaway_metastore

from calve.app import open_captures
from calve.capture import Mode, Operation, Wanted
from calve.delivery import Deliveries, Delivery
from calve.lake import Lake, session_conf
from calve.settings import FILE, Settings, load
from calve.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ALL_KINDS = frozenset({Operation.APPEND, Operation.OVERWRITE, Operation.DELETE})
MERGE = """MERGE INTO db.sums USING ({changed}) s ON sums.id = s.id
WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"""


@pytest.fixture(scope="module")
def metastore() -> Iterator[HiveMetastore]:
    """Start a metastore."""
    with throwaway_metastore(Version.OF_SPARK) as started:
        yield started


@pytest.fixture
def project(metastore: HiveMetastore, tmp_path: Path) -> Settings:
    """Give a project whose catalog is in the metastore."""
    given = f"uri = '{metastore.uri}'\nwarehouse = 'file://{tmp_path}/warehouse'"
    (tmp_path / FILE).write_text(f"default_catalog = 'real'\n[catalogs.real]\n{given}\n")
    return load(tmp_path, {})


@pytest.fixture
def on_it(spark: "SparkSession", project: Settings) -> "SparkSession":
    """Give a session whose default catalog is in the metastore."""
    own = spark.newSession()
    for key, value in session_conf(project).items():
        own.conf.set(key, value)
    return own


@pytest.mark.parametrize("version", [2, 3])
def test_a_pipeline_runs(on_it: "SparkSession", project: Settings, version: int) -> None:
    """Spark writes, calve captures under a lease, Spark reads the change and merges it, calve publishes it once."""
    on_it.sql("CREATE NAMESPACE IF NOT EXISTS db")
    for name, mode in (("events", "copy-on-write"), ("sums", "merge-on-read")):
        on_it.sql(f"DROP TABLE IF EXISTS db.{name}")
        properties = f"'format-version'='{version}', 'write.merge.mode'='{mode}', 'write.delete.mode'='{mode}'"
        on_it.sql(f"CREATE TABLE db.{name} (id BIGINT, n BIGINT) USING iceberg TBLPROPERTIES ({properties})")
    on_it.sql("INSERT INTO db.events VALUES (1, 10), (2, 20)")
    statements = [
        "INSERT INTO db.events VALUES (3, 30), (4, 40)",
        "UPDATE db.events SET n = 21 WHERE id = 2",
        "INSERT INTO db.events VALUES (5, 50)",
    ]
    with open_captures(project) as captures, open_store(project.store.url) as store:
        lake = Lake(project)
        deliveries = Deliveries(
            lake,
            store.deliveries,
            store.captures,
            clock=lambda: datetime.now(UTC),  # noqa: TID251 - Spark's clock is the machine's too
            new_id=lambda: uuid.uuid4().hex[:8],
        )
        wanted = Wanted(operations=ALL_KINDS, mode=Mode.TABLE)
        for statement in ["", *statements]:
            if statement:
                on_it.sql(statement)
            report = captures.capture(["db.events"], "daily", wanted, lease=True)
            relation, capture = report.tables[0].relation, str(report.capture_id)
            assert relation
            assert "TAG" in {row[0] for row in on_it.sql("SELECT type FROM db.events.refs").collect()}
            staging = deliveries.stage(["db.sums"], Delivery("w/s", capture, "run"), "attempt")
            on_it.conf.set("spark.wap.branch", staging.branch)
            on_it.sql(MERGE.format(changed=f"SELECT id, n FROM {relation}"))
            on_it.conf.unset("spark.wap.branch")
            deliveries.publish(staging)
            assert deliveries.publish(staging)[0].is_repeated
            captures.commit(capture)
            assert "TAG" not in {row[0] for row in on_it.sql("SELECT type FROM db.events.refs").collect()}
            found, truth = (
                on_it.sql(f"SELECT id, n FROM db.{name} ORDER BY id").collect() for name in ("sums", "events")
            )
            assert found == truth
        lake.close()
