"""What Spark writes to a branch reaches main once, whatever the table's format and the kind of statement."""

import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.tables import KINDS, Source
from tests.scope import in_ci

from calve.delivery import Deliveries, Delivery, Staging
from calve.errors import DeliverySuperseded, TargetMoved
from calve.lake import Lake
from calve.settings import Settings
from calve.store import open_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FORMATS = [kind for kind in KINDS if kind != "v1"]
_ids = count()


@pytest.fixture
def deliveries(lake: Lake, lake_settings: Settings) -> Iterator[Deliveries]:
    """Give deliveries on the lake."""
    with open_store(lake_settings.store.url) as store:
        yield Deliveries(
            lake,
            store.deliveries,
            store.captures,
            clock=lambda: datetime.now(UTC),  # noqa: TID251 - Spark's clock is the machine's too
            new_id=lambda: uuid.uuid4().hex[:8],
        )


@pytest.fixture
def job(quick_spark: "SparkSession") -> Iterator["Job"]:
    """Give a session that writes to branches."""
    yield Job(quick_spark)
    quick_spark.conf.unset("spark.wap.branch")


class Job:
    """Runs statements the way a step with targets does."""

    def __init__(self, spark: "SparkSession") -> None:
        self.spark = spark

    def run(self, staging: Staging, source: Source, *statements: str) -> None:
        """Run statements on the branch of a staging."""
        self.spark.conf.set("spark.wap.branch", staging.branch)
        self.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        source.run(*statements)
        self.spark.conf.unset("spark.wap.branch")


def _run(of: str = "w") -> Delivery:
    """Return one more delivery, without a capture."""
    return Delivery(f"{of}/s", None, f"r{next(_ids)}")


def _table(source: Source, kind: str) -> Source:
    source.create("id BIGINT, day INT, n BIGINT", kind, by="day")
    source.run("INSERT INTO {t} VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)")
    return source


def _rows(source: Source) -> Counter[Any]:
    return source.rows(source.name)


MERGE = """MERGE INTO {t} USING (SELECT 1L AS id, 1 AS day, 5L AS n UNION ALL SELECT 4L, 2, 40L) s ON {t}.id = s.id
WHEN MATCHED THEN UPDATE SET n = {t}.n + s.n WHEN NOT MATCHED THEN INSERT *"""


@pytest.mark.parametrize("kind", in_ci(["v2 copy-on-write", "v3 merge-on-read"], otherwise=FORMATS))
def test_any_number_of_statements_arrives_at_once(source: Source, deliveries: Deliveries, job: Job, kind: str) -> None:
    """MERGE, INSERT OVERWRITE and INSERT stay on the branch until they are published, then Spark goes on from there."""
    _table(source, kind)
    before = _rows(source)
    staging = deliveries.stage([source.name], _run(), "a1")
    job.run(
        staging,
        source,
        MERGE,
        "INSERT OVERWRITE {t} SELECT id, day, n + 1 FROM {t} WHERE day = 2",
        "INSERT INTO {t} VALUES (5, 3, 50)",
    )
    assert _rows(source) == before
    deliveries.publish(staging)
    expected = Counter([(1, 1, 15), (2, 1, 20), (3, 2, 31), (4, 2, 41), (5, 3, 50)])
    assert _rows(source) == expected
    source.run("INSERT INTO {t} VALUES (6, 3, 60)", "DELETE FROM {t} WHERE id = 2")
    assert _rows(source) == expected + Counter([(6, 3, 60)]) - Counter([(2, 1, 20)])
    if kind.startswith("v3"):
        ids = [row[0] for row in source.run("SELECT _row_id FROM {t}")]
        assert len(set(ids)) == len(ids) == 5


@pytest.mark.parametrize("kind", in_ci(["v1", "v2 merge-on-read", "v3 copy-on-write"], otherwise=["v1", *FORMATS]))
def test_appends_go_on_top_of_what_others_wrote(source: Source, deliveries: Deliveries, job: Job, kind: str) -> None:
    """Rows, row ids, totals and what calve itself captures of the commits snapshot are right."""
    _table(source, kind)
    staging = deliveries.stage([source.name], _run(), "a1")
    job.run(staging, source, "INSERT INTO {t} VALUES (7, 1, 70), (8, 3, 80)", "INSERT INTO {t} VALUES (9, 3, 90)")
    source.run("INSERT INTO {t} VALUES (4, 2, 40)", "UPDATE {t} SET n = 11 WHERE id = 1")
    before = _rows(source)
    source.advance()
    (published,) = deliveries.publish(staging)
    assert published.is_reappended
    new = Counter([(7, 1, 70), (8, 3, 80), (9, 3, 90)])
    assert _rows(source) == before + new
    change = source.advance()
    assert source.rows(change.relation) == new
    summary = source.metadata["snapshots"][-1]["summary"]
    assert int(summary["total-data-files"]) == source.run("SELECT count(*) FROM {t}.data_files")[0][0]
    source.run("INSERT INTO {t} VALUES (6, 3, 60)")
    source.compact()
    assert _rows(source) == before + new + Counter([(6, 3, 60)])
    if kind.startswith("v3"):
        ids = [row[0] for row in source.run("SELECT _row_id FROM {t}")]
        assert len(set(ids)) == len(ids) == 8
        assert max(ids) < source.metadata["next-row-id"]
    source.expire()
    assert _rows(source) == before + new + Counter([(6, 3, 60)])


@pytest.mark.parametrize("kind", ["v2 copy-on-write", "v3 merge-on-read"])
def test_an_empty_table_takes_any_statement(source: Source, deliveries: Deliveries, job: Job, kind: str) -> None:
    """It has a branch, and no main, while the job runs."""
    source.create("id BIGINT, day INT, n BIGINT", kind)
    staging = deliveries.stage([source.name], _run(), "a1")
    job.run(staging, source, "INSERT INTO {t} VALUES (1, 1, 10)", MERGE)
    assert _rows(source) == Counter()
    deliveries.publish(staging)
    assert _rows(source) == Counter([(1, 1, 15), (4, 2, 40)])
    assert deliveries.publish(staging)[0].is_repeated
    deliveries.publish(deliveries.stage([source.name], _run(), "a2"))
    assert _rows(source) == Counter([(1, 1, 15), (4, 2, 40)])


def test_a_merge_is_run_again_where_others_wrote(source: Source, deliveries: Deliveries, job: Job) -> None:
    """The second time it sees what they wrote; and nothing of the first attempt is left."""
    _table(source, "v3 merge-on-read")
    delivery = _run()
    for attempt in ("a1", "a2"):
        staging = deliveries.stage([source.name], delivery, attempt)
        job.run(staging, source, MERGE)
        if attempt == "a1":
            source.run("UPDATE {t} SET n = 100 WHERE id = 1")
            with pytest.raises(TargetMoved):
                deliveries.publish(staging)
            deliveries.discard(staging)
        else:
            deliveries.publish(staging)
    assert (1, 1, 105) in _rows(source)
    assert set(source.metadata["refs"]) == {"main"}


def test_a_zombie_of_an_older_capture_changes_nothing(
    source: Source, new_source: Any, deliveries: Deliveries, job: Job
) -> None:
    """Two captures of a real source are delivered by an accumulating MERGE, and the first one's zombie comes last."""
    target = new_source().create("id BIGINT, n BIGINT", "v2 merge-on-read")
    source.create("id BIGINT, n BIGINT", "v2 copy-on-write")
    zombie: Staging | None = None
    for n in (1, 2):
        source.run(f"INSERT INTO {{t}} VALUES (1, {n})")
        report = source.capture()
        accumulate = f"""MERGE INTO {{t}} USING {report.tables[0].relation} s ON {{t}}.id = s.id
        WHEN MATCHED THEN UPDATE SET n = {{t}}.n + s.n WHEN NOT MATCHED THEN INSERT *"""
        delivery = Delivery("w/s", report.capture_id, "r")
        staging = deliveries.stage([target.name], delivery, f"a{n}")
        if zombie is None:
            zombie = deliveries.stage([target.name], delivery, "zombie")
            job.run(zombie, target, accumulate)
        job.run(staging, target, accumulate)
        deliveries.publish(staging)
        source.commit(report)
    assert zombie is not None
    with pytest.raises(DeliverySuperseded):
        deliveries.publish(zombie)
    assert _rows(target) == Counter([(1, 3)])
