"""How the schema comes about and grows."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex

from calve.store import migrate, open_store, tables


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give the URL of a new SQLite file."""
    return f"sqlite:///{tmp_path}/calve.db"


def test_the_head_is_alembics_head() -> None:
    """The constant that is compared on every start is true."""
    assert ScriptDirectory(str(migrate.SCRIPTS)).get_current_head() == migrate.HEAD


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
    monkeypatch.delattr(migrate, "_upgrade")
    open_store(url).close()
    assert (tmp_path / "calve.db").read_bytes() == before


def test_an_old_schema_is_upgraded(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later calve brings the schema forward and keeps what is there."""
    with open_store(url) as store, store._database.write("test") as connection:
        connection.execute(text("INSERT INTO checkpoint VALUES ('a', 'b', 'c', 1, '{}', '2026', 'r')"))
    scripts = tmp_path / "migrations"
    shutil.copytree(migrate.SCRIPTS, scripts)
    (scripts / "versions" / "9998_more.py").write_text(
        f"from alembic import op\nrevision = '9998'\ndown_revision = '{migrate.HEAD}'\n"
        "def upgrade():\n    op.execute('CREATE TABLE more (x INTEGER)')\n"
    )
    monkeypatch.setattr(migrate, "SCRIPTS", scripts)
    monkeypatch.setattr(migrate, "HEAD", "9998")
    with open_store(url) as store, store._database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM more")) == 0
        assert connection.scalar(text("SELECT count(*) FROM checkpoint")) == 1


def test_a_migration_that_fails_leaves_the_old_schema(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of an upgrade happens, or nothing."""
    scripts = tmp_path / "migrations"
    shutil.copytree(migrate.SCRIPTS, scripts)
    (scripts / "versions" / "9998_broken.py").write_text(
        f"from alembic import op\nrevision = '9998'\ndown_revision = '{migrate.HEAD}'\n"
        "def upgrade():\n    op.execute('CREATE TABLE more (x INTEGER)')\n    raise ZeroDivisionError\n"
    )
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "SCRIPTS", scripts)
        patch.setattr(migrate, "HEAD", "9998")
        with pytest.raises(ZeroDivisionError):
            open_store(url)
    with sqlite3.connect(tmp_path / "calve.db") as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,)
    connection.close()
