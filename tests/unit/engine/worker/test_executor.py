"""Carrying out attempts, when things go wrong around them."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.engines import BUSY, DONE, Playground, Unreliable

from calve.engine import Outcome, RunStatus, State, StepContext, StepStatus
from calve.engine.decisions import OPTIMISTIC, Transactions
from calve.engine.model import Changes, Run, Task
from calve.engine.worker import executor, recorder
from calve.errors import Conflict, StepFailed, StoreUnavailable

if TYPE_CHECKING:
    from calve.engine.ports import EngineState

S = StepStatus


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once."""
    monkeypatch.setattr(executor, "RETRY_DELAYS", (0.0, 0.0))
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.0, 0.0))


@pytest.fixture
def store(playground: Playground) -> Unreliable:
    """Put a store before the executor that fails when it is told to."""
    store = Unreliable(playground.state)
    object.__setattr__(playground.tools, "state", cast("EngineState", store))
    playground.transactions = Transactions(playground.tools)
    playground.executor = replace(playground.executor, transactions=playground.transactions)
    return store


def claimed(playground: Playground, keys: str = "") -> tuple[Run, Task]:
    """Return a run whose only step is to be carried out, and the task to do so."""
    playground.push(f"Workflow: {{id: w, jobs: [{{job: {{id: a, type: Sleep{keys}}}}}]}}")
    run = playground.begin().run
    for task in playground.claim():
        playground.do(task)
    (task,) = playground.claim()
    return run, task


def test_an_outcome_is_recorded_however_long_the_database_is_unavailable(
    playground: Playground, store: Unreliable
) -> None:
    """The work is not done again for that."""
    run, task = claimed(playground)
    store.faults["commit"] = [StoreUnavailable() for _ in range(7)]
    playground.do(task)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["a"]


def test_a_worker_that_has_to_go_does_not_wait_for_the_database(playground: Playground, store: Unreliable) -> None:
    """Another one will do the work."""
    run, task = claimed(playground)
    store.faults["commit"] = [StoreUnavailable()]
    playground.is_dead.set()
    playground.do(task)
    assert playground.statuses(run) == {"a": S.RUNNING}


def test_a_turn_is_taken_again_when_someone_else_changed_the_run(playground: Playground, store: Unreliable) -> None:
    """Some times, then it is put off, then it is an error."""
    run, task = claimed(playground)
    store.faults["commit"] = [Conflict() for _ in range(OPTIMISTIC + 1)]
    playground.do(task)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
    run, task = claimed(playground)
    store.faults["commit"] = [Conflict() for _ in range(OPTIMISTIC * 3)]
    with pytest.raises(Conflict, match="keep changing the run"):
        playground.do(task)
    playground.do(task)


def test_artifacts_are_kept_however_long_the_database_is_unavailable(playground: Playground, store: Unreliable) -> None:
    """Unless the worker has to go: then it is the database's failure."""

    def work(context: StepContext) -> Outcome:
        store.faults["commit"] = [StoreUnavailable() for _ in range(5)]
        context.keep({"job": 1})
        return DONE

    playground.script.parts["a"] = work
    run, task = claimed(playground)
    playground.do(task)
    assert playground.attempt(run, "a").artifacts == {"job": 1}

    def dying(context: StepContext) -> Outcome:
        store.faults["commit"] = [StoreUnavailable()]
        playground.is_dead.set()
        context.keep({"job": 1})
        return DONE

    playground.script.parts["a"] = dying
    run, task = claimed(playground)
    playground.do(task)
    assert playground.statuses(run) == {"a": S.PLATFORM_FAILED}


def test_a_log_that_cannot_be_kept_comes_later(playground: Playground, store: Unreliable) -> None:
    """Nothing of it is lost."""

    def work(context: StepContext) -> Outcome:
        context.log("first")
        store.faults["append_log"] = [StoreUnavailable()]
        playground.executor.flush()
        context.log("second")
        playground.executor.flush()
        context.log("third")
        return DONE

    playground.script.parts["a"] = work
    run, task = claimed(playground)
    playground.do(task)
    assert playground.log(playground.attempt(run, "a")) == "first\nsecond\nthird\n"


def test_the_log_of_a_lost_worker_is_in_nobodys_way(playground: Playground) -> None:
    """Its last pieces and those of the next worker have numbers of their own."""
    run, task = claimed(playground)
    lost = playground.executor

    def work(context: StepContext) -> Outcome:
        context.log("lost")
        playground.state.release([task])
        (again,) = playground.claim()
        playground.script.parts["a"] = other
        lost.execute(again)
        context.log("still there")
        return DONE

    def other(context: StepContext) -> Outcome:
        lost.flush()
        context.log("next")
        assert not context.is_first
        return DONE

    playground.script.parts["a"] = work
    playground.do(task)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
    assert playground.log(playground.attempt(run, "a")).splitlines()[-1] == "next"


def test_a_step_may_say_how_it_failed(playground: Playground) -> None:
    """The user's error, if it does not."""

    def fail(**context: Any) -> Any:
        def work(_: StepContext) -> Outcome:
            raise StepFailed("No such file.", remedy="Make it.", **context)

        return work

    for state, status in ((None, S.USER_FAILED), (State.FATAL_ERROR, S.FATALLY_FAILED)):
        playground.script.parts["a"] = fail(**({} if state is None else {"state": state.value}))
        run, task = claimed(playground)
        playground.do(task)
        assert playground.statuses(run) == {"a": status}
        assert "No such file. Make it." in playground.told(run, "a")
        playground.engine.stop_all("w")
        playground.settle()


def test_a_store_that_fails_a_step_is_the_platforms_failure(playground: Playground) -> None:
    """It is tried again."""

    def work(_: StepContext) -> Outcome:
        raise StoreUnavailable("Nobody there.")

    playground.script.parts["a"] = work
    run, task = claimed(playground)
    playground.do(task)
    assert playground.statuses(run) == {"a": S.PLATFORM_FAILED}
    assert "Nobody there." in playground.told(run, "a")


def test_a_type_that_this_worker_does_not_know_fails_the_step(playground: Playground) -> None:
    """It says which types it knows."""
    run, task = claimed(playground)
    playground.executor.runtimes = {"Http": lambda: playground.script}
    playground.do(task)
    assert playground.statuses(run) == {"a": S.FATALLY_FAILED}
    assert "cannot execute steps of type Sleep; it supports Http." in playground.told(run, "a")


def test_work_that_stops_because_its_time_is_up_has_timed_out(playground: Playground) -> None:
    """Whatever the runtime calls it."""

    def work(context: StepContext) -> Outcome:
        assert context.timeout == 60
        playground.clock.now += 60_000
        assert context.is_interrupted()
        return Outcome(State.STOPPED)

    playground.script.parts["a"] = work
    run, task = claimed(playground, ", timeout: 60s")
    playground.do(task)
    assert playground.statuses(run) == {"a": S.TIMED_OUT}


def test_interrupting_reaches_what_is_in_hand(playground: Playground) -> None:
    """And nothing else; a worker that is to go interrupts all, and what begins then."""
    seen: list[bool] = []

    def work(context: StepContext) -> Outcome:
        playground.executor.interrupt(["somebody else"])
        seen.append(context.is_interrupted())
        playground.executor.interrupt_all()
        seen.append(context.is_interrupted())
        return Outcome(State.STOPPED)

    playground.script.parts["a"] = work
    run, task = claimed(playground)
    playground.do(task)
    assert seen == [False, True]
    assert playground.statuses(run) == {"a": S.STOPPED}

    def late(context: StepContext) -> Outcome:
        context.log("too late")
        seen.append(context.is_interrupted())
        return Outcome(State.STOPPED)

    playground.script.parts["a"] = late
    run, task = claimed(playground)
    playground.is_dead.set()
    playground.do(task)
    assert seen[-1]
    attempt = playground.attempt(run, "a")
    assert (attempt.status, playground.log(attempt)) == (S.RUNNING, "too late\n")


def test_work_that_cannot_be_ended_yet_is_ended_later(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log says so; a worker that has to go leaves it."""
    monkeypatch.setattr(executor, "RETRY_DELAYS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(recorder, "RETRY_DELAYS", (0.0, 0.0, 0.0))
    tries: list[str] = []

    def terminate(_: StepContext) -> None:
        tries.append("tried")
        if len(tries) < 3:
            raise StepFailed("The cluster does not answer.")

    monkeypatch.setattr(playground.script, "terminate", terminate)
    playground.script.parts["a"] = BUSY
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    run = playground.start()
    playground.engine.stop(playground.address(run))
    playground.settle()
    assert playground.statuses(run) == {"a": S.STOPPED}
    assert (
        playground.log(playground.attempt(run, "a")).count("The step cannot be ended: The cluster does not answer.")
        == 2
    )


@pytest.mark.parametrize("has_to_go", [False, True])
def test_work_that_cannot_be_ended_is_left_to_another_worker_or_given_up(
    playground: Playground, monkeypatch: pytest.MonkeyPatch, *, has_to_go: bool
) -> None:
    """A worker that has to go does not say that the work has ended."""

    def terminate(_: StepContext) -> None:
        raise StepFailed("The cluster does not answer.")

    monkeypatch.setattr(playground.script, "terminate", terminate)
    playground.script.parts["a"] = BUSY
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, timeout: 60s}}]}")
    run = playground.start()
    if has_to_go:
        playground.is_dead.set()
    playground.advance(60)
    assert playground.statuses(run) == {"a": S.RUNNING if has_to_go else S.TIMED_OUT}
    assert "The step cannot be ended" in playground.log(playground.attempt(run, "a"))


def test_a_task_about_nobody_is_done(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its attempt is none of the run's newest, or the run is gone."""
    _, task = claimed(playground)
    playground.executor.execute(replace(task, attempt_uuid="somebody else"))
    assert playground.state.counts()[task.kind] == 0
    playground.engine.stop_all("w")
    playground.settle()
    _, task = claimed(playground)
    monkeypatch.setattr(playground.state, "load", lambda _: None)
    playground.tools.cache.drop(task.run_uuid)
    playground.executor.execute(task)
    assert playground.script.calls == []
    assert playground.state.counts()[task.kind] == 0
    monkeypatch.undo()
    playground.engine.stop_all("w")
    playground.settle()


def test_a_task_about_nothing_is_done(playground: Playground) -> None:
    """The attempt has ended, or its run is gone."""
    run, task = claimed(playground)
    ended = playground.attempt(run, "a")
    playground.state.commit(Changes(runs=[playground.fresh(run)], attempts=[replace(ended, status=S.SUCCEEDED)]))
    playground.tools.cache.drop(run.uuid)
    playground.executor.execute(task)
    assert playground.script.calls == []
    assert playground.state.counts().get(task.kind) == 0


def test_a_database_that_is_unavailable_while_a_child_starts_fails_no_step(
    playground: Playground, store: Unreliable
) -> None:
    """The turn is taken again when it is back."""
    playground.push("Workflow: {id: child, jobs: [{job: {id: b, type: NoOp}}]}")
    playground.push("Workflow: {id: w, jobs: [{subworkflow: {id: a, workflow_id: child}}]}")
    run = playground.begin().run
    (task,) = playground.claim()
    store.faults["workflow"] = [StoreUnavailable()]
    with pytest.raises(StoreUnavailable):
        playground.do(task)
    playground.do(task)
    playground.settle()
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_a_secret_that_a_database_cannot_give_now_fails_no_step(playground: Playground) -> None:
    """It is asked again."""
    run, task = claimed(playground, ", 'key<secret>': PASSWORD")
    answers = [StoreUnavailable(), "abc"]
    playground.executor.secret_for = lambda *_: _given(answers.pop(0))
    with pytest.raises(StoreUnavailable):
        playground.do(task)
    playground.do(task)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def _given(answer: object) -> str:
    if isinstance(answer, Exception):
        raise answer
    return str(answer)
