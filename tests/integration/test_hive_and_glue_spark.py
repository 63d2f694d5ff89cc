"""A pipeline on Spark in a Hive metastore, in AWS Glue with S3, and in PostgreSQL: each is read and written by both."""

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.services.glue import throwaway_glue
from tests.services.hive import Version, throwaway_metastore

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


@pytest.fixture(params=["2.3", "4.0", "glue", "postgresql"])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Settings]:
    """Give a project whose catalog is a real one."""
    with ExitStack() as stack:
        warehouse = f"file://{tmp_path}/warehouse"
        if request.param == "glue":
            glue = stack.enter_context(throwaway_glue())
            warehouse = f"{glue.make_bucket('lake')}/warehouse"
            given = {"type": "glue", **glue.properties, "s3.force-virtual-addressing": "false"}
        elif request.param == "postgresql":
            given = {"uri": request.getfixturevalue("postgres_database")}
        else:
            given = {"uri": stack.enter_context(throwaway_metastore(Version(request.param))).uri}
        lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in {**given, "warehouse": warehouse}.items()]
        (tmp_path / FILE).write_text("\n".join(['default_catalog = "real"', "[catalogs.real]", *lines]))
        yield load(tmp_path, {})


@pytest.fixture
def on_it(spark: "SparkSession", project: Settings) -> Iterator["SparkSession"]:
    """Give a session whose default catalog is the real one."""
    own = spark.newSession()
    system = spark._jvm.java.lang.System  # type: ignore[union-attr] # Spark asks AWS's own chain for the keys of Glue
    keys = {"aws.accessKeyId": "key", "aws.secretAccessKey": "secret", "aws.region": "us-east-1"}
    for key, value in keys.items():
        system.setProperty(key, value)
    for key, value in session_conf(project).items():
        own.conf.set(key, value)
    yield own
    for key in keys:
        system.clearProperty(key)


@pytest.mark.parametrize("version", [2, 3])
def test_a_pipeline_runs(on_it: "SparkSession", project: Settings, version: int) -> None:
    """Spark writes, calve captures under a lease, Spark reads the change and merges it, calve publishes it once."""
    on_it.sql("CREATE NAMESPACE db")
    for name, mode in (("events", "copy-on-write"), ("sums", "merge-on-read")):
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
