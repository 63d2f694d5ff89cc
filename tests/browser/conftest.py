"""A browser for tests: Debian's chromium."""

from collections.abc import Iterator
from functools import partial

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from calve.testing.debian import on_path, program

expect.set_options(timeout=15_000)  # the machine may be busy with other tests


def chromium() -> str:
    """Return the path of the program; a test that needs it fails if it cannot be installed."""
    return str(program(partial(on_path, "chromium"), "chromium", "fonts-dejavu-core"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Give a browser. It ends with the module, as Playwright's event loop would disturb others' in the same process."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield opened
        opened.close()
