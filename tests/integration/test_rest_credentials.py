"""A REST catalog that gives out credentials: Iceberg's reference server, a proxy that adds them, and a real S3 server.

The source and calve's own tables are in buckets of two users, who have no rights in each other's, and calve.toml has no
keys: what works has been done with the credentials that fit the file.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.faults.s3_proxy import S3Proxy
from tests.integration.test_rest_catalog import JSON, House, house_on
from tests.scope import in_ci
from tests.services.http_proxy import Fate, Fault, Seen
from tests.services.iceberg_rest import RestServer, throwaway_rest
from tests.services.s3 import S3Server, throwaway_s3

from calve.app import open_captures
from calve.capture import Captures, Wanted
from calve.errors import LakeError, NotSupportedByCatalog
from calve.lake import TableName
from calve.lake.rest_catalog import RestCatalog
from calve.settings import load

SOURCE, OURS, WRONG = ("reader", "secret-of-reader"), ("writer", "secret-of-writer"), ("nobody", "nothing")
DELEGATION = "X-Iceberg-Access-Delegation"
Keys = tuple[str, str]


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    """Start an S3 server with a bucket for each of two users."""
    with throwaway_s3() as server:
        for (user, secret), bucket in ((SOURCE, "source"), (OURS, "icdc")):
            server.add_user(user, secret)
            server._administer("create-bucket", "--owner", user, "--bucket", bucket)
        yield server


@pytest.fixture(scope="module")
def s3_server(s3: S3Server) -> Iterator[RestServer]:
    """Start a REST catalog that keeps its tables there, and may read and write everything."""
    storage = {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "client.region": s3.region}
    with throwaway_rest("s3://source/warehouse", s3.properties | storage | {"s3.path-style-access": "true"}) as server:
        yield server


@dataclass
class Governed:
    """A project on that catalog, and what the catalog gives out."""

    house: House
    captures: Captures
    store: S3Proxy
    source: Keys = SOURCE
    ours: Keys = OURS
    ends_in_ms: int = 3_600_000

    def give_out(self, request: Seen, answer: JSON) -> JSON:
        """Add credentials to an answer about a table, and the address of the store to the configuration."""
        endpoint = {"s3.endpoint": f"http://127.0.0.1:{self.store.port}", "s3.region": "us-east-1"}
        if request.path.startswith("/v1/config"):
            return answer | {"overrides": {**answer["overrides"], **endpoint}}
        location = answer.get("metadata", {}).get("location", "")
        if not location or not request.headers.get(DELEGATION):
            return answer
        keys, prefix = (self.source, "s3://source") if location.startswith("s3://source") else (self.ours, location)
        end = {"s3.session-token-expires-at-ms": str(time.time_ns() // 1_000_000 + self.ends_in_ms)}
        given = [{"prefix": "s3", "config": _keys(WRONG)}, {"prefix": prefix, "config": _keys(keys) | end}]
        return answer | {"storage-credentials": given}

    def changed(self) -> TableName:
        """Give a table with one committed capture, and one commit after it."""
        table = self.house.create()
        self.house.append(table, 1, 2)
        self.captures.commit(self.captures.capture([str(table)], "c", Wanted()).capture_id or "")
        self.house.append(table, 3)
        return table


def _keys(keys: Keys) -> dict[str, str]:
    return dict(zip(("s3.access-key-id", "s3.secret-access-key"), keys, strict=True))


@pytest.fixture
def governed(
    s3: S3Server, s3_server: RestServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Governed]:
    """Yield that project: calve.toml says where new tables go, and has no keys."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")  # no cloud gives this machine a role
    with (
        S3Proxy(s3.port) as store,
        house_on(s3_server, tmp_path, "[capture]\nlocation = 's3://icdc/calve'") as house,
        open_captures(house.settings) as captures,
    ):
        found = Governed(house, captures, store)
        house.proxy.edit = found.give_out
        yield found


def test_each_file_is_opened_with_credentials_that_fit_it(governed: Governed) -> None:
    """Sources are read and ICDC tables written, read and removed, with what the catalog gives out for their places."""
    table = governed.changed()
    report = governed.captures.capture([str(table)], "c", Wanted(), lease=True)
    name = governed.house.lake.parse(report.tables[0].icdc_table or "")
    loaded = governed.house.catalog.load(name)
    assert loaded.metadata["location"].startswith("s3://icdc/calve/")
    assert loaded.files.read(loaded.metadata_location)
    governed.captures.commit(report.capture_id or "")
    governed.house.lake.close()
    (collected, *_) = governed.captures.collect_garbage()
    assert (collected.problems, collected.files > 0) == ((), True)


def test_a_capture_costs_few_requests(governed: Governed) -> None:
    """To the catalog and the store together, whatever the size of the table."""
    table = governed.changed()
    for value in range(5):
        governed.house.append(table, value)
    governed.captures.commit(governed.captures.capture([str(table)], "c", Wanted()).capture_id or "")
    governed.house.append(table, 9)
    governed.house.requests()
    governed.store.requests.clear()
    governed.captures.capture([str(table)], "c", Wanted())
    requests = [*governed.house.requests(), *(f"{each.method} {each.path}" for each in governed.store.requests)]
    assert len(requests) <= 12, requests


def test_the_credentials_of_an_icdc_table_do_not_cover_its_source(governed: Governed, s3: S3Server) -> None:
    """Whoever reads it needs keys for both places, and no credentials of the catalog that would replace them."""
    table = governed.changed()
    report = governed.captures.capture([str(table)], "c", Wanted())
    name = governed.house.lake.parse(report.tables[0].icdc_table or "")
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        governed.house.catalog.pyiceberg().load_table(name.identifier).scan().to_arrow()
    keys = _keys((s3.access_key, s3.secret_key))
    own = RestCatalog("rest", {"uri": governed.house.proxy.url, f"header.{DELEGATION}": "", **keys})
    assert own.pyiceberg().load_table(name.identifier).scan().to_arrow().column("a").to_pylist() == [3]
    own.close()


def test_credentials_are_renewed_before_they_end(governed: Governed) -> None:
    """Those that end within a minute are not used, and the catalog is asked for others."""
    table = governed.changed()
    loads = 0

    def give_out(request: Seen, answer: JSON) -> JSON:
        nonlocal loads
        loads += "metadata" in answer
        is_first = "snapshots=all" in request.path
        governed.source, governed.ends_in_ms = (WRONG, 30_000) if is_first else (SOURCE, 3_600_000)
        return governed.give_out(request, answer)

    governed.house.proxy.edit = give_out
    loaded = governed.house.catalog.load(table)
    assert loads == 1
    assert loaded.files.read(loaded.metadata_location)
    assert loads == 2
    assert loaded.files.read(loaded.metadata_location)
    assert loads == 2


@pytest.mark.parametrize("status", in_ci([403], otherwise=[403, 404, 500, 501]))
def test_what_is_not_granted_is_said_with_a_remedy(governed: Governed, status: int) -> None:
    """A catalog that gives out nothing for calve's tables leads to an error that says which grant or setting helps."""
    table = governed.house.create()
    governed.house.append(table, 1)
    governed.house.proxy.faults = [Fault(r"POST .*/icdc/tables$", Fate.FAIL_BEFORE, times=99, status=status)]
    with pytest.raises(LakeError) as error:
        governed.captures.capture([str(table)], "c", Wanted())
    for word in ("namespace icdc", "capture.location", f"HTTP status {status}"):
        assert word in error.value.remedy


def test_remote_signing_is_refused_by_name(governed: Governed) -> None:
    """The error says what to set instead."""
    table = governed.house.create()
    governed.house.append(table, 1)
    signing = {"config": {"s3.remote-signing-enabled": "true"}, "storage-credentials": []}
    governed.house.proxy.edit = lambda _, answer: answer | signing if "metadata" in answer else answer
    with pytest.raises(NotSupportedByCatalog, match="remote signing") as error:
        governed.captures.plan([str(table)], "c")
    assert "X-Iceberg-Access-Delegation" in error.value.remedy


def test_the_catalog_chooses_the_place_if_nobody_else_does(governed: Governed, tmp_path: Path) -> None:
    """Its answer to a table that is only prepared names the place, and brings the credentials for it."""
    other = tmp_path / "other"
    other.mkdir()
    catalog = governed.house.proxy.url
    (other / "calve.toml").write_text(f"[catalogs.rest]\nuri = '{catalog}'\ntype = 'rest'")
    with open_captures(load(other, {})) as captures:
        table = governed.changed()
        governed.ours = SOURCE
        report = captures.capture([str(table)], "other", Wanted())
    name = governed.house.lake.parse(report.tables[0].icdc_table or "")
    assert governed.house.catalog.load(name).metadata["location"].startswith("s3://source/warehouse/icdc/")
