"""Addresses: from an instance down to a step."""

import pytest
from tests.engines import DONE, USER_ERROR, Playground

from calve.engine import Address
from calve.engine.instances import find, find_attempt
from calve.errors import RequestInvalid, WorkflowMissing

CHILD = """
Workflow:
  id: child
  jobs:
    - foreach:
        id: inner
        loop_params: {j: [1, 2]}
        jobs:
          - job: {id: job, type: NoOp, '!seen': j + '-' + i}
"""
AROUND = """
Workflow:
  id: w
  jobs:
    - while:
        id: loop
        loop_params: {i: 0}
        condition: i < 2
        jobs:
          - job: {id: count, type: NoOp, '!i<long>': i + 1}
          - subworkflow: {id: sub, workflow_id: child}
        dag: sequential
"""
TRIED = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, retry_policy: {error_retry_limit: 1}}
    - job: {id: b, type: Sleep, retry_policy: {error_retry_limit: 0}}
  dag: sequential
"""


def test_an_address_is_readable() -> None:
    """For people, and taken apart for the engine."""
    address = Address("w", 3, 2, ("loop", "4", "job"))
    assert str(address) == "w instance 3 run 2 step loop/4/job"
    assert str(Address("w", 3)) == "w instance 3"
    assert (address.steps, address.iterations) == (("loop", "job"), (4,))


def test_a_path_leads_through_loops_and_subworkflows(playground: Playground) -> None:
    """To the run that holds the step, and its newest attempt."""
    playground.push(CHILD)
    playground.push(AROUND)
    run = playground.start()
    found = find(playground.state, playground.address(run, "loop", "2", "sub", "inner", "1", "job"))
    assert found.attempt is not None
    assert found.attempt.params["seen"]["result"] == "1-1"
    assert (found.step_id, found.run.instance_id, found.run.depth) == ("job", 1, 3)
    assert find(playground.state, playground.address(run)).run == run
    assert find(playground.state, playground.address(run, "later")).attempt is None


@pytest.mark.parametrize("path", ["loop/1", "1/job", "loop/1/2/job", "1"])
def test_a_path_that_makes_no_sense_is_refused(playground: Playground, path: str) -> None:
    """It goes from step to step, and through iterations between."""
    playground.push(CHILD)
    playground.push(AROUND)
    run = playground.start()
    with pytest.raises(RequestInvalid, match="is invalid"):
        find(playground.state, playground.address(run, *path.split("/")))


@pytest.mark.parametrize("path", ["loop/3/sub", "loop/sub", "loop/1/sub/1/inner", "loop/1/count/x", "later/x"])
def test_a_path_into_nothing_is_refused(playground: Playground, path: str) -> None:
    """There is no such iteration, or nothing inside the step."""
    playground.push(CHILD)
    playground.push(AROUND)
    run = playground.start()
    with pytest.raises(WorkflowMissing, match="contains nothing called"):
        find(playground.state, playground.address(run, *path.split("/")))


def test_an_instance_that_is_not_there(playground: Playground) -> None:
    """By whatever number."""
    playground.push(AROUND)
    with pytest.raises(WorkflowMissing, match="Workflow w has no instance 7 with run 2"):
        find(playground.state, Address("w", 7, 2))


def test_an_attempt_is_the_newest_or_the_one_that_is_named(playground: Playground) -> None:
    """Of the run that the address names; of the last one that tried the step, if it names none."""
    playground.push(TRIED)
    playground.script.parts.update(a=[USER_ERROR, DONE], b=[USER_ERROR, DONE])
    run = playground.start()
    playground.advance(3_600)
    again = playground.restart(playground.fresh(run))
    anywhere, first, second = (Address("w", 1, number, ("a",)) for number in (None, 1, 2))
    for address in (anywhere, first):
        assert find_attempt(playground.state, address)[1].attempt_id == 2
        assert find_attempt(playground.state, address, 1)[1].attempt_id == 1
    assert find_attempt(playground.state, anywhere)[0].uuid == again.uuid
    assert find_attempt(playground.state, first)[0].uuid == run.uuid
    with pytest.raises(WorkflowMissing, match="w instance 1 run 2 step a has not started"):
        find_attempt(playground.state, second)


NESTED = """
Workflow:
  id: child
  jobs:
    - foreach:
        id: loop
        loop_params: {i: [1, 2]}
        jobs: [{job: {id: a, type: Sleep}}, {job: {id: b, type: Sleep, retry_policy: {error_retry_limit: 0}}}]
        dag: sequential
"""


def test_an_attempt_inside_of_an_earlier_run_is_as_that_run_left_it(playground: Playground) -> None:
    """A restart makes new runs of what failed inside; each of them counts its attempts from 1."""
    playground.push(NESTED)
    playground.push("Workflow: {id: w, jobs: [{subworkflow: {id: child}}]}")
    playground.script.parts["b"] = [DONE, USER_ERROR, DONE]
    run = playground.start()
    again = playground.restart(playground.fresh(run))
    assert str(again.status) == "SUCCEEDED"
    path = ("child", "loop", "2", "b")
    first, second = (find_attempt(playground.state, Address("w", 1, number, path))[1] for number in (1, 2))
    assert (first.status.value, second.status.value) == ("FATALLY_FAILED", "SUCCEEDED")
    assert (first.attempt_id, second.attempt_id) == (1, 1)
    assert find_attempt(playground.state, Address("w", 1, None, path))[1] == second
    kept = ("child", "loop", "2", "a")
    runs = [find_attempt(playground.state, Address("w", 1, number, kept))[1].uuid for number in (1, 2, None)]
    assert len(set(runs)) == 1
    with pytest.raises(WorkflowMissing):
        find_attempt(playground.state, Address("w", 1, 1, ("child", "loop", "3", "a")))


def test_an_attempt_that_is_not_there(playground: Playground) -> None:
    """Those that there are, are named."""
    playground.push(TRIED)
    playground.script.parts.update(a=[USER_ERROR, DONE], b=[DONE])
    playground.start()
    with pytest.raises(WorkflowMissing, match="step b has not started"):
        find_attempt(playground.state, Address("w", 1, path=("b",)), 1)
    playground.advance(3_600)
    with pytest.raises(WorkflowMissing, match="step a has no attempt 4") as missing:
        find_attempt(playground.state, Address("w", 1, path=("a",)), 4)
    assert missing.value.remedy == "It has 1, 2."
