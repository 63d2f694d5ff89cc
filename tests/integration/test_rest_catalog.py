"""A REST catalog for real: Iceberg's reference server, behind a proxy that loses answers; no Spark."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from tests.integration.tables import quick_session
from tests.scope import in_ci
from tests.services.http_proxy import Fate, Fault, HttpProxy, http_proxy
from tests.services.iceberg_rest import RestServer, throwaway_rest

from calve.app import open_captures
from calve.capture import CHANGES, Captures, Source, Wanted
from calve.delivery.snapshots import append_snapshot
from calve.errors import CatalogRefused, LakeError, LakeUnavailable, TableIsView, TableMissing
from calve.lake import Lake, LoadedTable, TableCommit, TableName, metadata as raw
from calve.lake.rest_catalog import RestCatalog
from calve.lake.spark_conf import catalog_conf
from calve.settings import FILE, Settings, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JSON = dict[str, Any]


@pytest.fixture(scope="session")
def rest_server() -> Iterator[RestServer]:
    """Start Iceberg's reference server once; tables of its own keep the tests apart."""
    with throwaway_rest() as server:
        yield server


@dataclass
class House:
    """A lake with one REST catalog, behind a proxy."""

    proxy: HttpProxy
    settings: Settings
    lake: Lake
    namespace: str = field(default_factory=lambda: f"db{uuid.uuid4().hex[:8]}")

    @property
    def catalog(self) -> RestCatalog:
        """The catalog, as calve sees it."""
        found = self.lake.catalog("rest")
        assert isinstance(found, RestCatalog)
        return found

    def name(self, table: str = "t") -> TableName:
        """Return the name of a table of this test's own."""
        return TableName("rest", (self.namespace,), table)

    def post(self, path: str, body: JSON) -> JSON:
        """Ask the server for a change, past calve."""
        answer = httpx.post(f"{self.proxy.target}/v1/{path}", json=body, timeout=60)
        assert answer.is_success, answer.text
        found: JSON = answer.json() if answer.content else {}
        return found

    def create(
        self, table: str = "t", *, version: int = 2, columns: list[JSON] | None = None, **more: str
    ) -> TableName:
        """Create an empty table."""
        httpx.post(f"{self.proxy.target}/v1/namespaces", json={"namespace": [self.namespace]}, timeout=60)
        fields = columns or [{"id": 1, "name": "a", "type": "long", "required": False}]
        properties = {"format-version": str(version)} | more
        self.post(
            f"namespaces/{self.namespace}/tables",
            {"name": table, "schema": {"type": "struct", "fields": fields}, "properties": properties},
        )
        return self.name(table)

    def append(self, table: TableName, *values: int) -> None:
        """Append a file of rows, with PyIceberg."""
        import pyarrow as pa

        rows = pa.table({"a": pa.array(values, pa.int64())})
        self.catalog.pyiceberg().load_table(table.identifier).append(rows)

    def requests(self) -> list[str]:
        """Return the requests since the last call, and forget them."""
        seen = [str(each) for each in self.proxy.seen]
        self.proxy.seen.clear()
        return seen


@contextmanager
def house_on(server: RestServer, folder: Path, settings: str = "") -> Iterator[House]:
    """Give a project whose only catalog is a server, behind a proxy."""
    with http_proxy(server.uri) as proxy:
        (folder / FILE).write_text(f"[catalogs.rest]\ntype = 'rest'\nuri = '{proxy.url}'\n{settings}")
        lake = Lake(load(folder, {}))
        try:
            yield House(proxy, lake.settings, lake)
        finally:
            lake.close()


@pytest.fixture
def house(rest_server: RestServer, tmp_path: Path) -> Iterator[House]:
    """Yield a project whose tables are files on this machine."""
    warehouse = tmp_path / "captures"
    with house_on(rest_server, tmp_path, f"[capture]\nlocation = '{warehouse}'") as found:
        yield found


@pytest.fixture
def captures(house: House) -> Iterator[Captures]:
    """Yield the captures of that project."""
    with open_captures(house.settings) as opened:
        yield opened


def test_a_table_is_captured(house: House, captures: Captures) -> None:
    """Plan, capture, lag and commit work, the ICDC table has the new rows, and garbage collection removes it."""
    table = house.create()
    house.append(table, 1, 2)
    captures.commit(captures.capture([str(table)], "c", Wanted()).capture_id or "")
    house.append(table, 3)
    assert captures.plan([str(table)], "c").tables[0].records == 1
    report = captures.capture([str(table)], "c", Wanted(), lease=True)
    name = house.lake.parse(report.tables[0].icdc_table or "")
    scan = house.catalog.pyiceberg().load_table(name.identifier).scan().to_arrow()
    assert scan.column("a").to_pylist() == [3]
    refs = house.catalog.load(table).metadata["refs"].values()
    assert sorted(ref["type"] for ref in refs) == ["branch", "tag"]
    assert captures.lag("c")[0].pending_commits == 1
    captures.commit(report.capture_id or "")
    captures.collect_garbage(timedelta(0))
    assert not house.catalog.exists(name)
    assert list(house.catalog.load(table).metadata["refs"]) == ["main"]
    assert not list(Path(house.settings.capture.location or "").rglob("*.avro"))


def test_types_that_pyiceberg_does_not_know_are_fine(house: House) -> None:
    """Variant, geometry, unknown, nanoseconds and defaults arrive as the server sends them, and commits keep them."""
    types = ["variant", "geometry(EPSG:3857)", "unknown", "timestamptz_ns"]
    columns = [{"id": n, "name": f"c{n}", "type": kind, "required": False} for n, kind in enumerate(types, 1)]
    columns += [{"id": 9, "name": "d", "type": "int", "required": True, "initial-default": 7, "write-default": 8}]
    table = house.create(version=3, columns=columns)
    assert house.catalog.change(table, partial(_with_snapshot, house, table))
    found = house.catalog.load(table).metadata
    assert [field["type"] for field in found["schemas"][0]["fields"]] == [*types, "int"]
    assert found["schemas"][0]["fields"][-1]["initial-default"] == 7
    (snapshot,) = found["snapshots"]
    assert (snapshot["first-row-id"], snapshot["added-rows"], found["refs"]["main"]["snapshot-id"]) == (
        0,
        0,
        snapshot["snapshot-id"],
    )


@pytest.mark.spark
def test_a_variant_is_captured_and_read_by_spark(house: House, captures: Captures, quick_spark: "SparkSession") -> None:
    """PyIceberg cannot load such a table: Spark writes it, calve captures it, Spark reads the change."""
    session = quick_session(quick_spark)
    for key, text in catalog_conf("rest", house.settings.catalogs["rest"]).items():
        session.conf.set(key, text)
    session.sql("USE rest")  # the default catalog of the project
    name = f"rest.{house.namespace}.v"
    session.sql(f"CREATE NAMESPACE {house.namespace}")
    session.sql(f"CREATE TABLE {name} (id BIGINT, v VARIANT) USING iceberg TBLPROPERTIES ('format-version' = '3')")
    session.sql(f"INSERT INTO {name} SELECT 1, parse_json('{{\"a\": 1}}')")
    captures.commit(captures.capture([name], "c", Wanted()).capture_id or "")
    session.sql(f"INSERT INTO {name} SELECT 2, parse_json('{{\"a\": 2}}')")
    session.sql(f"UPDATE {name} SET v = parse_json('{{\"a\": 3}}') WHERE id = 1")
    report = captures.capture([name], "c", Wanted(operations=frozenset(CHANGES)))
    found = session.sql(f"SELECT id, to_json(v) FROM {report.tables[0].relation} ORDER BY id").collect()
    assert [tuple(row) for row in found] == [(1, '{"a":3}'), (2, '{"a":2}')]
    captures.abandon(report.capture_id or "")


def test_tables_namespaces_and_views_are_told_apart(house: House) -> None:
    """Lists that come in pages are complete; a view and a missing table have errors of their own."""
    tables = [house.create(name) for name in ("a", "b", "c")]
    paged = RestCatalog("rest", {"uri": house.proxy.url, "rest-page-size": "2"})
    assert sorted(paged.tables((house.namespace,))) == [f"{house.namespace}.{name}" for name in "abc"]
    assert (house.namespace,) in paged.namespaces()
    assert paged.tables(("nowhere",)) == []
    assert len([line for line in house.requests() if line.endswith(f"{house.namespace}/tables")]) == 2
    paged.close()
    assert house.catalog.exists(tables[0])
    assert not house.catalog.exists(house.name("z"))
    with pytest.raises(TableMissing, match="There is no table"):
        house.catalog.load(house.name("z"))
    version = {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1,
        "summary": {},
        "default-namespace": [house.namespace],
        "representations": [{"type": "sql", "sql": "SELECT * FROM db.under", "dialect": "spark"}],
    }
    fields = [{"id": 1, "name": "a", "type": "int", "required": False}]
    view = {"name": "v", "schema": {"type": "struct", "fields": fields}, "view-version": version, "properties": {}}
    house.post(f"namespaces/{house.namespace}/views", view)
    with pytest.raises(TableIsView) as error:
        house.catalog.load(house.name("v"))
    assert "db.under" in error.value.remedy


def test_what_did_not_change_is_not_sent_again(house: House) -> None:
    """Polling asks with the tag of the last answer."""
    table = house.create()
    first = house.catalog.locations([table, house.name("none")])
    assert list(first) == [table]
    house.requests()
    assert house.catalog.locations([table]) == first
    assert house.proxy.seen[0].status == 304
    house.append(table, 1)
    assert house.catalog.locations([table]) != first


def test_a_capture_needs_few_requests(house: House, captures: Captures) -> None:
    """However many files the table has: its metadata comes with the one answer, and no file is asked for twice."""
    table = house.create()
    for value in range(12):
        house.append(table, value)
    captures.commit(captures.capture([str(table)], "c", Wanted()).capture_id or "")
    house.append(table, 100)
    house.requests()
    captures.capture([str(table)], "c", Wanted())
    assert len(house.requests()) <= 3


CALLS = ("tag", "untag", "snapshot", "properties", "branch", "register", "drop")
FATES = (
    Fault("POST|DELETE", Fate.LOSE_ANSWER, times=2),
    Fault("POST|DELETE", Fate.LOSE_REQUEST),
    Fault("POST|DELETE", Fate.FAIL_AFTER, status=503),
    Fault("POST|DELETE", Fate.FAIL_AFTER, status=500),
    Fault("POST|DELETE", Fate.FAIL_BEFORE, status=504),
    Fault("POST|DELETE", Fate.FAIL_BEFORE, status=429),
    Fault("GET", Fate.FAIL_BEFORE, status=502, times=2),
)


@pytest.mark.parametrize(
    "fault",
    in_ci(FATES[:3], otherwise=FATES),
    ids=lambda fault: f"{fault.fate.name}-{fault.status}-{fault.times}".lower(),
)
def test_whatever_is_lost_happens_exactly_once(house: House, fault: Fault) -> None:
    """Each kind of commit looks whether it happened when its answer is lost, and is never planned anew before that."""
    table = house.create()
    catalog = house.catalog
    assert catalog.change(table, partial(_with_snapshot, house, table))
    (first,) = catalog.load(table).metadata["snapshots"]
    plans: list[int] = []
    for call in CALLS:
        house.proxy.faults = [replace(fault)]
        match call:
            case "tag":
                catalog.create_tag(table, "lease", first["snapshot-id"], 60_000)
            case "untag":
                assert catalog.drop_tag(table, "lease")
            case "snapshot":
                assert catalog.change(table, partial(_with_snapshot, house, table, plans=plans))
            case "properties":
                assert catalog.change(table, lambda _: TableCommit(properties={"x": "y"}))
            case "branch":
                assert catalog.change(table, lambda _: TableCommit(branches={"job": first["snapshot-id"]}))
            case "register":
                catalog.register(house.name("copy"), catalog.load(table).metadata_location)
            case "drop":
                assert catalog.drop(house.name("copy"))
        assert house.proxy.faults[0].times < fault.times, f"{call} did not meet its fate"
    found = catalog.load(table).metadata
    assert (len(plans), len(found["snapshots"]), found["properties"]["x"]) == (1, 2, "y")
    assert set(found["refs"]) == {"main", "job"}
    assert not catalog.exists(house.name("copy"))


def test_a_commit_that_stays_unknown_is_an_error_that_says_so(house: House) -> None:
    """The catalog is named, and the step is tried again later."""
    table = house.create()
    house.proxy.faults = [Fault("POST .*/tables/", Fate.FAIL_BEFORE, times=99, status=504)]
    with pytest.raises(LakeUnavailable, match="The catalog rest cannot be reached: HTTP status 504"):
        house.catalog.change(table, lambda _: TableCommit(properties={"x": "y"}))


def test_what_a_catalog_refuses_is_not_tried_again(house: House) -> None:
    """The error has the server's words and what to do; nothing is sent twice."""
    table = house.create()
    house.proxy.faults = [Fault("POST .*/tables/", Fate.FAIL_BEFORE, status=403)]
    with pytest.raises(CatalogRefused) as error:
        house.catalog.change(table, lambda _: TableCommit(properties={"x": "y"}))
    assert "right to write" in error.value.remedy
    house.proxy.faults = [Fault("POST .*/register", Fate.FAIL_BEFORE, status=403)]
    with pytest.raises(CatalogRefused) as error:
        house.catalog.register(house.name("copy"), "nowhere")
    assert "capture.namespace" in error.value.remedy
    house.proxy.faults = [Fault("GET", Fate.FAIL_BEFORE, status=403)]
    with pytest.raises(CatalogRefused):
        house.catalog.load(table)
    with pytest.raises(LakeError, match="already exists"):
        house.catalog.register(table, house.catalog.load(table).metadata_location)


def test_a_token_that_has_ended_is_renewed(rest_server: RestServer) -> None:
    """Client credentials are exchanged for a token, and again when the catalog no longer accepts it."""
    table = TableName("rest", ("db",), "t")
    with http_proxy(rest_server.uri) as proxy:
        oauth = {"credential": "me:secret", "oauth2-server-uri": f"{proxy.url}/v1/oauth/tokens"}
        catalog = RestCatalog("rest", {"uri": proxy.url, **oauth})
        assert not catalog.exists(table)
        assert proxy.seen[-1].headers["Authorization"] == "Bearer client-credentials-token:sub=me"
        proxy.seen.clear()
        proxy.faults = [Fault("HEAD", Fate.FAIL_BEFORE, status=401)]
        assert not catalog.exists(table)
        assert [each.method for each in proxy.seen] == ["HEAD", "POST", "HEAD"]
        proxy.faults = [Fault("HEAD", Fate.FAIL_BEFORE, times=2, status=401)]
        with pytest.raises(CatalogRefused) as error:
            catalog.exists(table)
        assert error.value.remedy == "Check credential, token and scope of the catalog rest."
        catalog.close()


@pytest.mark.parametrize(("is_old", "conflict"), in_ci([(True, 400)], otherwise=[(False, 409), (True, 400)]))
def test_two_writers_at_once_are_both_there(house: House, is_old: bool, conflict: int) -> None:  # noqa: FBT001 - a table
    """Their snapshots have the same sequence number: a conflict like any other, also where the status is 400."""
    house.proxy.is_old = is_old
    table = house.create(version=3)
    house.catalog.change(table, partial(_with_snapshot, house, table))  # without a parent, no number is compared
    lakes = [house.lake, Lake(house.settings)]
    rounds = 6
    start = threading.Barrier(2)
    failures: list[BaseException] = []

    def write(number: int) -> None:
        catalog = lakes[number].catalog("rest")
        try:
            for turn in range(rounds):
                start.wait(30)
                catalog.change(
                    table, partial(_with_snapshot, house, table, branch=f"b{number}", mark=f"{number}.{turn}")
                )
        except BaseException as error:  # noqa: BLE001 - for the assertion below
            failures.append(error)
            start.abort()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lakes[1].close()
    assert not failures
    found = house.catalog.load(table).metadata
    marks = {f"{number}.{turn}" for number in range(2) for turn in range(rounds)}
    assert marks <= found["properties"].keys()
    assert sorted(snapshot["sequence-number"] for snapshot in found["snapshots"]) == [*range(1, 2 * rounds + 2)]
    assert conflict in {each.status for each in house.proxy.seen}, "they never met"


def _with_snapshot(
    house: House,
    table: TableName,
    metadata: raw.Metadata,
    *,
    branch: str = "main",
    mark: str = "mark",
    plans: list[int] | None = None,
) -> TableCommit:
    """Decide on a commit that adds an empty snapshot to a branch."""
    source = Source(LoadedTable(table, metadata, "", house.catalog.load(table).files))
    parent = raw.branch_head(metadata, branch) or raw.branch_head(metadata)
    head = append_snapshot(source, parent, (), metadata["last-updated-ms"] + 1, {})
    for path, content in head.files.items():
        source.files.write(path, content)
    if plans is not None:
        plans.append(1)
    return TableCommit(dict(head.snapshot), {branch: head.snapshot["snapshot-id"]}, properties={mark: "here"})
