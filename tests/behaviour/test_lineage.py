"""OpenLineage events of real captures, and of Spark steps that a script plays, on both databases."""

import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from tests.engines import FATAL_ERROR, Playground, Unreliable, wait_for
from tests.http_receiver import Receiver, receiving
from tests.no_deliveries import NoDeliveries

import calve.lineage
from calve.app import utc_now
from calve.capture import Captures
from calve.delivery import Published
from calve.engine import Outcome, Runtimes, State
from calve.errors import Conflict, StoreUnavailable
from calve.lake import Lake, TableName
from calve.lineage import EDGES, Lineage, senders_of
from calve.lineage.events import NAME
from calve.settings import LineageSettings, load
from calve.steps.captures import IpCapture, IpCommit
from calve.store import Store
from calve.testing import PyIcebergWriter

PIPELINE = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.events], range_columns: [id]}}
    - job: {id: job, type: Spark, targets: [db.daily], spark: {script: "SELECT * FROM ${capture.relation}"}}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
    - job: {id: other, type: NoOp}
"""
SPARK = Outcome(
    State.DONE,
    artifacts={
        "capture_id": "capture1",
        "spark": {"rows_written": 2, "bytes_written": 900},
        "tables_read": ["lake.db.users", "lake.db.events"],
        "tables_written": ["lake.db.daily"],
        "published": [{"table": "lake.db.daily", "snapshot_id": 77}],
    },
)


class Held(NoDeliveries):
    """Deliveries that hold something for the commit."""

    def publish_held(self, capture_id: str) -> list[Published]:
        """Publish it."""
        del capture_id
        return [Published(TableName("lake", ("db",), "held"), 88)]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Give a server that keeps what it gets."""
    with receiving() as found:
        yield found


@pytest.fixture
def lineage(playground: Playground, store: Store, tmp_path: Path, receiver: Receiver) -> Iterator[Lineage]:
    """Give a follower that sends to the receiver, and a lake with a table db.events of two rows."""
    settings = load(tmp_path, {})
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    numbers = count(1)
    captures = Captures(lake, store.captures, clock=utc_now, new_id=lambda: f"capture{next(numbers)}")
    made: Runtimes = {
        "IpCapture": lambda: IpCapture(captures, NoDeliveries()),
        "IpCommit": lambda: IpCommit(captures, Held()),
    }
    playground.executor.runtimes = {**playground.runtimes, **made}
    playground.script.parts["job"] = SPARK
    writer.create("db.events", {"id": "long", "day": "int", "n": "long"}, days=True)
    writer.append([{"id": number, "day": 1, "n": 0} for number in (1, 2)])
    playground.push(PIPELINE)
    senders = senders_of(LineageSettings(url=receiver.url), lambda _: "")
    found = Lineage(store.engine, store.positions, store.captures, senders, lake.parse)
    found.turn()
    yield found
    writer.close()
    lake.close()


def told(receiver: Receiver, job: str, kind: str) -> dict[str, Any]:
    """Return the one event of a kind about a job."""
    (found,) = (each for each in receiver.documents if each["job"]["name"] == job and each["eventType"] == kind)
    return dict(found)


def test_steps_that_touch_tables_begin_and_end(lineage: Lineage, playground: Playground, receiver: Receiver) -> None:
    """In order, under the attempt's id, with the run as their parent; other steps are not told of."""
    run = playground.start()
    while lineage.turn():
        pass
    seen = [(each["job"]["name"], each["eventType"]) for each in receiver.documents]
    assert seen == [(f"w.{step}", kind) for step in ("capture", "job", "commit") for kind in ("START", "COMPLETE")]
    ended = told(receiver, "w.job", "COMPLETE")
    assert ended["run"]["runId"] == playground.attempt(run, "job").uuid
    assert ended["run"]["facets"]["parent"]["run"]["runId"] == run.uuid
    assert ended["job"]["facets"]["jobType"]["jobType"] == "SPARK"
    assert receiver.requests[0][0] == "/api/v1/lineage"


def test_a_capture_tells_its_range(lineage: Lineage, playground: Playground, receiver: Receiver) -> None:
    """By snapshots and values, in a facet that has a schema; the change is its output."""
    playground.start()
    lineage.turn()
    event = told(receiver, "w.capture", "COMPLETE")
    (source,) = event["inputs"]
    assert (source["namespace"], source["name"]) == ("iceberg://lake", "db.events")
    facet = source["inputFacets"][NAME]
    schema = json.loads((Path(calve.lineage.__file__).parent / "captured_range.json").read_text())
    jsonschema.validate(facet, schema)
    assert facet["_schemaURL"] == schema["$id"]
    assert source["facets"]["version"]["datasetVersion"] == facet["toSnapshotId"]
    assert "fromSnapshotId" not in facet
    assert facet["records"] == source["inputFacets"]["inputStatistics"]["rowCount"] == 2
    assert facet["ranges"]["id"]["lower"] == 1
    (output,) = event["outputs"]
    assert output["name"].startswith("icdc.")


def test_a_spark_step_reads_sources_and_writes_targets(
    lineage: Lineage, playground: Playground, receiver: Receiver
) -> None:
    """The sources of its capture stand for what it read of them; what it published has a version."""
    playground.start()
    lineage.turn()
    event = told(receiver, "w.job", "COMPLETE")
    assert [source["name"] for source in event["inputs"]] == ["db.events", "db.users"]
    assert event["inputs"][0]["inputFacets"][NAME]["captureId"] == "capture1"
    (output,) = event["outputs"]
    assert output["name"] == "db.daily"
    assert output["facets"]["version"]["datasetVersion"] == "77"
    (held,) = told(receiver, "w.commit", "COMPLETE")["outputs"]
    assert (held["name"], held["facets"]["version"]["datasetVersion"]) == ("db.held", "88")
    assert output["outputFacets"]["outputStatistics"] == output["outputFacets"]["outputStatistics"] | {
        "rowCount": 2,
        "size": 900,
    }


def test_a_failure_is_reported_with_its_reason(lineage: Lineage, playground: Playground, receiver: Receiver) -> None:
    """A capture that is not there any more is left out."""
    playground.script.parts["job"] = Outcome(State.FATAL_ERROR, artifacts={"capture_id": "gone"}, message="no way")
    playground.start()
    lineage.turn()
    event = told(receiver, "w.job", "FAIL")
    assert event["run"]["facets"]["errorMessage"]["message"] == "no way"
    assert (event["inputs"], event["outputs"]) == ([], [])


def test_nothing_is_lost_while_nobody_listens(
    lineage: Lineage, playground: Playground, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """Steps go on; what was not taken is sent again, and what makes no sense is dropped."""
    receiver.answers = [200, 503, 200, 422]
    playground.start()
    with caplog.at_level(logging.WARNING):
        assert not lineage.turn()
        assert lineage.failures == 1
        lineage.turn()
    assert lineage.failures == 0
    assert len(receiver.requests) == 7
    assert "is sent again later: the receiver responded with 503" in caplog.text
    assert "is dropped: the receiver responded with 422" in caplog.text


def test_events_go_to_a_file(lineage: Lineage, playground: Playground, tmp_path: Path) -> None:
    """One a line."""
    file = tmp_path / "out" / "lineage.jsonl"
    lineage.senders = senders_of(LineageSettings(file=file), lambda _: "")
    playground.script.parts["job"] = FATAL_ERROR
    playground.start()
    lineage.turn()
    kinds = [json.loads(line)["eventType"] for line in file.read_text().splitlines()]
    assert kinds == ["START", "COMPLETE", "START", "FAIL"]


def test_a_receiver_may_want_a_key(lineage: Lineage, playground: Playground, receiver: Receiver) -> None:
    """It is a secret."""
    settings = LineageSettings(url=receiver.url, endpoint="in", key_secret="key")
    lineage.senders = senders_of(settings, lambda name: f"the {name}")
    playground.start()
    lineage.turn()
    path, headers, _ = receiver.requests[0]
    assert (path, headers["authorization"]) == ("/in", "Bearer the key")


def test_it_continues_whatever_happens(
    lineage: Lineage, playground: Playground, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    """A database that is away, another process that was faster, a mistake of ours."""
    unreliable: Any = Unreliable(playground.state)
    unreliable.faults["events"] = [StoreUnavailable("away"), Conflict("faster"), RuntimeError("odd")]
    lineage.happenings = unreliable
    playground.start()
    stop = threading.Event()
    thread = threading.Thread(target=lineage.run, args=(stop, 0.01))
    with caplog.at_level(logging.WARNING):
        thread.start()
        wait_for(lambda: len(receiver.requests) == 6)
        stop.set()
        thread.join()
    assert "lineage is waiting: away" in caplog.text
    assert "sending lineage failed" in caplog.text


def test_what_steps_read_and_wrote_is_kept(lineage: Lineage, playground: Playground, store: Store) -> None:
    """Without a receiver; the table of a capture stands for its source, and only the last attempt counts."""
    keeper = replace(lineage, senders=(), edges=store.lineage, name=EDGES)
    keeper.begin()
    first = playground.start()
    while keeper.turn():
        pass
    found = {(one.step_id, one.direction.value, one.table.name): one for one in store.lineage.newest(100)}
    assert found.keys() == {
        ("capture", "read", "events"),
        ("job", "read", "events"),
        ("job", "read", "users"),
        ("job", "write", "daily"),
        ("commit", "write", "held"),
    }
    written = found["job", "write", "daily"]
    assert (written.rows, written.bytes, written.snapshot_id) == (2, 900, 77)
    assert written.attempt == playground.attempt(first, "job").uuid
    assert (found["capture", "read", "events"].rows, written.workflow_id) == (2, "w")
    store.lineage.keep([replace(written, at=written.at + 1, instance_id=2)])
    store.lineage.keep([written])
    again = {one.step_id: one.instance_id for one in store.lineage.newest(100) if one.direction == "write"}
    assert again == {"job": 2, "commit": 1}


def test_a_step_that_failed_leaves_no_edge(lineage: Lineage, playground: Playground, store: Store) -> None:
    """Whatever it read."""
    keeper = replace(lineage, senders=(), edges=store.lineage, name=EDGES)
    keeper.begin()
    playground.script.parts["job"] = replace(SPARK, state=State.FATAL_ERROR)
    playground.start()
    keeper.turn()
    assert [one.step_id for one in store.lineage.newest(100)] == ["capture"]
