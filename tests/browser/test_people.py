"""People with roles, in a browser: they sign in, see what they may do, and are refused what they forge."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.access_setup import LOCAL, PASSWORD
from tests.browser.page_checks import LOOKS, Site, Watched, watched
from tests.engines import BUSY
from tests.identity_provider import FakeProvider, provider
from tests.pages import GUARDED
from tests.projects import WebProject, crawl, filled_project

from calve.access import parse_grants

_FORGED = """async (operations) => {
  const csrf = document.querySelector("meta[name=csrf]").content;
  const given = { workflow_id: "playback.daily", instance_id: "1", step_id: "merge", tag: "gold", name: "x", csrf };
  const answers = operations.map(async (id) => {
    const body = new URLSearchParams(given);
    return [id, (await fetch(`/actions/${id}`, { method: "POST", body, redirect: "manual" })).status];
  });
  return Object.fromEntries(await Promise.all(answers));
}"""
_BUTTONS = """() => [...document.querySelectorAll("a[data-dialog]")].map((one) => one.getAttribute("href"))"""
_STATUSES = """async (addresses) => {
  const headers = { Accept: "text/html", "X-Calve-Fragment": "1" };
  return Promise.all(addresses.map(async (one) => [one, (await fetch(one, { headers })).status]));
}"""


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeProvider]:
    """Give a provider of OpenID Connect."""
    with provider() as fake:
        yield fake


@pytest.fixture(scope="module")
def site(fake: FakeProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Give a project where everybody has to sign in: a viewer and an editor here, others at the provider."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        "CALVE_ACCESS__REQUIRED": "true",
        "CALVE_ACCESS__REQUESTS_PER_SECOND": "100000",
        "CALVE_ACCESS__OIDC__ISSUER": fake.issuer,
        "CALVE_ACCESS__OIDC__REDIRECT_URL": f"http://127.0.0.1:{port}/api/v3/access/oidc/callback",
        "CALVE_ACCESS__OIDC__ROLES": '{"data": "viewer@members"}',
    }
    with filled_project(tmp_path_factory.mktemp("project"), environment, commits=8, runs=2) as filled:
        for name, grant in (("vic", "viewer@playback"), ("eve", "editor@playback")):
            filled.project.accounts.add_user(name, PASSWORD, parse_grants([grant]), LOCAL)
        yield Site(filled, port)


@pytest.fixture(scope="module")
def url(site: Site) -> Iterator[str]:
    """Serve it."""
    with site.up() as url:
        yield url


@pytest.fixture(scope="module")
def made(site: Site) -> WebProject:
    """Give the project."""
    return site.made


@contextmanager
def _signed_in(browser: Browser, url: str, name: str) -> Iterator[Watched]:
    """Give the browser of a user who has signed in with the form."""
    with watched(browser, url) as person:
        _fill(person.open("/sign-in"), name, PASSWORD)
        expect(person.page.locator("header summary").last).to_have_text(name)
        yield person


def _fill(page: Page, name: str, password: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()


def _pages(person: Watched) -> list[str]:
    """Return the pages to which a user is redirected."""
    cookies = {one["name"]: one["value"] for one in person.page.context.cookies()}
    with httpx.Client(base_url=person.url, cookies=cookies, headers={"accept": "text/html"}) as client:
        return [address for address, answer in crawl(client, ["/"], 30) if answer.status_code == 200]


def test_everybody_can_see_and_reach_the_pages_to_sign_in(browser: Browser, url: str) -> None:
    """In both themes and on a phone, also when the password was wrong."""
    for viewport, theme, rules in LOOKS.values():
        with watched(browser, url, viewport=viewport, theme=theme) as person:
            for path in ("/sign-in", "/bootstrap"):
                person.open(path)
                assert person.wrong(path, rules) == []
            _fill(person.open("/sign-in"), "vic", "a wrong password")
            expect(person.page.locator(".note.bad")).to_be_visible()
            assert person.wrong("a wrong password", rules) == []
            assert [fault for fault in person.faults if "401" not in fault] == []
            person.faults.clear()


def test_one_comes_to_the_page_that_one_wanted_and_leaves(browser: Browser, url: str) -> None:
    """A page leads to the form, the form to the page; then the theme is chosen, and the session ended."""
    with watched(browser, url) as person:
        page = person.page
        page.goto(f"{url}/tables")
        _fill(page, "vic", PASSWORD)
        page.wait_for_url(f"{url}/tables")
        page.locator("header summary").last.click()
        page.get_by_role("button", name="Dark").click()
        expect(page.locator("html[data-theme=dark]")).to_be_attached()
        page.locator("header summary").last.click()
        page.get_by_role("button", name="Sign out").click()
        page.wait_for_url(f"{url}/sign-in")
        page.goto(f"{url}/tables")
        page.wait_for_url(f"{url}/sign-in?**")


def test_one_signs_in_at_the_provider(browser: Browser, url: str, fake: FakeProvider) -> None:
    """And has the role of a group there: that of a viewer of one namespace."""
    with watched(browser, url, others=(fake.issuer,)) as person:
        page = person.open("/sign-in?next=/workflows")
        page.get_by_role("link", name="Sign in with the identity provider").click()
        page.wait_for_url(f"{url}/workflows")
        expect(page.locator("header summary").last).to_have_text("ann")
        expect(page.locator("main")).to_contain_text("members.sessions")
        expect(page.locator("main")).not_to_contain_text("playback.daily")


def test_no_button_leads_to_a_refusal(browser: Browser, url: str) -> None:
    """On all pages that a viewer and an editor are led to; the editor has more of them."""
    buttons: dict[str, set[str]] = {"vic": set(), "eve": set()}
    for name, found in buttons.items():
        with _signed_in(browser, url, name) as person:
            for path in _pages(person):
                found.update(person.open(path).evaluate(_BUTTONS))
            answers = person.page.evaluate(_STATUSES, sorted(found))
            assert [one for one in answers if one[1] != 200] == []
    assert {one.partition("?")[0] for one in buttons["vic"]} <= {"/actions/create_token", "/actions/revoke_token"}
    assert {one.partition("?")[0] for one in buttons["eve"]} >= {"/actions/deactivate", "/actions/delete_workflow"}


def test_what_a_viewer_forges_is_refused(browser: Browser, url: str) -> None:
    """Every operation that takes more than their role, sent with the token of a page of theirs."""
    with _signed_in(browser, url, "vic") as person:
        answers = person.page.evaluate(_FORGED, [one.id for one in GUARDED])
        assert {name: status for name, status in answers.items() if status != 403} == {}
        assert [fault for fault in person.faults if "403" not in fault] == []
        person.faults.clear()


def test_what_one_does_the_other_sees(browser: Browser, url: str, made: WebProject) -> None:
    """An editor stops an instance; the viewer's page of it, which has no button, follows."""
    made.playground.push("Workflow: {id: playback.two, jobs: [{job: {id: two, type: Shell, shell: {script: x}}}]}")
    made.playground.script.parts["two"] = BUSY
    made.playground.start("playback.two")
    at = "/workflows/playback.two/instances/1"
    with _signed_in(browser, url, "vic") as vic, _signed_in(browser, url, "eve") as eve:
        seen = vic.open(at)
        expect(seen.locator('a[href^="/actions/"]')).to_have_count(0)
        page = eve.open(at)
        page.locator('a[href^="/actions/stop_instance"]').click()
        page.locator("#dialog button.primary").click()
        expect(page.locator(".flash")).to_be_visible()
        made.playground.settle()
        for one in (seen, page):
            expect(one.locator("#summary h1 + .status")).to_have_text("stopped", ignore_case=True)
