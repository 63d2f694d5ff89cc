"""Hostile strings in every field, in a browser: no script of theirs runs, no request is theirs, and all are shown."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.browser.page_checks import Site, watched
from tests.hostile_project import DANGEROUS, HOSTILE, MARKS, addresses, hostile_project, seen
from tests.projects import WebProject

_TEXT = """() => {
  const texts = (root) => [...root.querySelectorAll("*")].flatMap((one) => one.shadowRoot ? texts(one.shadowRoot) : [])
    .concat(root.textContent);
  return texts(document.querySelector("main")).join(" ");
}"""
"""All text of a page, also what elements draw by script."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebProject]:
    """Give a project with hostile names in it."""
    with hostile_project(tmp_path_factory.mktemp("project")) as made:
        yield made


@pytest.fixture(scope="module")
def url(made: WebProject) -> Iterator[str]:
    """Serve it."""
    with Site(made).up() as url:
        yield url


def _dangerous(page: Page) -> list[str]:
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll('{','.join(DANGEROUS)}')].map((one) => one.outerHTML)"
    )
    return found


def test_every_page_shows_it_and_runs_nothing(browser: Browser, made: WebProject, url: str) -> None:
    """No dialog, no error, no report of the policy; every field is shown somewhere, and forms of actions open."""
    shown, asked = set[str](), set[str]()
    with watched(browser, url) as site:
        for path in dict.fromkeys(addresses(made)):
            page = site.open(path)
            shown |= seen(page.evaluate(_TEXT))
            assert _dangerous(page) == [], path
            for link in page.locator("a[data-dialog]:visible").all():
                href = link.get_attribute("href") or ""
                if "xss" not in href or href.partition("?")[0] in asked:
                    continue
                asked.add(href.partition("?")[0])
                link.click()
                expect(page.locator("#dialog h2")).to_be_visible()
                assert _dangerous(page) == [], href
                page.keyboard.press("Escape")
    assert shown == MARKS.keys()
    assert len(asked) > 3


def test_what_is_looked_for_runs_nothing_either(browser: Browser, url: str) -> None:
    """In the address, in the palette, and in the log."""
    with watched(browser, url) as site:
        for hostile in HOSTILE[:4]:
            page = site.open("/")
            page.keyboard.press("/")
            page.locator("dialog.palette input").fill(hostile)
            expect(page.locator("dialog.palette [role=option], dialog.palette li").first).to_be_visible()
            assert _dangerous(page) == []
        page = site.open("/workflows/xss.flow/instances/1?step=bad&tab=log")
        page.locator("#log input").fill("xss-log")
        page.locator("#log input").press("Enter")
        expect(page.locator("#log").get_by_role("button", name="xss-log").first).to_be_visible()
        assert _dangerous(page) == []
