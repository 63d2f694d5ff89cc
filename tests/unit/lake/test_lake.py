"""The lake and its embedded catalog, without Spark."""

import gzip
import json
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from calve import settings
from calve.errors import (
    CatalogUnknown,
    FilesLost,
    FormatVersionUnknown,
    LakeError,
    NotSupportedByCatalog,
    RequestInvalid,
    SettingsInvalid,
    SnapshotUnknown,
    SourceBusy,
    TableIsView,
    TableMissing,
)
from calve.lake import Catalog, Files, Lake, LoadedTable, TableName
from calve.lake.catalogs import KnownMetadata
from calve.lake.sql_catalog import SqlCatalog


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Yield an embedded lake in an empty folder."""
    opened = Lake(settings.load(tmp_path, {}))
    yield opened
    opened.close()


@pytest.fixture
def catalog(lake: Lake) -> Catalog:
    """Return its catalog."""
    return lake.catalog("lake")


@pytest.fixture
def table(lake: Lake, catalog: Catalog) -> TableName:
    """Return a table with one snapshot, made by PyIceberg."""
    import pyarrow as pa

    name = lake.parse("db.events")
    catalog.pyiceberg().create_namespace("db")
    rows = pa.table({"a": pa.array([1, 2], pa.int64())})
    catalog.pyiceberg().create_table("db.events", rows.schema).append(rows)
    return name


def _rewrite(catalog: Catalog, table: TableName, **changes: Any) -> None:
    """Change a table's metadata file in place."""
    loaded = catalog.load(table)
    text = json.dumps(loaded.metadata | {key.replace("_", "-"): value for key, value in changes.items()})
    catalog.files.write(loaded.metadata_location, text.encode())


def test_names_are_read_with_the_lakes_catalogs(lake: Lake) -> None:
    """A name without a catalog or a namespace is in the default one."""
    assert lake.parse("db.t") == lake.parse("lake.db.t") == TableName("lake", ("db",), "t")
    assert lake.parse("t") == lake.parse("default.t")
    assert lake.catalog_names == ("lake",)
    with pytest.raises(RequestInvalid):
        lake.parse("db.")
    with pytest.raises(CatalogUnknown) as error:
        lake.catalog("sea")
    assert "lake" in error.value.remedy


def test_the_default_catalog_comes_first(tmp_path: Path) -> None:
    """Whatever their order in the file."""
    (tmp_path / settings.FILE).write_text(
        "default_catalog = 'b'\n[catalogs.a]\nuri = 'https://a'\n[catalogs.b]\nuri = 'https://b'"
    )
    lake = Lake(settings.load(tmp_path, {}))
    assert lake.catalog_names == ("b", "a")
    assert lake.parse("x.t").catalog == "b"
    assert lake.parse("a.x.t").catalog == "a"


def test_the_embedded_catalog_is_made_on_first_use(lake: Lake, tmp_path: Path) -> None:
    """Its file has the newer schema, and readers do not wait for writers."""
    assert list(tmp_path.iterdir()) == []
    lake.catalog("lake")
    assert lake.catalog("lake") is lake.catalog("lake")
    with sqlite3.connect(tmp_path / ".calve" / "lake" / "catalog.db") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.execute("SELECT iceberg_type FROM iceberg_tables").fetchall() == []
    database.close()


def test_a_table_is_loaded_raw(catalog: Catalog, table: TableName) -> None:
    """The metadata is the file's own JSON, unknown fields and all."""
    _rewrite(catalog, table, future_field=1)
    loaded = catalog.load(table)
    assert loaded.name == table
    assert loaded.metadata["future-field"] == 1
    assert loaded.metadata == json.loads(Path(loaded.metadata_location).read_bytes())
    assert catalog.exists(table)


def test_gzipped_metadata_is_loaded(catalog: Catalog, table: TableName) -> None:
    """Java may write ``.gz.metadata.json``."""
    loaded = catalog.load(table)
    packed = loaded.metadata_location.replace(".metadata.json", ".gz.metadata.json")
    catalog.files.write(packed, gzip.compress(json.dumps(loaded.metadata).encode()))
    other = TableName("lake", ("db",), "packed")
    catalog.register(other, packed)
    assert catalog.load(other).metadata == loaded.metadata


def test_a_missing_table_suggests_others(catalog: Catalog, table: TableName) -> None:
    """A typo and a missing namespace are the same error, with different help."""
    with pytest.raises(TableMissing, match=r"lake\.db\.event") as error:
        catalog.load(TableName("lake", ("db",), "event"))
    assert error.value.remedy == "Did you mean db.events?"
    with pytest.raises(TableMissing) as error:
        catalog.load(TableName("lake", ("nowhere",), "xyz"))
    assert error.value.remedy == "There are: db.events."
    catalog.drop(table)
    with pytest.raises(TableMissing) as error:
        catalog.load(table)
    assert error.value.remedy == "The catalog is empty."


def test_an_unknown_format_version_is_reported(catalog: Catalog, table: TableName) -> None:
    """A version that does not exist yet is not misread."""
    _rewrite(catalog, table, format_version=4)
    with pytest.raises(FormatVersionUnknown, match="format version 4"):
        catalog.load(table)


def test_lost_and_damaged_metadata_are_told_apart(catalog: Catalog, table: TableName) -> None:
    """Both errors name the file."""
    location = catalog.load(table).metadata_location
    Path(location).write_text("{")
    with pytest.raises(LakeError, match="damaged"):
        catalog.load(table)
    Path(location).unlink()
    with pytest.raises(FilesLost, match=location):
        catalog.load(table)


def test_registering_is_atomic_and_makes_the_namespace(catalog: Catalog, table: TableName) -> None:
    """The second one is refused; dropping keeps the files, and the second drop finds nothing."""
    location = catalog.load(table).metadata_location
    copy = TableName("lake", ("icdc", "deep"), "copy")
    catalog.register(copy, location)
    with pytest.raises(LakeError, match="already exists") as error:
        catalog.register(copy, location)
    assert error.value.context["reason"] == "exists"
    assert catalog.pyiceberg().load_table(("icdc", "deep", "copy")).metadata_location == location
    assert catalog.pyiceberg().namespace_exists(("icdc", "deep"))
    assert catalog.drop(copy)
    assert not catalog.drop(copy)
    assert not catalog.exists(copy)
    assert Path(location).exists()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tags_come_and_go_in_every_format(catalog: Catalog, table: TableName, version: int) -> None:
    """A tag is one commit that other readers understand; repeating it makes none."""
    schema = catalog.load(table).metadata["schemas"][0]
    _rewrite(catalog, table, format_version=version, next_row_id=2, schema=schema, partition_spec=[])
    before = catalog.load(table)
    snapshot = before.metadata["current-snapshot-id"]
    catalog.create_tag(table, "lease", snapshot, 60_000)
    tagged = catalog.load(table)
    assert tagged.metadata["metadata-log"][-1]["metadata-file"] == before.metadata_location
    assert catalog.pyiceberg().load_table("db.events").metadata.refs["lease"].snapshot_id == snapshot
    catalog.create_tag(table, "lease", snapshot, 60_000)
    assert catalog.load(table).metadata_location == tagged.metadata_location
    assert catalog.drop_tag(table, "lease")
    assert not catalog.drop_tag(table, "lease")
    assert "lease" not in catalog.load(table).metadata["refs"]
    with pytest.raises(SnapshotUnknown):
        catalog.create_tag(table, "lease", 1, 60_000)


def test_tags_of_many_writers_all_arrive(lake: Lake, catalog: Catalog, table: TableName) -> None:
    """A commit that loses the race is made again on top of the winner."""
    snapshot = catalog.load(table).metadata["current-snapshot-id"]
    failed: list[Exception] = []

    def tag(writer: int) -> None:
        own = Lake(lake.settings)
        try:
            for number in range(5):
                own.catalog("lake").create_tag(table, f"t{writer}-{number}", snapshot, 60_000)
        except LakeError as error:
            failed.append(error)
        own.close()

    threads = [threading.Thread(target=tag, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    loaded = catalog.load(table)
    assert len(loaded.metadata["refs"]) == 16
    folder = Path(loaded.metadata_location).parent
    logged = {Path(entry["metadata-file"]) for entry in loaded.metadata["metadata-log"]}
    assert set(folder.glob("*.metadata.json")) == logged | {Path(loaded.metadata_location)}


def test_a_table_that_never_rests_is_busy(catalog: Catalog, table: TableName) -> None:
    """After some attempts the error says so, and no file is left."""
    assert isinstance(catalog, SqlCatalog)
    with sqlite3.connect(str(catalog.properties["uri"]).partition("///")[2].partition("?")[0]) as database:
        before = set(Path(catalog.load(table).metadata_location).parent.iterdir())

        def edit(metadata: dict[str, Any]) -> dict[str, Any]:
            database.execute("UPDATE iceberg_tables SET metadata_location = metadata_location || 'x'")
            database.commit()
            return metadata | {"x": 1}

        def load(_: TableName) -> Any:
            return loaded

        loaded = catalog.load(table)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(catalog, "load", load)
            with pytest.raises(SourceBusy) as error:
                catalog.commit(table, edit)
    database.close()
    assert error.value.remedy == "Try again."
    assert set(Path(loaded.metadata_location).parent.iterdir()) == before


def test_new_tables_go_where_the_settings_say(tmp_path: Path, catalog: Catalog) -> None:
    """The capture's location, else the namespace's, else the warehouse, else an error."""
    name = TableName("lake", ("icdc",), "t")
    warehouse = catalog.properties["warehouse"]
    assert catalog.location_for(name) == f"{warehouse}/icdc/t"
    catalog.pyiceberg().create_namespace("icdc", {"location": "s3://b/n/"})
    assert catalog.location_for(name) == "s3://b/n/t"
    elsewhere = SqlCatalog("lake", catalog.properties, location="/changes/")
    assert elsewhere.location_for(name) == "/changes/icdc/t"
    elsewhere.close()
    homeless = SqlCatalog("lake", {"uri": f"sqlite:///{tmp_path}/other.db"})
    with pytest.raises(SettingsInvalid, match="has no location"):
        homeless.location_for(name)
    homeless.close()


def test_a_view_is_said_to_be_one(catalog: Catalog, table: TableName) -> None:
    """With the tables that it reads, which can be captured; also where its file is gone."""
    view = TableName("lake", ("db",), "v")
    schema = catalog.load(table).metadata["schemas"][0]
    catalog.register_view(view, "SELECT * FROM db.events e JOIN `lake`.db.users USING (a)", schema, {})
    with pytest.raises(TableIsView) as error:
        catalog.load(view)
    assert error.value.message == ("lake.db.v is a view, not a table: a view has no snapshots to capture or write to.")
    assert error.value.remedy == (
        "Capture the tables that it reads (db.events, `lake`.db.users), or write its rows into a table "
        "and capture that."
    )
    Path(catalog.view_file(view)).unlink()
    with pytest.raises(TableIsView, match="is a view, not a table"):
        catalog.load(view)


def test_a_catalog_that_is_none_is_said_to_be_none(tmp_path: Path) -> None:
    """A name of three parts whose first is no catalog; the catalogs that there are are listed."""
    more = {"CALVE_CATALOGS__OTHER__URI": "sqlite:///other.db", "CALVE_DEFAULT_CATALOG": "lake"}
    (tmp_path / "calve.toml").write_text('[catalogs.lake]\nuri = "sqlite:///lake.db"\nwarehouse = "w"\n')
    lake = Lake(settings.load(tmp_path, more))
    name = lake.parse("nope.db.t")
    with pytest.raises(TableMissing) as error:
        lake.catalog(name.catalog).load(name)
    lake.close()
    assert error.value.message == (
        "There is no table nope.db.t: nope is not a catalog, and the catalog lake has no namespace nope.db."
    )
    assert error.value.remedy == "The settings define these catalogs: lake, other."


def test_a_view_is_one_file_and_one_row(catalog: Catalog, table: TableName) -> None:
    """It is no table, its file is known beforehand, and its name is taken once."""
    view = TableName("lake", ("icdc",), "v")
    schema = catalog.load(table).metadata["schemas"][0]
    catalog.register_view(view, "SELECT 1", schema, {"k": "v"})
    metadata = json.loads(Path(catalog.view_file(view)).read_bytes())
    assert metadata["versions"][0]["representations"][0]["sql"] == "SELECT 1"
    assert metadata["properties"] == {"k": "v"}
    assert not catalog.exists(view)
    assert not catalog.drop(view)
    for taken in (view, table):
        with pytest.raises(LakeError, match="already exists"):
            catalog.register_view(taken, "SELECT 1", schema, {})
    assert catalog.drop_view(view)
    assert not catalog.drop_view(view)


def test_an_old_catalog_has_tables_but_no_views(tmp_path: Path, table: TableName, catalog: Catalog) -> None:
    """The older schema (V0) is used as it is."""
    location = catalog.load(table).metadata_location
    with sqlite3.connect(tmp_path / "old.db") as database:
        database.execute(
            "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, "
            "previous_metadata_location, PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )
        database.execute(
            "CREATE TABLE iceberg_namespace_properties "
            "(catalog_name, namespace, property_key, property_value, "
            "PRIMARY KEY (catalog_name, namespace, property_key))"
        )
    database.close()
    old = SqlCatalog("lake", {"uri": f"sqlite:///{tmp_path}/old.db"})
    old.register(table, location)
    assert old.load(table).metadata_location == location
    with pytest.raises(NotSupportedByCatalog, match="V0"):
        old.register_view(TableName("lake", ("db",), "v"), "SELECT 1", {}, {})
    assert not old.drop_view(table)
    old.close()


def test_purging_a_table_that_does_not_own_its_files_is_refused(catalog: Catalog, table: TableName) -> None:
    """PyIceberg alone would delete the files of another table."""
    loaded = catalog.load(table)
    properties = loaded.metadata.get("properties", {}) | {"gc.enabled": "false"}
    _rewrite(catalog, table, properties=properties)
    with pytest.raises(LakeError, match="does not own its files"):
        catalog.pyiceberg().purge_table("db.events")
    assert catalog.exists(table)
    _rewrite(catalog, table, properties={})
    catalog.pyiceberg().purge_table("db.events")
    assert not catalog.exists(table)
    assert not Path(loaded.metadata_location).exists()


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("sqlite:////proc/nowhere/x.db", LakeError),
        ("nonsense", SettingsInvalid),
        ("nonsense://x", SettingsInvalid),
        ("postgresql+psycopg://u@127.0.0.1:1/d", LakeError),
    ],
)
def test_a_database_that_cannot_be_reached_is_named(uri: str, expected: type[Exception]) -> None:
    """The error names the catalog."""
    with pytest.raises(expected, match="catalog lake"):
        SqlCatalog("lake", {"uri": uri})


def test_the_locations_of_many_tables_are_one_query(lake: Lake, catalog: Catalog, table: TableName) -> None:
    """Return where each table's metadata lies; what is not there is left out, and views are no tables."""
    from sqlalchemy import event

    assert isinstance(catalog, SqlCatalog)
    view, absent = lake.parse("db.view"), lake.parse("other.events")
    catalog.register_view(view, "SELECT 1", catalog.load(table).metadata["schemas"][0], {})
    statements: list[str] = []
    event.listen(catalog._engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    found = catalog.locations([table, view, absent])
    assert found == {table: catalog.load(table).metadata_location}
    assert len([text for text in statements[:-1] if text.startswith("SELECT")]) == 1


def test_a_commit_moves_the_location(catalog: Catalog, table: TableName) -> None:
    """See by the location alone that something was committed."""
    before = catalog.locations([table])
    assert catalog.locations([table]) == before
    catalog.create_tag(table, "held", catalog.load(table).metadata["current-snapshot-id"], 1_000)
    assert catalog.locations([table]) != before
    assert catalog.locations([]) == {}


def test_a_metadata_file_is_read_once(catalog: Catalog, table: TableName, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its location changes with every commit; a file that was repaired in place is read again."""
    read: list[str] = []
    real = Files.read

    def counted(files: Files, path: str, **options: Any) -> bytes:
        read.append(path)
        return real(files, path, **options)

    monkeypatch.setattr(Files, "read", counted)
    before = [catalog.load(table).metadata for _ in range(3)]
    assert len(read) == 1
    assert before[0] == before[2]
    catalog.create_tag(table, "held", before[0]["current-snapshot-id"], 1_000)
    assert "held" in catalog.load(table).metadata["refs"]
    assert len(read) == 2
    _rewrite(catalog, table, future_field=1)
    assert catalog.load(table).metadata["future-field"] == 1
    Path(catalog.load(table).metadata_location).unlink()
    with pytest.raises(FilesLost):
        catalog.load(table)


def test_metadata_in_memory_is_bounded() -> None:
    """What was used longest ago goes first, and what is larger than all together does not come in."""
    known = KnownMetadata(most=10)
    keys = {name: (f"s3://{name}", ()) for name in "abcd"}
    known.put(keys["a"], {"a": 1}, 4)
    known.put(keys["b"], {"b": 1}, 4)
    assert known.get(keys["a"]) == {"a": 1}
    known.put(keys["c"], {"c": 1}, 4)
    known.put(keys["d"], {"d": 1}, 11)
    assert [known.get(key) is None for key in keys.values()] == [False, True, False, True]


def test_many_tables_are_loaded_by_one_query(lake: Lake, catalog: Catalog, table: TableName) -> None:
    """Each has its metadata, or the error that loading it alone gives; a catalog that is not there is one too."""
    from sqlalchemy import event

    assert isinstance(catalog, SqlCatalog)
    absent, elsewhere = lake.parse("db.none"), TableName("sea", ("db",), "t")
    statements: list[str] = []
    event.listen(catalog._engine, "before_cursor_execute", lambda *given: statements.append(given[2]))
    found = dict(lake.load_all([table] * 100))
    assert isinstance(found[table], LoadedTable)
    assert len(statements) == 1
    found = dict(lake.load_all([table, absent, elsewhere]))
    assert found[table] == catalog.load(table)
    assert isinstance(found[absent], TableMissing)
    assert isinstance(found[elsewhere], CatalogUnknown)
