"""Every page in a browser, over a real server: clean in both themes and on a phone, live, and usable by keyboard."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.browser.page_checks import LOOKS, Site, Wrong, watched
from tests.engines import BUSY, DONE, FATAL_ERROR
from tests.pages import Parsed, parse
from tests.projects import WebProject, filled_project

from calve.engine import Outcome, StepContext

_SUCCEEDED = re.compile("succeeded", re.IGNORECASE)
_WORKFLOW = """
Workflow: {{id: {}, dag: sequential, jobs: [
  {{job: {{id: first, type: Shell, shell: {{script: 'true'}}}}}},
  {{job: {{id: {}, type: Shell, shell: {{script: 'true'}}}}}}]}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProject]:
    """Give a project with data."""
    with filled_project(tmp_path_factory.mktemp("project")) as filled:
        yield filled


@pytest.fixture(scope="module")
def url(made: WebProject) -> Iterator[str]:
    """Serve the project."""
    with Site(made).up() as url:
        yield url


@pytest.fixture(scope="module")
def pages(made: WebProject, url: str) -> list[str]:
    """Give the addresses of all pages and of their tabs; what only leads to another page is none."""
    found: dict[str, None] = {}
    with httpx.Client(base_url=url, headers={"accept": "text/html"}) as client:
        for path in made.addresses():
            answer = client.get(path)
            if not answer.is_redirect:
                found |= dict.fromkeys([path, *_tabs(path, parse(answer.text))])
    return list(found)


def _tabs(path: str, page: Parsed) -> list[str]:
    """Return where a page leads to itself, once for each tab and view."""
    chosen: dict[tuple[str, ...], str] = {}
    for link in sorted(page.links):
        parts = urlsplit(link)
        query = parse_qs(parts.query)
        if parts.path == path and query.keys() & {"tab", "view"}:
            chosen.setdefault((*query.get("tab", ()), *query.get("view", ())), link)
    return list(chosen.values())


def _instance(made: WebProject, name: str, second: Any) -> str:
    """Start an instance of two steps, whose second one does something; return its address."""
    made.playground.push(_WORKFLOW.format(f"browser.{name}", name))
    made.playground.script.parts[name] = second
    made.playground.start(f"browser.{name}")
    return f"/workflows/browser.{name}/instances/1"


@pytest.mark.parametrize("look", LOOKS)
def test_every_page_is_clean(browser: Browser, pages: list[str], url: str, look: str) -> None:
    """No error, no breach of the policy, nothing from elsewhere or wider than the window; all can see and reach it."""
    viewport, theme, rules = LOOKS[look]
    wrong: list[Wrong] = []
    with watched(browser, url, viewport=viewport, theme=theme) as site:
        for path in pages:
            expect(site.open(path).locator("main h1")).to_be_visible()
            wrong += site.wrong(path, rules)
    assert wrong == []


def test_every_page_can_be_read_without_javascript(
    browser: Browser, made: WebProject, pages: list[str], url: str
) -> None:
    """Its heading and its text are there."""
    with watched(browser, url, java_script_enabled=False) as site:
        for path in pages:
            page = site.open(path)
            expect(page.locator("main h1")).to_be_visible()
            assert len(page.locator("main").inner_text().split()) > 5, path
        picture = site.open("/workflows/{workflow_id}/instances/{instance_id}".format_map(made.names))
        expect(picture.locator("flow-graph svg")).to_be_visible()


def test_a_page_is_live_and_leaves_alone_what_one_types(browser: Browser, made: WebProject, url: str) -> None:
    """The status changes without a reload; the field keeps its text and the focus."""
    address = _instance(made, "live", BUSY)
    with watched(browser, url) as site:
        page = site.open(f"{address}?step=first&tab=log")
        expect(page.locator("#summary h1 + .status")).to_have_text(re.compile("in progress", re.IGNORECASE))
        page.evaluate("window.isSame = true")
        field = page.locator("main input[type=search]:visible").first
        field.focus()
        field.press_sequentially("wrote")
        made.playground.script.parts["live"] = DONE
        made.playground.advance(3_600)
        expect(page.locator("#summary h1 + .status")).to_have_text(_SUCCEEDED)
        expect(field).to_be_focused()
        expect(field).to_have_value("wrote")
        assert page.evaluate("window.isSame")


def test_a_live_update_leaves_alone_what_a_person_did(browser: Browser, made: WebProject, url: str) -> None:
    """What is typed, selected, chosen, opened and scrolled to stays, in a region that is rendered again."""
    address = _instance(made, "hands", BUSY)
    with watched(browser, url, viewport={"width": 1000, "height": 420}) as site:
        page = site.open("/workflows/browser.hands?tab=runs")
        started = page.get_by_label("Started by")
        page.get_by_label("Status", exact=True).select_option("FAILED")
        started.press_sequentially("ann")
        started.evaluate("field => field.setSelectionRange(1, 2)")
        page.evaluate("window.scrollTo(0, 100)")
        made.playground.start("browser.hands")
        expect(page.locator("#runs td a[href$='/instances/2']")).to_be_visible()
        expect(started).to_be_focused()
        expect(started).to_have_value("ann")
        assert started.evaluate("field => [field.selectionStart, field.selectionEnd]") == [1, 2]
        expect(page.get_by_label("Status", exact=True)).to_have_value("FAILED")
        assert page.evaluate("window.scrollY") == 100
        page = site.open(f"{address}?step=hands&tab=params")
        page.locator("#step summary", has_text="System params").click()
        expect(page.locator("#step details")).to_have_attribute("open", "")
        made.playground.script.parts["hands"] = DONE
        made.playground.advance(3_600)
        expect(page.locator("#summary h1 + .status")).to_have_text(re.compile("succeeded", re.IGNORECASE))
        expect(page.locator("#step").get_by_role("link", name="Restart from here…")).to_be_visible()
        expect(page.locator("#step details")).to_have_attribute("open", "")


def test_a_page_catches_up_when_the_server_was_unavailable(browser: Browser, made: WebProject) -> None:
    """What happened meanwhile is shown, without a reload."""
    address, site = _instance(made, "away", BUSY), Site(made)
    with site.up() as url:
        page = browser.new_page()
        page.goto(url + address)
        page.evaluate("window.isSame = true")
        expect(page.locator("#summary h1 + .status")).to_have_text(re.compile("in progress", re.IGNORECASE))
    made.playground.script.parts["away"] = DONE
    made.playground.advance(3_600)
    with site.up():
        expect(page.locator("#summary h1 + .status")).to_have_text(_SUCCEEDED, timeout=20_000)
        assert page.evaluate("window.isSame")
        page.close()


def test_nothing_is_lost_when_the_server_is_killed_in_mid_stream(browser: Browser, made: WebProject) -> None:
    """Lines of a log that came before, meanwhile and after are there once each, in order; the status follows."""
    at, lines = _instance(made, "killed", BUSY), count(1)

    def says(context: StepContext) -> Outcome:
        context.log(f"line {next(lines)} of it\n")
        return BUSY

    made.playground.script.parts["killed"] = says
    site, page = Site(made), browser.new_page()
    with site.process() as url:
        made.playground.advance(3_600)
        page.goto(f"{url}{at}?step=killed&tab=log")
        page.evaluate("window.isSame = true")
        expect(page.locator("#log")).to_contain_text("line 1 of it")
        made.playground.advance(3_600)
        expect(page.locator("#log")).to_contain_text("line 2 of it")
    made.playground.advance(3_600)
    with site.process():
        made.playground.advance(3_600)
        expect(page.locator("#log")).to_contain_text("line 4 of it", timeout=30_000)
        made.playground.script.parts["killed"] = DONE
        made.playground.advance(3_600)
        expect(page.locator("#summary h1 + .status")).to_have_text(_SUCCEEDED, timeout=30_000)
        text = page.evaluate("(log => (log.shadowRoot ?? log).textContent)(document.querySelector('#log'))")
        assert re.findall(r"line (\d) of it", text) == ["1", "2", "3", "4"]
        assert page.evaluate("window.isSame")
    page.close()


def test_a_restart_is_explained_in_a_dialog_and_done(browser: Browser, made: WebProject, url: str) -> None:
    """It says what runs again and what is kept; then the page shows the new run."""
    address = _instance(made, "broken", FATAL_ERROR)
    with watched(browser, url) as site:
        page = site.open(address)
        page.get_by_role("link", name="Restart…").first.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        expect(dialog).to_contain_text("broken")
        expect(dialog).to_contain_text("was FATALLY_FAILED")
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.get_by_role("link", name="Restart…").first.click()
        made.playground.script.parts["broken"] = DONE
        dialog.get_by_role("button", name="Restart").click()
        expect(page.locator(".flash")).to_be_visible()
        made.playground.settle()
        expect(page.locator("#summary")).to_contain_text("run 2")
        expect(page.locator("#summary h1 + .status")).to_have_text(_SUCCEEDED)


def test_what_opens_on_a_page_is_clean_too(browser: Browser, url: str) -> None:
    """The palette, before and after something is found, the list of keys, and the menus."""
    wrong: list[Wrong] = []
    for viewport, theme, rules in LOOKS.values():
        with watched(browser, url, viewport=viewport, theme=theme) as site:
            page = site.open("/workflows")
            page.keyboard.press("/")
            wrong += site.wrong("the empty palette", rules, "dialog.palette")
            page.keyboard.type("members")
            expect(page.locator("dialog.palette [role=option]").first).to_be_visible()
            wrong += site.wrong("the palette", rules, "dialog.palette")
            page.keyboard.press("Escape")
            expect(page.locator("dialog.palette")).to_have_count(0)
            page.keyboard.press("?")
            expect(page.locator("dialog.keys")).to_be_visible()
            wrong += site.wrong("the keys", rules, "dialog.keys")
            page.keyboard.press("Escape")
            for menu in page.locator("header details.menu summary").all():
                menu.click()
                wrong += site.wrong("a menu", rules, "header")
    assert wrong == []


def test_the_palette_opens_by_a_key_and_leads_to_what_is_found(browser: Browser, url: str) -> None:
    """By "/"; Enter opens the first result."""
    page = browser.new_page()
    page.goto(url)
    page.keyboard.press("/")
    palette = page.locator("dialog.palette")
    expect(palette).to_be_visible()
    page.keyboard.type("members.sess")
    expect(palette.get_by_role("option").first).to_contain_text("members.sessions")
    page.keyboard.press("Enter")
    page.wait_for_url("**/workflows/members.sessions**")
    page.close()


def test_the_palette_jumps_to_pages_tables_and_actions(browser: Browser, url: str) -> None:
    """To the entries of the menu, to what the page can do, and to the form that starts a workflow."""
    page = browser.new_page()
    page.goto(f"{url}/users")
    page.keyboard.press("/")
    options = page.locator("dialog.palette").get_by_role("option")
    expect(options.filter(has_text="Audit log")).to_be_visible()
    page.keyboard.type("add a us")
    expect(options).to_have_text(["actionAdd a user"])
    for text, kind, place in [
        ("audit l", "page", "**/audit"),
        ("playback_table", "table", "**/tables/playback.playback_table"),
        ("start churn", "action", "**/workflows/members.churn/start"),
    ]:
        page.locator("dialog.palette input").fill(text)
        expect(options.first).to_contain_text(kind)
        page.keyboard.press("Enter")
        page.wait_for_url(place)
        page.keyboard.press("/")
    page.close()


def test_lists_are_walked_by_keys(browser: Browser, url: str) -> None:
    """By j and k; Enter opens, g and h leads home."""
    with watched(browser, url) as site:
        page = site.open("/tables")
        page.keyboard.press("g")
        page.keyboard.press("h")
        page.wait_for_url(f"{url}/")
        hrefs = []
        for key in ("j", "j", "k"):
            page.keyboard.press(key)
            hrefs.append(page.evaluate("document.activeElement.getAttribute('href')"))
        assert hrefs[0] == hrefs[2] != hrefs[1]
        page.keyboard.press("Enter")
        page.wait_for_url(url + hrefs[0])


def test_a_choice_is_shown_at_once(browser: Browser, made: WebProject, url: str) -> None:
    """A slider and a list need no button; without scripts, they have one."""
    place = f"/tables/{made.names['table']}"
    with watched(browser, url) as found:
        page = found.open(f"{place}/lateness")
        expect(page.get_by_role("button", name="Show")).to_be_hidden()
        page.get_by_role("slider", name="lookback").fill("5")
        page.wait_for_url("**lookback=5&*")
        expect(page.locator("p").first).to_contain_text("A 5-day lookback")
    with watched(browser, url, java_script_enabled=False) as found:
        page = found.open(f"{place}/lateness")
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**lookback=3&*")


def test_lag_is_drawn_over_time_and_stays_a_picture_without_javascript(
    browser: Browser, made: WebProject, url: str
) -> None:
    """The chart names each line where the pointer is."""
    place = f"/tables/{made.names['table']}/lag"
    with watched(browser, url) as found:
        page = found.open(place)
        page.locator("metric-chart .u-over").hover()
        expect(page.locator("metric-chart .u-legend")).to_contain_text("newest snapshot")
        expect(page.locator("metric-chart .u-value").first).to_have_text(re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d$"))
    with watched(browser, url, java_script_enabled=False) as found:
        page = found.open(place)
        expect(page.locator("svg.chart")).to_be_visible()
        expect(page.locator("metric-chart table")).to_be_hidden()
