"""What the palette jumps to besides workflows and instances, on a real lake, for those who may."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.engines import Playground
from tests.servers import services_on
from tests.table_lake import TableLake, browser, table_lake_on, viewer, write_history

from calve.access import Role
from calve.api import create_app

JOB = "Workflow: {{id: {}, jobs: [{{job: {{id: load_events, type: NoOp}}}}]}}"


@pytest.fixture
def table_lake(playground: Playground, tmp_path: Path) -> Iterator[TableLake]:
    """Give a lake with a table and two consumers, and two workflows, one of which ran."""
    for name in ("demo.daily", "other.hourly"):
        playground.push(JOB.format(name))
    playground.start("demo.daily")
    with table_lake_on(playground, tmp_path) as table_lake:
        write_history(table_lake)
        yield table_lake


def _found(client: TestClient, text: str) -> set[tuple[str, str]]:
    """Return the kinds and the paths of what is found, each of which is there."""
    answer = client.get("/api/v3/search", params={"q": text, "include": "jumps"})
    elements = answer.json()["elements"]
    for one in elements:
        assert client.get(one["path"], follow_redirects=True).status_code == 200, one
    return {(one["kind"], one["path"]) for one in elements}


def test_steps_tables_consumers_and_captures_are_found(playground: Playground, table_lake: TableLake) -> None:
    """Each leads to its page: a step to the newest instance, or to its workflow if that never ran."""
    (newest, *_) = table_lake.captures.captures()
    with browser(playground, table_lake) as client:
        assert {
            ("table", "/tables/db.events"),
            ("step", "/workflows/demo.daily/instances/1?step=load_events"),
            ("step", "/workflows/other.hourly"),
        } <= _found(client, "EVENTS")
        assert ("consumer", "/captures?consumer=demo.daily%2Ftake") in _found(client, "daily/take")
        assert _found(client, newest.capture_id) == {("capture", f"/captures/{newest.capture_id}")}
        assert _found(client, "start hour") == {("action", "/workflows/other.hourly/start")}
        assert {kind for kind, _ in _found(client, "start")} >= {"action"}
        plain = client.get("/api/v3/search", params={"q": "events"}).json()["elements"]
        assert {one["kind"] for one in plain} == {"workflow"}


def test_what_one_may_not_see_is_not_found(playground: Playground, table_lake: TableLake) -> None:
    """Nor is a start offered that would be refused."""
    with browser(playground, table_lake, viewer("demo")) as client:
        assert {path for _, path in _found(client, "load_events")} == {
            "/workflows/demo.daily",
            "/workflows/demo.daily/instances/1?step=load_events",
        }
        assert _found(client, "other") == set()
        assert _found(client, "start daily") == set()
    with browser(playground, table_lake, viewer("demo", Role.RUNNER)) as client:
        assert _found(client, "start") == {("action", "/workflows/demo.daily/start")}


@pytest.fixture
def client_without_lake(playground: Playground) -> Iterator[TestClient]:
    """Give a client of a server without a lake."""
    with TestClient(create_app(services_on(playground))) as client:
        yield client


def test_without_a_lake_the_rest_is_found(playground: Playground, client_without_lake: TestClient) -> None:
    """A server need not have one."""
    playground.push(JOB.format("demo.daily"))
    kinds = {one["kind"] for one in client_without_lake.get("/api/v3/search?q=events&include=jumps").json()["elements"]}
    assert kinds == {"workflow", "step"}
