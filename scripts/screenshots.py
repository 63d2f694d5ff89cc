"""Take the screenshots of the documentation: ``make screenshots`` writes docs/assets/ui.

tests/browser/screenshots.py lists them, with their data. Run it when a page looks different.
"""

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests take the same pictures

from tests.browser.conftest import chromium
from tests.browser.screenshots import FOLDER, LIMIT, take_all


def main() -> None:
    """Take all pictures, and fail if one is too large."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        large = [file.name for file in take_all(browser, FOLDER, Path(work)) if file.stat().st_size > LIMIT]
        browser.close()
    if large:
        sys.exit(f"larger than {LIMIT:,} bytes: {', '.join(large)}")


if __name__ == "__main__":
    main()
