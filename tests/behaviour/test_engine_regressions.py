"""What the state machine of tests/properties has found, each told as a story of its own."""

import pytest
from tests.engines import DONE, Playground

from calve.engine import Breakpoint, Outcome, RunStatus, State, StepStatus
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


def test_an_answer_that_was_recorded_cannot_be_recorded_again_when_its_worker_has_the_step_once_more(
    playground: Playground,
) -> None:
    """A worker that never heard that it was recorded tries again, while it carries out the next call already."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    goes_on = Outcome(State.CONTINUE)
    run = playground.begin().run
    playground.do(playground.claim()[0])
    (first,) = playground.claim()
    playground.turns.record(first, goes_on)
    (second,) = playground.claim()
    assert second.owner == first.owner
    with pytest.raises(LeaseLost):
        playground.turns.record(first, goes_on)
    playground.turns.record(second, DONE)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
