"""A worker whose database, whose engine or whose listener fails."""

import random
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.engines import DONE, Playground, Unreliable, live, wait_for, wait_for_end, worker_on

from calve.engine import Outcome, RunStatus, State, StepContext, StepStatus, Transaction, WorkerRecord
from calve.engine.decisions import advance, transactions
from calve.engine.instances import UnitOfWork
from calve.errors import Conflict, LeaseLost, StoreUnavailable

if TYPE_CHECKING:
    from calve.engine.ports import EngineState

S = StepStatus
ONE = "Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Come back at once."""
    monkeypatch.setattr(random, "uniform", lambda *_: 0.001)


@pytest.fixture
def store(playground: Playground) -> Unreliable:
    """Give a store that fails when it is told to."""
    return Unreliable(playground.state)


def state_of(store: Unreliable) -> "EngineState":
    """Return the store as the engine sees it."""
    return cast("EngineState", store)


@pytest.mark.parametrize("method", ["claim", "heartbeat", "next_due", "wait", "load", "overdue", "reap", "log_extents"])
def test_a_worker_tolerates_an_unavailable_database(playground: Playground, store: Unreliable, method: str) -> None:
    """Whatever it was about to do."""
    playground.push(ONE)

    def work(context: StepContext) -> Outcome:
        context.log("line")
        return Outcome(State.CONTINUE) if context.is_first else DONE

    playground.script.parts["a"] = work
    with live(playground, state=state_of(store)):
        wait_for_end(playground, playground.begin().run)  # it is well under way
        store.faults[method] = [StoreUnavailable() for _ in range(3)]
        run = playground.begin().run
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
        wait_for(lambda: not store.faults[method])


def test_a_task_that_cannot_be_given_back_is_given_back_later(playground: Playground, store: Unreliable) -> None:
    """By the heart, which knows what is in hand."""
    playground.push(ONE)
    with live(playground, state=state_of(store)):
        store.faults = {"load": [StoreUnavailable()], "release": [StoreUnavailable()]}
        run = playground.begin().run
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED


def test_hands_that_a_failed_turn_had_reserved_are_free_again(playground: Playground, store: Unreliable) -> None:
    """The worker, which has gone to sleep with no hand free, is woken for what it could not claim."""
    playground.push(ONE)
    asleep, awake = threading.Event(), threading.Event()
    load = playground.state.load

    def sleep(_: float) -> None:
        asleep.set()
        awake.wait()

    def load_in_its_sleep(*arguments: Any) -> Any:
        asleep.wait()
        return load(*arguments)

    for name, method in {"wait": sleep, "wake": awake.set, "load": load_in_its_sleep}.items():
        setattr(store, name, method)
    store.faults = {"commit": [StoreUnavailable()]}
    run = playground.begin().run
    with live(playground, state=state_of(store), slots=1):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
    assert store.faults == {"commit": []}


def broken(monkeypatch: pytest.MonkeyPatch, run_uuid: str, error: Exception, times: int) -> list[int]:
    """Let the engine stumble over a run; return a list that tells how often it still will."""
    left = [times]

    def stumbling(work: UnitOfWork) -> None:
        if run_uuid in work.agenda and left[0]:
            left[0] -= 1
            raise error
        advance(work)

    monkeypatch.setattr(transactions, "advance", stumbling)
    return left


def test_an_error_of_the_engine_sets_aside_only_that_instance(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some tries; the others go on."""
    playground.push("Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: Sleep}}]}")
    bad, good = playground.begin().run, playground.begin().run
    broken(monkeypatch, bad.uuid, ZeroDivisionError("a mistake"), 1_000)
    with live(playground, tries=3):
        assert wait_for_end(playground, bad).status is RunStatus.FAILED
        assert wait_for_end(playground, good).status is RunStatus.SUCCEEDED
    failed = playground.fresh(bad)
    assert "the engine failed on it repeatedly" in failed.message
    assert failed.is_blocking
    assert playground.moves(bad)[-1] == "run: CREATED → FAILED"


def test_an_error_of_the_engine_that_passes_does_no_harm(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does a run that others change all the time, or a lease that is gone."""
    playground.push("Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: Sleep}}]}")
    run = playground.begin().run
    broken(monkeypatch, run.uuid, ZeroDivisionError("a mistake"), 2)
    with live(playground):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
    run = playground.begin().run
    broken(monkeypatch, run.uuid, Conflict(), transactions.OPTIMISTIC * 10)
    with live(playground):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
    run = playground.begin().run
    left = broken(monkeypatch, run.uuid, LeaseLost(), 1)
    with live(playground):
        wait_for(lambda: not left[0])
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED


def test_a_step_over_whose_outcome_the_engine_stumbles_sets_its_run_aside(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its work was done, but what came of it cannot be recorded."""
    playground.push(ONE)
    run = playground.begin().run
    for task in playground.claim():
        playground.do(task)
    broken(monkeypatch, run.uuid, ZeroDivisionError("a mistake"), 1_000)
    with live(playground, tries=2):
        assert wait_for_end(playground, run).status is RunStatus.FAILED
    assert playground.statuses(run) == {"a": S.INTERNALLY_FAILED}


def test_a_run_that_cannot_be_set_aside_yet_is_set_aside_later(
    playground: Playground, store: Unreliable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task does not stay in nobody's hands."""
    playground.push(ONE)
    run = playground.begin().run
    broken(monkeypatch, run.uuid, ZeroDivisionError("a mistake"), 1_000)
    store.faults["commit"] = [StoreUnavailable()]
    with live(playground, state=state_of(store), tries=1):
        assert wait_for_end(playground, run).status is RunStatus.FAILED


def test_a_listener_that_stumbles_does_no_harm(playground: Playground) -> None:
    """Whoever wants to be told of transactions."""
    playground.push(ONE)
    told: list[Transaction] = []

    def listener(turn: Transaction) -> None:
        told.append(turn)
        raise BrokenPipeError

    run = playground.begin().run
    with live(playground, listener=listener):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
    assert told


def test_a_worker_takes_no_more_steps_than_it_has_slots(playground: Playground) -> None:
    """It says how many are under way; what it cannot take, others can."""
    jobs = ", ".join(f"{{job: {{id: s{n}, type: Sleep}}}}" for n in range(12))
    playground.push(f"Workflow: {{id: w, jobs: [{jobs}]}}")
    most: list[int] = []
    lock = threading.Lock()
    under_way = [0]

    def work(context: StepContext) -> Outcome:
        with lock:
            under_way[0] += 1
            most.append(under_way[0])
        context.wait(0.02)
        with lock:
            under_way[0] -= 1
        return DONE

    playground.script.parts |= {f"s{n}": work for n in range(12)}
    run = playground.begin().run
    with live(playground, slots=3, deciders=1) as worker:
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
        wait_for(lambda: worker.under_way == 0)
    assert max(most) == 3


def test_many_runs_are_moved_by_few_threads(playground: Playground) -> None:
    """None is forgotten."""
    playground.push("Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: NoOp}}]}")
    runs = [playground.begin().run for _ in range(10)]
    with live(playground, deciders=1):
        for run in runs:
            assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED


def test_a_run_that_workers_die_over_is_set_aside(playground: Playground) -> None:
    """Before another one dies."""
    playground.push(ONE)
    run = playground.begin().run
    for number in range(2):
        playground.state.register(WorkerRecord(f"mortal {number}", "elsewhere", 2, 0, 0, 8))
        assert len(playground.state.claim(f"mortal {number}", playground.clock(), runs=10, steps=10)) == 1
        playground.state.reap(10_000_000, is_gone=lambda worker: worker.host == "elsewhere")
    with live(playground):
        message = wait_for_end(playground, run).message
    assert message.startswith("Set aside: 2 workers died while they held it.")
    assert message.endswith("restart it with: calve restart w 1")


def test_a_stop_that_the_worker_itself_carries_out_reaches_its_steps_at_once(playground: Playground) -> None:
    """Long before the next heartbeat."""
    playground.push(ONE)
    begun = threading.Event()

    def work(context: StepContext) -> Outcome:
        begun.set()
        wait_for(context.is_interrupted)
        return Outcome(State.STOPPED)

    playground.script.parts["a"] = work
    run = playground.begin().run
    with live(playground, heartbeat=1_000):
        wait_for(begun.is_set)
        playground.engine.stop(playground.address(run))
        assert wait_for_end(playground, run).status is RunStatus.STOPPED


def test_what_is_past_its_time_is_called_by_the_heart(playground: Playground) -> None:
    """Nobody else looks at a step that waits."""
    playground.clock.now = playground.state.now()
    playground.push("Workflow: {id: w, timeout: 1h, jobs: [{job: {id: a, type: Sleep, signal_dependencies: [never]}}]}")
    playground.clock.now -= 3_600_000
    run = playground.start()
    assert playground.statuses(run) == {"a": S.WAITING_FOR_SIGNALS}
    with live(playground):
        assert wait_for_end(playground, run).status is RunStatus.TIMED_OUT


def test_the_worker_that_is_silent_too_long_is_reported(
    playground: Playground, caplog: pytest.LogCaptureFixture
) -> None:
    """By the others, who take over what it held."""
    with live(playground, lease=0):
        wait_for(lambda: any("is gone; other workers take over" in message for message in caplog.messages))


def test_a_worker_tidies_up_now_and_then_and_at_last(playground: Playground) -> None:
    """What goes wrong meanwhile does not end it."""
    tidied = threading.Semaphore(0)

    def upkeep() -> None:
        tidied.release()
        raise StoreUnavailable

    with live(playground, upkeep=upkeep, upkeep_seconds=0.01):
        for _ in range(3):
            assert tidied.acquire(timeout=30)
    while tidied.acquire(blocking=False):
        pass
    with live(playground, upkeep=upkeep):
        pass
    assert tidied.acquire(blocking=False)
    assert not tidied.acquire(blocking=False)


def test_a_worker_that_leaves_ends_what_is_under_way(playground: Playground) -> None:
    """It does not wait for its end, which nobody could record; another worker takes over."""
    begun, gone = threading.Event(), threading.Event()

    def endless(_: StepContext) -> Outcome:
        begun.set()
        gone.wait(60)
        return DONE

    playground.push(ONE)
    playground.script.parts["a"] = endless
    worker = worker_on(playground, drain=1)
    thread = threading.Thread(target=worker.run)
    thread.start()
    run = playground.begin().run
    assert begun.wait(30)
    worker.leave()
    gone.set()
    thread.join()
    with live(playground):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED


@pytest.mark.parametrize("times", [1, 3])
def test_a_worker_that_begins_waits_for_a_database_that_is_unavailable(
    playground: Playground, store: Unreliable, times: int
) -> None:
    """It makes itself known as soon as it can."""
    playground.push(ONE)
    store.faults["register"] = [StoreUnavailable() for _ in range(times)]
    run = playground.begin().run
    with live(playground, state=state_of(store)):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED


def test_a_worker_that_cannot_begin_can_end(playground: Playground, store: Unreliable) -> None:
    """However long the database is away."""
    store.faults["register"] = [StoreUnavailable() for _ in range(1_000_000)]
    with live(playground, state=state_of(store)) as worker:
        wait_for(lambda: len(store.faults["register"]) < 1_000_000)
        worker.end()
