"""Take the screenshots of the documentation: ``make screenshots`` writes docs/assets/ui.

A server shows a project with data that was never real: workflows of several teams, of which one failed and one asks
for an approval, and a table with late rows, two consumers and a compaction. No JVM is needed. The days and the numbers
end now, so every picture differs from the one before it: take them again when a page has changed.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, sync_playwright
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.table import Table

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the project with data is that of the tests of pages

from tests.browser.conftest import chromium  # noqa: E402
from tests.projects import SOURCE, WebProject, filled_project  # noqa: E402

from calve.api import listen, serve  # noqa: E402
from calve.app import web_on  # noqa: E402
from calve.capture import Wanted  # noqa: E402

FOLDER = ROOT / "docs" / "assets" / "ui"
WIDTH = 1280
LIMIT = 150_000
"""Bytes of a picture, so that the repository and the pages stay small."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a page."""

    name: str
    path: str
    height: int
    theme: Literal["light", "dark"] = "light"

    @property
    def file(self) -> Path:
        """Where it goes."""
        return FOLDER / f"{self.name}.png"


PICTURES = (
    Picture("home", "/", 666),
    Picture("instance", "/workflows/{workflow_id}/instances/{instance_id}?step=merge", 870),
    Picture("table", "/tables/{table}", 1_040),
    Picture("instance-dark", "/workflows/{workflow_id}/instances/{instance_id}?step=merge", 870, "dark"),
)


@contextmanager
def served(made: WebProject) -> Iterator[str]:
    """Serve a project until the block ends, as ``calve up`` does: what holds the scheduler counts as a worker."""
    with (
        made.project.store.hold_scheduler(),
        serve(web_on(made.project, "127.0.0.1"), listen("127.0.0.1", 0), drain=1) as serving,
    ):
        yield serving.url


def schedule(made: WebProject) -> None:
    """Take over the triggers of workflows from now on: since their first day, they would have missed some times."""
    for workflow_id, version in made.project.triggers.unsynced():
        made.project.engine.deactivate(workflow_id)
        made.project.engine.activate(workflow_id, version or "latest")
    for scheduler in made.project.schedulers():
        scheduler.turn()
    made.project.tables.take_samples()


def add_consumer(made: WebProject, behind: int) -> None:
    """Let a second consumer have processed the table up to some commits ago."""
    snapshots = source(made).snapshots()
    wanted = Wanted(end=str(snapshots[-1 - behind].snapshot_id))
    taken = made.project.captures.capture([SOURCE], "ads.audience/build", wanted)
    made.project.captures.commit(taken.capture_id or "")


def compact(made: WebProject) -> None:
    """Merge the files of the table, as Spark's ``rewrite_data_files`` does; PyIceberg has no such operation."""
    table = source(made)
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as rewrite:
        for task in table.scan().plan_files():
            rewrite.delete_data_file(task.file)
        for file in _dataframe_to_data_files(table.metadata, table.scan().to_arrow(), table.io):
            rewrite.append_data_file(file)
    place = Path(unquote(urlsplit(table.refresh().metadata_location).path))
    metadata = json.loads(place.read_text(encoding="utf-8"))
    metadata["snapshots"][-1]["summary"]["operation"] = "replace"
    place.write_text(json.dumps(metadata), encoding="utf-8")


def source(made: WebProject) -> Table:
    """Return the table that is captured."""
    return made.project.lake.catalog("lake").pyiceberg().load_table(SOURCE)


def take(browser: Browser, url: str, picture: Picture, names: dict[str, str]) -> None:
    """Take a picture, when the page has drawn what it draws by script."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": picture.height}, color_scheme=picture.theme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(url + picture.path.format_map(names))
    page.wait_for_timeout(1_000)  # an open stream never lets the network be idle
    page.screenshot(path=picture.file)
    context.close()


def main() -> None:
    """Take all pictures, and fail if one is too large."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, filled_project(Path(folder), commits=52, runs=12) as made:
        add_consumer(made, 8)
        compact(made)
        schedule(made)
        take_all(made)
    large = [picture.name for picture in PICTURES if picture.file.stat().st_size > LIMIT]
    if large:
        sys.exit(f"larger than {LIMIT:,} bytes: {', '.join(large)}")


def take_all(made: WebProject) -> None:
    """Take all pictures of a project."""
    with served(made) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for picture in PICTURES:
            take(browser, url, picture, made.names)
        browser.close()


if __name__ == "__main__":
    main()
