"""People sign in at a real Keycloak, through its own form, and use a real server; ``make test-integrations``."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from tests.engines import wait_for
from tests.keycloak.browsing import BACK, BEGIN, Browser, browser_at, query_of
from tests.keycloak.conftest import SECRET, calve_for
from tests.keycloak.server import Keycloak, free_port

PROBLEM = {"accept": "application/problem+json"}
Newcomer = Callable[..., str]


def _pushed(browser: Browser, workflow_id: str) -> int:
    definition = f"Workflow: {{id: {workflow_id}, jobs: [{{job: {{id: job, type: NoOp}}}}]}}"
    headers = {"content-type": "application/yaml"}
    return browser.ask("POST", "/workflows/yaml", content=definition, headers=headers).status_code


def test_a_user_has_exactly_the_permissions_of_their_groups(browser: Browser, keycloak: Keycloak) -> None:
    """She comes back with a session, known by Keycloak's subject, with just the roles of her groups."""
    answer = browser.sign_in("ann")
    assert answer.status_code == 200
    assert "SameSite=Strict" in answer.headers.get_list("set-cookie")[0]
    me = browser.me()
    assert me is not None
    assert (me["name"], me["kind"]) == (f"oidc:{keycloak.user('ann')['id']}", "user")
    assert sorted(me["grants"]) == ["editor@sales", "viewer"]
    assert _pushed(browser, "sales.orders") == 200
    assert _pushed(browser, "finance.orders") == 403
    assert browser.ask("GET", "/workflows").status_code == 200
    assert browser.ask("GET", "/access/users").status_code == 403


def test_someone_who_may_only_look_changes_nothing(browser: Browser) -> None:
    """Those of their only group."""
    browser.sign_in("bob")
    assert (browser.me() or {})["grants"] == ["viewer"]
    assert browser.ask("GET", "/workflows").status_code == 200
    assert _pushed(browser, "sales.mine") == 403


@pytest.mark.parametrize("name", ["nora", "sam"])
def test_someone_of_no_listed_group_is_not_let_in(browser: Browser, name: str) -> None:
    """Neither by a group of the same name under another one: groups are known by their full paths."""
    answer = browser.sign_in(name)
    assert answer.status_code == 403
    assert "None of your groups" in answer.json()["message"]
    assert "calve_session" not in browser.client.cookies
    assert browser.me() is None
    assert browser.ask("GET", "/workflows").status_code == 401


@pytest.mark.parametrize(("name", "password"), [("ann", "wrong"), ("nobody", "wrong")])
def test_a_wrong_password_leads_nowhere(browser: Browser, name: str, password: str) -> None:
    """Keycloak shows its form again, and sends nobody back."""
    answer = browser.filled_in(browser.sent_off(), name, password)
    assert answer.status_code == 200
    assert "kc-form-login" in answer.text
    assert browser.me() is None


def test_signing_out_ends_the_session(browser: Browser) -> None:
    """For whoever has kept a copy of the cookie too."""
    browser.sign_in("ann")
    session = browser.client.cookies["calve_session"]
    assert browser.ask("POST", "/access/sign-out").status_code == 200
    assert browser.me() is None
    copied = httpx.get(f"{browser.calve}/api/v3/access/me", cookies={"calve_session": session})
    assert copied.status_code == 401


def test_keycloak_knows_who_signed_in_there_before(browser: Browser) -> None:
    """Signing out at calve does not sign out there: nobody is asked for a password again."""
    browser.sign_in("ann")
    browser.ask("POST", "/access/sign-out")
    answer = browser.client.get(browser.client.get(browser.sent_off()).headers["location"])
    assert answer.status_code == 200
    assert browser.me() is not None


@pytest.mark.parametrize("what", ["state", "nonce", "verifier"])
def test_a_sign_in_that_was_tampered_with_is_refused(browser: Browser, what: str) -> None:
    """By calve for the state and the nonce, by Keycloak for the verifier of PKCE."""
    back = browser.let_in("ann")
    browser.keep(**{what: "x" * 43})
    answer = browser.client.get(back)
    assert answer.status_code == 401, answer.text
    assert browser.me() is None


@pytest.mark.parametrize("changed", [{"state": "x" * 43}, {"iss": "https://evil.example"}, {"iss": ""}])
def test_an_answer_that_was_tampered_with_is_refused(browser: Browser, changed: dict[str, str]) -> None:
    """Keycloak names itself in its answer, and calve insists on it."""
    asked = query_of(browser.let_in("ann")) | changed
    answer = browser.client.get(f"{browser.calve}{BACK}?{urlencode(asked)}")
    assert answer.status_code == 401
    assert "does not belong" in answer.json()["message"]


def test_a_code_is_of_use_once_and_to_one_browser(browser: Browser) -> None:
    """Neither who has begun another sign-in nor who has kept everything gets anything for it."""
    back = browser.let_in("ann")
    kept = browser.kept()
    with browser_at(browser.calve) as thief:
        assert thief.client.get(back).status_code == 401
        thief.sent_off()
        assert thief.client.get(back).status_code == 401
    assert browser.client.get(back).status_code == 200
    browser.forget()
    browser.sent_off()
    browser.keep(**kept)
    again = browser.client.get(back)
    assert again.status_code == 401
    assert "does not take" in again.json()["message"]
    assert browser.me() is None


def test_keycloak_insists_on_pkce(browser: Browser) -> None:
    """A request without it, as from an older client, is sent back with an error, which calve passes on."""
    url = browser.sent_off()
    asked = {name: text for name, text in query_of(url).items() if not name.startswith("code_challenge")}
    refused = browser.client.get(f"{url.partition('?')[0]}?{urlencode(asked)}")
    assert query_of(refused.headers["location"])["error"] == "invalid_request"
    answer = browser.client.get(refused.headers["location"])
    assert answer.status_code == 401
    assert answer.json()["message"] == "The identity provider rejected the sign-in: invalid_request."


def test_a_scope_that_keycloak_does_not_know_is_named_in_the_remedy(browser: Browser) -> None:
    """That of calve's own default, which other providers know."""
    url = browser.sent_off()
    asked = query_of(url) | {"scope": "openid profile email groups"}
    refused = browser.client.get(f"{url.partition('?')[0]}?{urlencode(asked)}")
    answer = browser.client.get(refused.headers["location"])
    assert answer.status_code == 401
    assert answer.json()["message"] == "The identity provider rejected the sign-in: invalid_scope."
    assert "access.oidc.scopes" in answer.json()["remedy"]


def test_nobody_is_sent_to_another_address_than_ours(browser: Browser) -> None:
    """Keycloak knows where calve is, and sends codes nowhere else."""
    url = browser.sent_off()
    asked = query_of(url) | {"redirect_uri": "http://127.0.0.1:1/evil"}
    answer = browser.client.get(f"{url.partition('?')[0]}?{urlencode(asked)}")
    assert answer.status_code == 400
    assert "location" not in answer.headers


def test_new_keys_count_at_once(browser: Browser, keycloak: Keycloak) -> None:
    """However short ago calve has fetched the old ones."""
    assert browser.sign_in("ann").status_code == 200
    before = keycloak.signing_keys()
    keycloak.rotate_keys()
    assert not keycloak.signing_keys() & before
    browser.forget()
    assert browser.sign_in("ann").status_code == 200
    assert browser.me() is not None


@pytest.mark.parametrize(("algorithm", "status"), [("ES256", 200), ("PS256", 401), ("HS256", 401)])
def test_only_some_signatures_are_taken(browser: Browser, keycloak: Keycloak, algorithm: str, status: int) -> None:
    """Keycloak can be set to others, among them one by the secret that both sides know."""
    with keycloak.client_with(id_token_signed_response_alg=algorithm):
        assert browser.sign_in("ann").status_code == status
    browser.forget()
    assert browser.sign_in("ann").status_code == 200


def test_someone_disabled_there_does_not_come_back(browser: Browser, keycloak: Keycloak, newcomer: Newcomer) -> None:
    """Neither with their password nor with an earlier code."""
    name = newcomer("/everybody")
    assert browser.sign_in(name).status_code == 200
    browser.forget()
    back = browser.let_in(name)
    keycloak.change_user(name, enabled=False)
    assert browser.client.get(back).status_code == 401
    browser.forget()
    assert browser.filled_in(browser.sent_off(), name).status_code == 200
    assert browser.me() is None


def test_roles_follow_groups(browser: Browser, keycloak: Keycloak, newcomer: Newcomer) -> None:
    """At each sign-in; a user who left all groups cannot sign in, and their session and tokens have no permissions."""
    name = newcomer("/everybody")
    browser.sign_in(name)
    keycloak.join(name, "/data-engineers")
    keycloak.join(name, "/everybody", leaves=True)
    browser.forget()
    browser.sign_in(name)
    assert (browser.me() or {})["grants"] == ["editor@sales"]
    made = browser.ask("POST", "/access/tokens", json={"name": "ci", "grants": ["editor@sales"]})
    token = {"authorization": f"Bearer {made.json()['token']}"}
    path = f"{browser.calve}/api/v3/workflows"
    assert httpx.get(path, headers=token).status_code == 200
    keycloak.join(name, "/data-engineers", leaves=True)
    assert browser.sign_in(name).status_code == 403
    assert httpx.get(path, headers=token).status_code == 403
    assert _pushed(browser, "sales.late") == 403


def test_tokens_of_keycloak_open_nothing(browser: Browser, keycloak: Keycloak) -> None:
    """Programs use tokens of calve, which can be revoked here."""
    code = query_of(browser.let_in("ann"))["code"]
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": browser.calve + BACK,
        "client_id": "calve",
        "client_secret": SECRET,
        "code_verifier": browser.kept()["verifier"],
    }
    given = httpx.post(f"{keycloak.issuer}/protocol/openid-connect/token", data=form, timeout=60).json()
    for kind in ("access_token", "id_token"):
        headers = {"authorization": f"Bearer {given[kind]}"}
        assert httpx.get(f"{browser.calve}/api/v3/access/me", headers=headers).status_code == 401


def test_a_secret_that_is_no_longer_right_is_not_the_fault_of_who_signs_in(
    browser: Browser, keycloak: Keycloak
) -> None:
    """The message says that the server is misconfigured; the secret is not in the response."""
    with keycloak.client_with(secret="another"):
        answer = browser.sign_in("ann")
    assert answer.status_code == 502
    assert answer.json()["message"] == "The identity provider has answered 401 unauthorized_client."
    assert SECRET not in answer.text
    assert browser.sign_in("ann").status_code == 200


def test_a_keycloak_that_hangs_blocks_nobody_else(browser: Browser, keycloak: Keycloak) -> None:
    """Who comes back from it is told so after some seconds."""
    back = browser.let_in("ann")
    with keycloak.hanging(), ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(httpx.get, back, cookies=dict(browser.client.cookies), timeout=60) for _ in range(8)]
        assert httpx.get(f"{browser.calve}/ready").status_code == 200
        assert [one.result().status_code for one in waiting] == [502] * 8
    browser.forget()
    assert browser.sign_in("ann").status_code == 200


def test_while_keycloak_is_unavailable_the_response_reports_it(
    browser: Browser, keycloak: Keycloak, tmp_path: Path
) -> None:
    """At the beginning and at the end of a sign-in; once it is available again, users sign in as before."""
    assert browser.sign_in("ann").status_code == 200
    session = browser.client.cookies["calve_session"]
    browser.forget()
    back = browser.let_in("ann")
    keycloak.stop()
    try:
        with calve_for(keycloak, free_port(), tmp_path) as fresh:
            for url in (fresh + BEGIN, back):
                answer = browser.client.get(url, headers=PROBLEM)
                assert answer.status_code == 502
                assert answer.headers["content-type"] == PROBLEM["accept"]
                assert answer.json()["detail"] == "The identity provider does not answer."
                assert answer.json()["code"] == "provider_failed"
        held = httpx.get(f"{browser.calve}/api/v3/access/me", cookies={"calve_session": session})
        assert held.status_code == 200
    finally:
        keycloak.start()
    browser.forget()
    wait_for(lambda: browser.client.get(browser.calve + BEGIN).status_code == 303)
    assert browser.sign_in("ann").status_code == 200
