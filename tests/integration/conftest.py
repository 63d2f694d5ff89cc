"""A Spark on the lake, for the whole session."""

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tests.integration.tables import Source

from calve.app import open_captures
from calve.capture import Captures
from calve.lake import Lake
from calve.lake.spark import session
from calve.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(lake_settings: Settings) -> Iterator["SparkSession"]:
    """Yield one Spark on the lake; its JVM is shared by all tests."""
    started = session(lake_settings, "calve tests")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def captures(lake_settings: Settings) -> Iterator[Captures]:
    """Yield calve's captures on the lake."""
    with open_captures(lake_settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def quick_spark(spark: "SparkSession") -> "SparkSession":
    """Return a session for tables of a few rows, which do not repay compiling."""
    quick = spark.newSession()
    quick.conf.set("spark.sql.codegen.wholeStage", "false")
    quick.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    quick.conf.set("spark.sql.adaptive.enabled", "false")
    quick.conf.set("spark.sql.shuffle.partitions", "1")
    quick.sql("CREATE NAMESPACE IF NOT EXISTS db")
    return quick


@pytest.fixture
def new_source(quick_spark: "SparkSession", captures: Captures, lake: Lake) -> Callable[[], Source]:
    """Return a function that names a table of the test's own, yet to be created."""
    return lambda: Source(quick_spark, captures, lake, f"db.t{uuid.uuid4().hex[:8]}")


@pytest.fixture
def source(new_source: Callable[[], Source]) -> Source:
    """Return a table of the test's own, yet to be created."""
    return new_source()
