"""Two people with roles: a viewer of one namespace is led nowhere they may not go, and refused what they forge."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.access_setup import LOCAL, PASSWORD
from tests.pages import GUARDED, answer_of, parse
from tests.projects import WebProject, crawl, filled_project

from calve.access import csrf_of, parse_grants
from calve.app import web_on

_GUARDED = {"CALVE_ACCESS__REQUIRED": "true", "CALVE_ACCESS__REQUESTS_PER_SECOND": "100000"}
_OWN_FORMS = {"/actions/theme", "/actions/sign-out"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProject]:
    """Give a project with data, where everybody has to sign in."""
    with filled_project(tmp_path_factory.mktemp("project"), _GUARDED, commits=8, runs=2) as filled:
        for name, grant in (("vic", "viewer@playback"), ("eve", "editor@playback"), ("root", "admin")):
            filled.project.accounts.add_user(name, PASSWORD, parse_grants([grant]), LOCAL)
        yield filled


@pytest.fixture(params=["vic", "eve"])
def client(request: pytest.FixtureRequest, made: WebProject) -> Iterator[TestClient]:
    """Give the browser of a viewer, then that of an editor."""
    with _signed_in(made, request.param) as client:
        yield client


@pytest.fixture
def viewer(made: WebProject) -> Iterator[TestClient]:
    """Give the browser of the viewer."""
    with _signed_in(made, "vic") as client:
        yield client


def _signed_in(made: WebProject, name: str) -> TestClient:
    app = web_on(made.project, "127.0.0.1")
    client = TestClient(app, base_url="http://localhost", headers={"accept": "text/html"})
    form = {"name": name, "password": PASSWORD, "next": "/"}
    assert client.post("/actions/sign-in", data=form, follow_redirects=False).status_code == 303
    return client


def test_no_link_and_no_button_leads_to_a_refusal(client: TestClient) -> None:
    """From the home page on, as far as links lead; forms that a page holds are those that may be sent."""
    refused, forms = [], set()
    for address, answer in crawl(client, ["/"]):
        if answer.status_code == 403:
            refused.append(address)
        found = {one.attributes.get("action", "") for one in parse(answer.text).all("form", method="post")}
        forms |= {(address, action) for action in found - _OWN_FORMS if action.startswith("/actions/")}
    assert refused == []
    named = {"workflow_id": "playback.daily", "instance_id": "1"}
    assert [one for one in forms if client.get(one[1], params=named).status_code == 403] == []


def test_a_forged_form_is_refused(viewer: TestClient, made: WebProject) -> None:
    """Whatever changes something takes more than a viewer has, whether the form is complete or not."""
    token = {"csrf": csrf_of(viewer.cookies["calve_session"])}
    forms = [{**made.names, **token}, {**made.names, **token, "workflow_id": "finance.close"}, token]
    answers = {one.id: [viewer.post(f"/actions/{one.id}", data=form).status_code for form in forms] for one in GUARDED}
    assert len(answers) > 40
    assert {name: found for name, found in answers.items() if found != [403, 403, 403]} == {}


_LISTS = {
    "/workflows": "zzz",
    "/workflows?tag=gold": "zzz",
    "/workflows/playback.daily?tab=runs": "last",
    "/instances": "last",
    "/search?q=playback": "last",
    "/tables": "zzz",
    "/tables/playback.playback_table/snapshots": "1",
    "/captures": "zzz",
    "/lineage": "zzz",
    "/signals": "last",
    "/approvals": "zzz",
    "/breakpoints": "zzz",
    "/users": "zzz",
    "/tokens": "zzz",
    "/tag-permits": "zzz",
}
"""Lists, each with a cursor after its end; "last" is that of its last page."""


@pytest.mark.parametrize("address", _LISTS)
def test_a_page_after_the_end_of_a_list_says_so(made: WebProject, address: str) -> None:
    """It does not say that there is nothing yet, nor how to begin; it leads back to the first page."""
    with _signed_in(made, "root") as client:
        cursor = _LISTS[address]
        if cursor == "last":
            document = client.get(address, headers={"accept": "application/json"}).json()
            cursor = document["page_info"]["end_cursor"]
        page = answer_of(client.get(f"{address}{'&' if '?' in address else '?'}cursor={cursor}"))
        main = " ".join(page.one("main").text.split())
        assert "The list ends before this page." in main
        assert "First page" in main


def test_nothing_of_another_namespace_is_on_a_page(viewer: TestClient, made: WebProject) -> None:
    """Neither its workflows nor their errors."""
    for address, answer in crawl(viewer, ["/", *made.addresses()]):
        text = "".join(one.text for one in parse(answer.text).all("main"))
        assert "finance.close" not in text, address
        assert "Connection timed out" not in text, address
