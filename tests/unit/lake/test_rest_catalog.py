"""A REST catalog played by a small server, and what PyIceberg is kept from."""

import gzip
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from calve import settings
from calve.errors import (
    FormatVersionUnknown,
    LakeCorrupt,
    LakeError,
    SettingsInvalid,
    SourceBusy,
    TableMissing,
)
from calve.lake import Catalog, Lake, LoadedTable, SqlCatalog, TableName, metadata as raw
from calve.lake.guarded_catalog import open_guarded

TABLE = TableName("mem", ("db",), "t")
REST_TABLE = TableName("rest", ("db",), "t")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Catalog]:
    """Yield a catalog in a database of its own, with one table that PyIceberg has written."""
    import pyarrow as pa

    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("mem", {"type": "sql", "uri": uri, "warehouse": str(tmp_path)})
    rows = pa.table({"a": pa.array([1], pa.int64())})
    catalog.pyiceberg().create_namespace("db")
    catalog.pyiceberg().create_table("db.t", rows.schema).append(rows)
    yield catalog
    catalog.close()


def test_metadata_is_checked_before_pyiceberg_sees_it(memory: Catalog) -> None:
    """It would unzip a bomb, wait for a pipe, and raise what it likes; a table cannot choose who reads it either."""
    loaded = memory.load(TABLE)
    path = Path(loaded.metadata_location.removeprefix("file://"))
    told = raw.encode(loaded.metadata | {"properties": {"py-io-impl": "antigravity.NoSuchThing"}})
    path.write_bytes(told)
    assert memory.load(TABLE).metadata["properties"] == {"py-io-impl": "antigravity.NoSuchThing"}
    bad = [b"", b"{", gzip.compress(bytes(65 << 20), 1), raw.encode(loaded.metadata | {"refs": 7}), b"[" * 10**6]
    for content in bad:
        path.write_bytes(content)
        for act in (memory.load, lambda table: memory.pyiceberg().load_table(table.identifier)):
            with pytest.raises(LakeCorrupt) as error:
                act(TABLE)
            assert str(path) in str(error.value.path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(LakeCorrupt, match="not a file"):
        memory.load(TABLE)


class _Server(ThreadingHTTPServer):
    """Plays a REST catalog that holds one table."""

    daemon_threads = True
    metadata: dict[str, Any]
    location: str
    conflicts = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.commits: list[dict[str, Any]] = []
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Answer for the configuration and the table."""
        self.server.asked.append(self.path)
        if self.path.startswith("/v1/config"):
            self._answer(200, {"defaults": {}, "overrides": {}})
        elif self.path.startswith("/v1/namespaces/db/tables/t"):
            self._answer(200, self._table() | {"config": {"vended": "yes"}})
        elif self.path == "/v1/namespaces/db":
            self._answer(200, {"namespace": ["db"], "properties": {"location": "s3://b/db"}})
        else:
            self._answer(404, {"error": {"message": "no", "type": "NoSuchTableException", "code": 404}})

    def do_POST(self) -> None:
        """Take a commit, or refuse it."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.conflicts:
            self.server.conflicts -= 1
            self._answer(409, {"error": {"message": "late", "type": "CommitFailedException", "code": 409}})
            return
        self.server.commits.append(body)
        self._answer(200, self._table())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def _table(self) -> dict[str, Any]:
        return {"metadata-location": self.server.location, "metadata": self.server.metadata}

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@pytest.fixture
def server(memory: Catalog, tmp_path: Path) -> Iterator[_Server]:
    """Yield a REST catalog with a table of format version 3."""
    served = _Server()
    served.metadata = memory.load(TABLE).metadata | {"format-version": 3, "next-row-id": 1}
    served.location = f"{tmp_path}/served/metadata/00000-x.metadata.json"
    memory.files.write(served.location, raw.encode(served.metadata))
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


@pytest.fixture
def rest(server: _Server, tmp_path: Path) -> Iterator[Catalog]:
    """Yield that catalog, as calve sees it."""
    project = tmp_path / "project"
    project.mkdir()
    (project / settings.FILE).write_text(f"[catalogs.rest]\nuri = 'http://127.0.0.1:{server.server_port}'")
    lake = Lake(settings.load(project, {}))
    yield lake.catalog("rest")
    lake.close()


STOLEN = {"s3.endpoint": "http://stranger.example", "uri": "http://stranger.example", "vended": "no"}


def test_a_table_does_not_say_where_the_credentials_of_its_catalog_go(tmp_path: Path, server: _Server) -> None:
    """Neither in its file nor in the answer of a REST catalog; what the catalog itself vends counts."""
    server.metadata["properties"] = STOLEN
    address = f"http://127.0.0.1:{server.server_port}"
    rest = open_guarded("rest", {"type": "rest", "uri": address, "s3.endpoint": "http://own"})
    told = rest.load_table("db.t").io.properties
    assert (told["s3.endpoint"], told["uri"], told["vended"]) == ("http://own", address, "yes")
    sql = open_guarded("sql", {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "s3.endpoint": "http://own"})
    sql.create_tables()  # type: ignore[attr-defined]
    sql.create_namespace("db")
    server.metadata |= {"format-version": 2}
    server.metadata.pop("next-row-id")
    Path(server.location).write_bytes(raw.encode(server.metadata))
    sql.register_table("db.t", server.location)
    told = sql.load_table("db.t").io.properties
    assert (told["s3.endpoint"], "vended" in told) == ("http://own", False)
    assert sql.load_table("db.t").properties == STOLEN


def test_a_rest_catalog_tags_every_format(rest: Catalog, server: _Server) -> None:
    """The server makes the commit, even on a table of format version 3; a lost race is run again."""
    snapshot = server.metadata["current-snapshot-id"]
    server.conflicts = 2
    rest.create_tag(REST_TABLE, "lease", snapshot, 60_000)
    (commit,) = server.commits
    assert {
        "action": "set-snapshot-ref",
        "ref-name": "lease",
        "type": "tag",
        "snapshot-id": snapshot,
        "max-ref-age-ms": 60_000,
    }.items() <= commit["updates"][0].items()
    assert {"type": "assert-table-uuid", "uuid": server.metadata["table-uuid"]} in commit["requirements"]
    assert {"type": "assert-ref-snapshot-id", "ref": "lease", "snapshot-id": None} in commit["requirements"]


@pytest.mark.parametrize(
    "wrong", [{"snapshots": 7}, {"location": None}, {"schemas": [{"type": "tree"}]}, {"last-updated-ms": "now"}]
)
def test_what_a_rest_catalog_hands_out_is_checked(rest: Catalog, server: _Server, wrong: dict[str, Any]) -> None:
    """By an error that names the table and the field, and not by one of pydantic's."""
    server.metadata |= wrong
    with pytest.raises(LakeCorrupt, match=r"rest\.db\.t"):
        rest.load(REST_TABLE)


def test_a_rest_catalog_drops_tags(rest: Catalog, server: _Server) -> None:
    """An absent tag needs no commit."""
    assert not rest.drop_tag(REST_TABLE, "lease")
    server.metadata = raw.with_tag(server.metadata, "lease", server.metadata["current-snapshot-id"], 1)
    rest.files.write(server.location, raw.encode(server.metadata))
    assert rest.drop_tag(REST_TABLE, "lease")
    assert server.commits[0]["updates"] == [{"action": "remove-snapshot-ref", "ref-name": "lease"}]


def test_a_rest_catalog_changes_branches_and_properties_at_once(rest: Catalog, server: _Server) -> None:
    """One commit, which demands that no branch concerned has moved; after a lost race it is decided anew."""
    main = server.metadata["current-snapshot-id"]
    server.metadata = raw.changed(server.metadata, raw.TableCommit(branches={"job": main}, branch_age_ms=60_000), 1)
    rest.files.write(server.location, raw.encode(server.metadata))
    snapshot = {
        "snapshot-id": 7,
        "parent-snapshot-id": main,
        "sequence-number": 2,
        "timestamp-ms": 1,
        "manifest-list": "s3://b/list.avro",
        "schema-id": 0,
        "first-row-id": 1,
        "added-rows": 3,
        "summary": {"operation": "append", "total-records": "4"},
    }
    change = raw.TableCommit(snapshot, {"main": 7, "new": main}, 60_000, ("job", "absent"), {"calve.x": "y"})
    asked: list[raw.Metadata] = []

    def decide(metadata: raw.Metadata) -> raw.TableCommit:
        asked.append(metadata)
        return change

    server.conflicts = 1
    assert rest.change(REST_TABLE, decide)
    assert [metadata["table-uuid"] for metadata in asked] == [server.metadata["table-uuid"]] * 2
    (commit,) = server.commits
    added, moved, made, removed, properties = commit["updates"]
    assert snapshot.items() <= added["snapshot"].items()
    assert {
        "action": "set-snapshot-ref",
        "ref-name": "main",
        "snapshot-id": 7,
        "type": "branch",
    }.items() <= moved.items()
    assert moved.get("max-ref-age-ms") is None
    assert {"ref-name": "new", "snapshot-id": main, "max-ref-age-ms": 60_000}.items() <= made.items()
    assert removed == {"action": "remove-snapshot-ref", "ref-name": "job"}
    assert properties == {"action": "set-properties", "updates": {"calve.x": "y"}}
    assert {"type": "assert-table-uuid", "uuid": server.metadata["table-uuid"]} in commit["requirements"]
    places = {need["ref"]: need["snapshot-id"] for need in commit["requirements"] if "ref" in need}
    assert places == {"main": main, "new": None, "job": main, "absent": None}
    assert not rest.change(REST_TABLE, lambda _: None)


def test_a_rest_catalog_that_is_busy_or_gone_is_told_apart(rest: Catalog, server: _Server) -> None:
    """Too many lost races, a missing table and a silent server are different errors."""
    server.conflicts = 100
    with pytest.raises(SourceBusy):
        rest.create_tag(REST_TABLE, "lease", server.metadata["current-snapshot-id"], 1)
    with pytest.raises(TableMissing):
        rest.load(TableName("rest", ("db",), "other"))
    server.metadata = server.metadata | {"format-version": 4}
    with pytest.raises(FormatVersionUnknown):
        rest.load(REST_TABLE)


def test_a_rest_namespace_says_where_new_tables_go(rest: Catalog, server: _Server) -> None:
    """Without a location of its own, and a warehouse that is a mere name, the catalog is asked for one."""
    assert rest.location_for(REST_TABLE) == "s3://b/db/t"
    assert rest.location_for(TableName("rest", ("other",), "t")) == server.metadata["location"]
    assert server.commits[0]["stage-create"]


def test_a_rest_catalog_that_does_not_answer_is_named(tmp_path: Path) -> None:
    """The error names the catalog, not only the socket."""
    (tmp_path / settings.FILE).write_text("[catalogs.rest]\nuri = 'http://127.0.0.1:1'")
    with pytest.raises(LakeError, match="The catalog rest cannot be reached"):
        Lake(settings.load(tmp_path, {})).catalog("rest").load(REST_TABLE)


def test_a_rest_catalog_needs_an_address(tmp_path: Path) -> None:
    """The error says where to set it."""
    (tmp_path / settings.FILE).write_text("[catalogs.rest]\ntype = 'rest'")
    with pytest.raises(SettingsInvalid, match="no address") as error:
        Lake(settings.load(tmp_path, {})).catalog("rest").load(REST_TABLE)
    assert error.value.remedy == "Set uri in [catalogs.rest]."


def test_a_rest_catalog_tells_where_its_tables_are(rest: Catalog, server: _Server) -> None:
    """Load each table; one that is not there, or that nobody understands, is left out."""
    absent = TableName("rest", ("db",), "none")
    assert rest.locations([REST_TABLE, absent]) == {REST_TABLE: server.location}
    server.metadata = {"format-version": 9}
    assert rest.locations([REST_TABLE]) == {}


def test_each_table_of_a_rest_catalog_is_loaded_once(rest: Catalog, server: _Server) -> None:
    """Each has its metadata, or the error of loading it."""
    absent = TableName("rest", ("db",), "none")
    rest.load(REST_TABLE)
    server.asked.clear()
    ((_, found),) = rest.load_all([REST_TABLE])
    assert len(server.asked) == 1
    assert isinstance(found, LoadedTable)
    assert found.metadata_location == server.location
    assert isinstance(dict(rest.load_all([REST_TABLE, absent]))[absent], TableMissing)


def test_a_rest_catalog_that_is_gone_is_the_error_of_each_table(tmp_path: Path) -> None:
    """A lag of other tables goes on."""
    (tmp_path / settings.FILE).write_text("[catalogs.rest]\nuri = 'http://127.0.0.1:1'")
    ((_, error),) = Lake(settings.load(tmp_path, {})).load_all([REST_TABLE])
    assert isinstance(error, LakeError)
