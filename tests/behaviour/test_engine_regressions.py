"""What the state machine of tests/properties has found, each told as a story of its own."""

import pytest
from tests.engines import Playground

from calve.engine import Breakpoint, RunStatus, StepStatus
from calve.errors import ActionRefused

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
