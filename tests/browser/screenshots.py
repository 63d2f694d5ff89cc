"""The screenshots of the documentation: of which pages, with which data, and how they are taken.

``make screenshots`` stores them in docs/assets/ui; ``test_screenshots.py`` takes them too, which fails if a page no
longer shows what its screenshot shows. The data was never real: workflows of several teams, of which one failed and
one asks for an approval, a table with late rows, two consumers and a compaction; and the table of the tutorial. No JVM
is needed. The days and the numbers end now, so every picture differs from the one before it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote, urlsplit

from playwright.sync_api import Browser, expect
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, LongType, NestedField, StringType
from tests.projects import SOURCE, WebProject, filled_project

from calve.api import listen, serve
from calve.app import open_project, web_on
from calve.app.project import Project
from calve.capture import Operation, Wanted
from calve.settings import load

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = Path(__file__).parents[2] / "docs" / "assets" / "ui"
WIDTH = 1280
LIMIT = 150_000
"""Bytes of a picture, so that the repository and the pages stay small."""
ORDERS = "shop.orders"


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a page."""

    name: str
    path: str
    height: int
    shows: str
    """A text that has to be on it."""
    theme: Literal["light", "dark"] = "light"
    is_tutorial: bool = False
    """Whether the page is of the project of the tutorial."""

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.png"


_FAILED = "/workflows/{workflow_id}/instances/{instance_id}?step=merge"
PICTURES = (
    Picture("home", "/", 690, "Waiting for a person"),
    Picture("instance", _FAILED, 870, "Is a restart safe?"),
    Picture("table", "/tables/{table}", 1_040, "playback.daily/capture"),
    Picture("instance-dark", _FAILED, 870, "Is a restart safe?", "dark"),
    Picture("tutorial", f"/tables/{ORDERS}", 350, "2026-03-01", is_tutorial=True),
)


def take_all(browser: Browser, folder: Path, work: Path, *, commits: int = 52, runs: int = 12) -> Iterator[Path]:
    """Take all pictures.

    Args:
        browser: what shows the pages.
        folder: where the pictures go.
        work: an empty folder for the projects.
        commits: how many commits the table of the large project has.
        runs: how many instances each of its workflows has.
    """
    with _large(_made(work / "large"), commits, runs) as made, _served(made.project) as url:
        yield from _taken(browser, folder, url, (one for one in PICTURES if not one.is_tutorial), made.names)
    with _tutorial(_made(work / "tutorial")) as project, _served(project) as url:
        yield from _taken(browser, folder, url, (one for one in PICTURES if one.is_tutorial), {})


def _taken(
    browser: Browser, folder: Path, url: str, pictures: Iterable[Picture], names: Mapping[str, str]
) -> Iterator[Path]:
    for picture in pictures:
        yield _take(browser, folder / picture.file, url + picture.path.format_map(names), picture)


def _take(browser: Browser, file: Path, address: str, picture: Picture) -> Path:
    """Take a picture, when the page has drawn what it draws by script."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": picture.height}, color_scheme=picture.theme, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto(address)
    expect(page.locator("main")).to_contain_text(picture.shows)
    page.wait_for_timeout(1_000)  # an open stream never lets the network be idle
    page.screenshot(path=file)
    context.close()
    return file


@contextmanager
def _served(project: Project) -> Iterator[str]:
    """Serve a project until the block ends, as ``calve up`` does: what holds the scheduler counts as a worker."""
    with (
        project.store.hold_scheduler(),
        serve(web_on(project, "127.0.0.1"), listen("127.0.0.1", 0), drain=1) as serving,
    ):
        yield serving.url


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


# The project of several teams.


@contextmanager
def _large(folder: Path, commits: int, runs: int) -> Iterator[WebProject]:
    with filled_project(folder, commits=commits, runs=runs) as made:
        _add_consumer(made.project, commits // 6)
        _compact(made.project)
        _schedule(made.project)
        yield made


def _schedule(project: Project) -> None:
    """Take over the triggers of workflows from now on: since their first day, they would have missed some times."""
    for workflow_id, version in project.triggers.unsynced():
        project.engine.deactivate(workflow_id)
        project.engine.activate(workflow_id, version or "latest")
    for scheduler in project.schedulers():
        scheduler.turn()
    project.tables.take_samples()


def _add_consumer(project: Project, behind: int) -> None:
    """Let a second consumer have processed the table up to some commits ago."""
    snapshots = _table(project, SOURCE).snapshots()
    _processed(project, SOURCE, "ads.audience/build", Wanted(end=str(snapshots[-1 - behind].snapshot_id)))


def _compact(project: Project) -> None:
    """Merge the files of the table, as Spark's ``rewrite_data_files`` does; PyIceberg has no such operation."""
    table = _table(project, SOURCE)
    _replace(table, [task.file for task in table.scan().plan_files()], table.scan().to_arrow())
    place = Path(unquote(urlsplit(table.refresh().metadata_location).path))
    metadata = json.loads(place.read_text(encoding="utf-8"))
    metadata["snapshots"][-1]["summary"]["operation"] = "replace"
    place.write_text(json.dumps(metadata), encoding="utf-8")


# The project of the tutorial.

_SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "day", DateType()),
    NestedField(3, "customer", StringType()),
    NestedField(4, "amount", DecimalType(10, 2)),
)
_BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
_Order = tuple[int, int, str, str]
"""Its id, its day of March, the customer and the amount."""


@contextmanager
def _tutorial(folder: Path) -> Iterator[Project]:
    """Do what docs/tutorial/first-capture.md does."""
    with open_project(load(folder, {})) as project:
        catalog = project.lake.catalog("lake").pyiceberg()
        catalog.create_namespace("shop")
        table = catalog.create_table(ORDERS, _SCHEMA, partition_spec=_BY_DAY)
        table.append(_orders(table, (1, 1, "ada", "10"), (2, 1, "bob", "20"), (3, 2, "ada", "30")))
        _processed(project, ORDERS, "revenue")
        table.append(_orders(table, (4, 3, "bob", "40")))
        table.append(_orders(table, (5, 1, "eve", "5")))
        _processed(project, ORDERS, "revenue")
        (old,) = [task.file for task in table.scan("id = 3").plan_files()]
        _replace(table, [old], _orders(table, (3, 2, "ada", "35")))
        wanted = Wanted(operations=frozenset({Operation.APPEND, Operation.OVERWRITE, Operation.DELETE}))
        given_up = project.captures.capture([ORDERS], "revenue", wanted)
        project.captures.abandon(given_up.capture_id or "")
        yield project


def _orders(table: Table, *orders: _Order) -> "pa.Table":
    import pyarrow as pa

    ids, days, customers, amounts = zip(*orders, strict=True)
    columns = {
        "id": ids,
        "day": [date(2026, 3, day) for day in days],
        "customer": customers,
        "amount": [Decimal(amount) for amount in amounts],
    }
    return pa.table(columns, schema=table.schema().as_arrow())


def _processed(project: Project, table: str, consumer: str, wanted: Wanted | None = None) -> None:
    taken = project.captures.capture([table], consumer, wanted)
    project.captures.commit(taken.capture_id or "")


def _replace(table: Table, old: list[DataFile], rows: "pa.Table") -> None:
    """Replace files of a table by one commit."""
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as rewrite:
        for file in old:
            rewrite.delete_data_file(file)
        for file in _dataframe_to_data_files(table.metadata, rows, table.io):
            rewrite.append_data_file(file)


def _table(project: Project, name: str) -> Table:
    return project.lake.catalog("lake").pyiceberg().load_table(name)
