"""How the schema is created, and how it grows."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Column, MetaData, String, Table, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex

from calve.errors import StoreError, StoreSchemaUnknown
from calve.lake import TableName
from calve.store import open_store, schema, tables


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give the URL of a new SQLite file."""
    return f"sqlite:///{tmp_path}/calve.db"


def test_the_head_is_alembics_head() -> None:
    """The constant that is compared on every start is true."""
    assert ScriptDirectory(str(schema.SCRIPTS)).get_current_head() == schema.HEAD


def test_the_partial_indexes_are_as_the_code_says(url: str, tmp_path: Path) -> None:
    """Alembic does not compare their conditions, so this does."""
    open_store(url).close()
    with sqlite3.connect(tmp_path / "calve.db") as connection:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        found = dict(connection.execute(query).fetchall())
    connection.close()
    known = {
        index.name: str(CreateIndex(index).compile(dialect=sqlite.dialect()))
        for table in tables.metadata.tables.values()
        for index in table.indexes
    }
    assert found == known


def test_opening_again_changes_nothing(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema that is up to date is only looked at."""
    open_store(url).close()
    before = (tmp_path / "calve.db").read_bytes()
    monkeypatch.delattr(schema, "_create")
    monkeypatch.delattr(schema, "_upgrade")
    open_store(url).close()
    assert (tmp_path / "calve.db").read_bytes() == before


def test_an_old_schema_is_upgraded(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later calve brings the schema forward and keeps what is there."""
    with open_store(url) as store, store._database.write("test") as connection:
        connection.execute(text("INSERT INTO checkpoint VALUES ('a', 'b', 'c', 1, '{}', '2026', 'r')"))
    scripts = tmp_path / "migrations"
    shutil.copytree(schema.SCRIPTS, scripts)
    (scripts / "versions" / "9998_more.py").write_text(
        f"from alembic import op\nrevision = '9998'\ndown_revision = '{schema.HEAD}'\n"
        "def upgrade():\n    op.execute('CREATE TABLE more (x INTEGER)')\n"
    )
    monkeypatch.setattr(schema, "SCRIPTS", scripts)
    monkeypatch.setattr(schema, "HEAD", "9998")
    with open_store(url) as store, store._database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM more")) == 0
        assert connection.scalar(text("SELECT count(*) FROM checkpoint")) == 1


def test_a_migration_that_fails_leaves_the_old_schema(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of an upgrade happens, or nothing."""
    open_store(url).close()
    scripts = tmp_path / "migrations"
    shutil.copytree(schema.SCRIPTS, scripts)
    (scripts / "versions" / "9998_broken.py").write_text(
        f"from alembic import op\nrevision = '9998'\ndown_revision = '{schema.HEAD}'\n"
        "def upgrade():\n    op.execute('CREATE TABLE more (x INTEGER)')\n    raise ZeroDivisionError\n"
    )
    with monkeypatch.context() as patch:
        patch.setattr(schema, "SCRIPTS", scripts)
        patch.setattr(schema, "HEAD", "9998")
        with pytest.raises(ZeroDivisionError):
            open_store(url)
    with sqlite3.connect(tmp_path / "calve.db") as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'more'").fetchone() == (0,)
        assert connection.execute("SELECT version_num FROM calve_version").fetchone() == (schema.HEAD,)
    connection.close()


def test_a_new_schema_that_fails_leaves_nothing(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database whose schema cannot be created stays empty."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "_version", Table("run", MetaData(), Column("version_num", String)))
        with pytest.raises(StoreError):
            open_store(url)
    with sqlite3.connect(tmp_path / "calve.db") as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()


OLD = Path(__file__).parents[2] / "data" / "schema_0009.sql"
ROWS = """
INSERT INTO capture VALUES ('c1', 'demo.daily', 1, NULL, 'committed', '2026-01-01T00:00:00+00:00',
    '2026-01-01T00:01:00+00:00', NULL,
    '[{"table": ["lake", "db", "events"], "expected_version": 0, "position": 0, "to": {"table_uuid": "u",
       "snapshot_id": 1, "sequence_number": 1, "next_row_id": null, "schema_id": 0, "timestamp_ms": 1,
       "pending": null}}]',
    '{"files": [["lake", "m.avro"]], "tables": [["lake", "icdc", "e"]], "tags": [[["lake", "db", "events"], "t"]]}',
    '{}');
INSERT INTO alert_message VALUES ('m1', 'hook', '{"to": ["ann@example.com"], "mention": ["ben"]}',
    '{"key": "k", "type": "STEP_FAILURE", "workflow_id": "w", "at": 1}', 'sent', 1, '', 1, 1, 1);
INSERT INTO log_chunk VALUES (x'01', 0, 'one' || char(10) || 'two' || char(10), NULL, NULL, NULL);
INSERT INTO log_chunk VALUES (x'01', 1, 'drei äpfel' || char(10), NULL, NULL, NULL);
INSERT INTO log_chunk VALUES (x'02', 0, 'kept', 7, 8, 4);
INSERT INTO delivery_branch VALUES ('b', 'lake', 'db.t', 's', 'c1', 'r', '', 'a', 'published',
    '2026-01-01T00:00:00+00:00', '2026-01-01T00:00:00+00:00', NULL, NULL, NULL);
INSERT INTO worker VALUES ('x', 'h', 1, 1, 1, 4, 0, 0);
"""


def _old(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.executescript(OLD.read_text() + ROWS)
    connection.close()


def _described(file: Path) -> dict[str, set[tuple[object, ...]]]:
    """Return the columns of each table, and the statements of the indexes."""
    with sqlite3.connect(file) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: {column[1:] for column in connection.execute(f'PRAGMA table_info("{name}")')} for name in names}
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        found["indexes"] = {(name, " ".join(sql.split())) for name, sql in connection.execute(query)}
    connection.close()
    return found


def test_the_last_schema_before_the_first_release_is_upgraded(url: str, tmp_path: Path) -> None:
    """It becomes the schema of a new database, and what is stored can be read."""
    _old(tmp_path / "calve.db")
    with open_store(url) as store:
        [capture] = store.captures.captures()
        table = TableName("lake", ("db",), "events")
        assert [move.table for move in capture.moves] == [table]
        assert capture.artifacts.tables == (TableName("lake", ("icdc",), "e"),)
        assert capture.artifacts.tags == ((table, "t"),)
        [alert] = store.alerts.messages()
        assert (alert.message.route.to, alert.message.route.mention) == (("ann@example.com",), ("ben",))
        with store._database.read() as connection:
            chunks = connection.execute(text("SELECT start, size, line FROM log_chunk ORDER BY attempt_uuid, number"))
            assert [tuple(chunk) for chunk in chunks] == [(0, 8, 0), (8, 12, 2), (7, 4, 8)]
            assert connection.scalar(text("SELECT version FROM worker")) == ""
    open_store(f"sqlite:///{tmp_path}/new.db").close()
    upgraded, new = _described(tmp_path / "calve.db"), _described(tmp_path / "new.db")
    del upgraded["calve_version"], new["calve_version"]
    assert {name: tuple(sorted(map(str, found))) for name, found in upgraded.items()} == {
        name: tuple(sorted(map(str, found))) for name, found in new.items()
    }


def test_a_schema_long_before_the_first_release_is_refused(url: str, tmp_path: Path) -> None:
    """The error names the file, and says what to do with it."""
    file = tmp_path / "calve.db"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE calve_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO calve_version VALUES ('0008')")
    connection.close()
    with pytest.raises(StoreSchemaUnknown, match="has schema 0008 of an unreleased calve") as caught:
        open_store(url)
    assert caught.value.remedy is not None
    assert f"move {file} away" in caught.value.remedy
    assert caught.value.context == {"revision": "0008", "known": schema.HEAD}
