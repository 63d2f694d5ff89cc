"""What the queue and its workers mean, over every database."""

import threading
from dataclasses import replace

import pytest
from tests.behaviour.engine.values import (
    NOW,
    attempt_of,
    iteration,
    loaded,
    new_id,
    pushed,
    refused,
    registered,
    running,
    started,
)

from calve.engine import Action, Breakpoint, Changes, NewTask, Pending, StepStatus, Task, TaskKind, WorkerRecord
from calve.errors import LeaseLost
from calve.store import SqlEngineState, Store, open_store

pytestmark = pytest.mark.each_store


def put(engine: SqlEngineState, *tasks: NewTask) -> None:
    """Put tasks into the queue."""
    for task in tasks:
        engine.commit(Changes(tasks=[task]))


def test_tasks_are_taken_by_priority_and_age(engine: SqlEngineState) -> None:
    """At most as many of each kind as were asked for, and each once."""
    runs = [NewTask(TaskKind.RUN, f"r{number}", priority=number % 2) for number in range(4)]
    steps = [NewTask(TaskKind.STEP, "r", f"s{number}") for number in range(4)]
    put(engine, *runs, *steps)
    worker = registered(engine)
    first = engine.claim(worker, NOW, runs=3, steps=1)
    assert [task.key for task in first] == ["r0", "r2", "s0", "r1"]
    assert all((task.owner, task.generation, task.wakes, task.tries) == (worker, 1, 0, 0) for task in first)
    assert [task.key for task in engine.claim(worker, NOW, runs=9, steps=0)] == ["r3"]
    assert [task.attempt_uuid for task in engine.claim(worker, NOW, runs=0, steps=9)] == ["s1", "s2", "s3"]
    assert engine.claim(worker, NOW, runs=9, steps=9) == []
    assert engine.counts() == {TaskKind.RUN: 4, TaskKind.STEP: 4}


def test_a_task_waits_until_it_is_due(engine: SqlEngineState) -> None:
    """A second call may bring it forward, never put it off."""
    assert engine.next_due(NOW) is None
    put(engine, NewTask(TaskKind.RUN, "r", due_at=NOW + 100), NewTask(TaskKind.STEP, "r", "s", due_at=NOW + 300))
    worker = registered(engine)
    assert engine.claim(worker, NOW + 99, runs=1, steps=1) == []
    assert engine.next_due(NOW) == 100
    put(engine, NewTask(TaskKind.RUN, "r", due_at=NOW + 200))
    assert engine.next_due(NOW) == 100
    put(engine, NewTask(TaskKind.RUN, "r", due_at=NOW + 50))
    assert engine.next_due(NOW) == 50
    assert engine.next_due(NOW + 60) == 0
    (task,) = engine.claim(worker, NOW + 60, runs=1, steps=1)
    assert task.wakes == 2
    assert engine.next_due(NOW) == 300


def test_only_workers_that_live_get_tasks(engine: SqlEngineState) -> None:
    """One that is not known, or dead, gets none."""
    put(engine, NewTask(TaskKind.RUN, "r"))
    dead = registered(engine)
    engine.reap(10**9, is_gone=lambda worker: worker.uuid == dead)
    assert engine.claim(dead, NOW, runs=1, steps=1) == []
    assert engine.claim("nobody", NOW, runs=1, steps=1) == []
    assert len(engine.claim(registered(engine), NOW, runs=1, steps=1)) == 1


def test_a_task_that_is_given_back_can_be_taken_by_others(engine: SqlEngineState) -> None:
    """Whoever gave it back has lost it; one who has lost it already gives nothing back."""
    put(engine, NewTask(TaskKind.RUN, "r"))
    one, other = registered(engine), registered(engine)
    (task,) = engine.claim(one, NOW, runs=1, steps=1)
    engine.release([task])
    refused(engine, Changes(held=[task]), LeaseLost)
    (taken,) = engine.claim(other, NOW, runs=1, steps=1)
    assert (taken.generation, taken.tries) == (2, 0)
    engine.release([task])
    engine.release([])
    engine.commit(Changes(done=[taken]))


def test_workers_are_listed_until_they_retire(engine: SqlEngineState) -> None:
    """What one still holds is free again."""
    put(engine, NewTask(TaskKind.RUN, "r"))
    worker = registered(engine)
    (task,) = engine.claim(worker, NOW, runs=1, steps=1)
    (record,) = engine.workers()
    assert record == WorkerRecord(worker, "host", 17, NOW, record.heartbeat_at, 4)
    engine.heartbeat(worker, is_draining=True)
    assert engine.workers()[0].is_draining
    engine.retire(worker)
    assert engine.workers() == []
    refused(engine, Changes(done=[task]), LeaseLost)
    (again,) = engine.claim(registered(engine), NOW, runs=1, steps=1)
    assert again.tries == 0
    assert not engine.heartbeat(worker).is_alive


def test_a_heartbeat_uses_the_clock_of_the_database(engine: SqlEngineState) -> None:
    """What the worker says of its own time does not matter."""
    worker = registered(engine)
    before = engine.now()
    beat = engine.heartbeat(worker)
    after = engine.now()
    assert beat.is_alive
    assert before <= beat.now <= after
    assert engine.workers()[0].heartbeat_at == beat.now
    assert abs(after - before) < 60_000
    assert not engine.heartbeat("nobody").is_alive


def test_a_silent_worker_loses_its_tasks(engine: SqlEngineState) -> None:
    """They are free, and their former worker can no longer record anything; its next heartbeat tells it."""
    put(engine, NewTask(TaskKind.RUN, "r"))
    silent, busy = registered(engine), registered(engine)
    (task,) = engine.claim(silent, NOW, runs=1, steps=1)
    assert engine.reap(60_000, is_gone=lambda _: False) == []
    while engine.now() == engine.heartbeat(busy).now:
        pass
    quiet = engine.now() - next(each.heartbeat_at for each in engine.workers() if each.uuid == silent)
    engine.heartbeat(busy)
    assert engine.reap(max(0, quiet - 1), is_gone=lambda _: False) == [silent]
    assert [each.uuid for each in engine.workers()] == [busy]
    assert not engine.heartbeat(silent).is_alive
    refused(engine, Changes(done=[task]), LeaseLost)
    (again,) = engine.claim(busy, NOW, runs=1, steps=1)
    assert (again.generation, again.tries) == (task.generation + 2, 1)


def test_a_worker_that_is_gone_for_sure_is_not_waited_for(engine: SqlEngineState) -> None:
    """Its process may be known to have ended; each death over a task is counted."""
    put(engine, NewTask(TaskKind.RUN, "r"))
    for deaths in range(3):
        worker = registered(engine)
        (task,) = engine.claim(worker, NOW, runs=1, steps=1)
        assert task.tries == deaths
        assert engine.reap(10**9, is_gone=lambda _: True) == [worker]


def test_tasks_of_nobody_are_freed_too(engine: SqlEngineState) -> None:
    """A worker that died between its registration's end and its commit leaves no task behind."""
    put(engine, NewTask(TaskKind.RUN, "r", owner="ghost"))
    worker = registered(engine)
    assert engine.claim(worker, NOW, runs=1, steps=1) == []
    assert engine.reap(10**9, is_gone=lambda _: False) == []
    assert len(engine.claim(worker, NOW, runs=1, steps=1)) == 1


def test_the_dead_are_forgotten_in_the_end(engine: SqlEngineState, monkeypatch: pytest.MonkeyPatch) -> None:
    """They stay known for a day, so that they learn of their death."""
    monkeypatch.setattr("calve.store.engine.queue._FORGET_MS", -60_000)
    engine.reap(10**9, is_gone=lambda _: True)
    worker = registered(engine)
    assert engine.reap(10**9, is_gone=lambda _: True) == [worker]
    registered(engine, worker)  # its name is free again
    assert [each.uuid for each in engine.workers()] == [worker]


def test_a_heartbeat_reports_actions(engine: SqlEngineState) -> None:
    """On the attempts in the worker's hands, or on their runs; those of others do not concern it."""
    pushed(engine, strategy="PARALLEL")
    worker, other = registered(engine), registered(engine)
    stop = Pending(Action.STOP)
    runs = [running(engine) for _ in range(3)]
    attempts = [attempt_of(run) for run in runs]
    skipped = attempt_of(runs[0], "other", action=stop)
    owners = (worker, worker, other, worker)
    tasks = [
        NewTask(TaskKind.STEP, each.run_uuid, each.uuid, owner=owner)
        for each, owner in zip((*attempts, skipped), owners, strict=True)
    ]
    engine.commit(Changes(new_attempts=[*attempts, skipped], tasks=tasks))
    assert engine.heartbeat(worker).interrupted == {skipped.uuid}
    engine.commit(Changes(runs=[replace(loaded(engine, run.uuid), action=stop) for run in runs[1:]]))
    assert engine.heartbeat(worker).interrupted == {skipped.uuid, attempts[1].uuid}
    assert engine.heartbeat(other).interrupted == {attempts[2].uuid}


def test_a_wait_ends_when_a_task_comes(engine: SqlEngineState) -> None:
    """Also when it came a moment before; and so it does for everybody who waits."""
    engine.wait(0.01)
    put(engine, NewTask(TaskKind.RUN, "r"))
    engine.wait(600)  # returns at once, or this test never ends
    threads = [threading.Thread(target=engine.wait, args=(600,), daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        put(engine, NewTask(TaskKind.RUN, new_id()))
        threads[0].join(0.01)


def test_a_wait_can_be_ended(engine: SqlEngineState) -> None:
    """By whoever wants the process to look up."""
    engine.wake()
    engine.wait(600)


def test_a_wait_ends_by_itself(engine: SqlEngineState) -> None:
    """When its time is over."""
    for _ in range(3):
        engine.wait(0.01)


def test_a_wait_ends_when_another_process_writes(store: Store, store_url: str) -> None:
    """A store of its own stands for the other process: it shares nothing but the database."""
    store.engine.wait(0.3)
    with open_store(store_url) as other:
        waiting = threading.Thread(target=store.engine.wait, args=(600,), daemon=True)
        waiting.start()
        while waiting.is_alive():
            put(other.engine, NewTask(TaskKind.RUN, new_id()))
            waiting.join(0.05)


def test_an_idle_claim_writes_nothing(store: Store, store_url: str) -> None:
    """Whoever finds nothing to do disturbs nobody."""
    worker = registered(store.engine)
    with open_store(store_url) as other:
        other.engine.wait(0.3)
        assert store.engine.claim(worker, NOW, runs=8, steps=8) == []
        put(other.engine, NewTask(TaskKind.RUN, "r", due_at=NOW + 1))
        assert store.engine.claim(worker, NOW, runs=8, steps=8) == []


def test_breakpoints_are_kept(engine: SqlEngineState) -> None:
    """Setting one again changes nothing; what is not there cannot be deleted."""
    points = [Breakpoint("daily", "merge", created_by="ann", created_at=5), Breakpoint("other", "merge", 1, 2, 3, 4)]
    for point in (*points, replace(points[0], created_by="bob")):
        engine.set_breakpoint(point)
    assert engine.breakpoints() == points
    assert engine.breakpoints("other") == points[1:]
    assert engine.delete_breakpoint(replace(points[1], created_by="anybody"))
    assert not engine.delete_breakpoint(points[1])
    assert engine.breakpoints() == points[:1]


def test_paused_attempts_are_found(engine: SqlEngineState) -> None:
    """Over all instances of a workflow, inside its loops too."""
    pushed(engine)
    pushed(engine, "other")
    run, stranger = running(engine), started(engine, "other").run
    child = iteration(run, attempt_of(run, "loop"), 1)
    halted = [attempt_of(each, status=StepStatus.PAUSED) for each in (run, child)]
    more = [
        attempt_of(run, "next", status=StepStatus.PAUSED),
        attempt_of(run, "merge", attempt_id=2),
        attempt_of(stranger, status=StepStatus.PAUSED),
    ]
    engine.commit(Changes(new_runs=[child], new_attempts=[*halted, *more]))
    assert {each.uuid for each in engine.paused("daily", "merge")} == {each.uuid for each in halted}


def test_what_is_claimed_says_what_it_is_about(engine: SqlEngineState) -> None:
    """Kind, key, run and attempt come back as they were put in."""
    put(engine, NewTask(TaskKind.STEP, "r", "a"))
    worker = registered(engine)
    assert engine.claim(worker, NOW, runs=1, steps=1) == [Task(TaskKind.STEP, "a", "r", "a", worker, 1, 0, 0)]
