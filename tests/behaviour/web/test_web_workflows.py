"""The pages of workflows: the list, one with its graph, runs, definition, triggers, data and settings, and search."""

import json
import re
from collections.abc import Iterator
from html import unescape

import pytest
from starlette.testclient import TestClient
from tests.access_setup import LOCAL, PASSWORD, AccessSetup
from tests.engines import DONE, Playground
from tests.pages import Parsed, answer_of, check_fragment, parse
from tests.servers import services_on, site_on

from calve.access import parse_grants
from calve.api import create_app
from calve.api.access import guarded
from calve.definition import to_yaml
from calve.engine import Outcome, State
from calve.web import add_pages
from calve.web.frame import environment
from calve.web.highlight import json_html, yaml_html

EVIL = "<img src=x onerror=alert(1)>\"'</pre><script>alert(1)</script>"
FLOW = """
Trigger: {cron: '0 5 * * *', timezone: Europe/Berlin}
Workflow:
  id: demo.flow
  description: "EVIL"
  owner: "EVIL"
  tags: [gold]
  day: 20260301
  region<string>: "EVIL"
  sizes<map>: {a: b}
  jobs:
    - job: {id: extract, type: Shell, 'rows<long>': 1, shell: {script: "echo EVIL"}}
    - job: {id: load, type: NoOp}
    - job: {id: skip, type: NoOp}
  dag: {extract: ['IF rows > 0 THEN load', 'OTHERWISE skip']}
""".replace("EVIL", EVIL.replace("\\", "\\\\").replace('"', '\\"'))
PAGE = "/workflows/demo.flow"
TABS = ["graph", "runs", "definition", "triggers", "data", "settings"]
JSON = {"accept": "application/json"}


@pytest.fixture
def client(playground: Playground) -> Iterator[TestClient]:
    """Give a browser at a server with a workflow of two versions, which failed and succeeded."""
    with TestClient(create_app(services_on(playground), extend=add_pages), follow_redirects=False) as client:
        given = {"content-type": "application/yaml"}
        for text in (FLOW, FLOW.replace("20260301", "20260302")):
            assert client.post("/api/v3/workflows/yaml", content=text, headers=given).status_code == 200
        playground.script.parts["extract"] = [Outcome(State.FATAL_ERROR, message="no disk"), DONE]
        for params in ({"day": 7}, {}):
            body = {"run_params": params}
            assert client.post("/api/v3" + PAGE + "/versions/active/actions/start", json=body).status_code == 200
            playground.settle()
        client.headers.update({"accept": "text/html"})
        yield client


def _text(page: Parsed) -> str:
    return " ".join(page.one("main").text.split())


def test_bars_of_runs_say_no_more_than_a_screen_shows() -> None:
    """A list has a thousand of them: their numbers have one digit after the point, whatever durations are."""
    runs = [
        {"ms": number, "status": status, "href": "/", "title": ""}
        for number in range(1, 11)
        for status in ("SUCCEEDED", "FAILED")
    ]
    template = environment().from_string('{% import "_macros.html" as ui %}{{ ui.bars(runs) }}')
    written = template.render(runs=runs)
    assert written.count("<rect") == written.count("<path") == 10
    assert re.findall(r"\d\.\d\d+", written) == []


@pytest.mark.parametrize("query", [f"?tab={tab}" for tab in TABS] + ["", "?tab=nope", "?tab=definition&format=json"])
def test_a_part_of_a_workflow_keeps_the_rules(client: TestClient, query: str) -> None:
    """Nothing that a person can name is more than text, and every link of the page leads to an answer."""
    page = answer_of(client.get(PAGE + query))
    assert page.one("h1").text == "demo.flow"
    assert [one for one in page.all("img") if one.attributes.get("src") == "x"] == []
    for link in page.links:
        if link.startswith((PAGE, "/search", "/actions", "/workflows?")):
            assert client.get(link).status_code == 200, link


def test_only_what_is_blocked_can_be_unblocked(client: TestClient, playground: Playground) -> None:
    """That is a STRICT_SEQUENTIAL workflow with a failed instance: no other waits for a person."""

    def is_offered() -> bool:
        pages = [answer_of(client.get(f"{PAGE}?tab={tab}")) for tab in ("graph", "settings")]
        found = {any("unblock_workflow" in link for link in page.links) for page in pages}
        assert len(found) == 1
        return found.pop()

    assert not is_offered()
    playground.engine.unblock_all("demo.flow")  # of an instance that failed before
    form = {"workflow_id": "demo.flow", "run_strategy": "STRICT_SEQUENTIAL"}
    assert client.post("/actions/change_properties", data=form).status_code == 303
    playground.script.parts["extract"] = Outcome(State.FATAL_ERROR, message="no disk")
    start = "/api/v3/workflows/demo.flow/versions/active/actions/start"
    assert client.post(start, json={}).status_code == 200
    playground.settle()
    assert is_offered()


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("", "/workflows/demo.flow/overview"),
        ("?tab=runs", "/instances?workflow_id=demo.flow"),
        ("?tab=runs&status=FAILED&version=2", "/instances?workflow_id=demo.flow&status=FAILED&version=2"),
        ("?tab=definition", "/workflows/demo.flow/versions/active"),
        ("?tab=definition&version=1", "/workflows/demo.flow/versions/1"),
        ("?tab=definition&from=1&to=2", "/workflows/demo.flow/versions/1/diff/2"),
        ("?tab=triggers", "/triggers?workflow_id=demo.flow"),
        ("?tab=settings", "/workflows/demo.flow/properties-snapshot/latest"),
    ],
)
def test_a_part_of_a_workflow_is_a_document_of_the_api(client: TestClient, query: str, rest: str) -> None:
    """For those who accept JSON."""
    assert client.get(PAGE + query, headers=JSON).json() == client.get("/api/v3" + rest, headers=JSON).json()


def test_the_graph_shows_the_newest_run(client: TestClient) -> None:
    """Each step with its type and status, the condition of each edge, and the way to the step of that run."""
    page = answer_of(client.get(PAGE))
    steps = {one.attributes["data-id"]: one.attributes for one in page.all("a") if "data-id" in one.attributes}
    statuses = {name: one["data-status"] for name, one in steps.items()}
    assert statuses == {"extract": "SUCCEEDED", "load": "SUCCEEDED", "skip": "UNSATISFIED"}
    assert steps["load"]["href"] == f"{PAGE}/instances/2?step=load"
    assert "rows > 0" in {one.text for one in page.all("title")}


def test_the_runs_are_a_grid_and_a_list(client: TestClient) -> None:
    """A line of letters for each step, oldest run first; below it the instances, newest first."""
    page = answer_of(client.get(f"{PAGE}?tab=runs"))
    lines = [line.split("\t") for line in page.one("pre").text.splitlines()]
    assert lines == [["extract", "Fs"], ["load", ".s"], ["skip", ".u"]]
    grid = page.one("grid-map").attributes
    assert [one[0] for one in json.loads(grid["data-columns"])] == ["1", "2"]
    assert grid["data-href"] == PAGE + "/instances/{column}?step={row}"
    rows = [one.text for one in page.all("tr")[1:]]
    assert "day=7" in rows[1]
    filtered = answer_of(client.get(f"{PAGE}?tab=runs&status=FAILED"))
    assert len(filtered.all("tr")) == 2
    assert "No instance fits" in _text(answer_of(client.get(f"{PAGE}?tab=runs&initiator=nobody")))


def test_the_definition_is_shown_as_it_is(client: TestClient) -> None:
    """In YAML and in JSON; the colours add nothing to the text, and take nothing away."""
    written = client.get("/api/v3" + PAGE + "/versions/active", headers=JSON).json()["workflow"]
    assert answer_of(client.get(f"{PAGE}?tab=definition")).one("pre").text == to_yaml(written).rstrip("\n")
    shown = answer_of(client.get(f"{PAGE}?tab=definition&format=json")).one("pre").text
    assert json.loads(shown) == written


def test_two_versions_are_compared(client: TestClient) -> None:
    """What was added and removed is marked by an element and a sign."""
    page = answer_of(client.get(f"{PAGE}?tab=definition&from=1&to=2"))
    assert [one.text.strip() for one in page.all("del")] == ["-      value: 20260301"]
    assert [one.text.strip() for one in page.all("ins")] == ["+      value: 20260302"]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("key: text", {"key": ["key"], "string": ["text"]}),
        ("- 'a: b': 12", {"key": ["'a: b'"], "number": ["12"]}),
        ("script: |\n  echo 1 # why\nnext: [a, 'b', true]", {"key": ["script", "next"], "comment": [" # why"]}),
        ("# all of it", {"comment": ["# all of it"]}),
        (f"evil: {EVIL}", {"key": ["evil"], "string": [EVIL]}),
    ],
)
def test_keys_texts_numbers_and_comments_are_told_apart(text: str, kinds: dict[str, list[str]]) -> None:
    """Nothing of the text is lost, and none of it is HTML."""
    page = parse(str(yaml_html(text)))
    check_fragment(page)
    for kind, texts in kinds.items():
        assert [one.text for one in page.all("span", class_=f"code-{kind}")] == texts
    assert {one.tag for one in page.elements} == {"span"}


def test_json_is_coloured_too() -> None:
    """Keys are told from texts."""
    page = parse(str(json_html('{\n  "a": "b",\n  "n": [1, null]\n}')))
    assert [one.text for one in page.all("span", class_="code-key")] == ['"a"', '"n"']
    assert [one.text for one in page.all("span", class_="code-number")] == ["1", "null"]


def test_the_triggers_say_why_nothing_starts(client: TestClient) -> None:
    """Before a scheduler has taken them over, the page says so."""
    page = answer_of(client.get(f"{PAGE}?tab=triggers"))
    assert "No scheduler has registered these triggers yet." in _text(page)
    assert client.get("/api/v3" + PAGE + "/upcoming", headers=JSON).json() == {"elements": []}


def test_a_start_asks_for_the_params(client: TestClient) -> None:
    """With their types and defaults; it shows the command and the request that start the same, and leads there."""
    page = answer_of(client.get(f"{PAGE}/start", params={"run_params.day:json": "5", "run_params.region": "e'u"}))
    names = {one.attributes["name"] for one in page.elements if one.attributes.get("name", "").startswith("run_")}
    assert names == {"run_params.day:json", "run_params.region", "run_params.sizes:json"}
    command, request, body = (one.text for one in page.all("pre"))
    assert body == "run_params:\n  day: 5\n  region: e'u\n"
    assert command == """calve run demo.flow day=5 'region=e'"'"'u' --no-wait"""
    assert unescape(request).endswith("/api/v3/workflows/demo.flow/versions/active/actions/start")
    form = {"workflow_id": "demo.flow", "version": "active", "run_params.day:json": "5", "next": PAGE}
    answer = client.post("/actions/start_workflow", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PAGE}/instances/3")
    made = client.get("/api/v3" + PAGE + "/instances/3", headers=JSON).json()
    assert made["run_params"]["day"]["value"] == 5
    fragment = client.get(f"{PAGE}/start", headers={"x-calve-fragment": "1"}).text
    check_fragment(parse(fragment))
    assert "<html" not in fragment


def test_the_commands_of_a_start_do_the_same(client: TestClient) -> None:
    """The version is named, and a text that looks like JSON stays a text."""
    query = {"version": "latest", "run_params.region": "20260301", "run_params.day:json": "7"}
    command, request, _ = (one.text for one in answer_of(client.get(f"{PAGE}/start", params=query)).all("pre"))
    assert command == """calve run demo.flow day=7 'region="20260301"' --version latest --no-wait"""
    assert "/versions/latest/actions/start" in request
    assert "Authorization" not in request


def test_a_bad_value_of_a_start_can_be_corrected(client: TestClient) -> None:
    """The form comes back as it was filled in, with what is wrong beside the field."""
    form = {
        "workflow_id": "demo.flow",
        "version": "latest",
        "run_params.day:json": "tomorrow",
        "run_params.region": "eu",
    }
    answer = client.post("/actions/start_workflow", data=form)
    assert answer.status_code == 400
    page = answer_of(answer)
    field = page.one("input", name="run_params.day:json").attributes
    assert (field["value"], field["aria-invalid"]) == ("tomorrow", "true")
    assert page.one("small", id=field["aria-describedby"]).text == "Write a whole number."
    assert page.one("input", name="run_params.region").attributes["value"] == "eu"
    assert page.one("input", name="version").attributes["value"] == "latest"
    again = client.post("/actions/start_workflow", data={**form, "run_params.day:json": "7"})
    assert again.status_code == 303


def test_a_request_brings_a_token_where_people_sign_in(playground: Playground, access: AccessSetup) -> None:
    """From the environment: the page shows none."""
    playground.push(FLOW)
    app = create_app(services_on(playground), **guarded(access.control(), add_pages))
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        client.headers.update({"accept": "text/html"})
        access.accounts.add_user("ann", PASSWORD, parse_grants(["runner"]), LOCAL)
        client.post("/actions/sign-in", data={"name": "ann", "password": PASSWORD, "next": "/"})
        page = answer_of(client.get(f"{PAGE}/start"))
        assert '-H "Authorization: Bearer $CALVE_TOKEN"' in page.all("pre")[1].text


def test_the_token_of_a_start_is_not_in_an_address(client: TestClient) -> None:
    """Only the button that starts carries it; the form itself asks by GET."""
    page = answer_of(client.get(f"{PAGE}/start"))
    assert page.one("form", id="start").attributes["method"] == "get"
    assert [one.tag for one in page.all("input", name="csrf") if one.attributes.get("form") == "start"] == []
    assert page.one("button", name="csrf").attributes["formmethod"] == "post"


def test_a_deleted_workflow_leads_to_the_list(client: TestClient) -> None:
    """The page that the form came from is no more."""
    answer = client.post("/actions/delete_workflow", data={"workflow_id": "demo.flow", "next": PAGE})
    assert answer.headers["location"] == "/workflows"
    assert client.get(PAGE).status_code == 404


def test_a_viewer_sees_no_button_that_is_refused(playground: Playground, access: AccessSetup) -> None:
    """Nor the form of a start."""
    playground.push(FLOW)
    app = create_app(services_on(playground), **guarded(access.control(), add_pages))
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        client.headers.update({"accept": "text/html"})
        access.accounts.add_user("eve", PASSWORD, parse_grants(["viewer"]), LOCAL)
        client.post("/actions/sign-in", data={"name": "eve", "password": PASSWORD, "next": "/"})
        for tab in TABS:
            page = answer_of(client.get(f"{PAGE}?tab={tab}"))
            assert [link for link in page.links if link.startswith("/actions/") or link.endswith("/start")] == []
        assert client.get(f"{PAGE}/start").status_code == 403


def test_a_workflow_is_kept_up_to_date_by_its_stream(playground: Playground) -> None:
    """The graph and the summary change when a run begins."""
    with site_on(playground, extend=add_pages) as site:
        site.push(FLOW)
        page = answer_of(site.client.get(PAGE, headers={"accept": "text/html"}))
        live = page.one("main").attributes["hx-sse:connect"]
        site.start("demo.flow")
        with site.client.stream("GET", live) as answer:
            data = next(line for line in answer.iter_lines() if line.startswith("data:"))
    assert 'hx-target="#summary"' in data or 'hx-target="#graph"' in data


def test_the_list_filters_by_tag_and_owner(client: TestClient) -> None:
    """The filters are in the address; a list that nothing fits leads on to a search of definitions."""
    page = answer_of(client.get("/workflows", params={"tag": "gold", "owner": EVIL}))
    assert [one.text for one in page.all("b")] == ["demo.flow"]
    empty = answer_of(client.get("/workflows", params={"search": "no disk"}))
    assert "/search?q=no%20disk" in empty.links


def test_search_is_a_page_and_the_document_of_the_palette(client: TestClient) -> None:
    """It finds texts of definitions and instances by number; the form of the header leads to it."""
    page = answer_of(client.get("/search", params={"q": "demo.flow 2"}))
    assert f"{PAGE}/instances/2" in page.links
    assert PAGE in answer_of(client.get("/search", params={"q": "onerror=alert"})).links
    for form in page.all("form", role="search"):
        assert form.attributes["action"] == "/search"
    twin = client.get("/search", params={"q": "flow"}, headers=JSON).json()
    assert twin == client.get("/api/v3/search", params={"q": "flow", "include": "jumps"}, headers=JSON).json()
    assert "Search by id" in _text(answer_of(client.get("/search")))
    assert "Nothing is called" in _text(answer_of(client.get("/search", params={"q": EVIL[:20] + "?"})))
