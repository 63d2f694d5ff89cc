"""The pages of users, tokens, secrets and the audit log, and what people with few rights see of the others."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient
from tests.access_setup import LOCAL, PASSWORD, AccessSetup
from tests.engines import Playground
from tests.pages import Parsed, answer_of
from tests.servers import services_on

from calve.access import csrf_of, parse_grants
from calve.api import create_app
from calve.api.access import guarded
from calve.engine import Breakpoint
from calve.web import add_pages

JSON = {"accept": "application/json"}
READABLE = ["/approvals", "/breakpoints", "/triggers", "/signals", "/workers", "/tag-permits", "/job-templates"]
FOR_ADMINISTRATORS = ["/users", "/secrets", "/audit", "/alerts"]
"""As seen by a viewer of one namespace."""
WORKFLOW = """
Workflow:
  id: sales.flow
  jobs: [{job: {id: ask, type: Approval, approval: {message: Go?}}}, {job: {id: hold, type: NoOp}}]
  dag: []
"""


@pytest.fixture
def client(playground: Playground, access: AccessSetup) -> Iterator[TestClient]:
    """Give a browser at a server where everybody has to sign in, and an approval and a breakpoint wait."""
    app = create_app(services_on(playground), **guarded(access.control(), add_pages))
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        token = {"authorization": f"Bearer {access.token('admin')}"}
        given = {**token, "content-type": "application/yaml"}
        assert client.post("/api/v3/workflows/yaml", content=WORKFLOW, headers=given).status_code == 200
        point = {"workflow_id": "sales.flow", "step_id": "hold"}
        assert client.post("/api/v3/workflows/steps/breakpoints", json=point, headers=token).status_code == 200
        client.post("/api/v3/tag-permits", json={"tag": "warehouse", "max_allowed": 2}, headers=token)
        client.post("/api/v3/workflows/sales.flow/versions/active/actions/start", json={}, headers=token)
        playground.settle()
        client.headers.update({"accept": "text/html"})
        yield client


def _sign_in(client: TestClient, access: AccessSetup, name: str, *grants: str) -> str:
    """Sign in by the form; return the token of the pages."""
    access.accounts.add_user(name, PASSWORD, parse_grants(grants), LOCAL)
    answer = client.post("/actions/sign-in", data={"name": name, "password": PASSWORD, "next": "/"})
    assert answer.status_code == 303
    return csrf_of(client.cookies["calve_session"])


def _actions(page: Parsed) -> set[str]:
    return {one for one in page.links if one.startswith("/actions/")}


def test_the_menu_and_the_buttons_are_those_that_one_may_use(client: TestClient, access: AccessSetup) -> None:
    """A viewer of a namespace sees its approvals and breakpoints, and nothing to press; a forged post is refused."""
    csrf = _sign_in(client, access, "vera", "viewer@sales")
    menu = answer_of(client.get("/approvals")).links
    assert {*READABLE, "/tokens"} <= menu
    assert not {*FOR_ADMINISTRATORS} & menu
    for path in READABLE:
        page = answer_of(client.get(path))
        assert _actions(page) == set(), path
    assert [client.get(path).status_code for path in FOR_ADMINISTRATORS] == [403] * 4
    form = {"csrf": csrf, "workflow_id": "sales.flow", "instance_id": "1", "step_id": "ask"}
    assert client.post("/actions/approve_step", data=form).status_code == 403
    assert (
        client.post("/actions/set_tag_permit", data={"csrf": csrf, "tag": "x", "max_allowed": "1"}).status_code == 403
    )
    assert client.post("/actions/add_user", data={"csrf": csrf, "name": "x", "password": PASSWORD}).status_code == 403


@pytest.mark.parametrize("path", ["/users", "/tokens", "/tag-permits", "/breakpoints"])
def test_a_long_list_has_pages(client: TestClient, access: AccessSetup, playground: Playground, path: str) -> None:
    """All of them together hold what the document holds."""
    for number in range(3):
        access.accounts.add_user(f"user{number}", PASSWORD, parse_grants(["viewer"]), LOCAL)
        access.token("viewer")
        playground.state.set_tag_permit(f"tag{number}", 1, 1)
        playground.engine.pause(Breakpoint("sales.flow", "hold", instance_id=number + 1))
    _sign_in(client, access, "ada", "admin")
    rows: list[str] = []
    link = f"{path}?limit=2"
    while link:
        page = answer_of(client.get(link))
        rows += [one.text for one in page.all("tr")[1:] if "Remove" in one.text or path != "/breakpoints"]
        link = next((one.attributes["href"] for one in page.all("a", rel="next")), "")
        link = f"{link}&limit=2" if link else ""
    document = client.get(path, headers=JSON).json()
    whole = document["breakpoints"] if path == "/breakpoints" else document
    assert len(rows) == len(whole) == len(set(rows)) > 3


def test_every_button_that_is_shown_may_be_pressed(client: TestClient, access: AccessSetup) -> None:
    """The form behind each of them opens, for a runner and for an administrator."""
    _sign_in(client, access, "rita", "runner@sales")
    shown = {one for path in READABLE for one in _actions(answer_of(client.get(path)))}
    assert {one.partition("?")[0] for one in shown} >= {"/actions/approve_step", "/actions/delete_breakpoint"}
    assert {client.get(one).status_code for one in shown} == {200}
    client.cookies.clear()
    _sign_in(client, access, "ada", "admin")
    pages = [answer_of(client.get(path)) for path in (*READABLE, "/users", "/audit")]
    assert {client.get(one).status_code for page in pages for one in _actions(page)} == {200}


def test_users_are_added_with_roles(client: TestClient, access: AccessSetup) -> None:
    """Several roles in one field; the password is not echoed, also if something else is wrong."""
    csrf = _sign_in(client, access, "ada", "admin")
    form = {"csrf": csrf, "name": "ben", "password": "short", "grants": "viewer@sales, runner@ops", "next": "/users"}
    assert answer_of(client.get("/actions/add_user")).one("input", name="password").attributes["type"] == "password"
    refused = client.post("/actions/add_user", data={**form, "asked": "name,password,grants"})
    assert refused.status_code == 400
    assert "short" not in {one.attributes.get("value") for one in answer_of(refused).all("input")}
    assert client.post("/actions/add_user", data={**form, "password": PASSWORD}).status_code == 303
    assert {one.text for one in answer_of(client.get("/users")).all("b")} >= {"ada", "ben"}
    twin = client.get("/users", headers=JSON).json()
    assert twin == client.get("/api/v3/access/users", headers=JSON).json()
    assert next(one["grants"] for one in twin if one["name"] == "ben") == ["runner@ops", "viewer@sales"]


def test_people_of_a_provider_are_shown_by_their_names(client: TestClient, access: AccessSetup) -> None:
    """In the header, in the list of users and in the audit log; their ids are the titles of the names."""
    user = access.accounts.vouched("oidc:1234", "Ann <b>", parse_grants(["admin"]), LOCAL)
    client.cookies.set("calve_session", access.authenticator.begin(user, "127.0.0.1").session)
    access.accounts.add_user("ben", PASSWORD, {}, LOCAL)
    users, audit = (answer_of(client.get(path)) for path in ("/users", "/audit"))
    assert users.all("summary")[-1].text == "Ann <b>"
    assert users.all("summary")[-1].attributes["title"] == "oidc:1234"
    assert {one.text: one.attributes.get("title") for one in users.all("b")} == {"Ann <b>": "oidc:1234", "ben": None}
    shown = {one.attributes["title"]: one.text for one in audit.all("b") if "title" in one.attributes}
    assert shown == {"user:oidc:1234": "Ann <b>"}


def test_a_new_token_is_shown_once(client: TestClient, access: AccessSetup) -> None:
    """On the page that answers the form, which is not kept; then only its name."""
    csrf = _sign_in(client, access, "ada", "admin")
    form = {"csrf": csrf, "name": "ci", "grants": "viewer", "show": "1", "next": "/tokens"}
    answer = client.post("/actions/create_token", data=form)
    text = answer_of(answer).one("input", id="token").attributes["value"]
    assert answer.headers["cache-control"] == "no-store"
    assert client.get("/api/v3/workflows", headers={"authorization": f"Bearer {text}", **JSON}).status_code == 200
    page = answer_of(client.get("/tokens"))
    assert "ci" in {one.text for one in page.all("b")}
    assert text not in client.get("/tokens").text
    assert client.get("/tokens", headers=JSON).json() == client.get("/api/v3/access/tokens", headers=JSON).json()


def test_the_audit_log_is_read_in_pages_and_verified(client: TestClient, access: AccessSetup) -> None:
    """Fifty lines each; the page says whether a line was changed or removed."""
    _sign_in(client, access, "ada", "admin")
    for number in range(60):
        access.accounts.create_token(f"t{number}", parse_grants(["viewer"]), LOCAL, life=None)
    first = client.get("/audit", headers=JSON).json()
    assert first == client.get("/api/v3/access/audit?limit=50", headers=JSON).json()
    (older,) = [one for one in answer_of(client.get("/audit")).links if "before=" in one]
    second = client.get(older, headers=JSON).json()
    assert second[0]["seq"] == first[-1]["seq"] - 1
    assert not [one for one in answer_of(client.get("/audit?before=2")).links if "before=" in one]
    assert "The log is whole." in answer_of(client.get("/audit?verify=true")).one("main").text
