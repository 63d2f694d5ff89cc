"""The page of an instance: what broke, whether a restart is safe, and the log, params and attempts of each step."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.engines import DONE, Playground
from tests.pages import answer_of, check_fragment, parse
from tests.servers import services_on

from calve.api import create_app
from calve.engine import LogChunk, Outcome, State
from calve.web import add_pages

WORKFLOW = """
Workflow:
  id: demo.flow
  day: "20260301"
  jobs:
    - job: {id: extract, type: Shell, shell: {script: echo hello}}
    - job: {id: load, type: Shell, shell: {script: "exit ${day}"}}
    - foreach:
        id: loop
        ranges: {i: {from: 0, to: 3}}
        jobs: [{job: {id: inside, type: NoOp}}]
  dag:
    - extract -> load
    - extract -> loop
"""
PAGE = "/workflows/demo.flow/instances/1"
JSON = {"accept": "application/json"}


@pytest.fixture
def client(playground: Playground) -> Iterator[TestClient]:
    """Give a browser at a server with an instance, of which one step failed for good."""
    with TestClient(create_app(services_on(playground), extend=add_pages), follow_redirects=False) as client:
        given = {"content-type": "application/yaml"}
        assert client.post("/api/v3/workflows/yaml", content=WORKFLOW, headers=given).status_code == 200
        cause = "Column watched_s cannot be resolved.\nline 7"
        playground.script.parts["load"] = [Outcome(State.FATAL_ERROR, message=cause), DONE]
        assert client.post("/api/v3/workflows/demo.flow/versions/active/actions/start", json={}).status_code == 200
        playground.settle()
        client.headers.update({"accept": "text/html"})
        yield client


def test_the_page_opens_at_what_failed(client: TestClient) -> None:
    """With its cause, and what a restart would do."""
    page = answer_of(client.get(PAGE))
    assert "Column watched_s cannot be resolved." in page.one("div", class_="note bad").text
    (safe,) = page.all("div", class_="note late")
    assert "It depends on load: a step without targets runs directly" in safe.text
    assert "A restart runs 1 step again (load); 2 are kept (extract, loop)." in " ".join(safe.text.split())
    assert {f"{PAGE}?step={name}" for name in ("extract", "load", "loop")} <= page.links


@pytest.mark.parametrize(
    "query", ["?view=list", "?view=time", "?step=loop", "?step=loop/2/inside", "?step=load&tab=attempts"]
)
def test_every_part_has_an_address(client: TestClient, query: str) -> None:
    """The URL is the state of the page."""
    answer_of(client.get(PAGE + query))


def test_the_params_say_where_they_come_from(client: TestClient) -> None:
    """Those of the definition and those of the system are told apart."""
    page = answer_of(client.get(f"{PAGE}?step=load&tab=params"))
    assert "definition" in {one.text.strip() for one in page.all("td", class_="soft")}


def test_the_page_is_the_document_of_the_instance(client: TestClient) -> None:
    """For those who accept JSON."""
    assert client.get(PAGE, headers=JSON).json() == client.get(f"/api/v3{PAGE}", headers=JSON).json()


def test_a_restart_says_what_it_will_do_and_does_it(client: TestClient, playground: Playground) -> None:
    """The dialog names the fate of each step; the form restarts the instance."""
    check_fragment(parse(client.get(f"{PAGE}/restart", headers={"x-calve-fragment": "1"}).text))
    page = answer_of(client.get(f"{PAGE}/restart"))
    assert [one.text for one in page.all("td", class_="text soft")][1:] == [
        "was FATALLY_FAILED",
        "SUCCEEDED, unchanged",
    ]
    form = {one.attributes["name"]: one.attributes["value"] for one in page.all("input", type="hidden")}
    chosen = {name: form[name] for name in ("workflow_id", "instance_id", "next")}
    answer = client.post("/actions/restart_instance", data=chosen)
    assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
    playground.settle()
    page = answer_of(client.get(PAGE))
    assert page.one("h1").text == "Instance 1"
    assert f"{PAGE}?run=1" in page.links


def test_the_times_of_the_steps_are_bars(client: TestClient) -> None:
    """One for each step that has begun; its name leads to it."""
    page = answer_of(client.get(f"{PAGE}?view=time"))
    assert page.one("table", class_="spans")
    assert {one.text for one in page.all("th", scope="row")} == {"extract", "load", "loop"}
    assert f"{PAGE}?view=time&step=loop" in page.links


def test_the_log_begins_with_its_end(client: TestClient, playground: Playground) -> None:
    """The element goes on from there; of a step that has ended it asks for nothing more."""
    found = client.get(f"/api/v3{PAGE}/steps/extract", headers=JSON).json()
    playground.state.append_log(LogChunk(found["step_instance_uuid"], 0, "one\n<b>two</b>\n"))
    page = answer_of(client.get(f"{PAGE}?step=extract&tab=log"))
    tail, written = page.one("log-tail"), page.one("pre", class_="log")
    assert tail.attributes["src"] == f"/api/v3{PAGE}/steps/extract/logs?attempt=1"
    assert "live" not in tail.attributes
    assert written.text == "one\n<b>two</b>\n"
    assert {name: value for name, value in written.attributes.items() if name.startswith("data-")} == {
        "data-offset": "0",
        "data-next-offset": "15",
        "data-size": "15",
    }


def test_what_one_looks_for_in_a_log_keeps_the_page_as_it_is(client: TestClient, playground: Playground) -> None:
    """The run, the view and the attempt stay chosen."""
    found = client.get(f"/api/v3{PAGE}/steps/extract", headers=JSON).json()
    playground.state.append_log(LogChunk(found["step_instance_uuid"], 0, "one\n"))
    page = answer_of(client.get(f"{PAGE}?run=1&view=time&step=extract&attempt=1&tab=log"))
    hidden = {one.attributes["name"]: one.attributes["value"] for one in page.all("input", type="hidden")}
    chosen = {"run": "1", "view": "time", "step": "extract", "attempt": "1", "tab": "log"}
    assert chosen.items() <= hidden.items()


LOOP = f"{PAGE}/iterations/loop"


def test_the_iterations_of_a_loop_are_a_grid_and_a_table(client: TestClient) -> None:
    """A letter each, and each leads to the step inside of it; the JSON is that of REST."""
    page = answer_of(client.get(LOOP))
    grid = page.one("grid-map")
    assert (grid.text.strip(), grid.attributes["data-href"]) == ("3 iterations of loopsss", "?at={number}")
    assert {f"{PAGE}?step=loop/{number}/inside" for number in (1, 2, 3)} <= page.links
    assert LOOP in answer_of(client.get(f"{PAGE}?step=loop&tab=about")).links
    rest = client.get(f"/api/v3{PAGE}/steps/loop/iterations", headers=JSON)
    assert client.get(LOOP, headers=JSON).json() == rest.json()


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("?at=2", ["2", "3"]),
        ("?status=FAILED", []),
        ("?status=SUCCEEDED&limit=1", ["1"]),
        ("?status=&at=", ["1", "2", "3"]),
    ],
)
def test_iterations_are_found_by_number_and_by_status(client: TestClient, query: str, numbers: list[str]) -> None:
    """The grid always shows all of them."""
    page = answer_of(client.get(LOOP + query))
    assert [one.text for one in page.all("b")] == numbers
    assert page.one("grid-map").text.strip().endswith("sss")


def test_what_is_missing_is_a_page_too(client: TestClient) -> None:
    """With the message of the error."""
    answer = client.get("/workflows/demo.flow/instances/77")
    assert answer.status_code == 404
    assert "77" in answer_of(answer).one("main").text


def test_programs_can_ask_whether_the_page_is_there(client: TestClient) -> None:
    """As ``calve run`` does before it prints the address."""
    assert client.head(PAGE).status_code == 200
    assert client.head("/workflows/demo.flow/instances/77").status_code == 404
