"""Loops and subworkflows over both databases, by hand and with a real worker."""

import threading

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground, live, wait_for_end

from calve.engine import Outcome, RunPolicy, RunStatus, State, StepContext, StepStatus
from calve.errors import DefinitionInvalid

BUSY = Outcome(State.CONTINUE, poll_after=60)
CHILD = """
Workflow:
  id: child
  run_strategy: parallel
  jobs:
    - while:
        id: rounds
        loop_params: {n: 0}
        condition: n < 2
        jobs:
          - job: {id: work, type: Sleep, '!n<long>': n + 1, '!x<long>': i * 10 + n}
"""
AROUND = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        concurrency: 2
        loop_params: {i: [1, 2, 3]}
        jobs:
          - subworkflow: {id: sub, workflow_id: child}
          - job: {id: leaf, type: Sleep, '!x<long>': i}
        dag: sequential
    - job: {id: sum, type: NoOp, '!all<array<long>>': "params.getFromForeach('loop', 'leaf', 'x')"}
  dag: sequential
"""
TREE = 3 * (2 + 1) + 1


def test_a_tree_runs_to_its_end(playground: Playground) -> None:
    """A foreach of subworkflows of whiles; every leaf is counted once."""
    playground.push(CHILD)
    playground.push(AROUND)
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert playground.result(run, "sum", "all") == [1, 2, 3]
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: TREE}


def test_a_tree_is_stopped_and_continues(playground: Playground) -> None:
    """What was stopped at any depth runs again, and nothing else."""
    playground.push(CHILD)
    playground.push(AROUND)
    playground.script.parts["work"] = lambda context: BUSY if context.params["x"] == 22 else DONE
    first = playground.start()
    playground.engine.stop(playground.address(first))
    playground.settle()
    assert playground.fresh(first).status is RunStatus.STOPPED
    playground.script.parts.clear()
    playground.script.calls.clear()
    run = playground.restart(first)
    assert run.status is RunStatus.SUCCEEDED
    assert sorted(playground.script.calls) == ["leaf", "work"], "of the second; the others were done"
    assert playground.result(run, "sum", "all") == [1, 2, 3]
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: TREE}


def test_a_restart_from_the_beginning_counts_nothing_twice(playground: Playground) -> None:
    """However deep; a step inside can be named after that."""
    playground.push(CHILD)
    playground.push(AROUND)
    first = playground.start()
    second = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert playground.state.rollup(second.root_uuid) == {StepStatus.SUCCEEDED: TREE}
    playground.script.calls.clear()
    third = playground.restart(second, "loop", "3", "sub", "rounds", "2", "work")
    assert (third.run_id, third.status) == (3, RunStatus.SUCCEEDED)
    assert playground.script.calls == ["work", "leaf"]
    assert playground.state.rollup(third.root_uuid) == {StepStatus.SUCCEEDED: TREE}


def test_a_child_that_is_refused_stops_its_step(playground: Playground) -> None:
    """The parent is told, though the child never ran."""
    playground.push(CHILD.replace("parallel", "first_only"))
    playground.push(AROUND.replace("concurrency: 2", "concurrency: 3"))
    playground.script.parts["work"] = BUSY
    run = playground.start()
    playground.script.parts["work"] = DONE
    playground.advance(60)
    playground.advance(60)
    assert playground.fresh(run).status is RunStatus.STOPPED
    children = playground.state.instances(workflow_id="child")
    assert sorted(each.status for each in children) == [RunStatus.STOPPED, RunStatus.STOPPED, RunStatus.SUCCEEDED]


def test_a_real_worker_never_exceeds_the_window(playground: Playground) -> None:
    """With hands for more."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        concurrency: 3
        ranges: {i: {from: 0, to: 40}}
        jobs:
          - job: {id: work, type: Sleep}
""")
    lock, now, most = threading.Lock(), 0, 0

    def work(context: StepContext) -> Outcome:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        context.wait(0.002)
        with lock:
            now -= 1
        return DONE

    playground.script.parts["work"] = work
    started = playground.begin()
    with live(playground, slots=8):
        assert wait_for_end(playground, started.run).status is RunStatus.SUCCEEDED
    assert 1 <= most <= 3
    assert playground.state.rollup(started.run.uuid) == {StepStatus.SUCCEEDED: 40}


def test_a_real_worker_carries_a_tree_through(playground: Playground) -> None:
    """And its restart."""
    playground.push(CHILD)
    playground.push(AROUND)
    playground.script.parts["leaf"] = lambda context: FATAL_ERROR if context.params["x"] == 2 else DONE
    started = playground.begin()
    with live(playground):
        first = wait_for_end(playground, started.run)
        assert first.status is RunStatus.FAILED
        playground.script.parts.clear()
        again = playground.engine.restart(playground.address(first))
        run = wait_for_end(playground, again.run)
    assert run.status is RunStatus.SUCCEEDED
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: TREE}


EXCLUSIVE = ("SEQUENTIAL", "STRICT_SEQUENTIAL", "FIRST_ONLY", "LAST_ONLY", "SERIAL_LATEST_ONLY")


def _around(name: str, of: str, strategy: str = "sequential", *, loop: str = "", more: str = "") -> str:
    """Return a workflow that starts another one, in a loop or not."""
    step = f"{{subworkflow: {{id: sub, workflow_id: '{of}'{more}}}}}"
    jobs = f"{{{loop}: {{id: loop, condition: i < 1, loop_params: {{i: 0}}, jobs: [{step}]}}}}" if loop else step
    if loop == "foreach":
        jobs = f"{{foreach: {{id: loop, loop_params: {{i: [1, 2]}}, jobs: [{step}]}}}}"
    return f"Workflow: {{id: {name}, which: '', run_strategy: {strategy}, jobs: [{jobs}]}}"


@pytest.mark.parametrize("strategy", EXCLUSIVE)
def test_a_workflow_that_would_wait_for_itself_is_not_pushed(playground: Playground, strategy: str) -> None:
    """Directly, around a corner, or by a strategy that it was given before."""
    for loop in ("", "foreach", "while"):
        with pytest.raises(DefinitionInvalid, match="would wait for itself: w → w") as refused:
            playground.push(_around("w", "w", strategy, loop=loop))
        assert "PARALLEL" in refused.value.remedy
    playground.push(_around("a", "b", strategy))
    with pytest.raises(DefinitionInvalid, match="would wait for itself: b → a → b"):
        playground.push(_around("b", "a", strategy))
    with pytest.raises(DefinitionInvalid, match="would wait for itself: a → b → a"):
        playground.push(_around("b", "a", "parallel"))
    playground.push(_around("b", "a", strategy, more=", sync: false"))
    playground.push(_around("b", "${which}", strategy))
    with pytest.raises(DefinitionInvalid, match="would wait for itself: b → b"):
        playground.push("Workflow: {id: b, jobs: [{subworkflow: {id: sub, workflow_id: b}}]}")
    assert playground.state.workflow("w") is None


@pytest.mark.parametrize("loop", ["", "foreach", "while"])
@pytest.mark.parametrize("strategy", EXCLUSIVE)
def test_a_run_that_would_wait_for_itself_fails_at_once(playground: Playground, strategy: str, loop: str) -> None:
    """The cycle is drawn; with LAST_ONLY the inner instance does not stop the outer one."""
    playground.push(_around("w", "${which}", strategy, loop=loop))
    run = playground.start(params={"which": "w"})
    inner = playground.state.instances(workflow_id="w", statuses=[RunStatus.FAILED], limit=10)[0]
    assert (run.status, inner.instance_id > 1) == (RunStatus.FAILED, True)
    assert inner.message.startswith(f"The workflow would wait for itself: w 1 → w {inner.instance_id}. w has ")
    assert f"run strategy {strategy} with one instance at a time" in inner.message
    assert not inner.is_blocking
    if not loop:
        assert "would wait for itself: w 1 → w 2" in playground.told(run, "sub")


def test_a_run_that_would_wait_for_itself_around_a_corner_fails_at_once(playground: Playground) -> None:
    """The others on the way are in the drawing, and fail with it."""
    playground.push(_around("b", "${which}", "parallel"))
    playground.push(_around("a", "b"))
    run = playground.start("a", params={"which": "a"})
    assert run.status is RunStatus.FAILED
    (inner,) = playground.state.instances(workflow_id="b")
    assert "would wait for itself: a 1 → b 1 → a 2" in playground.told(inner, "sub")


RECURSION = """
Workflow:
  id: w
  n: {n}
  run_strategy: {{rule: PARALLEL, workflow_concurrency: {concurrency}}}
  jobs:
    - job: {{id: first, type: Sleep, transition: [{{IF n > 0: sub}}]}}
    - subworkflow: {{id: sub, workflow_id: w, '!n<long>': n - 1}}
"""


def test_an_instance_that_is_not_waited_for_has_its_turn(playground: Playground) -> None:
    """After the one that started it, and those around that one."""
    text = RECURSION.format(n=2, concurrency=1).replace("workflow_id: w,", "workflow_id: w, sync: false,")
    playground.push(text)
    playground.push(_around("outer", "w"))
    assert playground.start("outer").status is RunStatus.SUCCEEDED
    assert [run.status for run in playground.state.instances(workflow_id="w")] == [RunStatus.SUCCEEDED] * 3


def test_as_many_instances_can_be_inside_each_other_as_run_at_once(playground: Playground) -> None:
    """One more would never begin."""
    playground.push(RECURSION.format(n=2, concurrency=3))
    assert playground.start().status is RunStatus.SUCCEEDED
    run = playground.start(params={"n": 3})
    assert run.status is RunStatus.FAILED
    deepest = playground.state.instances(workflow_id="w")[0]
    assert "would wait for itself: w 4 → w 5 → w 6 → w 7. w has" in deepest.message
    assert "PARALLEL with 3 instances at a time" in deepest.message


def test_instances_that_wait_for_each_others_places_do_not_wait_for_ever(playground: Playground) -> None:
    """Two begin, and each needs a place for the one inside it: the second one to ask is refused, the first goes on."""
    playground.push(RECURSION.format(n=1, concurrency=2))
    playground.script.parts["first"] = [BUSY, BUSY, DONE]
    first, second = playground.begin().run, playground.begin().run
    playground.settle()
    playground.advance(3_700)
    playground.advance(3_700)
    assert {playground.fresh(run).status for run in (first, second)} == {RunStatus.SUCCEEDED, RunStatus.FAILED}
