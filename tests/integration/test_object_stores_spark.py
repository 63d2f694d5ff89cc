"""Spark and calve work on one S3 server, by the same settings."""

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from tests.integration.tables import Source
from tests.scope import in_ci
from tests.services.s3 import S3Server, throwaway_s3

from calve.app import open_captures
from calve.capture import Captures
from calve.delivery import Deliveries, Delivery
from calve.lake import Lake, session_conf
from calve.settings import FILE, Settings, load
from calve.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """Yield an S3 server with a bucket."""
    with throwaway_s3() as server:
        server.make_bucket("lake")
        yield server


@pytest.fixture(scope="module", params=in_ci(["s3"], otherwise=["s3", "s3a", "elsewhere"]))
def settings(s3: S3Server, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return settings of a lake on S3, by either scheme, or of one on disk whose captures are on S3."""
    folder = tmp_path_factory.mktemp("on_s3")
    properties = s3.properties | {
        "s3.endpoint": f"http://{s3.domain}:{s3.port}"
    }  # a name: Spark could use virtual hosts
    scheme = "s3" if request.param == "elsewhere" else request.param
    warehouse = folder / "warehouse" if request.param == "elsewhere" else f"{scheme}://lake/{folder.name}/warehouse"
    lines = [
        f"[capture]\nlocation = '{scheme}://lake/{folder.name}/icdc'",
        f"[catalogs.lake]\nuri = 'sqlite:///{folder}/catalog.db'\nwarehouse = '{warehouse}'",
        *(f"{json.dumps(name)} = {json.dumps(text)}" for name, text in properties.items()),
    ]
    (folder / FILE).write_text("\n".join(lines))
    return load(folder, {})


@pytest.fixture(scope="module")
def captures(settings: Settings) -> Iterator[Captures]:
    """Yield captures on that lake."""
    with open_captures(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def lake(settings: Settings) -> Iterator[Lake]:
    """Yield that lake."""
    opened = Lake(settings)
    yield opened
    opened.close()


@pytest.fixture
def source(spark: "SparkSession", settings: Settings, captures: Captures, lake: Lake) -> Source:
    """Return a table on S3, yet to be created."""
    session = spark.newSession()
    quick = {"spark.sql.codegen.wholeStage": "false", "spark.sql.shuffle.partitions": "1"}
    for key, value in {**session_conf(settings), **quick}.items():
        session.conf.set(key, value)
    session.sql("CREATE NAMESPACE IF NOT EXISTS db")
    return Source(session, captures, lake, f"db.t{uuid.uuid4().hex[:8]}")


@pytest.mark.parametrize("kind", in_ci(["v3 merge-on-read"], otherwise=["v2 merge-on-read", "v3 merge-on-read"]))
def test_spark_and_calve_share_an_object_store(
    source: Source, settings: Settings, captures: Captures, lake: Lake, s3: S3Server, kind: str
) -> None:
    """Spark writes a table, reads what calve captures of it, and delivers into it; nothing of the captures stays."""
    source.create("id BIGINT, day INT, n BIGINT", kind, by="day")
    source.run("INSERT INTO {t} VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)")
    source.advance()
    source.run("INSERT INTO {t} VALUES (4, 3, 40)")
    change = source.advance()
    assert source.rows(change.relation) == Counter([(4, 3, 40)])
    source.run("UPDATE {t} SET n = 11 WHERE id = 1", "DELETE FROM {t} WHERE id = 3")
    change = source.advance()
    assert source.rows(change.relation) == Counter([(1, 1, 11)])
    assert source.rows(change.deletes_relation) == Counter([(1, 1, 10), (3, 2, 30)])
    with open_store(settings.store.url) as store:
        deliveries = Deliveries(
            lake,
            store.deliveries,
            store.captures,
            clock=lambda: datetime.now(UTC),  # noqa: TID251 - Spark's clock is the machine's too
            new_id=lambda: uuid.uuid4().hex[:8],
        )
        staging = deliveries.stage([source.name], Delivery("w/s", None, "r1"), "a1")
        source.spark.conf.set("spark.wap.branch", staging.branch)
        source.run("INSERT INTO {t} VALUES (5, 3, 50)")
        source.spark.conf.unset("spark.wap.branch")
        deliveries.publish(staging)
    assert source.rows(source.name) == Counter([(1, 1, 11), (2, 1, 20), (4, 3, 40), (5, 3, 50)])
    captures.collect_garbage(timedelta(0))
    assert not [path for path in (s3.folder / "lake").rglob("icdc/**/*") if path.is_file()]
