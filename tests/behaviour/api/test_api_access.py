"""Who gets in over HTTP: every route is walked with every kind of bad credential (reliability.md B.4: 47, 48)."""

import re
import secrets
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from starlette.routing import Mount, Route, WebSocketRoute
from tests.access_setup import HOUR, LOCAL, PASSWORD, AccessSetup, bearer
from tests.engines import Playground
from tests.identity_provider import provider
from tests.servers import Site, site_on
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from calve.access import OidcClient, Permission, Provider, Role, csrf_of
from calve.api import WebServices, create_app
from calve.api.access import ProviderHttp, guarded
from calve.api.routes import Guard, policy_of
from calve.errors import SettingsInvalid
from calve.operations import READ_SOMEWHERE, PermissionScope, Policy
from calve.web import add_pages

if TYPE_CHECKING:
    from fastapi import FastAPI

HOSTS = ["evil.example", "evil.example:80", "localhost.evil.example", "", "[", "127.0.0.1.nip.io"]
FOREIGN = [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
PUBLIC = {
    ("POST", "/api/v3/access/sign-in"),
    ("POST", "/api/v3/access/bootstrap"),
    ("GET", "/api/v3/access/oidc/begin"),
    ("GET", "/api/v3/access/oidc/callback"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/static/{hash}/{name:path}"),
    ("GET", "/favicon.ico"),
    ("GET", "/sign-in"),
    ("HEAD", "/sign-in"),
    ("GET", "/bootstrap"),
    ("HEAD", "/bootstrap"),
    ("POST", "/actions/sign-in"),
    ("POST", "/actions/bootstrap"),
    ("POST", "/actions/theme"),
}
"""Every route that answers without authentication. Think twice before you add a line."""
WORKFLOW = """
Workflow:
  id: {}
  jobs:
    - job:
        id: job
        type: NoOp
"""


@pytest.fixture
def site(playground: Playground, access: AccessSetup) -> Iterator[Site]:
    """Give a server where everybody has to sign in."""
    with site_on(playground, **guarded(access.control(), add_pages)) as site:
        yield site


def _walk(playground: Playground, access: AccessSetup) -> list[tuple[str, str, Policy]]:
    app = create_app(WebServices(playground.engine), **guarded(access.control(), add_pages))
    found = []
    for route in app.routes:
        policy = policy_of(route)
        assert policy is not None, route
        if isinstance(route, WebSocketRoute):
            found.append(("WEBSOCKET", route.path, policy))
            continue
        assert isinstance(route, Route)
        found += [(method, route.path, policy) for method in sorted(route.methods or ())]
    return found


def _filled(path: str, workflow_id: str) -> str:
    path = path.replace("{workflow_id}", workflow_id).replace("{version}", "1")
    return re.sub(r"{[^}]*}", "1", path)


def _ask(site: Site, method: str, path: str, **options: Any) -> httpx.Response:
    if method == "WEBSOCKET":
        return _opened(site, path, **options)
    return site.client.request(method, path, **options)


def _opened(site: Site, path: str, headers: dict[str, str] | None = None) -> httpx.Response:
    """Open a WebSocket, and return the answer to it."""
    try:
        with connect(site.url.replace("http", "ws") + path, additional_headers=headers or {}):
            return httpx.Response(101)
    except InvalidStatus as error:
        return httpx.Response(error.response.status_code)


def test_only_these_routes_are_public(playground: Playground, access: AccessSetup) -> None:
    """48: whatever else there is takes a permission."""
    found = {
        (method, path) for method, path, policy in _walk(playground, access) if policy.permission is Permission.PUBLIC
    }
    assert found <= PUBLIC


def test_no_route_accepts_bad_credentials(site: Site, playground: Playground, access: AccessSetup) -> None:
    """48: none, wrong, expired, revoked, of a bootstrap, of another scheme, by an old cookie."""
    expired = access.token("admin", life=HOUR)
    revoked, token = access.accounts.create_token("old", {"": Role.ADMIN}, LOCAL, life=None)
    access.accounts.revoke_token(token.token_id, LOCAL)
    access.now += HOUR
    bad = {
        "none": {},
        "empty": {"authorization": ""},
        "wrong": bearer("calve_" + "x" * 43),
        "expired": bearer(expired),
        "revoked": bearer(revoked),
        "bootstrap": bearer(access.accounts.bootstrap_token(LOCAL, life=HOUR) or ""),
        "basic": {"authorization": "Basic YWRtaW46YWRtaW4="},
        "cookie": {"cookie": "calve_session=calve_nothing"},
        "user": {"user": "admin"},
    }
    let_in = []
    for method, path, policy in _walk(playground, access):
        if policy.permission is Permission.PUBLIC:
            continue
        for kind, headers in bad.items():
            access.forget_failures()
            answer = _ask(site, method, _filled(path, "w"), headers=headers)
            if answer.status_code not in {401, 403 if method == "WEBSOCKET" else 401}:
                let_in.append((kind, method, path, answer.status_code))
    assert let_in == []


def test_every_route_checks_the_permissions_of_roles(site: Site, playground: Playground, access: AccessSetup) -> None:
    """48: someone without roles, with one in another namespace, or with one that is too weak, is refused."""
    site.client.headers.update(bearer(access.token("admin")))
    site.push(WORKFLOW.format("finance.w"))
    del site.client.headers["authorization"]
    nobody, stranger = bearer(access.token()), bearer(access.token("admin@sales"))
    weak = {role: bearer(access.token(str(role))) for role in Role}
    let_in = []
    for method, path, policy in _walk(playground, access):
        if policy.permission in {Permission.PUBLIC, Permission.SIGNED_IN}:
            continue
        tried = [("nobody", nobody)] + [
            (str(role), headers) for role, headers in weak.items() if policy.permission not in role.permissions
        ]
        if policy.scope is not PermissionScope.SOMEWHERE:
            tried.append(("stranger", stranger))
        for kind, headers in tried:
            answer = _ask(site, method, _filled(path, "finance.w"), headers=headers)
            if answer.status_code != 403:
                let_in.append((kind, method, path, answer.status_code))
    assert let_in == []


def test_no_list_contains_other_namespaces(site: Site, playground: Playground, access: AccessSetup) -> None:
    """What a caller may not read is not in any list, nor counted, nor named in an error."""
    site.client.headers.update(bearer(access.token("admin")))
    for workflow_id in ("finance.hidden", "sales.seen"):
        site.push(WORKFLOW.format(workflow_id))
        site.start(workflow_id)
    playground.settle()
    site.client.headers.update(bearer(access.token("viewer@sales")))
    for method, path, policy in _walk(playground, access):
        is_stream = path.endswith("/events") or path.startswith("/live/")
        if method == "GET" and policy.scope is PermissionScope.SOMEWHERE and not is_stream:
            assert "finance" not in _ask(site, method, _filled(path, "sales.seen")).text, path


def test_approvals_of_other_namespaces_are_not_listed(site: Site, playground: Playground, access: AccessSetup) -> None:
    """Neither by REST nor by GraphQL, whichever workflow is asked for."""
    asking = "Workflow: {{id: {}, jobs: [{{job: {{id: ok, type: Approval, approval: {{message: Go?}}}}}}]}}"
    site.client.headers.update(bearer(access.token("admin")))
    for workflow_id in ("finance.hidden", "sales.seen"):
        site.push(asking.format(workflow_id))
        site.start(workflow_id)
    playground.settle()
    assert len(site.get("/approvals")["elements"]) == 2
    site.client.headers.update(bearer(access.token("viewer@sales")))
    assert [one["workflow_id"] for one in site.get("/approvals")["elements"]] == ["sales.seen"]
    assert site.get("/approvals?workflow_id=finance.hidden")["elements"] == []
    for given in ("", '(workflowId: "finance.hidden")', '(first: 1, after: "0")'):
        answer = _ask(site, "POST", "/graphql", json={"query": f"{{ approvals{given} }}"})
        assert "finance" not in answer.text, given
        assert answer.json().get("errors") is None, given
    assert "sales.seen" in _ask(site, "POST", "/graphql", json={"query": "{ approvals }"}).text


def test_an_app_with_a_route_without_a_policy_is_not_made(playground: Playground) -> None:
    """48: nobody can forget to think of it; neither for what is mounted."""
    from fastapi import APIRouter

    def bare(app: "FastAPI") -> None:
        router = APIRouter()
        router.get("/bare")(lambda: "bare")
        app.router.routes.extend(router.routes)

    def mounted(app: "FastAPI") -> None:
        app.router.routes.append(Mount("/files", routes=[Route("/x", dict)]))

    for extend in (bare, mounted):
        with pytest.raises(SettingsInvalid, match="policy"):
            create_app(WebServices(playground.engine), middleware=[], extend=extend)


@pytest.mark.parametrize(
    ("called", "status"), [("sales.other", 200), ("finance.other", 403), ("other", 403), ("${x}", 403)]
)
def test_a_definition_cannot_start_workflows_without_permission(
    site: Site, access: AccessSetup, called: str, status: int
) -> None:
    """A subworkflow of another namespace, or one that only a run names, takes a right to run it."""
    inner = f"{{subworkflow: {{id: a, workflow_id: '{called}'}}}}"
    loop = f"{{foreach: {{id: loop, ranges: {{i: {{from: 0, to: 2}}}}, jobs: [{inner}]}}}}"
    definition = f"Workflow: {{id: sales.w, x: finance.b, jobs: [{loop}]}}"
    headers = bearer(access.token("editor@sales")) | {"content-type": "application/yaml"}
    assert _ask(site, "POST", "/api/v3/workflows/yaml", content=definition, headers=headers).status_code == status


CALLING = """
Workflow: {id: sales.w, target: sales.b, jobs: [{foreach: {id: loop, ranges: {i: {from: 0, to: 1}}, jobs: [
  {subworkflow: {id: call, workflow_id: '${target}'}}]}}, {subworkflow: {id: fixed, workflow_id: finance.b}}]}
"""


def test_a_param_cannot_start_workflows_without_permission(
    site: Site, access: AccessSetup, playground: Playground
) -> None:
    """Neither at the start, nor by a restart of any kind; what the definition writes out, its author could start."""
    for text in (WORKFLOW.format("sales.b"), WORKFLOW.format("finance.b"), CALLING):
        playground.push(text)
    runner, everywhere = bearer(access.token("runner@sales")), bearer(access.token("runner"))

    def post(path: str, headers: dict[str, str], **body: Any) -> dict[str, Any]:
        answer = _ask(site, "POST", f"/api/v3/workflows/sales.w/{path}", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        playground.settle()
        found: dict[str, Any] = answer.json()
        return found

    def ends(number: int) -> tuple[str, int]:
        """Return how an instance ended, and how many of the other namespace were started by a param so far."""
        run = playground.state.run("sales.w", number)
        assert run is not None
        by_param = [one for one in playground.state.instances(workflow_id="finance.b") if one.depth > 1]
        return run.status.value, len(by_param)

    start, restart = "versions/active/actions/start", "instances/1/actions/restart"
    post(start, runner, run_params={"target": "finance.b"})
    assert ends(1) == ("FAILED", 0)
    post(restart, runner)
    post(restart, runner, run_params={"target": "finance.b"}, restart_policy="RESTART_FROM_BEGINNING")
    post("instances/1/steps/loop/1/call/actions/restart", runner, step_run_params={"subworkflow_id": "finance.b"})
    assert ends(1) == ("FAILED", 0)
    query = 'mutation { start(workflowId: "sales.w", params: {target: "finance.b"}) { status } }'
    assert _ask(site, "POST", "/graphql", json={"query": query}, headers=runner).status_code == 200
    playground.settle()
    assert ends(2) == ("FAILED", 0)
    post(start, runner, run_params={"target": "sales.b"})
    assert ends(3) == ("SUCCEEDED", 0)
    post(start, everywhere, run_params={"target": "finance.b"})
    assert ends(4) == ("SUCCEEDED", 1)
    post(restart, everywhere)
    assert ends(1)[0] == "SUCCEEDED"


def test_someone_signs_in_with_a_browser(site: Site, access: AccessSetup) -> None:
    """The cookie cannot be read by scripts nor sent by other sites; a change takes the token of a page."""
    access.accounts.add_user("ann", PASSWORD, {"": Role.EDITOR}, LOCAL)
    answer = _ask(site, "POST", "/api/v3/access/sign-in", json={"name": "ann", "password": PASSWORD})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert site.get("/access/me")["csrf"] == answer.json()["csrf"]
    headers = {"content-type": "application/yaml"}
    definition = WORKFLOW.format("sales.w")
    assert _ask(site, "POST", "/api/v3/workflows/yaml", content=definition, headers=headers).status_code == 403
    headers["x-calve-csrf"] = csrf_of("another session")
    assert _ask(site, "POST", "/api/v3/workflows/yaml", content=definition, headers=headers).status_code == 403
    headers["x-calve-csrf"] = answer.json()["csrf"]
    assert _ask(site, "POST", "/api/v3/workflows/yaml", content=definition, headers=headers).status_code == 200
    assert _ask(site, "POST", "/api/v3/access/sign-out", headers=headers).status_code == 200
    site.get("/access/me", 401)


def test_a_wrong_password_says_no_more_than_that(site: Site, access: AccessSetup) -> None:
    """The response is the same whether the user exists or not; after some attempts, there is a wait."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    bodies = [{"name": name, "password": "wrong"} for name in ("ann", "bob")]
    one, other = (_ask(site, "POST", "/api/v3/access/sign-in", json=body) for body in bodies)
    assert (one.status_code, one.json()) == (other.status_code, other.json()) == (401, one.json())
    for _ in range(5):
        last = _ask(site, "POST", "/api/v3/access/sign-in", json=bodies[0])
    assert last.status_code == 429
    assert int(last.headers["retry-after"]) >= 1


def test_a_browser_that_has_signed_in_is_not_held_up_by_strangers(site: Site, access: AccessSetup) -> None:
    """It keeps a cookie that says so; scripts cannot read it, other sites cannot send it."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    site.post("/access/sign-in", {"name": "ann", "password": PASSWORD})
    assert site.client.cookies["calve_device"]
    site.client.cookies.delete("calve_session")
    for _ in range(20):
        httpx.post(f"{site.url}/api/v3/access/sign-in", json={"name": "ann", "password": "wrong"})
    right = {"name": "ann", "password": PASSWORD}
    assert httpx.post(f"{site.url}/api/v3/access/sign-in", json=right).status_code == 429
    answer = _ask(site, "POST", "/api/v3/access/sign-in", json=right)
    assert answer.status_code == 200
    [cookie] = [one for one in answer.headers.get_list("set-cookie") if one.startswith("calve_device")]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie


@pytest.mark.parametrize("scheme", ["Bearer calve_wrong", "Basic YWRtaW46YWRtaW4=", "Bearer", "Negotiate x"])
def test_a_good_token_is_taken_whatever_came_from_its_address(site: Site, access: AccessSetup, scheme: str) -> None:
    """Over REST, GraphQL and to sign in."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    for _ in range(30):
        _ask(site, "GET", "/api/v3/workflows", headers={"authorization": scheme})
    site.client.headers.update(bearer(access.token("viewer")))
    site.get("/workflows")
    assert _ask(site, "POST", "/graphql", json={"query": "{ __typename }"}).status_code == 200
    del site.client.headers["authorization"]
    site.post("/access/sign-in", {"name": "ann", "password": PASSWORD})


def test_an_expired_token_is_told_so(site: Site, access: AccessSetup) -> None:
    """In the answer, with what to do."""
    headers = bearer(access.token("viewer", life=HOUR))
    access.now += HOUR
    answers = [_ask(site, "GET", "/api/v3/workflows", headers=headers) for _ in range(30)]
    assert {answer.status_code for answer in answers} == {401}
    assert "The token test has expired." in answers[-1].text


def test_the_first_administrator_is_made_with_the_bootstrap_token(site: Site, access: AccessSetup) -> None:
    """Once; it also signs them in."""
    token = access.accounts.bootstrap_token(LOCAL, life=HOUR)
    body = {"token": token, "name": "root", "password": PASSWORD}
    assert site.post("/access/bootstrap", body)["grants"] == ["admin"]
    assert site.get("/access/me")["name"] == "root"
    site.client.cookies.clear()
    site.post("/access/bootstrap", body | {"name": "mallory"}, 401)


def test_an_administrator_keeps_users_and_tokens(site: Site, access: AccessSetup) -> None:
    """Nothing that is answered holds a hash, and a token's text only its making."""
    site.client.headers.update(bearer(access.token("admin")))
    site.post("/access/users", {"name": "ann", "password": PASSWORD, "grants": ["viewer@sales"]})
    site.put("/access/users/ann", {"grants": ["runner@sales"], "password": "another password", "is_disabled": True})
    site.put("/access/users/bob", {}, 400)
    (ann,) = site.get("/access/users")
    assert ann["grants"] == ["runner@sales"]
    assert ann["is_disabled"]
    assert "argon2" not in str(ann)
    site.post("/access/users", {"name": "bob", "password": PASSWORD, "grants": ["king"]}, 400)
    acts = [entry["action"] for entry in site.get("/access/audit")]
    assert {"add_user", "set_password", "disable_user"} <= set(acts)


def test_people_keep_their_own_tokens(site: Site, access: AccessSetup) -> None:
    """They see and revoke theirs only, make none that can do more than they, and a token makes none at all."""
    access.accounts.add_user("ann", PASSWORD, {"sales": Role.RUNNER}, LOCAL)
    other = access.token("admin")
    foreign = access.state.tokens()[0].token_id
    csrf = site.post("/access/sign-in", {"name": "ann", "password": PASSWORD})["csrf"]
    page = {"x-calve-csrf": csrf}
    made = site.post("/access/tokens", {"name": "ci", "grants": ["runner@sales"]}, headers=page)
    assert made["token"].startswith("calve_")
    assert [one["name"] for one in site.get("/access/tokens")] == ["ci"]
    site.post("/access/tokens", {"name": "more", "grants": ["editor@sales"]}, 403, headers=page)
    site.post("/access/tokens", {"name": "odd", "grants": ["runner@sales"], "expires_in": "soon"}, 400, headers=page)
    site.delete(f"/access/tokens/{foreign}", 400, headers=page)
    site.client.cookies.clear()
    site.post("/access/tokens", {"name": "child", "grants": ["runner@sales"]}, 403, headers=bearer(made["token"]))
    site.get("/access/me", headers=bearer(other))
    site.delete(f"/access/tokens/{made['token_id']}", headers=bearer(other))
    site.get("/access/me", 401, headers=bearer(made["token"]))


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "localhost.evil.example", "", "[", "127.0.0.1.nip.io"]
)
def test_a_request_for_an_unknown_host_name_is_refused(site: Site, access: AccessSetup, host: str) -> None:
    """47: a page whose own name leads to this machine gets nothing, whatever it knows."""
    headers = bearer(access.token("admin")) | {"host": host}
    for path in ("/api/v3/access/me", "/health"):
        assert _ask(site, "GET", path, headers=headers).status_code in {400, 403}


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
def test_a_page_of_another_site_changes_nothing(
    site: Site, access: AccessSetup, method: str, headers: dict[str, str]
) -> None:
    """47: whatever the method, and whoever sits before the browser."""
    answer = _ask(site, method, "/api/v3/access/users", headers=bearer(access.token("admin")) | headers)
    assert answer.status_code == 403
    assert "Pages of other sites" in answer.text


def test_a_page_of_our_own_may_change_something(site: Site, access: AccessSetup) -> None:
    """47: its origin is our own address."""
    headers = bearer(access.token("admin")) | {"origin": site.url, "sec-fetch-site": "same-origin"}
    site.post("/access/users", {"name": "ann", "password": PASSWORD}, headers=headers)


def test_every_response_has_security_headers(site: Site) -> None:
    """Refusals too; nothing is kept by caches, nothing can be framed."""
    for path in ("/api/v3/access/me", "/nothing"):
        headers = _ask(site, "GET", path).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_what_does_not_exist_tells_nothing(site: Site) -> None:
    """An unknown path is an unknown path, with and without a name."""
    assert _ask(site, "GET", "/api/v3/nothing").status_code in {401, 404}


def test_whoever_asks_too_often_waits(playground: Playground, access: AccessSetup) -> None:
    """Twice the rate at once, then 429 until time goes on."""
    with site_on(playground, **guarded(access.control(requests_per_second=5))) as site:
        statuses = [_ask(site, "GET", "/api/v3/access/me").status_code for _ in range(12)]
        assert statuses == [401] * 10 + [429] * 2
        access.now += 1_000
        site.get("/access/me", 401)


def test_a_known_device_does_not_wait_for_others_at_its_address(playground: Playground, access: AccessSetup) -> None:
    """Neither with a token nor with a session; their own rate limit applies."""
    access.accounts.add_user("ann", PASSWORD, {"": Role.VIEWER}, LOCAL)
    with site_on(playground, **guarded(access.control(requests_per_second=5))) as site:
        headers = bearer(access.token("viewer"))
        assert _ask(site, "GET", "/api/v3/access/me", headers=headers).status_code == 200
        site.post("/access/sign-in", {"name": "ann", "password": PASSWORD})
        site.get("/access/me")
        statuses = [httpx.get(f"{site.url}/api/v3/access/me").status_code for _ in range(12)]
        assert statuses[-1] == 429
        assert _ask(site, "GET", "/api/v3/access/me", headers=headers).status_code == 200
        site.get("/access/me")
        statuses = [_ask(site, "GET", "/api/v3/access/me", headers=headers).status_code for _ in range(12)]
        assert statuses[-1] == 429


def test_changes_and_refusals_are_written_down_but_not_starts(site: Site, access: AccessSetup) -> None:
    """Who, what, where, and what came of it."""
    site.client.headers.update(bearer(access.token("editor@sales")))
    site.push(WORKFLOW.format("sales.w"))
    site.start("sales.w")
    site.push(WORKFLOW.format("finance.w"), 403)
    newest = [entry.act for entry in access.state.newest(2)]
    assert [(act.who, act.result, act.source) for act in newest] == [
        ("token:test", "denied", "127.0.0.1"),
        ("token:test", "ok", "127.0.0.1"),
    ]


def test_what_graphql_changes_is_written_down_too(site: Site, access: AccessSetup) -> None:
    """It always answers 200; queries are not written down."""
    site.client.headers.update(bearer(access.token("editor@sales")))
    site.push(WORKFLOW.format("sales.w"))
    before = len(access.acts())
    ask = "/graphql"
    assert _ask(site, "POST", ask, json={"query": "{ workflows { items { id } } }"}).status_code == 200
    assert len(access.acts()) == before
    for workflow_id in ("sales.w", "finance.w"):
        _ask(site, "POST", ask, json={"query": f'mutation {{ deactivate(workflowId: "{workflow_id}") {{ id }} }}'})
    assert [act[2] for act in access.acts()[before:]] == ["ok", "denied"]


def test_graphql_tells_nothing_of_other_namespaces(site: Site, access: AccessSetup) -> None:
    """Neither by lists nor by name."""
    site.client.headers.update(bearer(access.token("admin")))
    for workflow_id in ("finance.hidden", "sales.seen"):
        site.push(WORKFLOW.format(workflow_id))
    site.client.headers.update(bearer(access.token("viewer@sales")))
    answer = _ask(site, "POST", "/graphql", json={"query": "{ workflows { items { id } } }"})
    assert "sales.seen" in answer.text
    assert "hidden" not in answer.text
    named = _ask(site, "POST", "/graphql", json={"query": '{ workflow(id: "finance.hidden") { id } }'})
    assert named.json()["errors"][0]["extensions"]["code"] == "forbidden"


def test_a_server_on_this_machine_needs_no_password(playground: Playground, access: AccessSetup) -> None:
    """Whoever sits here may do everything; Maestro's user header is a name, and no more."""
    with site_on(playground, **guarded(access.control(required=False))) as site:
        assert site.get("/access/me") == {"name": "local", "kind": "loopback", "grants": ["admin"]}
        assert site.get("/access/me", headers={"user": "ann"})["name"] == "ann"
        assert site.get("/access/me", headers=bearer(access.token("viewer")))["grants"] == ["viewer"]
        site.get("/access/me", 401, headers={"x-forwarded-for": "203.0.113.9"})
        site.get("/access/me", 403, headers={"host": "evil.example"})


def test_a_trusted_proxy_says_who_it_is(playground: Playground, access: AccessSetup) -> None:
    """Of people whom we know; it gives them no more than they have here."""
    access.accounts.add_user("ann", PASSWORD, {"sales": Role.VIEWER}, LOCAL)
    given = {"trusted_proxies": ("127.0.0.1",), "user_header": "X-User"}
    with site_on(playground, **guarded(access.control(**given))) as site:
        assert site.get("/access/me", headers={"x-user": "ann"})["grants"] == ["viewer@sales"]
        site.get("/access/me", 401, headers={"x-user": "eve"})
        site.get("/access/me", 401)
    with site_on(playground, **guarded(access.control(user_header="X-User"))) as site:
        site.get("/access/me", 401, headers={"x-user": "ann"})


def test_a_websocket_of_another_site_is_not_opened(playground: Playground, access: AccessSetup) -> None:
    """47: nor one without a name; one of ours is."""
    from fastapi import APIRouter, Depends, WebSocket

    router = APIRouter()

    @router.websocket("/echo", dependencies=[Depends(Guard(READ_SOMEWHERE))])
    async def echo(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("here")
        await websocket.close()

    given = guarded(access.control())
    extend = given["extend"]

    def more(app: "FastAPI") -> None:
        extend(app)
        app.router.routes.extend(router.routes)

    with site_on(playground, **(given | {"extend": more})) as site:
        url = site.url.replace("http", "ws") + "/echo"
        good = bearer(access.token("viewer"))
        for headers in ({}, good | {"Origin": "https://evil.example"}, bearer("calve_wrong")):
            assert _opened(site, "/echo", headers).status_code in {401, 403}
        with connect(url, additional_headers=good) as websocket:
            assert websocket.recv() == "here"


def test_someone_signs_in_at_a_provider(playground: Playground, access: AccessSetup) -> None:
    """The browser goes there and comes back, and is led nowhere else."""
    with provider() as fake:
        client = OidcClient(
            fake.issuer,
            "calve",
            "http://127.0.0.1/back",
            ("openid",),
            "preferred_username",
            "groups",
            {"data": "viewer"},
        )
        ours = Provider(client, ProviderHttp(), lambda: time.time_ns() // 1_000_000, secrets.token_bytes)
        entrance = replace(access.control(), provider=ours)
        with site_on(playground, **guarded(entrance)) as site:
            begun = _ask(site, "GET", "/api/v3/access/oidc/begin?next=//evil.example")
            assert "SameSite=Lax" in begun.headers["set-cookie"]
            back = httpx.get(begun.headers["location"]).headers["location"]
            path = f"/api/v3/access/oidc/callback?{back.partition('?')[2]}"
            answer = _ask(site, "GET", path)
            assert answer.status_code == 200
            assert "evil" not in answer.text
            assert "SameSite=Strict" in answer.headers.get_list("set-cookie")[0]
            assert site.get("/access/me") == site.get("/access/me") | {"name": "oidc:1234", "grants": ["viewer"]}
            site.client.cookies.delete("calve_session")
            assert _ask(site, "GET", path).status_code == 401
            site.client.cookies.clear()
            assert _ask(site, "GET", path).status_code == 401


def test_without_a_provider_nobody_can_go_there(site: Site) -> None:
    """The answer says what to set."""
    assert "access.oidc.issuer" in _ask(site, "GET", "/api/v3/access/oidc/begin").text
