"""Pages: what every one keeps to, in the forms that a caller accepts."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.access_setup import LOCAL, PASSWORD, AccessSetup
from tests.engines import Playground
from tests.pages import answer_of, check_fragment, parse
from tests.servers import services_on

from calve.access import OidcClient, Provider, csrf_of, parse_grants
from calve.api import create_app
from calve.api.access import ProviderHttp, guarded
from calve.web import add_pages

HTML = {"accept": "text/html,application/xhtml+xml"}
JSON = {"accept": "application/json"}
PAGES = ["/", "/workflows", "/workflows?search=de", "/workflows/demo.hello", "/search?q=demo", "/styleguide"]
WORKFLOW = """
Workflow:
  id: {}
  jobs:
    - job:
        id: job
        type: NoOp
"""


@pytest.fixture
def client(playground: Playground) -> Iterator[TestClient]:
    """Give a browser at the machine of the server, where nobody signs in."""
    with TestClient(create_app(services_on(playground), extend=add_pages), follow_redirects=False) as client:
        client.headers.update(HTML)
        _push(client, "demo.hello")
        yield client


@pytest.fixture
def guarded_client(playground: Playground, access: AccessSetup) -> Iterator[TestClient]:
    """Give a browser at a server where everybody has to sign in."""
    app = create_app(services_on(playground), **guarded(access.control(), add_pages))
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        client.headers.update(HTML)
        yield client


def _push(client: TestClient, workflow_id: str, **headers: str) -> None:
    text = WORKFLOW.format(workflow_id)
    given = {"content-type": "application/yaml", **headers}
    assert client.post("/api/v3/workflows/yaml", content=text, headers=given).status_code == 200


def _start(client: TestClient, workflow_id: str = "demo.hello", **headers: str) -> None:
    path = f"/api/v3/workflows/{workflow_id}/versions/active/actions/start"
    assert client.post(path, json={}, headers=headers).status_code == 200


def _signed_in(client: TestClient, access: AccessSetup, name: str, *grants: str) -> str:
    """Sign in by the form; return the token of the pages."""
    access.accounts.add_user(name, PASSWORD, parse_grants(grants), LOCAL)
    form = {"name": name, "password": PASSWORD, "next": "/workflows"}
    answer = client.post("/actions/sign-in", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/workflows")
    return csrf_of(client.cookies["calve_session"])


@pytest.mark.parametrize("path", PAGES)
def test_a_page_keeps_the_rules(client: TestClient, path: str) -> None:
    """One heading, no script, style or handler inside; every link leads somewhere on this server."""
    page = answer_of(client.get(path))
    assert page.one("main")
    known = {"/tables", "/lineage"}  # the navigation names pages that are still to come
    for link in page.links - known:
        if not link.startswith(("/workflows/", "/actions/")):
            assert client.get(link).status_code == 200, link


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_its_rest_document_for_those_who_want_json(client: TestClient, path: str) -> None:
    """The same address; browsers, which accept everything, get HTML."""
    answer = client.get(path, headers=JSON)
    assert answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json(), dict)
    assert client.get(path, headers={"accept": "*/*"}).headers["content-type"].startswith("text/html")


def test_the_list_of_workflows_is_that_of_the_api(client: TestClient) -> None:
    """Its JSON is the document of REST, and its HTML names every workflow of it."""
    twin = client.get("/workflows", headers=JSON).json()
    assert twin == client.get("/api/v3/workflows?include=runs,triggers", headers=JSON).json()
    page = answer_of(client.get("/workflows"))
    assert {one["workflow_id"] for one in twin["elements"]} == {one.text for one in page.all("b")}


def test_pages_are_not_in_the_description_of_the_api(client: TestClient) -> None:
    """OpenAPI describes what programs use."""
    paths = client.get("/api/v3/openapi.json").json()["paths"]
    assert [path for path in paths if not path.startswith(("/api/", "/health", "/ready", "/metrics", "/graphql"))] == []


def test_pages_are_compressed_for_those_who_take_it(client: TestClient) -> None:
    """And are the same for those who do not."""
    compressed = client.get("/styleguide")
    assert compressed.headers["content-encoding"] == "gzip"
    assert "Accept-Encoding" in compressed.headers["vary"]
    plain = client.get("/styleguide", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert int(compressed.headers["content-length"]) < int(plain.headers["content-length"]) / 3


def test_text_of_users_is_text_on_pages(client: TestClient) -> None:
    """What someone searches for is escaped, whatever it is."""
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
    page = answer_of(client.get("/workflows", params={"search": evil}))
    assert page.one("input", value=evil)
    assert "<script>alert" not in client.get("/workflows", params={"search": evil}).text


def test_errors_are_pages_for_browsers_and_documents_for_programs(client: TestClient) -> None:
    """With the message and the remedy; under /api/v3 always a document."""
    page = answer_of(client.get("/nothing"))
    assert "/nothing" in page.one("main").text
    assert client.get("/nothing", headers=JSON).json()["code"] == "not_found"
    assert client.get("/api/v3/nothing").json()["code"] == "not_found"


def test_static_files_are_kept_for_ever_under_their_hash(client: TestClient) -> None:
    """Compressed if the browser takes it; under another hash the same file, but not to be kept."""
    address = answer_of(client.get("/")).all("link", rel="stylesheet")[0].attributes["href"]
    answer = client.get(address)
    assert "immutable" in answer.headers["cache-control"]
    assert answer.headers["content-encoding"] == "gzip"
    assert "@layer" in answer.text
    assert "content-encoding" not in client.get(address, headers={"accept-encoding": "identity"}).headers
    assert client.get("/static/0/style.css").headers["cache-control"] == "no-cache"
    assert client.get("/static/0/../page.py").status_code == 404


def test_the_icon_is_found_where_browsers_look_for_it(guarded_client: TestClient) -> None:
    """On pages that name none, such as that of the way back from a provider; nobody has signed in there yet."""
    answer = guarded_client.get("/favicon.ico", headers={"accept": "image/*"})
    assert answer.status_code == 307
    icon = guarded_client.get(answer.headers["location"])
    assert (icon.status_code, icon.headers["content-type"]) == (200, "image/svg+xml")


def test_a_form_performs_an_operation_and_leads_back(client: TestClient) -> None:
    """The next page says once what was done."""
    _start(client)
    form = {"workflow_id": "demo.hello", "instance_id": "1", "reason": "wrong day", "next": "/workflows"}
    answer = client.post("/actions/stop_instance", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/workflows")
    assert answer_of(client.get("/workflows")).one("p", class_="flash").text
    assert answer_of(client.get("/workflows")).all("p", class_="flash") == []


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x"])
def test_nobody_is_led_elsewhere(client: TestClient, target: str) -> None:
    """Only a place on this server is one to go on to."""
    form = {"workflow_id": "demo.hello", "next": target}
    assert client.post("/actions/unblock_workflow", data=form).headers["location"] == "/"


def test_a_refused_form_is_shown_again_with_the_reason(client: TestClient) -> None:
    """With what was filled in; a program gets the problem as ever."""
    form = {"workflow_id": "demo.hello", "instance_id": "99", "reason": "wrong day", "asked": "reason"}
    answer = client.post("/actions/stop_instance", data=form)
    page = answer_of(answer)
    assert answer.status_code == 404
    assert "instance 99" in page.one("div", role="alert").text
    assert page.one("input", name="reason").attributes["value"] == "wrong day"
    assert page.one("input", name="instance_id").attributes["type"] == "hidden"
    problem = client.post("/actions/stop_instance", data=form, headers=JSON)
    assert problem.json()["code"] == "workflow_missing"


def test_a_form_is_a_page_without_javascript_and_a_fragment_for_the_dialog(client: TestClient) -> None:
    """It asks for what is not given, and says what the operation does in its own words."""
    address = "/actions/stop_instance?workflow_id=demo.hello&instance_id=1&next=/workflows&label=Harmless"
    text = client.get(address).text
    page = answer_of(client.get(address))
    assert page.one("form", class_="form").attributes["action"] == "/actions/stop_instance"
    assert page.one("input", name="reason")
    assert "Harmless" not in page.one("h2", id="dialog-title").text
    fragment = client.get(address, headers={"x-calve-fragment": "1"}).text
    check_fragment(parse(fragment))
    assert "<html" not in fragment
    assert "<html" in text


@pytest.mark.parametrize("operation_id", ["get_instance", "nope", "list_workflows"])
def test_only_changes_are_actions(client: TestClient, operation_id: str) -> None:
    """What only reads has a page or a document of its own."""
    assert client.post(f"/actions/{operation_id}", data={"workflow_id": "demo.hello"}).status_code == 404


def test_browsers_are_redirected_to_sign_in_and_programs_get_an_error(guarded_client: TestClient) -> None:
    """And come back to where they wanted to go."""
    answer = guarded_client.get("/workflows?search=x")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/workflows%3Fsearch%3Dx")
    assert answer_of(guarded_client.get(answer.headers["location"])).one("input", name="next").attributes["value"] == (
        "/workflows?search=x"
    )
    assert guarded_client.get("/workflows", headers=JSON).status_code == 401


def test_the_identity_provider_is_offered_where_there_is_one(playground: Playground, access: AccessSetup) -> None:
    """With where to go afterwards."""
    known = OidcClient("http://localhost", "calve", "http://localhost/back", ("openid",), "name", "groups", {})
    control = replace(
        access.control(), provider=Provider(known, ProviderHttp(), lambda: access.now, secrets.token_bytes)
    )
    app = create_app(services_on(playground), **guarded(control, add_pages))
    with TestClient(app, base_url="http://localhost") as client:
        page = answer_of(client.get("/sign-in?next=/workflows", headers=HTML))
    assert page.one("a", class_="button primary wide").attributes["href"].endswith("begin?next=%2Fworkflows")


def test_a_wrong_password_is_reported_on_the_page(guarded_client: TestClient) -> None:
    """With the name kept, and without saying which of the two is wrong."""
    answer = guarded_client.post("/actions/sign-in", data={"name": "ann", "password": "wrong"})
    assert answer.status_code == 401
    assert answer_of(answer).one("input", name="name").attributes["value"] == "ann"


def test_the_first_administrator_signs_in_with_the_printed_token(
    guarded_client: TestClient, access: AccessSetup
) -> None:
    """Once."""
    token = access.accounts.bootstrap_token(LOCAL, life=3_600_000)
    form = {"token": token, "name": "root", "password": PASSWORD}
    assert guarded_client.post("/actions/bootstrap", data=form).status_code == 303
    assert answer_of(guarded_client.get("/")).all("summary")[-1].text == "root"


def test_forms_of_a_session_show_its_token(guarded_client: TestClient, access: AccessSetup) -> None:
    """As a field, or by the header; without, or with another one, nothing happens."""
    csrf = _signed_in(guarded_client, access, "ann", "admin")
    _push(guarded_client, "demo.hello", **{"x-calve-csrf": csrf})
    form = {"workflow_id": "demo.hello"}
    path = "/actions/unblock_workflow"
    assert guarded_client.post(path, data=form).status_code == 403
    assert guarded_client.post(path, data={**form, "csrf": "0" * 64}).status_code == 403
    assert guarded_client.post(path, data={**form, "csrf": csrf}).status_code == 303
    assert guarded_client.post(path, data=form, headers={"x-calve-csrf": csrf}).status_code == 303
    foreign = {"origin": "https://evil.example"}
    assert guarded_client.post(path, data={**form, "csrf": csrf}, headers=foreign).status_code == 403
    assert guarded_client.post("/actions/sign-out").status_code == 400
    assert guarded_client.post("/actions/sign-out", data={"csrf": csrf}).status_code == 303
    assert guarded_client.get("/").status_code == 303


def test_what_a_form_did_is_in_the_audit_log_as_the_operation(guarded_client: TestClient, access: AccessSetup) -> None:
    """Not as the route of forms."""
    csrf = _signed_in(guarded_client, access, "ann", "admin")
    _push(guarded_client, "demo.hello", **{"x-calve-csrf": csrf})
    guarded_client.post("/actions/unblock_workflow", data={"workflow_id": "demo.hello", "csrf": csrf})
    (act,) = [one.act for one in access.state.entries() if one.act.action == "unblock_workflow"]
    assert (act.target, act.result) == ("/api/v3/workflows/demo.hello/actions/unblock", "ok")


def test_a_viewer_sees_no_button_that_is_refused(guarded_client: TestClient, access: AccessSetup) -> None:
    """And is refused if they send the form all the same."""
    csrf = _signed_in(guarded_client, access, "vic", "viewer")
    page = answer_of(guarded_client.get("/styleguide"))
    assert [one for one in page.all("a") if "data-dialog" in one.attributes] == []
    form = {"workflow_id": "demo.hello", "instance_id": "1", "csrf": csrf}
    answer = guarded_client.post("/actions/stop_instance", data=form)
    assert (answer.status_code, answer_of(answer).one("h1").text) == (403, "You may not do this")
    assert guarded_client.get("/actions/stop_instance?workflow_id=demo.hello&instance_id=1").status_code == 403
    assert guarded_client.post("/actions/stop_instance", data={"csrf": csrf}).status_code == 403  # incomplete besides


def test_the_theme_is_kept(client: TestClient) -> None:
    """Light, dark, or as the system has it."""
    client.post("/actions/theme", data={"theme": "dark", "next": "/workflows"})
    assert answer_of(client.get("/")).one("html").attributes["data-theme"] == "dark"
    client.post("/actions/theme", data={"theme": "purple"})
    assert "data-theme" not in answer_of(client.get("/")).one("html").attributes


def test_errors_of_forms_that_are_none(client: TestClient) -> None:
    """JSON is for /api/v3."""
    answer: Any = client.post("/actions/unblock_workflow", content=json.dumps({}), headers=JSON)
    assert answer.json()["code"] == "request_invalid"
