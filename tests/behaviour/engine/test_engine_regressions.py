"""What the state machine of tests/properties has found, each told as a story of its own."""

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground

from calve.engine import Breakpoint, Outcome, RunPolicy, RunStatus, State, StepStatus
from calve.errors import ActionRefused, LeaseLost

S = StepStatus


def test_a_paused_step_that_is_to_end_cannot_be_resumed_meanwhile(playground: Playground) -> None:
    """What was asked before its turn came is done, not forgotten."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    point = Breakpoint("w", "a")
    playground.engine.pause(point)
    run = playground.start()
    assert playground.statuses(run) == {"a": S.PAUSED}
    playground.engine.skip(playground.address(run, "a"))
    with pytest.raises(ActionRefused) as refused:
        playground.engine.resume(playground.address(run, "a"))
    assert refused.value.context["possible"] == ["STOP", "KILL", "SKIP"]
    assert playground.engine.unpause(point) == []
    playground.settle()
    assert playground.statuses(run) == {"a": S.SKIPPED}
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_an_answer_that_was_recorded_cannot_be_recorded_again_when_its_worker_has_the_step_again(
    playground: Playground,
) -> None:
    """A worker that never heard that it was recorded tries again, while it carries out the next call already."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    goes_on = Outcome(State.CONTINUE)
    run = playground.begin().run
    playground.do(playground.claim()[0])
    (first,) = playground.claim()
    playground.transactions.record(first, goes_on)
    (second,) = playground.claim()
    assert second.owner == first.owner
    with pytest.raises(LeaseLost):
        playground.transactions.record(first, goes_on)
    playground.transactions.record(second, DONE)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


LOOPS = {
    "foreach": "foreach: {id: loop, ranges: {i: {from: 0, to: 2}}, jobs: [{job: {id: inner, type: Sleep}}]}",
    "while": "while: {id: loop, condition: loop_index < 2, loop_params: {i: 0}, "
    "jobs: [{job: {id: inner, type: Sleep}}]}",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_loop_that_the_last_run_never_reached_runs_again_all_the_same(playground: Playground, loop: str) -> None:
    """Its iterations have run before, though not in the last run."""
    playground.push(
        f"Workflow:\n  id: w\n  jobs:\n    - job: {{id: first, type: Sleep, transition: [loop]}}\n    - {loop}\n"
    )
    playground.script.parts["first"] = [DONE, FATAL_ERROR, DONE]
    run = playground.start()
    run = playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert playground.statuses(run) == {"first": S.FATALLY_FAILED}
    run = playground.restart(run)
    assert playground.statuses(run) == {"first": S.SUCCEEDED, "loop": S.SUCCEEDED}
    assert playground.script.calls.count("inner") == 4
