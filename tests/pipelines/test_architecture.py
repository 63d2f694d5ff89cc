"""The page about the architecture names the functions that a Spark step with targets really passes."""

from pathlib import Path

import pytest
from tests.call_traces import called, way

import calve
from calve.api import serve
from calve.app import WorkerThread, web_on
from calve.client import Client

STEP = """
Workflow:
  id: w
  jobs:
    - job: {id: write, type: Spark, targets: [db.daily], spark: {script: INSERT INTO db.daily SELECT id FROM range(3)}}
"""


def test_the_way_of_a_spark_step(connect_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each function of the page is called, in the order of the page."""
    import pyarrow as pa

    monkeypatch.setenv("CALVE_SPARK__REMOTE", connect_url)
    with calve.connect(tmp_path) as lake:
        catalog = lake.lake.catalog("lake").pyiceberg()
        catalog.create_namespace("db")
        catalog.create_table("db.daily", schema=pa.schema([("id", pa.int64())]))
        lake.push(STEP)

        def work() -> None:
            app = web_on(lake._project, "127.0.0.1")
            with serve(app, drain=1) as server, Client(server.url) as client, WorkerThread(lake._project) as worker:
                started = client.start("w")
                worker.look()
                ended = client.wait("w", started["workflow_instance_id"], timeout=120)
            assert ended["status"] == "SUCCEEDED", ended

        seen = called(work)
        assert catalog.load_table("db.daily").scan().to_arrow().num_rows == 3
    expected = way("A Spark step with targets, started over REST")
    assert [one for one in seen if one in set(expected)] == expected
