"""A Spark on the lake, for the whole session."""

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tests.integration.tables import Source, quick_session
from tests.scope import in_ci

from calve.app import open_captures
from calve.capture import Captures
from calve.lake import Lake
from calve.lake.spark import session
from calve.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


collect_ignore = in_ci(["test_hive_spark.py"], otherwise=[])
"""Without Spark, CI tests Hive in ``tests/behaviour``."""


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
    return quick_session(spark)


@pytest.fixture
def new_source(quick_spark: "SparkSession", captures: Captures, lake: Lake) -> Callable[[], Source]:
    """Return a function that names a table of the test's own, yet to be created."""
    return lambda: Source(quick_spark, captures, lake, f"db.t{uuid.uuid4().hex[:8]}")


@pytest.fixture
def source(new_source: Callable[[], Source]) -> Source:
    """Return a table of the test's own, yet to be created."""
    return new_source()
