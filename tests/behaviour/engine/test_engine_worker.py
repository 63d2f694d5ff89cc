"""Workers: real ones in threads, and what happens when they come and go."""

import threading
from functools import partial

import pytest
from tests.engines import DONE, Playground, live, wait_for, wait_for_end

from calve.engine import Outcome, RunStatus, State, StepContext, StepStatus, TaskKind, WorkerRecord
from calve.errors import LeaseLost

pytestmark = pytest.mark.each_store

S = StepStatus
ONE = "Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}"


class Waiting:
    """Work that waits until it is interrupted, or let go."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, context: StepContext) -> Outcome:
        """Wait."""
        self.begun.set()
        context.log("begun")
        while not self.go.is_set():
            if context.wait(0.005):
                return Outcome(State.STOPPED)
        return DONE


def test_a_worker_carries_out_what_there_is(playground: Playground) -> None:
    """Steps that follow each other, and steps beside each other."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, transition: [b, c, d]}
    - job: {id: b, type: Sleep, transition: [e]}
    - job: {id: c, type: Sleep, transition: [e]}
    - job: {id: d, type: NoOp, transition: [e]}
    - job: {id: e, type: Sleep}
""")
    started = [playground.begin() for _ in range(3)]
    with live(playground) as worker:
        for each in started:
            assert wait_for_end(playground, each.run).status is RunStatus.SUCCEEDED
        wait_for(lambda: worker.is_idle)
    assert playground.state.workers() == [worker for worker in playground.state.workers() if worker.host != "live"]
    assert sum(playground.state.counts().values()) == 0


def test_a_stop_reaches_work_that_is_under_way(playground: Playground) -> None:
    """By the heartbeat, or at once where the worker itself hears of it."""
    playground.push(ONE)
    work = playground.script.parts["a"] = Waiting()
    run = playground.begin().run
    with live(playground):
        wait_for(work.begun.is_set)
        playground.engine.stop(playground.address(run), by="ann")
        assert wait_for_end(playground, run).status is RunStatus.STOPPED
    assert playground.statuses(run) == {"a": S.STOPPED}


def test_a_log_can_be_read_while_it_is_written(playground: Playground) -> None:
    """In pieces."""
    playground.push(ONE)
    work = playground.script.parts["a"] = Waiting()
    run = playground.begin().run
    with live(playground):
        wait_for(work.begun.is_set)
        wait_for(lambda: playground.log(playground.attempt(run, "a")) == "begun\n")
        work.go.set()
        wait_for_end(playground, run)


def test_a_worker_that_ends_lets_steps_come_to_their_end(playground: Playground) -> None:
    """But claims nothing more."""
    playground.push(
        "Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}, {job: {id: b, type: Sleep}}], dag: sequential}"
    )
    work = playground.script.parts["a"] = Waiting()
    run = playground.begin().run
    with live(playground, drain=60) as worker:
        wait_for(work.begun.is_set)
        worker.end()
        wait_for(lambda: any(each.is_draining for each in playground.state.workers()))
        work.go.set()
    assert playground.statuses(run) == {"a": S.SUCCEEDED, "b": S.RUNNING}
    playground.script.parts.clear()
    with live(playground):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED


def test_work_that_a_worker_had_to_leave_is_taken_up_by_another(playground: Playground) -> None:
    """It is not recorded as STOPPED: nobody stopped it."""
    playground.push(ONE)
    work = playground.script.parts["a"] = Waiting()
    run = playground.begin().run
    with live(playground, drain=0):
        wait_for(work.begun.is_set)
    assert playground.statuses(run) == {"a": S.RUNNING}
    seen: list[bool] = []

    def again(context: StepContext) -> Outcome:
        seen.append(context.is_first)
        return DONE

    playground.script.parts["a"] = again
    with live(playground):
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
    assert seen == [False]
    assert playground.attempt(run, "a").attempt_id == 1


def test_a_worker_that_was_considered_dead_starts_over(playground: Playground) -> None:
    """Under another name; what it did is dropped, and done by whoever has it now."""
    playground.push(ONE)
    work = playground.script.parts["a"] = Waiting()
    run = playground.begin().run
    with live(playground) as worker:
        wait_for(work.begun.is_set)
        before = worker.uuid
        work.begun.clear()
        # It is passed over at the very moment at which it says that it lives.
        wait_for(lambda: before in playground.state.reap(10_000_000, is_gone=lambda each: each.uuid == before))
        wait_for(lambda: worker.uuid != before)
        wait_for(work.begun.is_set)
        work.go.set()
        assert wait_for_end(playground, run).status is RunStatus.SUCCEEDED
    assert [attempt.attempt_id for attempt in playground.state.attempts(run.uuid)] == [1]


def test_an_outcome_of_a_lost_lease_is_dropped(playground: Playground) -> None:
    """Nothing is recorded twice."""
    playground.push(ONE)
    run = playground.begin().run
    for task in playground.claim():
        playground.do(task)
    (task,) = playground.claim()
    assert task.kind is TaskKind.STEP
    other = WorkerRecord("other", "elsewhere", 2, 0, 0, 8)
    playground.state.register(other)
    playground.state.reap(10_000_000, is_gone=lambda each: each.uuid == playground.worker)
    (taken,) = playground.state.claim("other", playground.clock(), runs=10, steps=10)
    assert (taken.key, taken.tries) == (task.key, 1)
    assert playground.executor.execute(task) is None
    assert playground.statuses(run) == {"a": S.RUNNING}
    with pytest.raises(LeaseLost):
        playground.transactions.keep_artifacts(task, {"x": 1})
    playground.do(taken)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
    with pytest.raises(LeaseLost):
        playground.transactions.keep_artifacts(taken, {"x": 1})


def test_work_that_learns_of_its_lost_lease_ends_in_silence(playground: Playground) -> None:
    """When it wants to keep something."""
    playground.push(ONE)
    run = playground.begin().run
    for task in playground.claim():
        playground.do(task)

    def work(context: StepContext) -> Outcome:
        context.log("before")
        playground.state.reap(10_000_000, is_gone=lambda _: True)
        context.keep({"job": 1})
        raise AssertionError("it must not come here")

    playground.script.parts["a"] = work
    (task,) = playground.claim()
    assert playground.executor.execute(task) is None
    attempt = playground.attempt(run, "a")
    assert (attempt.status, attempt.artifacts) == (S.RUNNING, {})
    assert playground.log(attempt) == "before\n"


def is_called(name: str, worker: WorkerRecord) -> bool:
    """Tell whether a worker has that name."""
    return worker.uuid == name


def test_a_task_that_kills_workers_is_set_aside(playground: Playground) -> None:
    """With its run, which fails; other runs go on."""
    playground.push("Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: Sleep}}]}")
    run = playground.begin().run
    for task in playground.claim():
        playground.do(task)
    for number in range(3):
        name = f"mortal {number}"
        playground.state.register(WorkerRecord(name, "elsewhere", 2, 0, 0, 8))
        (task,) = playground.state.claim(name, playground.clock(), runs=10, steps=10)
        assert (task.kind, task.tries) == (TaskKind.STEP, number)
        playground.state.reap(10_000_000, is_gone=partial(is_called, name))
    other = playground.begin().run
    with live(playground, tries=3):
        assert wait_for_end(playground, run).status is RunStatus.FAILED
        assert wait_for_end(playground, other).status is RunStatus.SUCCEEDED
    assert playground.fresh(run).message.startswith("Set aside: 3 workers died while they held it.")
    assert playground.statuses(run) == {"a": S.INTERNALLY_FAILED}
    assert playground.moves(run)[-2:] == ["a: RUNNING → INTERNALLY_FAILED", "run: IN_PROGRESS → FAILED"]


def test_what_a_runtime_holds_is_let_go_of_with_the_worker(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When all work is over, and not before."""
    seen: list[RunStatus] = []
    playground.push(ONE)
    run = playground.begin().run
    # Of this one, not of its class: whether a class fits a protocol is remembered for as long as the process lives.
    monkeypatch.setattr(playground.script, "close", lambda: seen.append(playground.fresh(run).status), raising=False)
    with live(playground):
        wait_for_end(playground, run)
        assert not seen
    assert seen == [RunStatus.SUCCEEDED]
