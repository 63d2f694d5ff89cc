"""What holds when many workers share a PostgreSQL at the same moment, or when it is cut off."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Connection, event, insert, text
from tests.behaviour.engine.values import (
    NOW,
    at_once,
    attempt_of,
    ended,
    fresh,
    loaded,
    new_id,
    pushed,
    registered,
    run_tasks,
    running,
    started,
    wanting,
)

from calve.engine import (
    Attempt,
    Changes,
    Committed,
    Event,
    NewTask,
    Parent,
    Permit,
    Run,
    RunStatus,
    Start,
    StartStatus,
    StepStatus,
    TaskKind,
)
from calve.errors import CalveError, Conflict, StoreError, StoreUnavailable
from calve.retention import RecordKind
from calve.store import SqlEngineState, Store, open_store
from calve.store.database import database, transactions as transacting
from calve.store.database.transactions import Transaction
from calve.store.engine.rows import run_row
from calve.store.engine.run_queue import lock_workflows
from calve.store.tables import run as run_table


@pytest.fixture
def store(postgres_state: str) -> Iterator[Store]:
    """Give an open store on PostgreSQL."""
    with open_store(postgres_state) as store:
        yield store


def _commit(engine: SqlEngineState, changes: list[Changes], number: int) -> Committed:
    return engine.commit(changes[number])


def test_of_two_commits_on_one_run_one_is_refused(engine: SqlEngineState) -> None:
    """Whoever comes second has read what is no longer so."""
    pushed(engine)
    run = started(engine).run
    for seq in range(10):
        changes = Changes(runs=[loaded(engine, run.uuid)])
        found = at_once(4, partial(_commit, engine, [changes] * 4))
        assert sum(isinstance(each, Committed) for each in found) == 1
        assert sum(isinstance(each, Conflict) for each in found) == 3
        assert loaded(engine, run.uuid).seq == seq + 1


def test_a_subworkflow_that_is_restarted_keeps_its_tree(store: Store) -> None:
    """Retention waits for a restart under way, whichever workflow of the tree it is of, and takes nothing then."""
    engine = store.engine
    pushed(engine, "outer")
    pushed(engine, "inner")
    outer = running(engine, "outer")
    call = attempt_of(outer, "call", status=StepStatus.SUCCEEDED)
    inner = fresh("inner", instance_id=1, root_uuid=outer.uuid, parent=Parent(outer.uuid, "call", call.uuid), depth=1)
    engine.commit(Changes(runs=[outer], new_runs=[inner], new_attempts=[call]))
    for each in (inner, outer):
        ended(engine, each, RunStatus.SUCCEEDED)
    restarted = replace(fresh("inner", root_uuid=outer.uuid, instance_id=1, run_id=2), status=RunStatus.IN_PROGRESS)
    reached, goes_on = threading.Event(), threading.Event()

    def restart(transaction: Transaction) -> None:
        lock_workflows(transaction.connection, Changes(starts=[Start(restarted, is_restart=True)]))
        transaction.connection.execute(insert(run_table), run_row(restarted, transaction))
        reached.set()
        assert goes_on.wait(30)

    def forget() -> int:
        return store.retention.forget(RecordKind.INSTANCES, [(outer.created_at, outer.uuid)], NOW)

    with ThreadPoolExecutor(2) as pool:
        restarting = pool.submit(engine._transactions.write, "restart", restart)
        assert reached.wait(30)
        forgetting = pool.submit(forget)
        with pytest.raises(TimeoutError):
            forgetting.result(0.5)
        goes_on.set()
        restarting.result()
        assert forgetting.result() == 0
    assert engine.load(outer.uuid) is not None
    assert engine.load(inner.uuid) is not None


def test_a_thousand_tasks_are_taken_once_each(engine: SqlEngineState) -> None:
    """Eight workers take them at the same time."""
    engine.commit(Changes(tasks=[NewTask(TaskKind.STEP, "r", new_id()) for _ in range(1_000)]))

    def work(_: int) -> list[str]:
        worker = registered(engine)
        taken: list[str] = []
        while tasks := engine.claim(worker, NOW, runs=0, steps=7):
            taken += [task.key for task in tasks]
            assert len(tasks) <= 7
            engine.commit(Changes(done=tasks))
        return taken

    counts = Counter(key for keys in at_once(8, work) if isinstance(keys, list) for key in keys)
    assert len(counts) == 1_000
    assert set(counts.values()) == {1}
    assert engine.counts()[TaskKind.STEP] == 0


def test_permits_are_never_exceeded(engine: SqlEngineState) -> None:
    """Eight threads start and end attempts under two limits, and nobody is forgotten while there is room."""
    pushed(engine, strategy={"rule": "PARALLEL", "workflow_concurrency": 50})
    runs = [running(engine) for _ in range(8)]
    permits = [(Permit("p", 3),), (Permit("p", 3), Permit("q", 2)), (Permit("q", 2),), (Permit("r", 1), Permit("p", 3))]

    def work(number: int) -> int:
        run, most = runs[number], 0
        for turn in range(12):
            attempt = attempt_of(run, new_id())
            wanted = permits[(number + turn) % len(permits)]
            is_new = True
            while attempt.uuid not in (found := _ask(engine, attempt, wanted, is_new=is_new)).admitted:
                is_new = False
                _until_woken(engine, run)
            assert found.admitted
            most = max(most, _most_held(engine))
            _end(engine, attempt)
        return most

    found = at_once(8, work)
    assert all(each == 0 for each in found), found
    assert _held(engine) == {}


def _ask(engine: SqlEngineState, attempt: Attempt, permits: tuple[Permit, ...], *, is_new: bool) -> Committed:
    changes = Changes(admissions=[wanting(attempt, *permits, owner="ghost")])
    (changes.new_attempts if is_new else changes.attempts).append(attempt)
    return engine.commit(replace(changes, runs=[loaded(engine, attempt.run_uuid)]))


def _end(engine: SqlEngineState, attempt: Attempt) -> None:
    over = replace(attempt, status=StepStatus.SUCCEEDED)
    engine.commit(Changes(runs=[loaded(engine, attempt.run_uuid)], attempts=[over]))


def _until_woken(engine: SqlEngineState, run: Run) -> None:
    """Wait for the run's own task: if it never comes, someone was forgotten, and this never ends."""
    with engine._transactions.read() as connection:
        query = text("SELECT count(*) FROM task WHERE key = :key")
        while not connection.scalar(query, {"key": run.uuid}):
            connection.rollback()
            engine.wait(0.01)
    with engine._transactions._database.write("test") as connection:
        connection.execute(text("DELETE FROM task WHERE key = :key"), {"key": run.uuid})


def _held(engine: SqlEngineState) -> dict[str, int]:
    with engine._transactions.read() as connection:
        rows = connection.execute(text("SELECT permit, count(*) FROM permit_claim WHERE is_held GROUP BY permit"))
        return {row[0]: row[1] for row in rows}


def _most_held(engine: SqlEngineState) -> int:
    """Return by how much a limit is exceeded."""
    held = _held(engine)
    return max(0, held.get("p", 0) - 3, held.get("q", 0) - 2, held.get("r", 0) - 1)


def test_one_instance_at_a_time_however_many_start(engine: SqlEngineState) -> None:
    """SEQUENTIAL holds while twenty start and others end."""
    pushed(engine)

    def work(_: int) -> int:
        mine = [started(engine).run for _ in range(3)]
        return len(mine)

    assert at_once(8, work) == [3] * 8
    numbers = []
    for _ in range(24):
        live = [run for run in engine.instances(limit=100) if not run.status.is_terminal and not run.is_queued]
        assert len(live) == 1
        numbers.append(live[0].instance_id)
        ended(engine, live[0], RunStatus.SUCCEEDED)
    assert numbers == list(range(1, 25))


def test_starts_and_ends_keep_the_line_moving(engine: SqlEngineState) -> None:
    """Each of eight threads starts instances and ends whatever it finds running; all of them end."""
    pushed(engine)

    def work(_: int) -> int:
        done = 0
        for _ in range(5):
            started(engine)
        while live := [run for run in engine.instances(limit=100) if not run.status.is_terminal]:
            active = [run for run in live if not run.is_queued]
            assert len(active) <= 1
            for run in active:
                try:
                    engine.commit(Changes(runs=[replace(run, status=RunStatus.SUCCEEDED)]))
                    done += 1
                except Conflict:
                    pass
        return done

    found = at_once(8, work)
    assert sum(each for each in found if isinstance(each, int)) == 40


def test_a_request_from_twenty_threads_starts_one_instance(engine: SqlEngineState) -> None:
    """All the others are answered with it."""
    pushed(engine)
    found = at_once(20, lambda _: started(engine, request_id="q"))
    assert not [each for each in found if isinstance(each, CalveError)]
    statuses = Counter(each.status for each in found if not isinstance(each, CalveError))
    assert statuses == {StartStatus.CREATED: 1, StartStatus.DUPLICATED: 19}
    assert len({each.run.uuid for each in found if not isinstance(each, CalveError)}) == 1
    assert len(engine.instances()) == 1


def test_a_wake_up_is_never_lost(engine: SqlEngineState) -> None:
    """A task that is called for while it is given back is there afterwards."""
    pushed(engine)
    run = running(engine)
    worker = registered(engine)
    for _ in range(30):
        engine.commit(Changes(tasks=[NewTask(TaskKind.RUN, run.uuid)]))
        tasks = engine.claim(worker, NOW, runs=1, steps=0)
        call, give = Changes(tasks=[NewTask(TaskKind.RUN, run.uuid)]), Changes(done=tasks)
        at_once(2, partial(_commit, engine, [call, give]))
        assert engine.counts()[TaskKind.RUN] == 1
        engine.commit(Changes(done=engine.claim(worker, NOW, runs=1, steps=0)))


def test_transactions_that_lock_each_other_out_are_tried_again(engine: SqlEngineState) -> None:
    """PostgreSQL ends one of them; its caller does not notice."""
    keys = sorted(new_id() for _ in range(2))
    engine.commit(Changes(tasks=[NewTask(TaskKind.RUN, key) for key in keys]))
    worker = registered(engine)
    tasks = {task.key: task for task in engine.claim(worker, NOW, runs=2, steps=0)}

    def work(number: int) -> int:
        first, second = keys if number else reversed(keys)

        def both(transaction: transacting.Transaction) -> int:
            for key in (first, second):
                statement = text("UPDATE task SET wakes = wakes + 1 WHERE key = :key")
                transaction.connection.execute(statement, {"key": key})
                transaction.connection.execute(text("SELECT pg_sleep(0.1)"))
            return number

        return engine._transactions.write("test", both)

    assert at_once(2, work) == [0, 1]
    engine.commit(Changes(done=list(tasks.values())))
    assert {task.wakes for task in engine.claim(worker, NOW, runs=2, steps=0)} == {2}


def test_an_event_that_is_still_under_way_hides_the_later_ones(store: Store) -> None:
    """A reader that goes on from the last event it has seen misses none, in whatever order they are committed."""
    engine = store.engine
    now = engine.now()
    with store._database.write("test") as connection:
        connection.execute(
            text(
                "INSERT INTO event (kind, run_uuid, root_uuid, workflow_id, instance_id, run_id, at, detail)"
                f" VALUES ('first', 'r', 'r', 'w', 1, 1, {now}, '{{}}')"
            )
        )
        engine.commit(Changes(events=[Event("second", "r", "w", 1, 1, now)]))
        assert engine.events() == []
        engine.commit(Changes(events=[Event("old", "r", "w", 1, 1, now - 120_000)]))
        assert [event.kind for event in engine.events()] == ["old"]
    assert [event.kind for event in engine.events()] == ["first", "second", "old"]


@contextmanager
def cut(store: Store, when: Callable[[Connection], None]) -> Iterator[None]:
    """Let the first commit of this store lose its connection."""
    engine = store._database._engine
    left = [None]

    def on_commit(connection: Connection) -> None:
        if left:
            left.pop()
            when(connection)

    event.listen(engine, "commit", on_commit)
    try:
        yield
    finally:
        event.remove(engine, "commit", on_commit)


def _commits_and_breaks(connection: Connection) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.commit()
    driver.close()


def _breaks(connection: Connection) -> None:
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.close()


def test_a_commit_whose_answer_is_lost_is_found_out(store: Store) -> None:
    """The connection breaks after the commit, before its answer: the caller gets what was decided."""
    engine = store.engine
    pushed(engine)
    run = fresh()
    with cut(store, _commits_and_breaks):
        found = engine.commit(Changes(starts=[Start(run)]))
    assert [each.status for each in found.started] == [StartStatus.CREATED]
    assert loaded(engine, run.uuid) == found.started[0].run
    assert run_tasks(engine) == {run.uuid}


def test_a_commit_that_was_cut_off_is_reported(store: Store) -> None:
    """The connection breaks before the commit: nothing is written, and the same changes can be given again."""
    engine = store.engine
    pushed(engine)
    changes = Changes(starts=[Start(fresh(request_id="q"))])
    with cut(store, _breaks), pytest.raises(StoreUnavailable):
        engine.commit(changes)
    assert engine.instances() == []
    assert engine.commit(changes).started[0].status is StartStatus.CREATED


def test_a_commit_that_nobody_can_ask_about_is_reported(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller may give the same changes again: they are not written twice."""
    engine = store.engine
    pushed(engine)
    run = started(engine).run
    monkeypatch.setattr(database, "BUSY_SECONDS", 0)
    monkeypatch.setattr(transacting, "_OUTCOME", text("SELECT 'in progress' FROM (SELECT :xid) AS x"))
    with cut(store, _commits_and_breaks), pytest.raises(StoreUnavailable):
        engine.commit(Changes(runs=[run]))
    with pytest.raises(Conflict):
        engine.commit(Changes(runs=[run]))
    assert loaded(engine, run.uuid).seq == 1


def test_whatever_keeps_the_listener_from_listening_is_reported_like_any_failure(store: Store) -> None:
    """So that the thread that listens tries again, and does not end."""
    with pytest.raises(StoreError, match="syntax error"):
        store._database.listener("two words")


def test_the_listener_comes_back_after_a_cut(store: Store, postgres_state: str) -> None:
    """When the server has ended its connection, a new one hears what comes."""
    engine = store.engine
    engine.wait(0.01)
    with open_store(postgres_state) as other:
        for _ in range(2):
            with other._database.write("test") as connection:
                ending = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
                while not connection.scalar(text(ending)):
                    pass
            engine.wait(600)  # it rings when it listens again
            other.engine.commit(Changes(tasks=[NewTask(TaskKind.RUN, new_id())]))
            engine.wait(600)
