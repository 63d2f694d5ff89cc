"""A lake with real tables, and a server with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, TimestamptzType
from starlette.middleware import Middleware
from starlette.testclient import TestClient
from tests.engines import Playground
from tests.pages import Parsed, answer_of
from tests.servers import services_on

from calve.access import Principal, PrincipalKind, Role
from calve.api import create_app
from calve.api.app import FixedPrincipal
from calve.app import captures_on, tables_on
from calve.capture import Captures, Wanted
from calve.lake import Lake, TableName
from calve.lineage import Direction, Edge
from calve.settings import load
from calve.web import add_pages

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table

HTML = {"accept": "text/html,application/xhtml+xml"}
JSON = {"accept": "application/json"}
SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "at", TimestamptzType()), NestedField(3, "day", DateType())
)
BY_DAY = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "day"))
NOW = datetime.now(UTC)  # noqa: TID251 - PyIceberg dates commits by the clock, so the rows have to be of today
TODAY = NOW.replace(hour=0, minute=0, second=0, microsecond=0)


@dataclass(frozen=True, slots=True)
class TableLake:
    """A lake, its captures, and a way to write tables."""

    lake: Lake
    captures: Captures

    def create(self, name: str, spec: PartitionSpec = BY_DAY, properties: dict[str, str] | None = None) -> "Table":
        """Create an empty table."""
        catalog = self.lake.catalog("lake").pyiceberg()
        catalog.create_namespace_if_not_exists(name.partition(".")[0])
        return catalog.create_table(name, SCHEMA, partition_spec=spec, properties=properties or {})

    def commit(self, consumer: str, table: str = "db.events", **wanted: Any) -> None:
        """Capture a table, and commit the capture."""
        self.captures.commit(self.captures.capture([table], consumer, Wanted(**wanted)).capture_id or "")


@contextmanager
def table_lake_on(playground: Playground, folder: Path) -> Iterator[TableLake]:
    """Give a lake in a folder, whose captures are kept by a playground's store."""
    lake = Lake(load(folder, {}))
    try:
        yield TableLake(lake, captures_on(lake, playground.store))
    finally:
        lake.close()


def append(table: "Table", *days_ago: int) -> None:
    """Append a row for each of some days."""
    table.append(rows(table, *(TODAY - timedelta(days=days) for days in days_ago)))


def rows(table: "Table", *times: datetime) -> "pa.Table":
    """Return a row for each of some times."""
    import pyarrow as pa

    columns = {"id": list(range(len(times))), "at": list(times), "day": [time.date() for time in times]}
    return pa.table(columns, schema=table.schema().as_arrow())


def day(days_ago: int) -> str:
    """Return the name of the partition of a day."""
    return f"day={(TODAY - timedelta(days=days_ago)).date()}"


def services(playground: Playground, table_lake: TableLake) -> Any:
    """Return the services of a server with that lake."""
    store = playground.store
    tables = tables_on(table_lake.lake, store)
    return services_on(playground, captures=table_lake.captures, tables=tables, lineage=store.lineage)


CHAIN = [
    ("demo.load", Direction.WRITE, "raw"),
    ("demo.daily", Direction.READ, "raw"),
    ("demo.daily", Direction.WRITE, "events"),
    ("other.agg", Direction.READ, "events"),
    ("other.agg", Direction.WRITE, "sums"),
]


def keep_chain(playground: Playground, table_lake: TableLake) -> None:
    """Keep a lineage from db.raw over db.events to db.sums."""
    for name in ("raw", "events", "sums"):
        append(table_lake.create(f"db.{name}"), 0)
    playground.store.lineage.keep(
        [
            Edge(workflow, "step", direction, TableName("lake", ("db",), table), 1_000 + place, 1, "uuid", 5)
            for place, (workflow, direction, table) in enumerate(CHAIN)
        ]
    )


def write_history(table_lake: TableLake) -> None:
    """Write a table with late rows and two consumers: one is up to date, one two commits behind."""
    table = table_lake.create("db.events")
    append(table, 0, 1, 3)
    table_lake.commit("demo.daily/take")
    append(table, 0, 2)
    append(table, 0)
    table_lake.commit("other.hourly")


@contextmanager
def browser(playground: Playground, table_lake: TableLake, who: Principal | None = None) -> Iterator[TestClient]:
    """Give a browser at a server with that lake; for a user, or for the machine of the server."""
    given: Any = {} if who is None else {"middleware": [Middleware(FixedPrincipal, principal=who)]}
    app = create_app(services(playground, table_lake), extend=add_pages, **given)
    with TestClient(app, follow_redirects=False) as client:
        client.headers.update(HTML)
        yield client


def viewer(namespace: str, role: Role = Role.VIEWER) -> Principal:
    """Return a user with a role in one namespace."""
    return Principal("ann", PrincipalKind.USER, {namespace: role})


def page_of(client: TestClient, path: str) -> Parsed:
    """Return a page, checked."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer_of(answer)


def twin(client: TestClient, path: str) -> Any:
    """Return the document of a page."""
    return client.get(path, headers=JSON).json()


def rest(client: TestClient, path: str) -> Any:
    """Return a document of REST."""
    return client.get(f"/api/v3{path}", headers=JSON).json()
