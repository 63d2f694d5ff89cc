"""The home page: what needs a person, and the workflows that ran last."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient
from tests.engines import Playground
from tests.pages import Parsed, answer_of
from tests.servers import services_on

from calve.api import create_app
from calve.delivery import Delivery, StagedTarget, Staging
from calve.engine import Breakpoint, Outcome, State
from calve.lake import TableName
from calve.web import add_pages

HTML = {"accept": "text/html"}
JOB = "Workflow: {{id: {}, jobs: [{{job: {{id: load, type: Sleep}}}}]}}"
ASKING = "Workflow: {id: sales.ask, jobs: [{job: {id: ok, type: Approval, approval: {message: Go?}}}]}"
EVIL = "<img src=x onerror=alert(1)> no disk"


@pytest.fixture
def client(playground: Playground) -> Iterator[TestClient]:
    """Give a browser at the machine of the server."""
    with TestClient(create_app(services_on(playground), extend=add_pages), headers=HTML) as client:
        yield client


def _cards(page: Parsed) -> dict[str, str]:
    """Return what the cards say, by where they lead."""
    cards = [one for one in page.all("a") if "card" in one.attributes.get("class", "").split()]
    return {one.attributes["href"]: " ".join(one.text.split()) for one in cards}


def test_where_nothing_needs_a_person_home_reports_it(client: TestClient) -> None:
    """Five good lines, and how to begin."""
    page = answer_of(client.get("/"))
    good = [one.text for one in page.all("span", class_="status tone-ok")]
    assert good == ["healthy", "Nothing failed", "Nothing is late", "No consumer is behind", "No approval is waiting"]
    assert "calve push" in page.one("main").text


def test_what_failed_is_one_card_for_each_cause(client: TestClient, playground: Playground) -> None:
    """It leads to the step that failed; the message is text, whatever it holds."""
    playground.push(JOB.format("sales.a"))
    playground.script.parts["load"] = Outcome(State.FATAL_ERROR, message=EVIL)
    playground.start("sales.a")
    playground.start("sales.a")
    (address, text), *others = _cards(answer_of(client.get("/"))).items()
    assert (address, others) == ("/workflows/sales.a/instances/2?step=load", [])
    assert text.startswith("sales.a ×2")
    assert text.endswith(EVIL)
    assert "<img src=x" not in client.get("/").text


def test_what_waits_for_a_person_is_shown_with_its_question(client: TestClient, playground: Playground) -> None:
    """Approval steps and attempts at breakpoints, each with its instance."""
    playground.push(ASKING)
    playground.start("sales.ask")
    playground.push(JOB.format("sales.a"))
    playground.engine.pause(Breakpoint("sales.a", "load"))
    playground.start("sales.a")
    cards = _cards(answer_of(client.get("/")))
    assert cards["/workflows/sales.ask/instances/1?step=ok"].startswith("Go?")
    assert "breakpoint in sales.a 1" in cards["/workflows/sales.a/instances/1?step=load"]


def test_what_is_held_leads_to_its_capture(client: TestClient, playground: Playground) -> None:
    """Where the instance has ended, someone has to commit it."""
    playground.push(JOB.format("sales.a"))
    attempt = playground.attempt(playground.start("sales.a"), "load")
    delivery = Delivery("sales.a/load", "c1", "sales.a/1/1/load")
    target = StagedTarget(TableName("lake", ("db",), "daily"), "u1", 1, 2)
    state, now = playground.store.deliveries, datetime(2023, 11, 14, tzinfo=UTC)
    state.stage("calve_1", delivery, attempt.uuid, [target.name], now)
    state.hold(Staging(delivery, attempt.uuid, "calve_1", (target,)), now)
    assert "held on a branch" in _cards(answer_of(client.get("/")))["/captures/c1"]


def test_all_of_a_column_can_be_shown(client: TestClient, playground: Playground) -> None:
    """What a column leaves out is one click away: its entries, and from there the list of instances."""
    playground.script.parts["load"] = Outcome(State.FATAL_ERROR, message="no disk")
    for number in range(8):
        playground.push(JOB.format(f"sales.a{number}"))
        playground.start(f"sales.a{number}")
    cards = _cards(answer_of(client.get("/")))
    assert cards["/?all=failed"] == "2 more"
    cards = _cards(answer_of(client.get("/?all=failed")))
    assert {f"/workflows/sales.a{number}/instances/1?step=load" for number in range(8)} <= cards.keys()
    answer = answer_of(client.get(next(link for link in cards if link.startswith("/instances"))))
    assert {f"/workflows/sales.a{number}/instances/1" for number in range(8)} <= answer.links


def test_a_silent_scheduler_is_reported(playground: Playground) -> None:
    """By its last record, also if no trigger is late."""
    triggers = playground.store.triggers
    app = create_app(services_on(playground), extend=add_pages)
    with TestClient(app, headers=HTML) as client:
        now = playground.state.now()
        triggers.beat(now - 1_000)
        assert "silent" not in answer_of(client.get("/")).one("main").text
        triggers.beat(now - 600_000)
        for path in ("/", "/workers"):
            assert "The scheduler is silent." in answer_of(client.get(path)).one("main").text


def test_home_shows_the_workflows_that_ran_last_first(client: TestClient, playground: Playground) -> None:
    """With a bar for each of their last runs, which leads to it."""
    for name in ("sales.a", "sales.b"):
        playground.push(JOB.format(name))
    playground.start("sales.b")
    playground.advance(60)
    playground.start("sales.a")
    page = answer_of(client.get("/"))
    assert [one.text for one in page.all("b")] == ["sales.a", "sales.b"]
    assert {"/workflows/sales.a/instances/1", "/workflows/sales.b/instances/1"} <= page.links
