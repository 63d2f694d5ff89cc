"""Checks of pages in a browser: in both themes and all sizes, with every error that occurs on them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, ViewportSize, expect
from tests.projects import WebProject

from calve.api import listen, serve
from calve.app import web_on

Theme = Literal["light", "dark"]
Wrong = tuple[str, Any]
"""Where something is wrong, and what."""
DESK: ViewportSize = {"width": 1280, "height": 900}
PHONE: ViewportSize = {"width": 400, "height": 800}
OTHER: dict[Theme, Theme] = {"light": "dark", "dark": "light"}
ALL = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
"""Everything that axe looks for on a page."""
OF_LOOK = {"type": "rule", "values": ["color-contrast", "scrollable-region-focusable", "target-size"]}
"""What depends on colors and width: looked for in every look, the rest once."""
LOOKS: dict[str, tuple[ViewportSize, Theme, dict[str, Any]]] = {
    "light": (DESK, "light", ALL),
    "dark phone": (PHONE, "dark", OF_LOOK),
}
"""How pages are loaded, and what is looked for then; each is seen in the other theme as well."""
_AXE = (Path(__file__).parents[1] / "data" / "axe.min.js").read_text(encoding="utf-8")
_VIOLATIONS = """async ([within, runOnly]) => {
  const { violations } = await axe.run(within, { resultTypes: ["violations"], runOnly });
  return violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map((node) => node.html + node.failureSummary)]);
}"""
_CLIPPED = """() => {
  const context = document.createElement("canvas").getContext("2d"), room = 16; // a spinner, or a button that clears
  const clips = (field) => {
    const style = getComputedStyle(field);
    context.font = style.font;
    const free = field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - room;
    return context.measureText(field.placeholder).width > free;
  };
  return [...document.querySelectorAll("main input[placeholder]")].filter((one) => one.checkVisibility() && clips(one))
    .map((one) => one.placeholder);
}"""
"""The placeholders that are wider than their fields."""
_REPORTING = """addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile }) =>
  console.error(`The policy was violated: ${violatedDirective} ${blockedURI} in ${sourceFile}`))"""


@dataclass
class Site:
    """A server of a project, which can be stopped and started again at the same address."""

    made: WebProject
    port: int = 0

    @contextmanager
    def up(self) -> Iterator[str]:
        """Serve until the block ends."""
        listener = listen("127.0.0.1", self.port)
        self.port = listener.getsockname()[1]
        with serve(web_on(self.made.project, "127.0.0.1"), listener, drain=1) as serving:
            yield serving.url

    @contextmanager
    def process(self) -> Iterator[str]:
        """Serve from a process of its own, which is killed when the block ends."""
        command = [sys.executable, "-m", "calve", "-C", str(self.made.folder), "server", "--json", "--port"]
        with subprocess.Popen([*command, str(self.port)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            url: str = json.loads(process.stdout.readline())["url"]
            self.port = urlsplit(url).port or 0
            try:
                yield url
            finally:
                process.kill()


@dataclass
class Watched:
    """A page in a browser, and what went wrong on it."""

    page: Page
    url: str
    others: tuple[str, ...] = ()
    """Other servers that it may ask."""
    faults: list[str] = field(default_factory=list)
    theme: Theme = "light"

    def __post_init__(self) -> None:
        self.page.context.add_init_script(_REPORTING)
        self.page.on("pageerror", lambda error: self.faults.append(f"{self.page.url}: {error}"))
        self.page.on("console", self._said)
        self.page.on("dialog", lambda dialog: self.faults.append(f"a script ran: {dialog.message}"))
        self.page.on("request", lambda asked: self._check(asked.url))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._fault(f"{message.text} {message.location['url']}")

    def _fault(self, text: str) -> None:
        self.faults.append(f"{self.page.url}: {text}")

    def _check(self, address: str) -> None:
        if not address.startswith((self.url, "data:", *self.others)):
            self._fault(f"asked for {address}")

    def open(self, path: str) -> Page:
        """Open a page of the server; it has to be there."""
        answer = self.page.goto(self.url + path)
        assert answer is not None
        assert answer.ok, f"{path}: {answer.status}"
        return self.page

    def wrong(self, name: str, rules: dict[str, Any] = OF_LOOK, within: str = "html") -> list[Wrong]:
        """Return what is wrong with how the page looks, or a part of it: as it is, then in the other theme.

        Args:
            name: what it is called in a report.
            rules: what axe looks for as it is; in the other theme, only contrast.
            within: a selector of the part.
        """
        found = [(name, one) for one in self._violations(within, rules)]
        if self.page.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            found.append((name, "is wider than the window"))
        found += [(name, f"the placeholder {one} is clipped") for one in self.page.evaluate(_CLIPPED)]
        self.page.emulate_media(color_scheme=OTHER[self.theme])
        contrast = {"type": "rule", "values": ["color-contrast"]}
        found += [(f"{name} when {OTHER[self.theme]}", one) for one in self._violations(within, contrast)]
        self.page.emulate_media(color_scheme=self.theme)
        return found

    def _violations(self, within: str, rules: dict[str, Any]) -> list[Any]:
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(_AXE)
        found: list[Any] = self.page.evaluate(_VIOLATIONS, [within, rules])
        return found


@contextmanager
def watched(
    browser: Browser,
    url: str,
    *,
    viewport: ViewportSize = DESK,
    theme: Theme = "light",
    others: tuple[str, ...] = (),
    **given: Any,
) -> Iterator[Watched]:
    """Give a page in a browser; fail if it breaks, breaks its policy, or asks for anything elsewhere."""
    look = {"viewport": viewport, "color_scheme": theme, "reduced_motion": "reduce"}
    context = browser.new_context(**{**look, **given})
    found = Watched(context.new_page(), url, others, theme=theme)
    yield found
    context.close()
    assert found.faults == [], found.faults


def reveal(button: Locator) -> Locator:
    """Open the menu that holds a button, if one does, and return the button."""
    menu = button.locator("xpath=ancestor::details[not(@open)]")
    if menu.count():
        menu.first.locator("> summary").click()
    expect(button).to_be_visible()
    return button
