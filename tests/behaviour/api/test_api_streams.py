"""Events as a stream, on a real server."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.engines import Playground
from tests.servers import Site, site_on

JOB = "Workflow:\n  id: w\n  run_strategy: parallel\n  jobs:\n    - job: {id: job, type: Sleep}\n"
STREAM = {"accept": "text/event-stream"}


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Give a server on an empty state database."""
    with site_on(playground) as site:
        yield site


def heard(site: Site, number: int, *, last: int | None = None, **query: Any) -> list[dict[str, Any]]:
    """Hear so many events, and hang up."""
    headers = STREAM if last is None else STREAM | {"last-event-id": str(last)}
    found: list[dict[str, Any]] = []
    with site.client.stream("GET", "/api/v3/events", params=query, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: "):
                found.append(json.loads(line.removeprefix("data: ")))
            if len(found) == number:
                break
    return found


def test_a_stream_continues_where_it_was_cut_off(site: Site) -> None:
    """By Last-Event-ID, or by ``after``: nothing comes twice, nothing is left out."""
    site.push(JOB)
    site.start()
    site.playground.settle()
    everything = site.get("/events?workflow_id=w&instance_id=1")["elements"]
    assert everything[-1]["after"] == "SUCCEEDED"
    first = heard(site, 2, workflow_id="w", instance_id=1)
    assert first == everything[:2]
    rest = heard(site, len(everything) - 2, last=first[-1]["seq"], workflow_id="w", instance_id=1)
    assert first + rest == everything
    assert heard(site, 1, after=everything[-2]["seq"]) == everything[-1:]


def test_events_come_in_pages_too(site: Site) -> None:
    """Of one workflow or of all, each page after the last event of the one before."""
    site.push(JOB)
    site.push(JOB.replace("id: w", "id: v"))
    site.start("w")
    site.start("v")
    site.playground.settle()
    whole = site.get("/events?limit=200")["elements"]
    found: list[Any] = []
    cursor: str | None = None
    while True:
        page = site.get("/events", params={"limit": 3} | ({"cursor": cursor} if cursor else {}))
        found += page["elements"]
        cursor = page["page_info"]["end_cursor"]
        if not page["page_info"]["has_next_page"]:
            break
    assert found == whole
    assert {event["workflow_id"] for event in site.get("/events?workflow_id=v")["elements"]} == {"v"}
    site.get("/events?cursor=x", 400)
    site.get("/events?instance_id=1", 400)
    site.get("/events?workflow_id=w&instance_id=9", 404)


def test_a_server_ends_while_streams_are_open(playground: Playground) -> None:
    """A stream ends with the server, and does not hold it up."""
    with site_on(playground) as site:
        stream = site.client.stream("GET", "/api/v3/events", headers=STREAM)
        lines = stream.__enter__().iter_lines()
        assert next(lines).startswith("retry:")
    stream.__exit__(None, None, None)


def test_signals_are_announced_and_traced(site: Site) -> None:
    """Once for each request; by number, or the latest; with all that came of it."""
    body = {"name": "demo/ready", "params": {"day": 1}, "request_id": "a", "more": {"x": 1}}
    first = site.post("/signals", body)
    assert (first["seq_id"], first["payload"]["more"]) == (1, {"x": 1})
    assert site.post("/signals", body)["seq_id"] == 1
    site.post("/signals", {"name": "demo/ready", "params": {"day": 2}})
    assert site.get("/signals/demo/ready/instances/latest")["params"] == {"day": 2}
    assert site.get("/signals/demo%2Fready/instances/1")["seq_id"] == 1
    assert site.get("/signals/demo/ready/instances/1/lineage")["started"] == []
    page = site.get("/signals?limit=1&name=demo/ready")
    assert [one["seq_id"] for one in page["elements"]] == [2]
    after = site.get("/signals", params={"limit": 1, "cursor": page["page_info"]["end_cursor"]})
    assert [one["seq_id"] for one in after["elements"]] == [1]
    site.get("/signals/demo/ready/instances/9", 404)
    site.get("/signals?cursor=x", 400)
    site.push(JOB)
    site.start()
    assert site.get("/workflows/w/instances/1/signals")["sent"] == []
    site.playground.settle()


def test_triggers_are_listed(site: Site) -> None:
    """Those that a scheduler has seen; a table that changed is looked at."""
    assert site.get("/triggers")["elements"] == []
    site.get("/triggers?cursor=x", 400)
    assert site.post("/tables/db.events/changed") == {"table": "db.events", "triggers": 0}


def test_the_server_says_how_it_is(site: Site) -> None:
    """It lives, and it can do its work."""
    assert site.client.get("/health").json() == {"status": "ok"}
    assert site.client.get("/ready").json()["status"] == "ready"
    assert site.client.get("/metrics").status_code == 200
    document = site.get("/openapi.json")
    assert "/api/v3/workflows" in document["paths"]
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(set(names)) == len(names)
