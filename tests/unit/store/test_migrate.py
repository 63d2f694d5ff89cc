"""How the schema comes about and grows."""

import shutil
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, MetaData, create_engine, insert, inspect, text
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex

from calve.capture.model import Artifacts
from calve.delivery import BranchStatus, Delivery, StagedTarget
from calve.engine.actions import Action
from calve.engine.model import RUN_EVENT, STEP_EVENT, Breakpoint, Changes, LogChunk, TagPermit, TaskKind
from calve.engine.statuses import RunStatus, StepStatus
from calve.lake import TableName
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


def test_a_database_of_captures_gets_the_engine(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first schema holds is still there, and workflows can be pushed."""
    scripts = tmp_path / "migrations"
    (scripts / "versions").mkdir(parents=True)
    shutil.copy(migrate.SCRIPTS / "versions" / "0001_captures.py", scripts / "versions")
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "SCRIPTS", scripts)
        patch.setattr(migrate, "HEAD", "0001")
        with open_store(url) as store:
            store.captures.begin("c1", "a", None, Artifacts(), datetime(2026, 3, 1, tzinfo=UTC))
            with store._database.read() as connection:
                assert not inspect(connection).has_table("run")
    with open_store(url) as store:
        assert store.captures.capture("c1").number == 1
        store.engine.push("w", {}, {}, is_active=True, author="me", now=1)
        assert len(store.engine.versions("w")) == 1


def test_what_the_second_schema_holds_stays_readable(url: str, tmp_path: Path) -> None:
    """A database as this version wrote it, in SQL: whatever comes later has to read it."""
    script = (Path(__file__).parents[2] / "data" / "store" / "0002.sql").read_text()
    with sqlite3.connect(tmp_path / "calve.db") as connection:
        connection.executescript(script)
    connection.close()
    with open_store(url) as store:
        engine = store.engine
        (run,) = engine.instances()
        assert (run.workflow_id, run.instance_id, run.status, run.params["day"]["value"]) == (
            "daily",
            1,
            RunStatus.IN_PROGRESS,
            20260301,
        )
        assert run.action is not None
        assert run.action.action is Action.STOP
        found = engine.load(run.uuid)
        assert found is not None
        assert [(each.step_id, each.status) for each in found.attempts] == [("merge", StepStatus.RUNNING)]
        assert engine.log(found.attempts[0].uuid) == [LogChunk(found.attempts[0].uuid, 0, "hello\n")]
        assert [event.after for event in engine.events()] == ["CREATED", "RUNNING"]
        assert engine.counts() == {TaskKind.RUN: 1, TaskKind.STEP: 1}
        assert engine.tag_permits() == [TagPermit("heavy", 2, 1)]
        assert engine.breakpoints() == [Breakpoint("daily", "merge", created_by="ann", created_at=5)]
        assert [worker.host for worker in engine.workers()] == ["host"]
        version = engine.version("daily", "active")
        assert version is not None
        assert version.definition == {"workflow": {"id": "daily"}}


def test_what_the_third_schema_holds_stays_readable(url: str, tmp_path: Path) -> None:
    """A delivery that is held, and the table that the last one went to."""
    script = (Path(__file__).parents[2] / "data" / "store" / "0003.sql").read_text()
    with sqlite3.connect(tmp_path / "calve.db") as connection:
        connection.executescript(script)
    connection.close()
    target = TableName("lake", ("db",), "daily")
    with open_store(url) as store:
        (held,) = store.deliveries.held("c1")
        assert (held.staging, held.attempt, held.status) == ("calve_a1_x", "a1", BranchStatus.HELD)
        assert held.delivery == Delivery("daily/merge", "c1", "daily/1/1/merge", "2")
        assert held.target == StagedTarget(target, "u1", 7, 7)
        assert store.deliveries.delivered_uuid("daily/merge", target) == "u1"
        assert len(store.engine.instances()) == 1


@pytest.fixture(params=["sqlite", "postgres"])
def eighth(url: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the URL of a database that the eighth schema has written."""
    script = (Path(__file__).parents[2] / "data" / "store" / "0008.sql").read_text()
    with sqlite3.connect(tmp_path / "calve.db") as connection:
        connection.executescript(script)
    connection.close()
    if request.param == "sqlite":
        return url
    copy: str = request.getfixturevalue("postgres_database")
    monkeypatch.setattr(migrate, "HEAD", "0008")
    open_store(copy).close()
    monkeypatch.undo()
    source, target = create_engine(url), create_engine(copy)
    schema = MetaData()
    with source.connect() as reader, target.begin() as writer:
        schema.reflect(writer)
        for table in (each for each in schema.sorted_tables if each.name != migrate.VERSION_TABLE):
            for row in reader.execute(text(f"SELECT * FROM {table.name}")).mappings():
                flags = {name: bool(row[name]) for name in row if isinstance(table.c[name].type, Boolean)}
                writer.execute(insert(table).values({**row, **flags}))
    source.dispose()
    target.dispose()
    return copy


def test_what_the_eighth_schema_holds_stays_readable(eighth: str) -> None:
    """Runs and attempts that hold the definitions of their params, and events that name themselves as their root."""
    with open_store(eighth) as store:
        engine = store.engine
        (run,) = engine.instances()
        assert run.params["day"]["result"] == 20260302
        assert run.params["RUN_TS"]["definition"]["meta"] == {"source": "SYSTEM_DEFAULT"}
        (each, last) = engine.attempts(run.uuid)
        assert (each.step_id, each.root_uuid, each.times["end"] >= each.times["create"]) == ("each", run.uuid, True)
        assert last.params["step_instance_uuid"]["result"] == last.uuid
        assert engine.rollup(run.uuid) == {StepStatus.SUCCEEDED: 3}
        iterations = engine.child_runs(each.uuid)
        assert [child.root_uuid for child in iterations] == [run.uuid] * 2
        assert len(engine.events(run_uuid=run.uuid)) == 4
        assert engine.events(root_uuid=run.uuid) == engine.events()
        assert [event.kind for event in engine.events(run_uuid=iterations[0].uuid)] == [STEP_EVENT, RUN_EVENT]
        engine.commit(Changes(runs=[run]))  # written anew, it is the same
        assert engine.run("loop", 1) == replace(run, seq=run.seq + 1)
