"""Lists of instances: of all workflows and of one, with the same filters."""

from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode

import pytest
from starlette.testclient import TestClient
from tests.access_setup import LOCAL, PASSWORD, AccessSetup
from tests.engines import Playground
from tests.pages import Parsed, answer_of
from tests.servers import services_on

from calve.access import parse_grants
from calve.api import create_app
from calve.api.access import guarded
from calve.engine import Outcome, State
from calve.web import add_pages

JOB = "Workflow: {{id: {}, day: 1, jobs: [{{job: {{id: load, type: Sleep}}}}]}}"
HTML = {"accept": "text/html"}
JSON = {"accept": "application/json"}
LISTS = ["/instances?", "/workflows/sales.a?tab=runs"]


@pytest.fixture
def client(playground: Playground) -> Iterator[TestClient]:
    """Give a browser at a server with instances of two workflows, of which one failed."""
    for name in ("sales.a", "other.b"):
        playground.push(JOB.format(name))
    playground.script.parts["load"] = Outcome(State.FATAL_ERROR, message="no disk")
    playground.start("sales.a")
    del playground.script.parts["load"]
    with TestClient(create_app(services_on(playground), extend=add_pages), headers=HTML) as client:
        for name, body in (("sales.a", {"run_params": {"day": 7}, "runtime_tags": ["gold"]}), ("other.b", {})):
            path = f"/api/v3/workflows/{name}/versions/active/actions/start"
            assert client.post(path, json=body).status_code == 200
            playground.settle()
        yield client


def _listed(page: Parsed) -> set[str]:
    """Return the addresses of the instances in the table of a page."""
    return {link for link in page.links if "/instances/" in link and "?" not in link and "{" not in link}


@pytest.mark.parametrize("place", LISTS)
def test_a_form_that_is_sent_as_it_is_shows_everything(client: TestClient, place: str) -> None:
    """Empty fields filter by nothing; the form offers every filter of the API."""
    page = answer_of(client.get(place))
    form = next(one for one in page.all("form") if one.attributes.get("aria-label") == "Filter instances")
    assert form
    names = {one.attributes["name"] for tag in ("input", "select") for one in page.all(tag) if "name" in one.attributes}
    assert {"status", "from", "to", "tag", "initiator", "version", "param"} <= names
    empty = urlencode(dict.fromkeys(("status", "from", "to", "tag", "initiator", "version", "param"), ""))
    assert _listed(answer_of(client.get(f"{place}&{empty}"))) == _listed(page)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("status=FAILED", {"1"}),
        ("status=FAILED,TIMED_OUT", {"1"}),
        ("tag=gold", {"2"}),
        ("param=day%3D7", {"2"}),
        ("param=day%3D7&param=", {"2"}),
        ("initiator=nobody", set()),
        ("version=1", {"1", "2"}),
        ("from=2000-01-01&to=2100-01-01", {"1", "2"}),
        ("to=2000-01-01", set()),
    ],
)
@pytest.mark.parametrize("place", LISTS)
def test_instances_are_filtered(client: TestClient, place: str, query: str, numbers: set[str]) -> None:
    """On both pages by the same; what is chosen stays in the form."""
    page = answer_of(client.get(f"{place}&{query}"))
    listed = {link for link in _listed(page) if link.startswith("/workflows/sales.a/")}
    assert listed == {f"/workflows/sales.a/instances/{number}" for number in numbers}
    shown = {one.attributes.get("value") for one in page.all("input")}
    selected = {one.attributes["value"] for one in page.all("option") if "selected" in one.attributes}
    assert {value for _, value in parse_qsl(query)} <= shown | selected


@pytest.mark.parametrize("query", ["status=NOPE", "status=FAILED,NOPE", f"from={'9' * 20}", "to=soon", "version=x"])
@pytest.mark.parametrize("place", LISTS)
def test_a_filter_that_means_nothing_is_refused(client: TestClient, place: str, query: str) -> None:
    """On a page that names it; a list without the filter would look like an answer."""
    answer = client.get(f"{place}&{query}")
    assert answer.status_code == 400
    assert query.rpartition("=")[2].rpartition(",")[2] in answer_of(answer).one("main").text or "version" in query


def test_the_page_is_the_document_of_the_api(client: TestClient) -> None:
    """For those who accept JSON; its pages follow one another with their filters."""
    for query in ("", "?status=FAILED", "?workflow_id=other.b", "?workflow_id=sales.a&tag=gold"):
        rest = client.get(f"/api/v3/instances{query}", headers=JSON).json()
        assert client.get(f"/instances{query}", headers=JSON).json() == rest
    first = answer_of(client.get("/instances?version=1&limit=2"))
    (link,) = [one.attributes["href"] for one in first.all("a") if one.attributes.get("rel") == "next"]
    assert "version=1" in link
    assert _listed(first) | _listed(answer_of(client.get(link))) == _listed(answer_of(client.get("/instances")))


def test_one_sees_the_instances_that_one_may_read(
    client: TestClient, playground: Playground, access: AccessSetup
) -> None:
    """And no others."""
    assert client.get("/instances").status_code == 200
    app = create_app(services_on(playground), **guarded(access.control(), add_pages))
    access.accounts.add_user("ann", PASSWORD, parse_grants(["viewer@sales"]), LOCAL)
    with TestClient(app, base_url="http://localhost", headers=HTML) as browser:
        browser.post("/actions/sign-in", data={"name": "ann", "password": PASSWORD, "next": "/instances"})
        page = answer_of(browser.get("/instances"))
    assert {link.split("/")[2] for link in _listed(page)} == {"sales.a"}
