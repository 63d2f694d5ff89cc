"""Which instances of a workflow run beside each other."""

import pytest
from tests.engines import BUSY, FATAL_ERROR, Playground

from calve.engine import Run, RunStatus, StartStatus
from calve.errors import RequestInvalid

pytestmark = pytest.mark.each_store

R = RunStatus


def push(playground: Playground, strategy: str) -> None:
    """Push a workflow with a run strategy, whose step is busy."""
    playground.push(f"Workflow: {{id: w, run_strategy: {strategy}, jobs: [{{job: {{id: a, type: Sleep}}}}]}}")
    playground.script.parts["a"] = BUSY


def stand(playground: Playground, *runs: Run) -> list[RunStatus]:
    """Return where runs stand."""
    return [playground.fresh(run).status for run in runs]


def finish(playground: Playground, run: Run) -> None:
    """Let an instance end well."""
    playground.engine.skip(playground.address(run, "a"))
    playground.settle()
    assert playground.fresh(run).status is R.SUCCEEDED


def fail(playground: Playground, run: Run) -> None:
    """Let an instance fail."""
    playground.engine.kill(playground.address(run))
    playground.settle()


def test_sequential_runs_one_after_the_other(playground: Playground) -> None:
    """In the order in which they came, whether they end well or not."""
    push(playground, "sequential")
    runs = [playground.start() for _ in range(3)]
    assert stand(playground, *runs) == [R.IN_PROGRESS, R.CREATED, R.CREATED]
    fail(playground, runs[0])
    assert stand(playground, *runs) == [R.FAILED, R.IN_PROGRESS, R.CREATED]
    finish(playground, runs[1])
    assert stand(playground, *runs) == [R.FAILED, R.SUCCEEDED, R.IN_PROGRESS]


def test_sequential_is_the_default(playground: Playground) -> None:
    """Nobody has to write it."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = BUSY
    assert stand(playground, playground.start(), playground.start()) == [R.IN_PROGRESS, R.CREATED]


def test_strict_sequential_waits_behind_a_failure(playground: Playground) -> None:
    """Until someone unblocks it."""
    push(playground, "strict_sequential")
    runs = [playground.start() for _ in range(2)]
    fail(playground, runs[0])
    assert stand(playground, *runs) == [R.FAILED, R.CREATED]
    assert playground.fresh(runs[0]).is_blocking
    playground.engine.unblock(playground.address(runs[0]))
    playground.settle()
    assert stand(playground, *runs) == [R.FAILED, R.IN_PROGRESS]


def test_strict_sequential_continues_after_a_restart(playground: Playground) -> None:
    """The restarted one goes first, as the older one."""
    push(playground, "strict_sequential")
    runs = [playground.start() for _ in range(2)]
    fail(playground, runs[0])
    again = playground.restart(runs[0])
    assert stand(playground, again, runs[1]) == [R.IN_PROGRESS, R.CREATED]
    finish(playground, again)
    assert stand(playground, again, runs[1]) == [R.SUCCEEDED, R.IN_PROGRESS]


def test_strict_sequential_is_not_blocked_by_what_was_stopped_or_timed_out(playground: Playground) -> None:
    """Only a failure blocks."""
    playground.push(
        "Workflow: {id: w, run_strategy: strict_sequential, timeout: 1h, jobs: [{job: {id: a, type: Sleep}}]}"
    )
    playground.script.parts["a"] = BUSY
    runs = [playground.start() for _ in range(3)]
    playground.engine.stop(playground.address(runs[0]))
    playground.settle()
    assert stand(playground, *runs) == [R.STOPPED, R.IN_PROGRESS, R.CREATED]
    playground.advance(3_600)
    assert stand(playground, *runs) == [R.STOPPED, R.TIMED_OUT, R.IN_PROGRESS]


def test_first_only_refuses_while_one_is_not_over(playground: Playground) -> None:
    """What is refused is written down as STOPPED, with the reason."""
    push(playground, "first_only")
    first = playground.start()
    started = playground.begin()
    assert started.status is StartStatus.STOPPED
    refused = playground.fresh(started.run)
    assert (refused.instance_id, refused.status) == (2, R.STOPPED)
    assert "FIRST_ONLY" in refused.message
    finish(playground, first)
    assert stand(playground, playground.start()) == [R.IN_PROGRESS]


def test_last_only_stops_all_others(playground: Playground) -> None:
    """The running one by an action, those in the queue at once."""
    push(playground, "last_only")
    first = playground.start()
    second, third = playground.begin().run, playground.begin().run
    assert stand(playground, second) == [R.STOPPED]
    playground.settle()
    assert stand(playground, first, second, third) == [R.STOPPED, R.STOPPED, R.IN_PROGRESS]
    assert playground.script.ended == ["a"]
    assert "LAST_ONLY" in playground.fresh(second).message


def test_parallel_runs_as_many_as_it_may(playground: Playground) -> None:
    """The next one goes when one has ended."""
    push(playground, "{rule: parallel, workflow_concurrency: 2}")
    runs = [playground.start() for _ in range(4)]
    assert stand(playground, *runs) == [R.IN_PROGRESS, R.IN_PROGRESS, R.CREATED, R.CREATED]
    finish(playground, runs[1])
    assert stand(playground, *runs) == [R.IN_PROGRESS, R.SUCCEEDED, R.IN_PROGRESS, R.CREATED]


def test_a_number_is_parallel_with_that_many(playground: Playground) -> None:
    """Maestro's short form."""
    push(playground, "3")
    runs = [playground.start() for _ in range(4)]
    assert stand(playground, *runs) == [R.IN_PROGRESS, R.IN_PROGRESS, R.IN_PROGRESS, R.CREATED]


def test_serial_latest_only_keeps_the_newest_in_the_queue(playground: Playground) -> None:
    """The running one is left alone."""
    push(playground, "serial_latest_only")
    runs = [playground.start() for _ in range(3)]
    assert stand(playground, *runs) == [R.IN_PROGRESS, R.STOPPED, R.CREATED]
    finish(playground, runs[0])
    assert stand(playground, runs[2]) == [R.IN_PROGRESS]


@pytest.mark.parametrize("strategy", ["sequential", "strict_sequential", "parallel", "serial_latest_only", "last_only"])
def test_a_restart_waits_for_its_turn_too(playground: Playground, strategy: str) -> None:
    """It is one more instance that is not over."""
    push(playground, strategy)
    playground.script.parts["a"] = FATAL_ERROR
    run = playground.start()
    playground.script.parts["a"] = BUSY
    again = playground.restart(run)
    assert stand(playground, again) == [R.IN_PROGRESS]
    assert playground.state.run("w", 1) == playground.fresh(again)
    assert not playground.fresh(run).is_latest


@pytest.mark.parametrize("strategy", ["first_only", "last_only"])
def test_a_strategy_for_one_is_refused_while_two_are_not_over(playground: Playground, strategy: str) -> None:
    """They would contradict it."""
    push(playground, "parallel")
    first, second = playground.start(), playground.start()
    with pytest.raises(RequestInvalid, match="while 2 instances have not ended"):
        push(playground, strategy)
    finish(playground, first)
    push(playground, strategy)
    assert stand(playground, second) == [R.IN_PROGRESS]


def test_strict_sequential_is_refused_while_there_are_failures(playground: Playground) -> None:
    """They would block everything at once."""
    push(playground, "sequential")
    run = playground.start()
    fail(playground, run)
    with pytest.raises(RequestInvalid, match="while there are failed instances"):
        push(playground, "strict_sequential")
    playground.engine.unblock(playground.address(run))
    push(playground, "strict_sequential")


def test_a_wider_strategy_lets_the_next_start_take_those_that_wait_along(playground: Playground) -> None:
    """Nobody is forgotten in the queue."""
    push(playground, "sequential")
    runs = [playground.start() for _ in range(3)]
    push(playground, "parallel")
    last = playground.start()
    assert stand(playground, *runs, last) == [R.IN_PROGRESS] * 4
