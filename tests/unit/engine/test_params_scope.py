"""What expressions can ask about a running instance."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.engines import BUSY, Playground

from calve.definition.params import InitiatorType
from calve.engine import Initiator
from calve.engine.instances import UnitOfWork
from calve.engine.params import RunningInstance, StepParams, run_params

LOOP = """
Workflow:
  id: w
  owner: tester
  n: 1
  jobs:
    - job: {id: first, type: Sleep, m: 5}
    - foreach:
        id: loop
        ranges: {i: {from: 0, to: 2}}
        jobs:
          - job: {id: a, type: Sleep}
    - job: {id: last, type: Sleep}
  dag: sequential
"""


def facts(playground: Playground) -> RunningInstance:
    """Return the facts about an iteration of a loop."""
    playground.push(LOOP)
    playground.script.parts["a"] = BUSY
    signals = {"signals": {"ready": {"day": 20260101}}, "params": {"ready": {"day": 20260101}}}
    run = playground.start(initiator=Initiator(InitiatorType.MANUAL, "ann", "UTC", signals))
    work = UnitOfWork(playground.tools, playground.clock())
    (iteration, *_) = playground.state.child_runs(playground.attempt(run, "loop").uuid)
    return RunningInstance(work, work.state(iteration.uuid))


def test_an_iteration_sees_what_is_around_it(playground: Playground) -> None:
    """Params, steps, and the instance itself."""
    found = facts(playground)
    assert {name: run_params(found.state)[name].result for name in ("n", "i", "loop_index")} == {
        "n": 1,
        "i": 0,
        "loop_index": 0,
    }
    steps = StepParams(found.state)
    assert steps["first"]["m"].result == 5
    assert sorted(steps) == ["a", "first", "loop"]
    assert len(steps) == 3
    with pytest.raises(KeyError):
        steps["last"]
    assert (found.instance.workflow_id, found.instance.initiator_user) == ("w", "ann")
    assert isinstance(found.instance.owner, str)
    assert found.own_step is None


def test_a_step_is_found_wherever_it_is(playground: Playground) -> None:
    """One that has not begun is NOT_CREATED; one that does not exist is nothing."""
    found = facts(playground)
    stand = {name: found.step(name) for name in ("a", "first", "last")}
    assert {name: step.status for name, step in stand.items() if step} == {
        "a": "RUNNING",
        "first": "SUCCEEDED",
        "last": "NOT_CREATED",
    }
    assert found.step("nobody") is None


def test_signals_come_with_the_start(playground: Playground) -> None:
    """By the name of the signal."""
    found = facts(playground)
    ready = found.signal("ready")
    assert isinstance(ready, Mapping)
    assert ready["day"] == 20260101
    assert found.signal("other") is None


def test_there_is_nothing_inside_what_is_no_loop_and_no_subworkflow(playground: Playground) -> None:
    """Nor inside what has not begun."""
    found = facts(playground)
    for name in ("first", "last"):
        assert found.foreach_results(name, "a", "m") is None
        assert found.subworkflow_param(name, "a", "m") is None


def test_the_owner_may_be_a_map(playground: Playground) -> None:
    """As Maestro writes it."""
    found = facts(playground)
    outer = found.state.outer
    assert outer is not None
    outer.run = replace(outer.run, properties={"owner": {"name": "ann", "attributes": {}}})
    assert found.instance.owner == "ann"
