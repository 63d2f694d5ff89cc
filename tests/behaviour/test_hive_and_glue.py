"""Catalogs in a Hive metastore and in AWS Glue: real servers, with tables of every format version."""

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField
from tests.scope import in_ci
from tests.services.glue import GlueServer, throwaway_glue
from tests.services.hive import HiveMetastore, Version, throwaway_metastore
from tests.services.lossy import Loss, lossy_proxy
from tests.services.process import free_port

from calve.app import open_captures
from calve.capture import Wanted
from calve.cli.entry import run
from calve.errors import (
    CalveError,
    LakeError,
    LakeUnavailable,
    SettingsInvalid,
    SnapshotUnknown,
    SourceBusy,
    TableIsView,
    TableMissing,
)
from calve.lake import Catalog, Lake, SqlCatalog, TableCommit, TableName, metadata as raw, metastore
from calve.lake.glue_catalog import GlueCatalog
from calve.lake.hive_catalog import HiveCatalog, _external
from calve.settings import FILE, load

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = Schema(NestedField(1, "id", LongType()))
KINDS = in_ci(["glue", "2.3"], otherwise=["glue", "2.3", "4.0"])


@dataclass(frozen=True, slots=True)
class House:
    """A project with one catalog, and a table in it."""

    folder: Path
    definition: dict[str, str]
    is_known: bool = True
    """PyIceberg's client can ask the server: not Hive 4, which has removed what it calls."""

    @contextmanager
    def open(self) -> Iterator[Catalog]:
        """Open the catalog as a process does."""
        lake = Lake(load(self.folder, {}))
        try:
            yield lake.catalog("c")
        finally:
            lake.close()


@pytest.fixture(scope="session", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, GlueServer | HiveMetastore]]:
    """Start a server of each kind."""
    kind = request.param
    with throwaway_glue() if kind == "glue" else throwaway_metastore(Version(kind)) as started:
        yield kind, started


@pytest.fixture
def house(server: tuple[str, Any], tmp_path: Path) -> House:
    """Give a project with a table ``DATABASE.t`` that PyIceberg made; the database is named after the folder."""
    kind, started = server
    reached = {"type": "glue", **started.properties} if kind == "glue" else {"uri": started.uri}
    made = house_in(tmp_path, {**reached, "warehouse": f"file://{tmp_path}/warehouse"})
    return replace(made, is_known=kind != "4.0")


def house_in(folder: Path, definition: dict[str, str]) -> House:
    """Return a project with a catalog."""
    lines = [f"{json.dumps(key)} = {json.dumps(value)}" for key, value in definition.items()]
    (folder / FILE).write_text("\n".join(['default_catalog = "c"', "[catalogs.c]", *lines]))
    return House(folder, definition)


def _rows() -> "pa.Table":
    import pyarrow as pa

    return pa.table({"id": [1, 2]}, schema=SCHEMA.as_arrow())


def _table(house: House, catalog: Catalog, name: str = "t") -> TableName:
    """Make a table with a snapshot."""
    database = f"d{abs(hash(house.folder))}"
    table = TableName("c", (database,), name)
    own = SqlCatalog("own", {"uri": f"sqlite:///{house.folder}/own.db", "warehouse": f"{house.folder}/own"})
    pyiceberg = (catalog if house.is_known else own).pyiceberg()
    pyiceberg.create_namespace_if_not_exists(database, {"location": f"{house.definition['warehouse']}/{database}"})
    pyiceberg.create_table(f"{database}.{name}", SCHEMA).append(_rows())
    if not house.is_known:
        catalog.register(table, own.load(table).metadata_location)
    own.close()
    return table


def _upgraded(catalog: Catalog, table: TableName) -> None:
    """Make a table one of format version 3, with a type that PyIceberg does not know."""
    loaded = catalog.load(table)
    column = {"id": 2, "name": "v", "required": False, "type": "variant"}
    schemas = [schema | {"fields": [*schema["fields"], column]} for schema in loaded.metadata["schemas"]]
    newer = {"format-version": 3, "next-row-id": 0, "schemas": schemas, "last-column-id": 2}
    catalog.files.write(loaded.metadata_location, raw.encode(loaded.metadata | newer))


def test_a_table_goes_through_its_life(house: House) -> None:
    """It is read, tagged, changed, registered again and dropped, on format version 3 too; files stay."""
    with house.open() as catalog:
        table = _table(house, catalog)
        assert catalog.exists(table)
        assert catalog.tables(table.namespace) == [".".join(table.identifier)]
        assert table.namespace in catalog.namespaces()
        other = TableName("c", table.namespace, "none")
        assert catalog.locations([table, other]) == {table: catalog.load(table).metadata_location}
        snapshot = catalog.load(table).metadata["current-snapshot-id"]
        for version in (2, 3):
            if version == 3:
                _upgraded(catalog, table)
            catalog.create_tag(table, "lease", snapshot, 60_000)
            with pytest.raises(SnapshotUnknown):
                catalog.create_tag(table, "other", 1, 60_000)
            assert catalog.change(table, lambda _: TableCommit(branches={"b": snapshot}, properties={"calve.x": "1"}))
            assert not catalog.change(table, lambda _: None)
            loaded = catalog.load(table).metadata
            assert loaded["format-version"] == version
            assert {"lease", "b", "main"} == loaded["refs"].keys()
            assert loaded["properties"]["calve.x"] == "1"
            assert catalog.drop_tag(table, "lease")
            assert not catalog.drop_tag(table, "lease")
        icdc = TableName("c", (f"{table.namespace[0]}x",), "copy")
        assert catalog.location_for(icdc) == f"{house.definition['warehouse']}/{icdc.namespace[0]}/copy"
        place = catalog.load(table).metadata_location
        catalog.register(icdc, place)
        with pytest.raises(LakeError, match="already exists"):
            catalog.register(icdc, place)
        assert catalog.location_for(icdc).endswith(f"/warehouse/{icdc.namespace[0]}/copy")
        assert catalog.load(icdc).metadata == catalog.load(table).metadata
        assert catalog.drop(icdc)
        assert not catalog.drop(icdc)
        assert catalog.load(table).metadata["table-uuid"]


@pytest.mark.parametrize("server", ["glue", "2.3"], indirect=True)
def test_a_change_is_captured_under_a_lease(house: House) -> None:
    """The capture is a table of the same catalog with the new rows; the commit removes the lease."""
    with house.open() as catalog, open_captures(load(house.folder, {})) as captures:
        table = _table(house, catalog)
        name = ".".join(table.identifier)
        wanted = Wanted(start=str(catalog.load(table).metadata["current-snapshot-id"]), is_start_initial=True)
        catalog.pyiceberg().load_table(name).append(_rows())
        report = captures.capture([name], "daily", wanted, lease=True)
        icdc = f"icdc.{str(report.tables[0].relation).rpartition('.')[2]}"
        assert len(catalog.pyiceberg().load_table(icdc.replace("`", "")).scan().to_arrow()) == 2
        assert len(catalog.load(table).metadata["refs"]) == 2
        captures.commit(str(report.capture_id))
        assert catalog.load(table).metadata["refs"].keys() == {"main"}


@pytest.mark.parametrize("server", ["glue", "2.3"], indirect=True)
def test_what_others_commit_is_kept(house: House) -> None:
    """PyIceberg's commits and ours follow each other, also in the parameters that engines read."""
    with house.open() as catalog:
        table = _table(house, catalog)
        name = ".".join(table.identifier)
        first = catalog.load(table).metadata["current-snapshot-id"]
        catalog.create_tag(table, "lease", first, 60_000)
        catalog.pyiceberg().load_table(name).append(_rows())
        catalog.change(table, lambda _: TableCommit(properties={"calve.x": "1"}))
        catalog.pyiceberg().load_table(name).append(_rows())
        loaded = catalog.load(table).metadata
        assert loaded["refs"]["lease"]["snapshot-id"] == first
        assert len(loaded["snapshots"]) == 3
        assert catalog.pyiceberg().load_table(name).properties["calve.x"] == "1"
        assert len(catalog.pyiceberg().load_table(name).scan().to_arrow()) == 6


def _changed(catalog: Catalog, table: TableName, properties: dict[str, str]) -> bool:
    try:
        return catalog.change(table, lambda _: TableCommit(properties=properties))
    except SourceBusy:  # eight others in a row
        return False


@pytest.mark.parametrize("server", ["glue", "2.3"], indirect=True)  # see limits.md for Hive 4
def test_writers_that_collide_lose_nothing(house: House) -> None:
    """Each of three writers sees its commits in the end, and no file that the table has had is gone."""
    _collide(house, "true")


@pytest.mark.parametrize("server", ["2.3"], indirect=True)
def test_writers_without_locks_collide_in_the_metastore(house: House) -> None:
    """It compares the pointer itself if a table says that its writers do without Hive's locks."""
    _collide(house, "false")


def _collide(house: House, locks: str) -> None:
    with house.open() as catalog:
        table = _table(house, catalog)
        _changed(catalog, table, {"engine.hive.lock-enabled": locks})

    def write(number: int) -> None:
        with house.open() as own:
            for turn in range(2):
                while not _changed(own, table, {f"w{number}": str(turn)}):
                    pass

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    with house.open() as catalog:
        loaded = catalog.load(table)
        assert {f"w{number}": "1" for number in range(3)}.items() <= loaded.metadata["properties"].items()
        files = [entry["metadata-file"] for entry in loaded.metadata["metadata-log"]]
        assert all(catalog.files.exists(file) for file in files)
        # Two of PyIceberg, seven of ours: nothing is left of commits that lost.
        assert _metadata_files(catalog, table) == 9


def _add_others(catalog: Catalog, database: str) -> None:
    """Add a table of another format, and a view, with the clients of the servers."""
    if isinstance(catalog, GlueCatalog):
        views = {"ViewOriginalText": "SELECT * FROM x", "TableType": "VIRTUAL_VIEW"}
        catalog._glue.create_database(DatabaseInput={"Name": database})
        for given in ({"Name": "plain", "TableType": "EXTERNAL_TABLE"}, {"Name": "seen", **views}):
            catalog._glue.create_table(DatabaseName=database, TableInput=given)
        return
    assert isinstance(catalog, HiveCatalog)
    with catalog._metastore.client() as client:
        catalog._create_database(client, database)
        for name, kind in (("plain", "EXTERNAL_TABLE"), ("seen", "VIRTUAL_VIEW")):
            table = _external(TableName("c", (database,), name), _NO_COLUMNS, "")
            table.tableType, table.parameters, table.sd.location = kind, {}, None
            table.viewOriginalText = table.viewExpandedText = "SELECT * FROM x" if name == "seen" else None
            client.create_table(table)


_NO_COLUMNS = {"schema": {"fields": [{"name": "a", "type": "int"}]}, "location": "", "table-uuid": ""}


def test_what_is_no_iceberg_table_is_named(house: House) -> None:
    """Tables of other formats and views are told apart from tables that are missing, and are not listed."""
    with house.open() as catalog:
        database = f"o{abs(hash(house.folder))}"
        _add_others(catalog, database)
        plain, seen, none = (TableName("c", (database,), name) for name in ("plain", "seen", "none"))
        with pytest.raises(LakeError, match="not an Iceberg table") as error:
            catalog.load(plain)
        assert "migrate" in error.value.remedy
        with pytest.raises(TableIsView) as view:
            catalog.load(seen)
        assert "(x)" in view.value.remedy
        for missing in (none, TableName("c", ("a", "b"), "t")):
            with pytest.raises(TableMissing):
                catalog.load(missing)
        assert not any(map(catalog.exists, (plain, seen, none)))
        assert catalog.tables((database,)) == []
        assert catalog.locations([plain, seen, none]) == {}
        deep = TableName("c", ("a", "b"), "t")
        assert not catalog.drop(deep)
        with pytest.raises(TableMissing, match="no levels"):
            catalog.register(deep, catalog.load(_table(house, catalog)).metadata_location)


_COMMIT = {"glue": b"AWSGlue.UpdateTable", "hive": b"alter_table_with_environment_context"}


@pytest.mark.parametrize("loss", Loss)
def test_a_commit_whose_answer_is_lost_is_looked_for(loss: Loss, house: House, server: tuple[str, Any]) -> None:
    """What was committed counts as committed; what may still come keeps its file, and is an error that passes."""
    kind = "glue" if server[0] == "glue" else "hive"
    with house.open() as direct, lossy_proxy(server[1].port) as proxy:
        table = _table(house, direct)
        before = direct.load(table).metadata_location
        near = f"127.0.0.1:{proxy.port}"
        address = {"glue.endpoint": f"http://{near}"} if kind == "glue" else {"uri": f"thrift://{near}"}
        with house_in(house.folder, house.definition | address).open() as catalog:
            proxy.loss = (_COMMIT[kind], loss)
            decide = {"calve.x": "1"}
            if kind == "hive" and loss is Loss.REQUEST:
                with pytest.raises(LakeUnavailable):
                    _changed(catalog, table, decide)
                assert direct.load(table).metadata_location == before
                assert _metadata_files(direct, table) == 3
            assert _changed(catalog, table, decide)  # AWS's library has sent it twice
        assert len(proxy.lost) == 1
        loaded = direct.load(table)
        assert loaded.metadata["properties"]["calve.x"] == "1"
        assert [entry["metadata-file"] for entry in loaded.metadata["metadata-log"]][-1] == before


def _metadata_files(catalog: Catalog, table: TableName) -> int:
    folder = raw.metadata_folder(catalog.load(table).metadata).removeprefix("file://").removeprefix("file:")
    return len(list(Path(folder).glob("*.metadata.json")))


def _refused(folder: Path, definition: dict[str, str]) -> CalveError:
    """Return the error of the first question to a catalog; fail if it takes too long."""
    began = time.monotonic()
    with pytest.raises(CalveError) as found, house_in(folder, definition).open() as catalog:
        catalog.load(TableName("c", ("db",), "t"))
    assert time.monotonic() - began < 30
    assert "c" in found.value.context["catalog"]
    assert found.value.remedy
    return found.value


def test_a_metastore_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    """One that is down, a host that does not exist, a server of another kind: each is an error that passes."""
    with _web_server() as port:
        for place in (f"127.0.0.1:{free_port()}", "nowhere.invalid:9083", f"127.0.0.1:{port}"):
            error = _refused(tmp_path, {"uri": f"thrift://{place}"})
            assert isinstance(error, LakeUnavailable)
            assert place in error.message
            assert "catalogs.c.uri" in error.remedy


@contextmanager
def _web_server() -> Iterator[int]:
    """Answer whatever comes with an error of HTTP."""

    def answer() -> None:
        client, _ = listener.accept()
        with client:
            client.recv(1000)
            client.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: keep-alive\r\n\r\n")
            client.recv(1000)  # until the other side gives up

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        answered = pool.submit(answer)
        yield listener.getsockname()[1]
        answered.result(30)


def test_a_metastore_that_is_silent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is waited for without end."""
    monkeypatch.setattr(metastore, "_TO_ANSWER_MS", 300)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        error = _refused(tmp_path, {"uri": f"thrift://127.0.0.1:{silent.getsockname()[1]}"})
    assert isinstance(error, LakeUnavailable)


@pytest.mark.parametrize("server", ["2.3"], indirect=True)
def test_the_next_of_several_metastores_is_asked(tmp_path: Path, server: tuple[str, HiveMetastore]) -> None:
    """As Hive's own clients do with a list of addresses."""
    with house_in(tmp_path, {"uri": f"thrift://127.0.0.1:{free_port()},{server[1].uri}"}).open() as catalog:
        assert ("default",) in catalog.namespaces()


@pytest.mark.parametrize("uri", ["thrift://", "host:9083", "http://host:9083", "thrift://host:port"])
def test_what_is_no_address_of_a_metastore_is_refused(uri: str, tmp_path: Path) -> None:
    """The error says how to write one."""
    error = _refused(tmp_path, {"type": "hive", "uri": uri})
    assert isinstance(error, SettingsInvalid)
    assert "thrift://HOST:9083" in error.remedy


@pytest.mark.parametrize(("kind", "package"), [("hive", "thrift"), ("glue", "boto3")])
def test_a_package_that_is_missing_is_named(
    kind: str, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command that installs it."""
    for name in [each for each in sys.modules if each.partition(".")[0] in {package, "hive_metastore"}]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    error = _refused(tmp_path, {"type": kind, "uri": "thrift://127.0.0.1:9"})
    assert isinstance(error, SettingsInvalid)
    assert f"pip install 'calve[{kind}]'" in error.remedy


@pytest.mark.parametrize("server", ["glue"], indirect=True)
def test_what_aws_lacks_or_refuses_is_named(
    server: tuple[str, GlueServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No region, no credentials, an endpoint that is down, and credentials that are not accepted."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:  # noqa: TID251 - the library reads it
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    given = {"type": "glue"}
    error = _refused(tmp_path, given)
    assert isinstance(error, SettingsInvalid)
    assert "glue.region" in error.remedy
    given |= {"glue.region": "us-east-1", "glue.endpoint": f"http://127.0.0.1:{free_port()}"}
    error = _refused(tmp_path, given)
    assert isinstance(error, SettingsInvalid)
    assert "AWS_ACCESS_KEY_ID" in error.remedy
    given |= {"glue.access-key-id": "key", "glue.secret-access-key": "secret"}
    error = _refused(tmp_path, given)
    assert isinstance(error, LakeUnavailable)
    assert "glue.endpoint" in error.remedy
    with server[1].checking_keys():
        error = _refused(tmp_path, given | {"glue.endpoint": server[1].endpoint})
    assert isinstance(error, LakeError)
    assert not error.is_passing
    assert "credentials" in error.remedy


@pytest.mark.parametrize(("kind", "reason"), [("hadoop", "atomically"), ("nessie", "use one of sql, rest, hive, glue")])
def test_other_types_of_catalogs_are_refused(
    kind: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the command, with the line of the settings and the reason."""
    (tmp_path / FILE).write_text(f"default_catalog = 'c'\n[catalogs.c]\ntype = '{kind}'\nwarehouse = '/w'\n")
    monkeypatch.chdir(tmp_path)
    for words in (["doctor"], ["doctor", "--only", "catalogs"], ["plan", "db.t", "--consumer", "x"], ["lag"]):
        assert run(words) != 0
        printed = capsys.readouterr()
        told = printed.out + printed.err
        assert reason in told
        assert "calve.toml, line " in told
