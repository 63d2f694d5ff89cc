"""How the store connects, what it says when it cannot, and where it commits."""

import inspect
import logging
import os
import re
import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import create_engine, insert, text

from calve import failpoints
from calve.capture import Artifacts, CaptureState, Status
from calve.errors import EnvironmentUnfit, SettingsInvalid, StoreError, StoreUnavailable
from calve.store import SqlCaptureState, Store, open_store, tables
from calve.store.database import database, fits
from calve.store.tables.columns import Uuid

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Give a store in a new SQLite file."""
    with open_store(f"sqlite:///{tmp_path}/calve.db") as store:
        yield store


@pytest.fixture
def disarmed() -> Iterator[None]:
    """Disarm the failpoints afterwards."""
    yield
    failpoints.arm(None)


def test_the_folder_of_a_sqlite_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new project needs no preparation, and the process may change its folder later."""
    monkeypatch.chdir(tmp_path)
    with open_store("sqlite:///.calve/state/calve.db") as store:
        monkeypatch.chdir("/")
        store.captures.begin("c1", "a", None, Artifacts(), NOW)
    with open_store(f"sqlite:///{tmp_path}/.calve/state/calve.db") as store:
        assert store.captures.capture("c1").number == 1


def test_a_store_can_live_in_memory() -> None:
    """For a try or a test, no file is needed."""
    with open_store("sqlite://") as store:
        assert store.captures.begin("c1", "a", None, Artifacts(), NOW).status is Status.WRITING
        assert store.captures.capture("c1").number == 1


def test_sqlite_is_set_up_to_be_safe(store: Store) -> None:
    """Write-ahead log, full sync, foreign keys and a patient lock."""
    with store._database.write("test") as connection:
        found = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


def test_a_write_locks_before_it_reads(store: Store, tmp_path: Path) -> None:
    """Nobody else can write between a transaction's reads and its writes."""
    with store._database.write("test") as connection:
        connection.execute(text("SELECT 1"))
        other = sqlite3.connect(tmp_path / "calve.db", timeout=0)
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")
        other.close()


def test_a_read_locks_nobody_out(store: Store, tmp_path: Path) -> None:
    """Someone may write while another reads."""
    with store._database.read() as connection:
        connection.execute(text("SELECT count(*) FROM capture"))
        other = sqlite3.connect(tmp_path / "calve.db", timeout=0)
        other.execute("BEGIN IMMEDIATE")
        other.close()


def test_a_process_has_one_connection_that_writes_to_a_sqlite_file(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second one has to wait, and gives up with a clear error."""
    monkeypatch.setattr(store._database._engine.pool, "_timeout", 0.05)
    with store._database.write("test"), pytest.raises(StoreUnavailable, match="does not answer"):
        store.captures.begin("c1", "a", None, Artifacts(), NOW)


def test_who_reads_a_sqlite_file_does_not_wait_for_who_writes(store: Store) -> None:
    """The reader sees what was committed before."""
    with store._database.write("test") as connection:
        connection.execute(text("CREATE TABLE later (x)"))
        assert store.captures.checkpoints() == []
        with store._database.read() as reader:
            assert reader.scalar(text("SELECT name FROM sqlite_master WHERE name = 'later'")) is None
    with store._database.read() as reader:
        assert reader.scalar(text("SELECT name FROM sqlite_master WHERE name = 'later'")) == "later"


def test_what_reads_a_sqlite_file_cannot_write_to_it(store: Store) -> None:
    """All writes go through the one place where a transaction is committed."""
    with (
        pytest.raises(StoreUnavailable, match="readonly"),
        store._database.read() as reader,
    ):
        reader.execute(text("CREATE TABLE later (x)"))


def test_a_database_that_stays_locked_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting has an end."""
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with open_store(f"sqlite:///{tmp_path}/calve.db") as store:
        other = sqlite3.connect(tmp_path / "calve.db")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="database is locked"):
            store.captures.begin("c1", "a", None, Artifacts(), NOW)
        other.close()


class Busy(sqlite3.Connection):
    """A connection whose switch to the write-ahead log fails some times."""

    left = 3
    reason = "SQLITE_BUSY"

    def execute(self, sql: str, parameters: object = (), /) -> sqlite3.Cursor:
        """Fail, or carry the statement out."""
        if "journal_mode" in sql and self.left:
            self.left -= 1
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorname = self.reason
            raise error
        return super().execute(sql, parameters)  # type: ignore[arg-type]


def test_the_switch_to_the_write_ahead_log_is_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite's own patience does not hold for it: it is tried again, for a while, while others are busy."""
    connection = sqlite3.connect(":memory:", factory=Busy)
    database._prepare_sqlite(connection, None)
    assert connection.left == 0
    connection.left = 10_000
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        database._prepare_sqlite(connection, None)
    connection.left, connection.reason = 2, "SQLITE_IOERR"
    with pytest.raises(sqlite3.OperationalError):
        database._prepare_sqlite(connection, None)
    assert connection.left == 1
    connection.close()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    """The error names the database and the reason."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"cannot be written: File exists \(.*/file\)") as caught:
        open_store(f"sqlite:///{tmp_path}/file/calve.db")
    assert "store.url" in caught.value.remedy


def test_a_file_that_is_not_a_database_is_reported(tmp_path: Path) -> None:
    """Someone else's file is left alone."""
    (tmp_path / "calve.db").write_text("dear diary " * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        open_store(f"sqlite:///{tmp_path}/calve.db")
    assert (tmp_path / "calve.db").read_text().startswith("dear diary")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:s3cr3t@127.0.0.1:1/db",
        "postgresql+psycopg://u:s3cr3t@127.0.0.1:1/db?connect_timeout=2",
        "postgres://u@127.0.0.1:1/db?password=s3cr3t",
        "postgresql://u:s3cr3t@127.0.0.1:1/db?sslmode=s3cr3t",
        "postgresql://u:s3cr3t@127.0.0.1:1/db?no_such_option=s3cr3t",
    ],
)
def test_an_unreachable_server_is_reported_without_the_password(url: str) -> None:
    """The error names user, host and database, and neither it nor its trace the password."""
    with pytest.raises(StoreError) as caught:
        open_store(url)
    assert "postgresql://u@127.0.0.1:1/db" in caught.value.message
    trace = "".join(traceback.format_exception(caught.value))
    assert "s3cr3t" not in f"{trace} {caught.value.as_json()}"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3cr3t",
        "postgresql://u:p@s3cr3t:s3cr3t@127.0.0.1:1/d",
        "mysql://u:s3cr3t@h/d",
        "postgresql://h:s3cr3t/d",
    ],
)
def test_a_url_that_makes_no_sense_is_a_bad_setting(url: str) -> None:
    """The remedy shows what to write; nothing of the URL is repeated that may be secret."""
    with pytest.raises((SettingsInvalid, StoreUnavailable)) as caught:
        open_store(url)
    assert "s3cr3t" not in str(caught.value.as_json())


def test_a_missing_driver_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL needs an extra, which the error names."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(EnvironmentUnfit) as caught:
        open_store("postgresql://u@127.0.0.1:1/db")
    assert caught.value.remedy == "pip install 'calve[postgres]'"


def test_nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Not even at the lowest level."""
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailable):
        open_store("postgresql://u:s3cr3t@127.0.0.1:1/db")
    assert "s3cr3t" not in caplog.text


def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    """It would mean something else on every machine."""
    with pytest.raises(StoreError, match="has no time zone"):
        store.captures.begin("c1", "a", None, Artifacts(), NOW.replace(tzinfo=None))
    assert store.captures.garbage(NOW) == []


def test_only_clashes_are_expected(store: Store) -> None:
    """A statement that breaks another rule than a unique key is an error, not a reason to try again."""
    statement = insert(tables.capture).values(id="c1")
    with pytest.raises(StoreError, match="NOT NULL"), store._database.write("test") as connection:
        fits(connection, statement)


@pytest.mark.parametrize(
    "broken", [{"id": "c2", "number": 2}, {"id": "c3", "number": 3, "status": "committed"}, {"id": "c4"}]
)
def test_the_database_itself_keeps_the_rules(store: Store, broken: dict[str, object]) -> None:
    """One open capture, one capture of a key, one of a number: whatever the code above does."""
    right = {"id": "c1", "consumer": "a", "number": 1, "key": "k", "status": "open", "created_at": NOW}
    rest: dict[str, object] = {"moves": [], "artifacts": {}, "document": {}}
    free = {"status": "writing"} if broken == {"id": "c4"} else {}
    with store._database.write("test") as connection:
        assert fits(connection, insert(tables.capture).values(right | rest))
        assert not fits(connection, insert(tables.capture).values(right | rest | free | broken))
        harmless = {"id": "c9", "number": 9, "status": "writing"}
        assert fits(connection, insert(tables.capture).values(right | rest | harmless))


def writers() -> list[str]:
    """Name the port's methods that write: those that are told the time, and ``open``."""
    members = inspect.getmembers(CaptureState, inspect.isfunction)
    public = {name: inspect.signature(member).parameters for name, member in members if name[0] != "_"}
    return sorted(name for name, parameters in public.items() if "now" in parameters or name == "open")


def test_every_write_passes_the_failpoints() -> None:
    """No method commits on its own: each goes, by its name, through the transaction that has failpoints."""
    source = "".join(inspect.getsource(each) for each in SqlCaptureState.__mro__ if each is not object)
    assert sorted(re.findall(r"self\._database\.write\(\"(\w+)\"\)", source)) == writers()
    for name in writers():
        assert f'self._database.write("{name}")' in inspect.getsource(getattr(SqlCaptureState, name))
    package = Path(inspect.getfile(Store)).parent
    code = {path.name: path.read_text() for path in package.rglob("*.py")}
    commits = re.compile(r"\.commit\(\)|engine\.begin\(|_writer\.begin\(|\.connect\(\)")
    assert {name for name, text in code.items() if commits.search(text)} == {"database.py"}


@pytest.mark.usefixtures("disarmed")
def test_a_failure_before_the_commit_undoes_and_after_it_does_not(store: Store) -> None:
    """The failpoints stand on both sides of the commit."""
    failpoints.arm("store.begin.before_commit:1:error")
    with pytest.raises(failpoints.FailpointReached):
        store.captures.begin("c1", "a", None, Artifacts(), NOW)
    failpoints.arm("store.begin.after_commit:1:error")
    with pytest.raises(failpoints.FailpointReached):
        store.captures.begin("c2", "a", None, Artifacts(), NOW)
    failpoints.arm(None)
    assert store.captures.capture("c2").number == 1
    assert [capture.capture_id for capture in store.captures.garbage(NOW.replace(year=2027))] == ["c2"]


def test_alembic_is_imported_only_to_migrate(tmp_path: Path) -> None:
    """A store that is up to date opens without it."""
    url = f"sqlite:///{tmp_path}/calve.db"
    open_store(url).close()
    script = (
        "import sys; from calve.store import open_store; "
        f"open_store({url!r}).close(); sys.exit('alembic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, cwd=os.fspath(tmp_path))
    assert done.returncode == 0


@pytest.mark.parametrize(
    "value", ["", "w", "a" * 16, "é" * 8, "\ud800", str(UUID(int=7)), str(UUID(int=7)).upper(), None]
)
def test_a_uuid_comes_back_as_it_was(value: str | None) -> None:
    """Any other text does too, of whatever length."""
    dialect = create_engine("sqlite://").dialect
    kept = Uuid().process_bind_param(value, dialect)
    assert Uuid().process_result_value(kept, dialect) == value


def test_a_uuid_takes_16_bytes() -> None:
    """Not the 36 of its text."""
    assert Uuid().process_bind_param(str(UUID(int=7)), create_engine("sqlite://").dialect) == bytes(15) + b"\7"
