"""A lake on disk and a Spark on it, for the whole session."""

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tests.integration.tables import Source

from calve import settings
from calve.app import open_captures
from calve.capture import Captures
from calve.lake import Lake
from calve.lake.jars import POSTGRES
from calve.lake.spark import session
from calve.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TOML = f"""
[spark]
master = "local[2]"
driver_memory = "1g"
packages = ["{POSTGRES}"]

[spark.conf]
"spark.sql.shuffle.partitions" = 2
"spark.default.parallelism" = 2
"""


@pytest.fixture(scope="session")
def lake_settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of an embedded lake in a folder of its own."""
    folder = tmp_path_factory.mktemp("lake")
    (folder / settings.FILE).write_text(_TOML)
    return settings.load(folder)


@pytest.fixture(scope="session")
def lake(lake_settings: Settings) -> Iterator[Lake]:
    """Yield the lake, as calve sees it."""
    opened = Lake(lake_settings)
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def spark(lake_settings: Settings) -> Iterator["SparkSession"]:
    """Yield one Spark on the lake; its JVM is shared by all tests."""
    started = session(lake_settings, "calve tests")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def connect_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of one Spark Connect server, on which each project has a lake of its own."""
    from tests.faults.pipeline_server import connect_server

    with connect_server(tmp_path_factory.mktemp("connect")) as url:
        yield url


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
