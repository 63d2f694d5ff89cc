"""Streams of pages: what changes while one looks, whether or not an event tells of it."""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.engines import DONE, Playground
from tests.pages import answer_of, parse
from tests.servers import Site, services_on, site_on
from tests.table_lake import append, services, table_lake_on, write_history

from calve.access import Principal, PrincipalKind, Role
from calve.capture import Wanted
from calve.capture.inspection import Tables
from calve.engine import WorkerRecord
from calve.operations import Caller, ChosenEvents, logs
from calve.web import add_pages, live

HTML = {"accept": "text/html"}
JOB = "Workflow: {{id: {}, run_strategy: parallel, jobs: [{{job: {{id: load, type: Sleep}}}}]}}"
REGION = '<hx-partial hx-target="#{}" hx-swap="innerMorph">'


@pytest.fixture
def site(playground: Playground) -> Iterator[Site]:
    """Give a server with one workflow."""
    with site_on(playground, extend=add_pages) as site:
        site.push(JOB.format("demo.hello"))
        yield site


def _messages(client: httpx.Client, address: str, number: int, **headers: str) -> list[dict[str, str]]:
    """Hear so many messages that change the page, and hang up."""
    with client.stream("GET", address, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(itertools.islice(_changing(answer.iter_lines()), number))


def _changing(lines: Iterator[str]) -> Iterator[dict[str, str]]:
    found: dict[str, str] = {}
    for line in lines:
        name, _, text = line.partition(": ")
        if line:
            found[name] = found.get(name, "") + text
            continue
        if "data" in found:
            yield found
        found = {}


def test_a_page_is_kept_up_to_date_by_its_stream(site: Site) -> None:
    """The stream sends the regions that changed, with the number of the last event."""
    page = answer_of(site.client.get("/", headers=HTML))
    address = page.one("main").attributes["hx-sse:connect"]
    assert address.startswith("/live/?after=")
    site.start("demo.hello")
    (message,) = _messages(site.client, address, 1)
    assert message["id"].isdecimal()
    assert REGION.format("workflows") in message["data"]
    assert "instance 1: created" in message["data"]


def test_a_stream_continues_after_the_last_message_that_a_browser_saw(site: Site) -> None:
    """What happened meanwhile is in one message; a number that is none is refused."""
    site.start("demo.hello")
    (first,) = _messages(site.client, "/live/?after=0", 1)
    for _ in range(3):
        site.start("demo.hello")
    (again,) = _messages(site.client, "/live/?after=0", 1, **{"last-event-id": first["id"]})
    assert "instance 4: created" in again["data"]
    assert int(again["id"]) == site.playground.engine.state.last_event() > int(first["id"])
    refused = site.client.get("/live/?after=0", headers={"last-event-id": "x"})
    assert (refused.status_code, refused.json()["code"]) == (400, "request_invalid")


@pytest.mark.parametrize("query", ["", "?view=list&step=job"])
def test_buttons_lead_back_to_the_page_after_an_update(site: Site, query: str) -> None:
    """Not to the stream that brought them."""
    site.start("demo.hello")
    address = f"/workflows/demo.hello/instances/1{query}"
    page = answer_of(site.client.get(address, headers=HTML))
    stream = re.sub("after=[0-9]+", "after=0", page.one("main").attributes["hx-sse:connect"])
    region = parse(_messages(site.client, stream, 1)[0]["data"])
    forms = [one.attributes["href"] for one in region.all("a") if "/actions/stop_instance" in one.attributes["href"]]
    assert [parse_qs(urlsplit(form).query)["next"] for form in forms] == [[address]]


def test_a_page_shows_that_the_last_worker_died(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """No event tells of it: the page is looked at every few seconds all the same."""
    monkeypatch.setattr(live, "ANYWAY", 0.3)
    state = site.playground.engine.state
    state.register(WorkerRecord("w", "host", 17, state.now(), state.now(), 4))
    page = site.client.get("/workers", headers=HTML)
    assert "<b>host</b>" in page.text
    state.retire("w")
    (message,) = _messages(site.client, answer_of(page).one("main").attributes["hx-sse:connect"], 1)
    assert REGION.format("workers") in message["data"]
    assert "<b>host</b>" not in message["data"]


def test_what_did_not_change_is_not_sent_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times in words are no change: the browser keeps them current."""
    monkeypatch.setattr(live, "ANYWAY", 0.2)
    site.start("demo.hello")
    with site.client.stream("GET", "/live/signals?after=0") as answer:
        lines = answer.iter_lines()
        first, *others = itertools.islice((line for line in lines if line.startswith(("id", "data: <hx"))), 5)
    assert (first, others[1]) == ("id: 0", 'data: <hx-partial hx-target="#signals" hx-swap="innerMorph">')
    assert [line for line in others[2:] if line.startswith("data")] == []


def test_a_page_that_comes_back_is_brought_up_to_date_at_once(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have been hidden for long, and what it shows does not only follow from events."""
    monkeypatch.setattr(live, "ANYWAY", 3_600)
    newest = site.playground.engine.state.last_event()
    (message,) = _messages(site.client, "/live/?after=0", 1, **{"last-event-id": str(newest)})
    assert REGION.format("health") in message["data"]


def test_pages_about_the_lake_and_the_project_are_live(playground: Playground, tmp_path: Path) -> None:
    """Each is rendered again while it is open, but not what changes seldom, nor a capture that is closed."""
    with table_lake_on(playground, tmp_path) as table_lake:
        write_history(table_lake)
        opened = table_lake.captures.capture(["db.events"], "demo.daily/take", Wanted()).capture_id
        with site_on(playground, services(playground, table_lake), extend=add_pages) as site:
            regions = {
                "/tables": "tables",
                "/tables/db.events": "tab",
                "/tables/db.events/snapshots": "tab",
                "/captures": "captures",
                f"/captures/{opened}": "capture",
                "/lineage": "lineage",
                "/tag-permits": "permits",
            }
            for path, region in regions.items():
                page = answer_of(site.client.get(path, headers=HTML))
                address = page.one("main").attributes["hx-sse:connect"]
                (message,) = _messages(site.client, address, 1, **{"last-event-id": "0"})
                assert REGION.format(region) in message["data"], path
            table_lake.captures.commit(opened or "")
            for path in (f"/captures/{opened}", "/tables/db.events/about", "/tables/db.events/lateness"):
                assert "hx-sse:connect" not in site.client.get(path, headers=HTML).text


def test_a_list_of_tables_is_completed_while_it_is_open(
    playground: Playground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page does not wait for slow catalogs; those that it was not asked for yet come first."""
    monkeypatch.setattr(Tables.histories, "__defaults__", (0.0,))
    with table_lake_on(playground, tmp_path) as table_lake:
        for name in ("a", "b", "c"):
            append(table_lake.create(f"db.{name}"), 0)
            table_lake.commit("demo.daily/take", f"db.{name}")
        with site_on(playground, services(playground, table_lake), extend=add_pages) as site:
            page = site.client.get("/tables", headers=HTML)
            assert page.text.count("not read yet") == 2
            address = answer_of(page).one("main").attributes["hx-sse:connect"]
            (message,) = _messages(site.client, address, 1)
    assert "not read yet" not in message["data"]
    assert message["data"].count("up to date") == 3


def test_a_page_that_missed_much_does_not_read_all_of_it(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few queries tell how things are now, however many events there were since Friday, and whose they are."""
    monkeypatch.setattr(logs, "_EVENTS", 5)
    for _ in range(4):
        site.start("demo.hello")
    site.playground.script.parts["load"] = DONE
    site.playground.settle()
    engine, asked = site.playground.engine, Counter[str]()
    newest = engine.state.last_event()
    assert newest >= 20
    watched = replace(engine, tools=replace(engine.tools, state=_Counting(engine.state, asked)))
    viewer = Principal("ann", PrincipalKind.USER, {"demo": Role.VIEWER})
    chosen = ChosenEvents(Caller(replace(services_on(site.playground), engine=watched), viewer), None, None)
    assert chosen.news(0) == (True, newest)
    assert asked == {"last_event": 1, "events": 1, "ancestry": 1}
    assert chosen.news(newest) == (False, newest)


@dataclass
class _Counting:
    """Counts what is asked of the state."""

    inner: Any
    asked: Counter[str]

    def __getattr__(self, name: str) -> Any:
        self.asked[name] += 1
        return getattr(self.inner, name)
