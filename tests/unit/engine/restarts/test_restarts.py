"""Restarts: what runs again, what is left as it is, and what comes of both together."""

import pytest
from tests.engines import DONE, FATAL_ERROR, Part, Playground

from calve.engine import Outcome, RunStatus, State, StepContext, StepStatus
from calve.engine.model import Run, RunPolicy
from calve.errors import ActionRefused, RequestInvalid

BUSY = Outcome(State.CONTINUE, poll_after=60)
CHAIN = """
Workflow:
  id: w
  x: first
  jobs:
    - job: {id: a, type: Sleep, out: none, transition: [b]}
    - job: {id: b, type: Sleep, '!seen': a__out, '!x1': x, p: 1, transition: [c]}
    - job: {id: c, type: Sleep}
    - job: {id: other, type: Sleep, failure_mode: FAIL_AFTER_RUNNING}
"""
LOOP = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        concurrency: 10
        loop_params: {i: [1, 2, 3, 4]}
        jobs:
          - job: {id: a, type: Sleep, p: 1, '!x<long>': i * 10}
          - job: {id: b, type: Sleep}
        dag: sequential
    - job: {id: after, type: NoOp, '!all<array<long>>': "params.getFromForeach('loop', 'a', 'x')"}
  dag: sequential
"""


def of_iteration(*failing: int, step_id: str = "b") -> dict[str, Part]:
    """Return a part in which a step fails in some iterations."""

    def act(context: StepContext) -> Outcome:
        return FATAL_ERROR if context.workflow_params["i"] in failing else DONE

    return {step_id: act}


def rounds(playground: Playground, run: Run, step_id: str = "loop") -> list[Run]:
    """Return the latest runs of a loop's iterations."""
    return playground.state.latest_inline(
        playground.attempt(run, step_id).artifacts["maestro_foreach"]["loop_workflow_id"]
    )


def test_what_is_incomplete_runs_again(playground: Playground) -> None:
    """Later steps read what carried ones gave; the first run stays to be seen."""
    playground.push(CHAIN)
    playground.script.parts |= {"a": Outcome(State.DONE, {"out": "kept"}), "b": [FATAL_ERROR, DONE]}
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first)
    assert playground.script.calls == ["b", "c"]
    assert (run.run_id, run.status, run.run_status) == (2, RunStatus.SUCCEEDED, RunStatus.SUCCEEDED)
    assert playground.result(run, "b", "seen") == "kept"
    assert set(run.carried) == {"a", "other"}
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 4}
    assert playground.fresh(first).status is RunStatus.FAILED


def test_all_runs_again_from_the_beginning(playground: Playground) -> None:
    """With changed params."""
    playground.push(CHAIN)
    first = playground.start()
    run = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING, params={"x": "second"})
    assert playground.result(run, "b", "x1") == "second"
    assert run.carried == {}
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 4}


def test_a_step_and_all_after_it_run_again(playground: Playground) -> None:
    """The others are carried over, and a param of the step can be changed."""
    playground.push(CHAIN)
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first, "b", step_params={"b": {"p": 2}})
    assert playground.script.calls == ["b", "c"]
    assert playground.result(run, "b", "p") == 2


def test_a_partial_success_is_no_success(playground: Playground) -> None:
    """The run itself succeeded, but what failed before and was left alone still counts."""
    playground.push(CHAIN)
    playground.script.parts |= {"b": FATAL_ERROR, "other": FATAL_ERROR}
    first = playground.start()
    playground.script.parts["b"] = DONE
    second = playground.restart(first, "b")
    assert (second.status, second.run_status) == (RunStatus.FAILED, RunStatus.SUCCEEDED)
    assert playground.state.rollup(second.root_uuid) == {StepStatus.SUCCEEDED: 3, StepStatus.FATALLY_FAILED: 1}
    playground.script.parts["other"] = DONE
    playground.script.calls.clear()
    third = playground.restart(second)
    assert playground.script.calls == ["other"]
    assert (third.run_id, third.status) == (3, RunStatus.SUCCEEDED)
    assert playground.state.rollup(third.root_uuid) == {StepStatus.SUCCEEDED: 4}


def test_retries_and_restarts_count_once(playground: Playground) -> None:
    """A step stands in the rollup with its newest attempt."""
    playground.push(CHAIN)
    playground.script.parts["b"] = [Outcome(State.USER_ERROR), FATAL_ERROR, Outcome(State.USER_ERROR), DONE]
    first = playground.start()
    playground.advance(60)
    assert playground.state.rollup(first.root_uuid) == {StepStatus.SUCCEEDED: 2, StepStatus.FATALLY_FAILED: 1}
    second = playground.restart(first)
    playground.advance(60)
    assert playground.state.rollup(second.root_uuid) == {StepStatus.SUCCEEDED: 4}


def test_a_step_can_be_skipped_by_a_restart(playground: Playground) -> None:
    """One that failed, or one that had succeeded: what comes after it runs (again)."""
    playground.push(CHAIN)
    playground.script.parts["b"] = FATAL_ERROR
    first = playground.start()
    playground.engine.skip(playground.address(first, "b"))
    playground.settle()
    second = playground.state.run("w", 1)
    assert second is not None
    assert playground.statuses(second)["b"] is StepStatus.SKIPPED
    assert second.status is RunStatus.SUCCEEDED
    third = playground.restart(second, skip=("c",))
    assert playground.statuses(third)["c"] is StepStatus.SKIPPED


def test_nothing_to_run_again_is_refused(playground: Playground) -> None:
    """As is a step that there is none of, or an instance that runs."""
    playground.push(CHAIN)
    first = playground.start()
    with pytest.raises(RequestInvalid, match="All steps of w instance 1 are complete"):
        playground.restart(first)
    with pytest.raises(RequestInvalid, match="w has no step zzz"):
        playground.restart(first, skip=("zzz",))
    with pytest.raises(RequestInvalid, match="w has no step zzz"):
        playground.restart(first, "zzz")
    playground.script.parts["a"] = BUSY
    busy = playground.start()
    with pytest.raises(ActionRefused):
        playground.restart(busy)


def test_only_failed_iterations_run_again(playground: Playground) -> None:
    """Each where it failed; results are gathered over all of them."""
    playground.push(LOOP)
    playground.script.parts |= of_iteration(2, 3)
    first = playground.start()
    assert first.status is RunStatus.FAILED
    playground.script.parts |= {"b": DONE}
    playground.script.calls.clear()
    run = playground.restart(first)
    assert playground.script.calls == ["b", "b"]
    assert [each.run_id for each in rounds(playground, run)] == [1, 2, 2, 1]
    assert playground.result(run, "after", "all") == [10, 20, 30, 40]
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 9}


def test_iterations_that_never_began_begin(playground: Playground) -> None:
    """With changed params too."""
    playground.push(LOOP.replace("concurrency: 10", "concurrency: 1"))
    playground.script.parts |= of_iteration(2, step_id="a")
    first = playground.start()
    playground.script.parts |= {"a": DONE}
    run = playground.restart(first, step_params={"a": {"p": 5}})
    assert [each.run_id for each in rounds(playground, run)] == [1, 2, 1, 1]
    assert [playground.result(each, "a", "p") for each in rounds(playground, run)] == [1, 5, 5, 5]


def test_a_failed_loop_that_is_named_runs_what_is_incomplete(playground: Playground) -> None:
    """As in Maestro: what an iteration has done stays done."""
    playground.push(LOOP)
    playground.script.parts |= of_iteration(2, 3)
    first = playground.start()
    playground.script.parts |= {"b": DONE}
    playground.script.calls.clear()
    run = playground.restart(first, "loop")
    assert playground.script.calls == ["b", "b"]
    assert [each.run_id for each in rounds(playground, run)] == [1, 2, 2, 1]


def test_a_loop_that_has_succeeded_and_is_named_runs_all_of_its_iterations_again(playground: Playground) -> None:
    """So does one that comes after the step that is named."""
    playground.push(LOOP)
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first, "loop")
    assert sorted(playground.script.calls) == ["a"] * 4 + ["b"] * 4
    assert [each.run_id for each in rounds(playground, run)] == [2, 2, 2, 2]
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 9}


def test_a_step_of_an_iteration_runs_again(playground: Playground) -> None:
    """Only there; what failed elsewhere is left, and still counts."""
    playground.push(LOOP)
    playground.script.parts |= of_iteration(2, 3)
    first = playground.start()
    playground.script.parts |= {"b": DONE}
    playground.script.calls.clear()
    run = playground.restart(first, "loop", "2", "b")
    assert playground.script.calls == ["b"]
    assert [each.run_id for each in rounds(playground, run)] == [1, 2, 1, 1]
    assert playground.statuses(run) == {"loop": StepStatus.FATALLY_FAILED}
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 7, StepStatus.FATALLY_FAILED: 1}
    again = playground.restart(run, "loop", "3", "b")
    assert again.status is RunStatus.SUCCEEDED
    assert playground.result(again, "after", "all") == [10, 20, 30, 40]


def test_a_step_of_an_iteration_is_skipped_only_there(playground: Playground) -> None:
    """Iterations that had not begun run all of their steps."""
    playground.push(LOOP.replace("concurrency: 10", "concurrency: 1"))
    playground.script.parts |= of_iteration(2)
    first = playground.start()
    playground.engine.skip(playground.address(first, "loop", "2", "b"))
    playground.settle()
    run = playground.state.run("w", 1)
    assert run is not None
    assert run.status is RunStatus.SUCCEEDED
    assert [playground.statuses(each)["b"] for each in rounds(playground, run)] == [
        StepStatus.SUCCEEDED,
        StepStatus.SKIPPED,
        StepStatus.SUCCEEDED,
        StepStatus.SUCCEEDED,
    ]


CHILD = """
Workflow:
  id: child
  run_strategy: parallel
  jobs:
    - job: {id: a, type: Sleep, p: 1}
    - job: {id: b, type: Sleep, p: 1}
  dag: sequential
"""
AROUND = """
Workflow:
  id: w
  jobs:
    - subworkflow: {id: sub, workflow_id: child}
    - job: {id: b, type: Sleep, p: 1}
  dag: sequential
"""


def test_a_step_of_a_subworkflow_runs_again(playground: Playground) -> None:
    """With changed params; a step of the same name around it is not meant."""
    playground.push(CHILD)
    playground.push(AROUND)
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first, "sub", "b", step_params={"b": {"p": 7}})
    assert playground.script.calls == ["b", "b"]
    inner = playground.state.child_runs(playground.attempt(run, "sub").uuid)[0]
    assert (inner.run_id, playground.result(inner, "b", "p"), playground.result(run, "b", "p")) == (2, 7, 1)


def test_a_step_of_a_subworkflow_is_skipped(playground: Playground) -> None:
    """Not the step of the same name around it."""
    playground.push(CHILD)
    playground.push(AROUND)
    playground.script.parts["b"] = [FATAL_ERROR, DONE]
    first = playground.start()
    playground.engine.skip(playground.address(first, "sub", "b"))
    playground.settle()
    run = playground.state.run("w", 1)
    assert run is not None
    inner = playground.state.child_runs(playground.attempt(run, "sub").uuid)[0]
    assert playground.statuses(inner)["b"] is StepStatus.SKIPPED
    assert playground.statuses(run) == {"sub": StepStatus.SUCCEEDED, "b": StepStatus.SUCCEEDED}


def test_names_outside_do_not_reach_into_a_subworkflow(playground: Playground) -> None:
    """What a restart of the workflow changes is its own."""
    playground.push(CHILD)
    playground.push(AROUND)
    first = playground.start()
    run = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING, step_params={"b": {"p": 7}}, skip=())
    inner = playground.state.child_runs(playground.attempt(run, "sub").uuid)[0]
    assert (playground.result(inner, "b", "p"), playground.result(run, "b", "p")) == (1, 7)


def test_a_failed_step_runs_again_while_its_run_continues(playground: Playground) -> None:
    """In the same run, as its next attempt."""
    playground.push(CHAIN)
    playground.script.parts |= {"a": [FATAL_ERROR, DONE], "other": [BUSY, DONE]}
    run = playground.start()
    assert playground.statuses(run)["a"] is StepStatus.FATALLY_FAILED
    with pytest.raises(RequestInvalid, match="cannot be changed while the instance runs"):
        playground.restart(run, "a", step_params={"a": {"p": 1}})
    again = playground.restart(run, "a")
    assert again.uuid == run.uuid
    assert playground.attempt(run, "a").attempt_id == 2
    playground.advance(60)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 4}


def test_a_failed_step_is_skipped_while_its_run_continues(playground: Playground) -> None:
    """The steps after it run."""
    playground.push(CHAIN)
    playground.script.parts |= {"b": FATAL_ERROR, "other": [BUSY, DONE]}
    run = playground.start()
    playground.engine.skip(playground.address(run, "b"))
    playground.settle()
    assert playground.statuses(run)["b"] is StepStatus.SKIPPED
    assert playground.statuses(run)["c"] is StepStatus.SUCCEEDED
    playground.advance(60)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_a_failed_loop_continues_while_its_run_does(playground: Playground) -> None:
    """Only what had failed in it runs again."""
    playground.push(LOOP.removesuffix("  dag: sequential\n") + "    - job: {id: other, type: Sleep}\n")
    playground.script.parts |= {**of_iteration(2), "other": [BUSY, DONE]}
    run = playground.start()
    playground.script.parts |= {"b": DONE}
    playground.restart(run, "loop")
    assert [each.run_id for each in rounds(playground, run)] == [1, 2, 1, 1]
    playground.advance(60)
    assert playground.statuses(run)["loop"] is StepStatus.SUCCEEDED


def test_a_carried_failure_runs_again_while_the_run_continues(playground: Playground) -> None:
    """It is a step of an earlier run, and takes its place in this one."""
    playground.push(CHAIN)
    playground.script.parts |= {"b": FATAL_ERROR, "other": FATAL_ERROR}
    first = playground.start()
    playground.script.parts |= {"b": [BUSY, DONE], "other": DONE}
    second = playground.restart(first, "b")
    assert playground.statuses(second)["other"] is StepStatus.FATALLY_FAILED
    playground.restart(second, "other")
    assert playground.attempt(second, "other").attempt_id == 2
    playground.advance(60)
    assert playground.fresh(second).status is RunStatus.SUCCEEDED
    assert playground.state.rollup(second.root_uuid) == {StepStatus.SUCCEEDED: 4}


def test_a_step_whose_failure_is_ignored_does_not_run_again_meanwhile(playground: Playground) -> None:
    """Others went on without it."""
    playground.push(CHAIN.replace("{id: a, type: Sleep,", "{id: a, type: Sleep, failure_mode: IGNORE_FAILURE,"))
    playground.script.parts |= {"a": FATAL_ERROR, "other": [BUSY, DONE]}
    run = playground.start()
    with pytest.raises(ActionRefused):
        playground.restart(run, "a")
    playground.advance(60)


def test_a_step_that_stops_all_others_does_not_run_again_meanwhile(playground: Playground) -> None:
    """They are being stopped already."""
    playground.push(CHAIN.replace("{id: a, type: Sleep,", "{id: a, type: Sleep, failure_mode: FAIL_IMMEDIATELY,"))
    playground.script.parts |= {"a": FATAL_ERROR, "other": BUSY}
    run = playground.begin().run
    playground.do(playground.claim()[0])
    first, second = playground.claim()
    playground.do(first)
    with pytest.raises(RequestInvalid, match="its failure mode is FAIL_IMMEDIATELY"):
        playground.restart(run, "a")
    playground.do(second)
    playground.settle()
    assert playground.fresh(run).status is RunStatus.FAILED


def test_a_restart_unblocks_strict_sequential(playground: Playground) -> None:
    """The restarted instance comes before those that wait; if it succeeds, they follow."""
    playground.push(CHAIN.replace("  id: w", "  id: w\n  run_strategy: strict_sequential"))
    playground.script.parts["a"] = [FATAL_ERROR, DONE]
    first = playground.start()
    waiting = playground.start()
    assert (first.status, waiting.status) == (RunStatus.FAILED, RunStatus.CREATED)
    assert playground.restart(first).status is RunStatus.SUCCEEDED
    assert playground.fresh(waiting).status is RunStatus.SUCCEEDED


def test_a_request_restarts_once(playground: Playground) -> None:
    """The same request is answered with the run that it made."""
    playground.push(CHAIN)
    playground.script.parts["a"] = FATAL_ERROR
    first = playground.start()
    second = playground.restart(first, request_id="r")
    assert playground.restart(first, request_id="r").uuid == second.uuid
    assert second.run_id == 2
