"""Captures, checkpoints and readiness through REST, on a real server and real tables."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.middleware import Middleware
from tests.engines import Playground
from tests.servers import Site, services_on, site_on

from calve.access import Principal, PrincipalKind, Role
from calve.api.app import FixedPrincipal
from calve.app import captures_on
from calve.errors import StoreUnavailable
from calve.lake import Lake
from calve.settings import load
from calve.testing import PyIcebergWriter

WANTED = {"tables": ["db.events"], "consumer": "demo.daily"}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Give a lake with a table of two rows."""
    settings = load(tmp_path, {})
    lake, writer = Lake(settings), PyIcebergWriter(settings)
    writer.create("db.events", {"id": "long", "day": "int", "n": "long"}, days=True)
    writer.append([{"id": number, "day": 1, "n": 0} for number in (1, 2)])
    yield lake
    writer.close()
    lake.close()


@pytest.fixture
def site(playground: Playground, lake: Lake) -> Iterator[Site]:
    """Give a server with that lake."""
    with site_on(playground, services_on(playground, captures=captures_on(lake, playground.store))) as site:
        yield site


def test_a_change_is_planned_captured_and_committed(site: Site) -> None:
    """As the commands do it."""
    assert site.post("/captures/plan", WANTED)["tables"][0]["records"] == 2
    taken = site.post("/captures", {**WANTED, "key": "one"})
    capture_id = taken["capture_id"]
    assert site.post("/captures", {**WANTED, "key": "one"})["capture_id"] == capture_id
    assert site.post("/captures", WANTED, 409)["code"] == "concurrent_capture"
    assert site.get(f"/captures/{capture_id}")["status"] == "open"
    assert site.get("/checkpoints")["elements"] == []
    assert site.post(f"/captures/{capture_id}/actions/commit")["status"] == "committed"
    (checkpoint,) = site.get("/checkpoints?consumer=demo.daily")["elements"]
    assert (checkpoint["table"], checkpoint["version"]) == ("db.events", 1)
    assert site.get("/lag")["elements"][0]["pending_commits"] == 0
    assert [one["capture_id"] for one in site.get("/captures")["elements"]] == [capture_id]
    site.get("/captures/nothing", 404)
    site.post("/captures/plan", {**WANTED, "tables": ["db.nothing"]}, 404)


def test_checkpoints_are_moved_by_hand(site: Site) -> None:
    """With a reason, which is kept."""
    body = {"table": "db.events", "consumer": "demo.daily", "to": "latest", "reason": "begin today"}
    site.put("/checkpoints", body)
    given = {"table": "db.events", "consumer": "demo.daily", "reason": "begin anew"}
    assert site.delete("/checkpoints", params=given)["reset"] is True
    log = site.get("/checkpoints/log")["elements"]
    assert [move["reason"] for move in log] == ["begin anew", "begin today"]
    abandoned = site.post("/captures", WANTED)["capture_id"]
    assert site.post(f"/captures/{abandoned}/actions/abandon")["status"] == "abandoned"


def test_captures_of_others_are_not_seen(playground: Playground, lake: Lake) -> None:
    """Nor their checkpoints, nor that they exist."""
    captures = captures_on(lake, playground.store)
    foreign = captures.capture(["db.events"], "other.daily")
    captures.commit(foreign.capture_id or "")
    ann = Principal("ann", PrincipalKind.USER, {"demo": Role.EDITOR})
    services = services_on(playground, captures=captures)
    with site_on(playground, services, middleware=[Middleware(FixedPrincipal, principal=ann)]) as site:
        for path in ("/captures", "/checkpoints", "/checkpoints/log", "/lag"):
            assert site.get(path)["elements"] == []
        site.get(f"/captures/{foreign.capture_id}", 404)
        site.post("/captures/plan", {**WANTED, "consumer": "other.daily"}, 403)
        site.post("/captures/plan", WANTED)


def test_ready_reports_when_the_server_cannot_work(playground: Playground) -> None:
    """B.2-23: with the disk full or the database away it is degraded, and says why; it lives all the same."""

    def away() -> str | None:
        raise StoreUnavailable("The database does not answer.")

    services = services_on(playground)
    services = replace(services, probes={"disk": lambda: "5 bytes are free.", "database": away, "fine": lambda: None})
    with site_on(playground, services) as site:
        answer = site.client.get("/ready")
        assert answer.status_code == 503
        problems = {"disk": "5 bytes are free.", "database": "The database does not answer."}
        assert answer.json() == {"status": "degraded", "problems": problems}
        assert site.client.get("/health").status_code == 200
    assert playground.store.problem() is None
