"""What a page costs a browser: the longest task of its main thread, and the bytes that a first visit transfers."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from playwright.sync_api import Page, ViewportSize, sync_playwright

_OBSERVE = """window.tasks = [];
new PerformanceObserver((list) => tasks.push(...list.getEntries().map((one) => one.duration)))
  .observe({ type: "longtask", buffered: true });"""
_SETTLED_MS = 1_500
_PHONE: ViewportSize = {"width": 400, "height": 800}
_DESK: ViewportSize = {"width": 1280, "height": 900}


@dataclass(frozen=True, slots=True)
class Cost:
    """What a page cost."""

    path: str
    longest_ms: float
    """The longest task of the main thread; 0 where none took 50 ms."""
    kilobytes: float
    """Of everything that was transferred, with an empty cache."""


def costs(url: str, paths: Iterable[str]) -> list[Cost]:
    """Open pages in chromium, each with an empty cache, turn the window and the theme, and return what they cost."""
    program = shutil.which("chromium")
    if program is None:
        return []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        found = []
        for path in paths:
            context = browser.new_context(viewport=_DESK)
            context.add_init_script(_OBSERVE)
            found.append(_cost(context.new_page(), url, path))
            context.close()
        browser.close()
    return found


def _cost(page: Page, url: str, path: str) -> Cost:
    sizes: list[int] = []
    page.on("requestfinished", lambda one: sizes.append(one.sizes()["responseBodySize"]))
    page.goto(url + path)
    page.wait_for_timeout(_SETTLED_MS)  # an open stream never lets the network be idle
    page.mouse.move(600, 400)
    page.mouse.wheel(0, 2_000)
    page.set_viewport_size(_PHONE)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(_SETTLED_MS)
    tasks: list[float] = page.evaluate("tasks")
    return Cost(path, max(tasks, default=0), sum(sizes) / 1_000)
