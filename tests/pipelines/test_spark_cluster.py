"""Spark steps on a standalone cluster of a master and two workers."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.no_deliveries import NoDeliveries
from tests.services.spark_cluster import spark_cluster
from tests.unit.steps.contexts import FakeContext

from calve.engine import State
from calve.lake import Lake, java
from calve.settings import Settings
from calve.steps import Workspace
from calve.steps.spark import Spark

SMALL = {
    "spark.executor.memory": "512m",
    "spark.cores.max": "2",
    "spark.driver.host": "localhost",
    "spark.driver.bindAddress": "127.0.0.1",
}
PROGRAM = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("on", spark.sparkContext.master, "in db.cluster", spark.table("db.cluster").count())
"""


@pytest.fixture(scope="module")
def workspace(lake_settings: Settings) -> Workspace:
    """Return what a worker finds around it."""
    return Workspace(lake_settings.project, os.environ, sys.executable)  # noqa: TID251 - a worker's


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that executors run in."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(lake_settings: Settings, work: Path) -> Iterator[str]:
    """Yield the address of a cluster."""
    with spark_cluster(work, java.find(lake_settings.spark.java_home).home) as address:
        yield address


@pytest.fixture(scope="module")
def runtime(lake_settings: Settings, workspace: Workspace, lake: Lake) -> Iterator[Spark]:
    """Yield a runtime whose Spark is small enough for the cluster."""
    spark = lake_settings.spark.model_copy(update={"conf": {**lake_settings.spark.conf, **SMALL}})
    made = Spark(lake_settings.model_copy(update={"spark": spark}), workspace, lake, NoDeliveries())
    yield made
    made.close()


def test_sql_and_an_application_run_on_a_cluster(runtime: Spark, master: str, work: Path, tmp_path: Path) -> None:
    """The step names it; both find the lake, and both workers have something to do."""
    script = (
        "CREATE NAMESPACE IF NOT EXISTS db; CREATE OR REPLACE TABLE db.cluster AS SELECT id FROM range(0, 1000, 1, 4)"
    )
    context = FakeContext(tmp_path, {"spark": {"script": script, "master": master}}, key="cluster-1")
    outcome = runtime.execute(context)
    assert (outcome.message, outcome.state) == ("", State.DONE)
    assert outcome.artifacts["spark"]["rows_written"] == 1000
    assert f"starting Spark on {master}" in context.text
    runtime.close()  # the application needs the cores
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    context = FakeContext(tmp_path, {"spark": {"application": str(program), "master": master}}, key="cluster-2")
    outcome = runtime.execute(context)
    assert (outcome.message, outcome.state) == ("", State.DONE)
    assert f"on {master} in db.cluster 1000" in context.text
    assert len(list(work.glob("worker*/app-*/*"))) >= 4
