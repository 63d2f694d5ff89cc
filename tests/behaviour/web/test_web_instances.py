"""The page of an instance: what broke, whether a restart is safe, and the log, params and attempts of each step."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient
from tests.engines import DONE, FATAL_ERROR, Playground
from tests.pages import Parsed, answer_of, check_fragment, parse
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


def test_the_step_comes_before_the_history(client: TestClient) -> None:
    """On a narrow screen, that is the order; beside each other, the history is below the steps."""
    ids = [one.attributes.get("id") for one in answer_of(client.get(PAGE)).elements]
    assert ids.index("steps") < ids.index("step") < ids.index("history")


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
    assert tail.attributes["src"] == f"/api/v3{PAGE}/steps/extract/logs?run=1&attempt=1"
    assert "live" not in tail.attributes
    assert written.text == "one\n<b>two</b>\n"
    assert {name: value for name, value in written.attributes.items() if name.startswith("data-")} == {
        "data-offset": "0",
        "data-next-offset": "15",
        "data-size": "15",
    }


def test_a_page_has_no_more_of_a_log_than_its_end(client: TestClient, playground: Playground) -> None:
    """However long its lines are; the element loads what is before."""
    found = client.get(f"/api/v3{PAGE}/steps/extract", headers=JSON).json()
    for number in range(40):
        playground.state.append_log(LogChunk(found["step_instance_uuid"], number * 10_000, "é" * 5_000))
    written = answer_of(client.get(f"{PAGE}?step=extract&tab=log")).one("pre", class_="log")
    assert written.attributes["data-next-offset"] == "400000"
    assert 400_000 - int(written.attributes["data-offset"]) == len(written.text.encode()) <= 65_536


def test_a_long_value_is_opened_by_those_who_want_it(client: TestClient, playground: Playground) -> None:
    """Its beginning is shown beside the others; a list of instances has only that."""
    path = "/api/v3/workflows/demo.flow/versions/active/actions/start"
    assert client.post(path, json={"run_params": {"day": "7" * 9_000}}).status_code == 200
    playground.settle()
    whole = answer_of(client.get("/workflows/demo.flow/instances/2"))
    assert [one.text for one in whole.all("summary") if "9,000 characters" in one.text]
    assert "7" * 9_000 in {one.text for one in whole.all("code")}
    assert "7" * 9_000 not in client.get("/instances").text


def _text(page: Parsed) -> str:
    return " ".join(page.one("main").text.split())


def _restart(client: TestClient, playground: Playground) -> None:
    answer = client.post("/actions/restart_instance", data={"workflow_id": "demo.flow", "instance_id": "1"})
    assert answer.status_code == 303
    playground.settle()


def test_an_earlier_run_has_its_own_log_and_no_buttons(client: TestClient, playground: Playground) -> None:
    """Attempts are counted from 1 in each run; what a restart would do is said on the page of the newest one."""
    first = client.get(f"/api/v3{PAGE}/steps/load", headers=JSON).json()
    playground.state.append_log(LogChunk(first["step_instance_uuid"], 0, "no disk\n"))
    _restart(client, playground)
    second = client.get(f"/api/v3{PAGE}/steps/load", headers=JSON).json()
    playground.state.append_log(LogChunk(second["step_instance_uuid"], 0, "done\n"))
    page = answer_of(client.get(f"{PAGE}?run=1&step=load&tab=log"))
    assert page.one("pre", class_="log").text == "no disk\n"
    assert page.one("log-tail").attributes["src"] == f"/api/v3{PAGE}/steps/load/logs?run=1&attempt=1"
    assert not [link for link in page.links if "/actions/" in link or "/restart" in link]
    assert "This is run 1 of 2." in _text(page)
    assert f"{PAGE}?run=1&step=load&tab=params" in page.links
    found = answer_of(client.get(f"{PAGE}?run=1&step=load&tab=log&find=disk"))
    assert found.one("input", name="run").attributes["value"] == "1"
    assert "no disk" in found.one("pre", class_="log").text
    assert answer_of(client.get(f"{PAGE}?step=load&tab=log")).one("pre", class_="log").text == "done\n"
    assert "Is a restart safe?" not in _text(answer_of(client.get(f"{PAGE}?run=1&step=load")))


def test_a_kept_step_has_the_log_of_the_run_that_ran_it(client: TestClient, playground: Playground) -> None:
    """The newest run took it over."""
    found = client.get(f"/api/v3{PAGE}/steps/extract", headers=JSON).json()
    playground.state.append_log(LogChunk(found["step_instance_uuid"], 0, "hello\n"))
    _restart(client, playground)
    for query in ("?step=extract&tab=log", "?run=2&step=extract&tab=log", "?step=extract&tab=log&attempt=1"):
        assert answer_of(client.get(PAGE + query)).one("pre", class_="log").text == "hello\n"
    assert "1" in {one.text for one in answer_of(client.get(f"{PAGE}?step=extract&tab=attempts")).all("b")}


@pytest.mark.parametrize(
    "query", ["?step=load&attempt=7", "?step=load&attempt=7&tab=log", "?step=nope", "?step=loop/9/a"]
)
def test_an_attempt_that_is_missing_is_said_beside_the_graph(client: TestClient, query: str) -> None:
    """The rest of the instance is there."""
    page = answer_of(client.get(PAGE + query))
    assert "Run 1 has no step" in _text(page)


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


def test_the_page_of_iterations_reads_them_once(
    client: TestClient, playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As letters, and a page of them: neither their documents nor the steps inside them are summed up for it."""
    state = type(playground.engine.state)
    for name in ("iterations", "leaves"):
        monkeypatch.setattr(state, name, lambda *_, **__: pytest.fail("all that is inside the loop was read"))
    assert f"{PAGE}?step=loop/2/inside" in answer_of(client.get(LOOP)).links


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("?at=2", ["2", "3"]),
        ("?status=FAILED", []),
        ("?status=SUCCEEDED&limit=1", ["1"]),
        ("?status=&at=&param=", ["1", "2", "3"]),
        ("?param=i%3D1", ["2"]),
        ("?param=i%3D7", []),
    ],
)
def test_iterations_are_found_by_number_and_by_status(client: TestClient, query: str, numbers: list[str]) -> None:
    """The grid always shows all of them."""
    page = answer_of(client.get(LOOP + query))
    assert [one.text for one in page.all("b")] == numbers
    assert page.one("grid-map").text.strip().endswith("sss")


def test_the_iterations_of_an_earlier_run_lead_to_what_it_did(client: TestClient, playground: Playground) -> None:
    """Each link says which run it is about."""
    _restart(client, playground)
    about = answer_of(client.get(f"{PAGE}?run=1&step=loop&tab=about"))
    assert f"{LOOP}?run=1" in about.links
    page = answer_of(client.get(f"{LOOP}?run=1"))
    assert page.one("grid-map").attributes["data-href"] == "?run=1&at={number}"
    assert f"{PAGE}?run=1&step=loop/2/inside" in page.links
    assert "loop/2/inside" in _text(answer_of(client.get(f"{PAGE}?run=1&step=loop/2/inside")))


def test_what_is_missing_is_a_page_too(client: TestClient) -> None:
    """With the message of the error."""
    answer = client.get("/workflows/demo.flow/instances/77")
    assert answer.status_code == 404
    assert "77" in answer_of(answer).one("main").text


LARGE = "9" * 20
"""A number that no column of the state database can hold."""


@pytest.mark.parametrize(
    "path",
    [
        f"/workflows/demo.flow/instances/{LARGE}",
        f"/workflows/demo.flow/instances/-{LARGE}",
        f"/workflows/demo.flow/instances/{LARGE}/restart",
        f"/workflows/demo.flow/instances/{LARGE}/iterations/loop",
        f"/live/workflows/demo.flow/instances/{LARGE}",
        f"/live/workflows/demo.flow/instances/1?after={LARGE}",
    ],
)
def test_a_number_that_is_too_large_is_a_bad_request(client: TestClient, path: str) -> None:
    """On every page that has the number of an instance in its address, and on its stream."""
    assert client.get(path).status_code == 400


@pytest.mark.parametrize("path", [f"loop/{LARGE}/inside", f"loop/1/{LARGE}"])
def test_an_iteration_with_too_large_a_number_is_a_bad_request_too(client: TestClient, path: str) -> None:
    """On the page, which says how a path is written, and of the API."""
    answer = client.get(f"{PAGE}?step={path}")
    assert answer.status_code == 400
    assert "loop/3/job" in _text(answer_of(answer))
    assert client.get(f"/api/v3{PAGE}/steps/{quote(path, safe='')}", headers=JSON).status_code == 400


def test_a_status_that_iterations_do_not_have_is_refused(client: TestClient) -> None:
    """By a sentence that names the field, as for other filters."""
    answer = client.get(f"{LOOP}?status=NOPE")
    assert answer.status_code == 400
    assert "query.status: Input should be" in _text(answer_of(answer))


def test_programs_can_ask_whether_the_page_is_there(client: TestClient) -> None:
    """As ``calve run`` does before it prints the address."""
    assert client.head(PAGE).status_code == 200
    assert client.head("/workflows/demo.flow/instances/77").status_code == 404


MERGE = """
Workflow:
  id: w
  run_strategy: STRATEGY
  jobs:
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.events]}}
    - foreach: {id: loop, ranges: {i: {from: 0, to: 1}}, jobs: [{job: {id: mail, type: Shell, shell: {script: a}}}]}
    - job: {id: merge, type: Spark, TARGETS spark: {script: select 1}}
  dag: [capture -> loop -> merge]
"""
TARGETS = "targets: [db.daily],"
CAPTURED = Outcome(
    State.DONE,
    {"capture_id": "c7", "files": 61, "records": 2_060_114, "bytes": 1_100_000_000},
    artifacts={"capture_id": "c7"},
)


@contextmanager
def _site(playground: Playground, text: str, **start: Any) -> Iterator[TestClient]:
    with TestClient(create_app(services_on(playground), extend=add_pages), follow_redirects=False) as client:
        playground.push(text)
        playground.script.parts["capture"] = CAPTURED
        playground.start("w", **start)
        client.headers.update({"accept": "text/html"})
        yield client


def _merge(targets: str = TARGETS, strategy: str = "SEQUENTIAL") -> str:
    return MERGE.replace("TARGETS", targets).replace("STRATEGY", strategy)


def test_a_step_inside_of_a_loop_makes_a_restart_unsafe(playground: Playground) -> None:
    """The page and the dialog name it."""
    playground.script.parts["mail"] = FATAL_ERROR
    with _site(playground, _merge()) as client:
        assert "It depends on loop/mail: a step" in _text(answer_of(client.get("/workflows/w/instances/1")))
        assert "loop/mail repeats all work" in _text(answer_of(client.get("/workflows/w/instances/1/restart")))


@pytest.mark.parametrize(
    ("targets", "artifacts", "outputs", "said", "fate"),
    [
        (TARGETS, {"published": []}, {}, "Nothing was published: the branch", "not published"),
        (TARGETS, {}, {}, "The attempt was cut off: db.daily has all of it or nothing", "not known"),
        ("", {}, {"published": False, "branch": ""}, "It depends on merge", None),
    ],
)
def test_only_what_is_known_is_said_of_a_delivery(
    playground: Playground, targets: str, artifacts: Any, outputs: Any, said: str, fate: str | None
) -> None:
    """A step without targets has written directly; of one with targets, its artifacts tell."""
    playground.script.parts["merge"] = Outcome(State.FATAL_ERROR, outputs, message="no column", artifacts=artifacts)
    with _site(playground, _merge(targets)) as client:
        for tab in ("cause", "data"):
            page = answer_of(client.get(f"/workflows/w/instances/1?step=merge&tab={tab}"))
            assert {"/captures/c7"} | ({"/tables/db.daily"} if targets else set()) <= page.links
            assert "61 files · 2,060,114 rows · 1.1 GB by capture" in _text(page)
            assert [one for one in ("not published", "not known") if one in _text(page)] == ([fate] if fate else [])
        text = _text(answer_of(client.get("/workflows/w/instances/1")))
        assert said in text
        assert ("Nothing was published" in text) is (fate == "not published")


@pytest.mark.parametrize("strategy", ["SEQUENTIAL", "STRICT_SEQUENTIAL"])
def test_only_what_blocks_others_can_be_unblocked(playground: Playground, strategy: str) -> None:
    """That is a failed instance of STRICT_SEQUENTIAL."""
    playground.script.parts["merge"] = FATAL_ERROR
    with _site(playground, _merge(strategy=strategy)) as client:
        links = answer_of(client.get("/workflows/w/instances/1")).links
        assert any("unblock_instance" in link for link in links) is (strategy == "STRICT_SEQUENTIAL")


def test_an_instance_shows_its_params_tags_and_signals(playground: Playground) -> None:
    """With where the params come from; those of the system are left out."""
    text = """
Workflow:
  id: w
  day: "20260301"
  jobs:
    - job: {id: job, type: NoOp, signal_outputs: {definitions: [{name: db.ready, params: {day: "${day}"}}]}}
"""
    with _site(playground, text, params={"day": "20260302"}, tags=("nightly",)) as client:
        page = answer_of(client.get("/workflows/w/instances/1"))
        assert "20260302" in {one.text for one in page.all("code")}
        assert "nightly" in {one.text for one in page.all("span", class_="chip")}
        assert [link for link in page.links if link.startswith("/signals/db.ready/instances/")]


def test_a_breakpoint_is_set_and_removed_at_a_step(playground: Playground) -> None:
    """Of this instance; it leads back to the step."""
    playground.script.parts["merge"] = FATAL_ERROR
    with _site(playground, _merge()) as client:
        for step_id, does in (("merge", "add"), ("merge", "delete"), ("merge", "add"), ("loop/1/mail", "add")):
            address = f"/workflows/w/instances/1?step={quote(step_id, safe='')}"
            page = answer_of(client.get(address))
            form = next(one for one in page.all("form", class_="inline") if "breakpoint" in one.attributes["action"])
            assert form.attributes["action"] == f"/actions/{does}_breakpoint"
            fields = {one.attributes["name"]: one.attributes["value"] for one in page.all("input", type="hidden")}
            answer = client.post(form.attributes["action"], data=fields)
            assert (answer.status_code, answer.headers["location"]) == (303, address)
        points = playground.state.breakpoints("w")
        assert {(one.step_id, one.instance_id) for one in points} == {("merge", 1), ("mail", 1)}
