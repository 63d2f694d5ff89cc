"""Locks beside a SQLite file: one writer at a time, one scheduler at all."""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

from calve.engine import Changes, LogChunk, NewTask, TaskKind
from calve.errors import StoreBusy, StoreDamaged, StoreUnavailable
from calve.store import Store, open_store
from calve.store.database import database
from calve.store.database.locks import FileLock

HOLD = """
import sys
from contextlib import ExitStack
from pathlib import Path
from calve.store import open_store
from calve.store.database.locks import FileLock
with ExitStack() as stack:
    store = stack.enter_context(open_store(sys.argv[1]))
    if sys.argv[2] == "schedule":
        stack.enter_context(store.hold_scheduler())
    else:
        stack.enter_context(store._database._lock.held(5))
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    """Give the URL of a new SQLite file."""
    return f"sqlite:///{tmp_path}/calve.db"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """Give a store in a new SQLite file."""
    with open_store(url) as store:
        yield store


@contextmanager
def another(url: str, what: str) -> Iterator[subprocess.Popen[str]]:
    """Let another process hold a lock meanwhile."""
    command = [sys.executable, "-c", HOLD, url, what]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_no_two_processes_write_at_once(store: Store, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write waits for the other process, and gives up in the end; reading goes on."""
    with another(url, "write") as process:
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
        with pytest.raises(StoreUnavailable, match="another process holds"):
            store.engine.commit(Changes(tasks=[NewTask(TaskKind.RUN, "r")]))
        assert store.engine.counts()[TaskKind.RUN] == 0
        monkeypatch.setattr(database, "BUSY_SECONDS", 30)
        process.send_signal(signal.SIGKILL)
        store.engine.commit(Changes(tasks=[NewTask(TaskKind.RUN, "r")]))  # the lock went with the process
    assert store.engine.counts()[TaskKind.RUN] == 1


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    """It is there as soon as the other one lets go."""
    one, other = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    with one.held(1), pytest.raises(TimeoutError, match="lock"), other.held(0.01):
        pass
    with other.held(0):
        pass
    for each in (one, other, other):
        each.close()


def test_a_lock_without_a_file_blocks_nobody() -> None:
    """A database in memory has no other process."""
    lock = FileLock(None)
    with lock.held(0), lock.held(0):
        pass
    lock.close()


def test_the_log_is_moved_into_the_file_under_the_lock(url: str, tmp_path: Path) -> None:
    """Whoever closes last leaves one whole file."""
    with open_store(url) as store:
        store.engine.append_log(LogChunk("a", 0, "x"))
        assert (tmp_path / "calve.db-wal").stat().st_size > 0
    assert not (tmp_path / "calve.db-wal").exists()


def test_a_store_closes_while_another_process_writes(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It waits for its turn, but not for ever."""
    store = open_store(url)
    with another(url, "write"):
        monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
        store.close()


def test_one_process_schedules(store: Store, url: str) -> None:
    """Another one is refused, and told who does."""
    with another(url, "schedule") as process:
        with pytest.raises(StoreBusy) as caught, store.hold_scheduler():
            pass
        assert f"Process {process.pid} on " in caught.value.message
        assert caught.value.context["pid"] == process.pid
        assert "PostgreSQL" in caught.value.remedy
        store.engine.commit(Changes(tasks=[NewTask(TaskKind.RUN, "r")]))  # everything but scheduling goes on
        process.send_signal(signal.SIGKILL)
        process.wait()
        with store.hold_scheduler():
            pass


def test_a_process_schedules_once(store: Store, tmp_path: Path) -> None:
    """A second time in the same process is refused too; afterwards it may again."""
    with store.hold_scheduler():
        with pytest.raises(StoreBusy, match=f"Process {os.getpid()} on "), store.hold_scheduler():
            pass
        (tmp_path / "calve.db-scheduler").write_text("")
        with pytest.raises(StoreBusy, match="Another process already runs"), store.hold_scheduler():
            pass
    with store.hold_scheduler():
        pass


def test_whether_one_schedules_is_asked_without_reading_the_file(
    store: Store, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages ask for it again and again: it costs no check of the whole file, and nothing is written."""
    monkeypatch.setattr(store._database, "check_whole", lambda: pytest.fail("the whole file was read"))
    assert not store.has_scheduler()
    assert not (tmp_path / "calve.db-scheduler").exists()
    with another(url, "schedule") as process:
        assert store.has_scheduler()
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not store.has_scheduler()


def test_who_asks_keeps_no_scheduler_from_starting(store: Store, tmp_path: Path) -> None:
    """It waits until the question is answered; others may ask at the same time."""
    path = tmp_path / "calve.db-scheduler"
    path.touch()
    asks = os.open(path, os.O_RDONLY)
    fcntl.flock(asks, fcntl.LOCK_SH)  # as it is while the question is asked
    assert not store.has_scheduler()
    answered = threading.Timer(0.01, lambda: os.close(asks))
    answered.start()
    with store.hold_scheduler():
        assert store.has_scheduler()
    answered.join()


def test_a_store_in_memory_schedules_alone() -> None:
    """Nobody else can reach it."""
    with open_store("sqlite://") as store:
        assert not store.has_scheduler()
    with open_store("sqlite://") as store, store.hold_scheduler(), store.hold_scheduler():
        pass


def test_many_schedule_on_postgresql(postgres_database: str) -> None:
    """There, tasks are handed out one by one."""
    with open_store(postgres_database) as store, store.hold_scheduler(), store.hold_scheduler():
        pass


def test_no_scheduler_starts_on_a_damaged_file(tmp_path: Path) -> None:
    """What it says cannot be relied on; the message says what to do."""
    file = tmp_path / "state.db"
    with open_store(f"sqlite:///{file}") as store, store.hold_scheduler():
        store.engine.commit(Changes(logs=[LogChunk("a", number, "x" * 10_000) for number in range(20)]))
    with file.open("r+b") as opened:
        opened.seek(-10 * 4_096, os.SEEK_END)
        opened.write(b"\xff" * 8 * 4_096)
    with (
        open_store(f"sqlite:///{file}") as store,
        pytest.raises(StoreDamaged, match="damaged") as raised,
        store.hold_scheduler(),
    ):
        pass
    assert "Restore a backup" in raised.value.remedy


def test_a_full_disk_refuses_writes_and_recovers(store: Store) -> None:
    """What does not fit is refused whole, with the reason; when there is room again, it goes on."""
    engine = store.engine
    big = LogChunk("a", 0, "x" * 1_000_000)
    task = NewTask(TaskKind.RUN, "r")
    with store._database.write("test") as connection:
        pages = connection.scalar(text("PRAGMA page_count"))
        connection.execute(text(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StoreUnavailable, match="full"):
        engine.commit(Changes(tasks=[task], logs=[big]))
    assert engine.counts()[TaskKind.RUN] == 0
    with store._database.write("test") as connection:
        connection.execute(text("PRAGMA max_page_count = 1000000"))
    engine.commit(Changes(tasks=[task], logs=[big]))
    assert engine.log("a") == [big]
    assert engine.counts()[TaskKind.RUN] == 1
