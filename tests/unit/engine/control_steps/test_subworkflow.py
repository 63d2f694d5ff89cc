"""Subworkflow: another workflow's instance as a step."""

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground

from calve.definition.params import InitiatorType
from calve.engine import Outcome, RunStatus, State, StepStatus
from calve.engine.model import Run, RunPolicy

BUSY = Outcome(State.CONTINUE, poll_after=60)
CHILD = """
Workflow:
  id: child
  run_strategy: {strategy}
  x: own
  jobs:
    - job: {{id: c1, type: Sleep, '!seen': x}}
    - job: {{id: c2, type: Sleep, out: none}}
  dag: sequential
"""
PARENT = """
Workflow:
  id: w
  {extra}
  x: given
  jobs:
    - subworkflow: {{id: sub, workflow_id: {child}, {options}}}
    - job: {{id: after, type: NoOp}}
  dag: sequential
"""


def child(strategy: str = "parallel") -> str:
    """Return the workflow inside."""
    return CHILD.format(strategy=strategy)


def parent(options: str = "y: 1", *, extra: str = "description: around", of: str = "child") -> str:
    """Return the workflow around it."""
    return PARENT.format(options=options, extra=extra, child=of)


def inside(playground: Playground, run: Run, step_id: str = "sub") -> Run:
    """Return the latest run of a step's child."""
    return playground.state.child_runs(playground.attempt(run, step_id).uuid)[0]


def test_the_child_runs_and_the_step_ends_with_it(playground: Playground) -> None:
    """It knows where it came from, and the step which instance it was."""
    playground.push(child())
    playground.push(parent())
    run = playground.start(priority=7)
    assert playground.statuses(run) == {"sub": StepStatus.SUCCEEDED, "after": StepStatus.SUCCEEDED}
    found = inside(playground, run)
    assert (found.workflow_id, found.instance_id, found.depth, found.priority) == ("child", 1, 1, 7)
    assert (found.root_uuid, found.initiator.type) == (run.uuid, InitiatorType.SUBWORKFLOW)
    assert playground.attempt(run, "sub").artifacts["maestro_subworkflow"] == {
        "subworkflow_id": "child",
        "subworkflow_version_id": 1,
        "subworkflow_instance_id": 1,
        "subworkflow_run_id": 1,
        "subworkflow_uuid": found.uuid,
    }
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 3}


@pytest.mark.parametrize(
    ("options", "seen"), [("y: 1", "given"), ("explicit_params: true", "own"), ("x: mine", "mine")]
)
def test_params_go_down(playground: Playground, options: str, seen: str) -> None:
    """All of the workflow's and the step's, or the step's alone."""
    playground.push(child())
    playground.push(parent(options))
    run = playground.start()
    assert playground.result(inside(playground, run), "c1", "seen") == seen


def test_a_child_that_is_not_waited_for(playground: Playground) -> None:
    """The step is done when it has started."""
    playground.push(child())
    playground.push(parent("sync: false"))
    playground.script.parts["c1"] = BUSY
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert inside(playground, run).status is RunStatus.IN_PROGRESS


@pytest.mark.parametrize(
    ("end", "child_status", "step_status"),
    [
        (State.FATAL_ERROR, RunStatus.FAILED, StepStatus.FATALLY_FAILED),
        (State.STOPPED, RunStatus.STOPPED, StepStatus.STOPPED),
        (State.TIMED_OUT, RunStatus.TIMED_OUT, StepStatus.TIMED_OUT),
    ],
)
def test_the_child_s_end_is_the_step_s(
    playground: Playground, end: State, child_status: RunStatus, step_status: StepStatus
) -> None:
    """Whatever it was; nothing is tried again."""
    playground.push(child())
    playground.push(parent())
    playground.script.parts["c2"] = Outcome(end)
    run = playground.start()
    assert inside(playground, run).status is child_status
    assert playground.statuses(run) == {"sub": step_status}


def test_a_workflow_that_is_not_there_fails_the_step(playground: Playground) -> None:
    """It says which."""
    playground.push(parent(of="nowhere"))
    run = playground.start()
    assert playground.statuses(run) == {"sub": StepStatus.FATALLY_FAILED}
    assert "Workflow nowhere does not exist" in playground.told(run, "sub")


@pytest.mark.parametrize(("selector", "wanted"), [("active", 2), ("latest", 2), ("default", 2), ("1", 1)])
def test_a_version_can_be_named(playground: Playground, selector: str, wanted: int) -> None:
    """By number or by what it is."""
    playground.push(child())
    playground.push(child().replace("x: own", "x: newer"))
    playground.push(parent(f"version: '{selector}'"))
    run = playground.start()
    assert inside(playground, run).version_id == wanted


def test_a_version_that_is_not_there_fails_the_step(playground: Playground) -> None:
    """It says what there is."""
    playground.push(child())
    playground.push(parent("version: '9'"))
    assert "no version 9" in playground.told(playground.start(), "sub")


def test_a_child_that_its_run_strategy_refuses_stops_the_step(playground: Playground) -> None:
    """FIRST_ONLY, and there is one already."""
    playground.push(child("first_only"))
    playground.push(parent())
    playground.script.parts["c1"] = BUSY
    playground.start("child")
    run = playground.start()
    assert playground.statuses(run) == {"sub": StepStatus.STOPPED}
    assert inside(playground, run).status is RunStatus.STOPPED


def test_a_child_waits_for_its_turn(playground: Playground) -> None:
    """In the queue of its own workflow; and can be stopped there."""
    playground.push(child("sequential"))
    playground.push(parent())
    playground.script.parts["c1"] = BUSY
    playground.start("child")
    run = playground.start()
    assert inside(playground, run).is_queued
    playground.engine.stop(playground.address(run, "sub"))
    playground.settle()
    assert playground.statuses(run) == {"sub": StepStatus.STOPPED}
    assert inside(playground, run).status is RunStatus.STOPPED


def test_the_limit_of_the_tree_goes_down(playground: Playground) -> None:
    """However many steps the child could run."""
    playground.push(child().replace("  dag: sequential\n", ""))
    playground.push(parent(extra="instance_step_concurrency: 1"))
    playground.script.parts |= {"c1": BUSY, "c2": BUSY}
    run = playground.start()
    assert sorted(playground.statuses(inside(playground, run)).values()) == [
        StepStatus.RUNNING,
        StepStatus.WAITING_FOR_PERMITS,
    ]
    playground.engine.stop(playground.address(run))
    playground.settle()


def test_results_can_be_read_from_inside(playground: Playground) -> None:
    """By the name of the step inside."""
    playground.push(child())
    playground.push(
        parent().replace(
            "{id: after, type: NoOp}",
            "{id: after, type: NoOp, '!r': \"params.getFromSubworkflow('sub', 'c2', 'out')\"}",
        )
    )
    playground.script.parts["c2"] = Outcome(State.DONE, {"out": "this"})
    assert playground.result(playground.start(), "after", "r") == "this"


def test_nesting_too_deep_is_refused(playground: Playground) -> None:
    """A workflow that starts itself comes to an end."""
    playground.push(parent(of="w", extra="run_strategy: parallel"))
    run = playground.start()
    assert run.status is RunStatus.FAILED
    deepest = playground.state.instances(workflow_id="w")[0]
    assert deepest.depth == 10
    assert "deeper than the limit of [10]" in playground.told(deepest, "sub")


def test_a_restart_runs_the_child_again_where_it_failed(playground: Playground) -> None:
    """As its own next run; what it had completed is left alone, and changed params reach it."""
    playground.push(child())
    playground.push(parent())
    playground.script.parts["c2"] = [FATAL_ERROR, DONE]
    first = playground.start()
    assert first.status is RunStatus.FAILED
    playground.script.calls.clear()
    run = playground.restart(first, params={"x": "changed"})
    assert run.status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["c2"]
    again = inside(playground, run)
    assert (again.instance_id, again.run_id, again.policy) == (1, 2, RunPolicy.RESTART_FROM_INCOMPLETE)
    assert again.params["x"]["result"] == "changed"
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 3}


def test_a_restart_from_the_beginning_runs_all_of_the_child_again(playground: Playground) -> None:
    """Under the same number."""
    playground.push(child())
    playground.push(parent())
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert playground.script.calls == ["c1", "c2"]
    assert (inside(playground, run).instance_id, inside(playground, run).run_id) == (1, 2)
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 3}


def test_a_child_that_someone_restarts_does_not_disturb_its_parent(playground: Playground) -> None:
    """The parent is over, and stays as it was; its own restart then finds the work done."""
    playground.push(child())
    playground.push(parent())
    playground.script.parts["c2"] = [FATAL_ERROR, DONE]
    first = playground.start()
    before = playground.state.load(first.uuid)
    assert playground.restart(inside(playground, first)).status is RunStatus.SUCCEEDED
    assert playground.state.load(first.uuid) == before
    playground.script.calls.clear()
    run = playground.restart(first)
    assert run.status is RunStatus.SUCCEEDED
    assert playground.script.calls == []
    assert inside(playground, run).run_id == 3


def test_a_child_that_someone_runs_just_now_is_not_run_twice(playground: Playground) -> None:
    """The restarted step fails, and says why."""
    playground.push(child())
    playground.push(parent())
    playground.script.parts["c2"] = [FATAL_ERROR, BUSY]
    first = playground.start()
    playground.restart(inside(playground, first))
    run = playground.restart(first)
    assert playground.statuses(run) == {"sub": StepStatus.FATALLY_FAILED}
    assert "child instance 1 run 2 has not ended" in playground.told(run, "sub")


def test_a_restart_from_the_beginning_beside_a_child_that_runs(playground: Playground) -> None:
    """A child that is not waited for may still be under way; another one starts."""
    playground.push(child())
    playground.push(parent("sync: false"))
    playground.script.parts["c2"] = BUSY
    first = playground.start()
    run = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert inside(playground, run).instance_id == 2


def test_another_workflow_is_another_child(playground: Playground) -> None:
    """A restart that changes which workflow it is starts that one anew."""
    playground.push(child())
    playground.push(child().replace("id: child", "id: other"))
    playground.push(parent(of="'${x}'").replace("x: given", "x: child"))
    first = playground.start()
    run = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING, params={"x": "other"})
    assert (inside(playground, run).workflow_id, inside(playground, run).run_id) == ("other", 1)


@pytest.mark.parametrize(
    ("action", "step", "inner"),
    [
        ("stop", StepStatus.STOPPED, RunStatus.STOPPED),
        ("kill", StepStatus.FATALLY_FAILED, RunStatus.FAILED),
        ("skip", StepStatus.SKIPPED, RunStatus.SUCCEEDED),
    ],
)
def test_actions_go_down(playground: Playground, action: str, step: StepStatus, inner: RunStatus) -> None:
    """The child ends first, then the step."""
    playground.push(child())
    playground.push(parent())
    playground.script.parts["c1"] = BUSY
    run = playground.start()
    getattr(playground.engine, action)(playground.address(run, "sub"))
    playground.settle()
    assert playground.statuses(run)["sub"] is step
    assert inside(playground, run).status is inner


def test_a_turn_of_the_parent_finds_the_child_running(playground: Playground) -> None:
    """And leaves it alone."""
    playground.push(child())
    playground.push(
        parent().replace("{id: after, type: NoOp}", "{id: after, type: Sleep}").removesuffix("  dag: sequential\n")
    )
    playground.script.parts["c1"] = [BUSY, DONE]
    run = playground.start()
    assert playground.statuses(run) == {"sub": StepStatus.RUNNING, "after": StepStatus.SUCCEEDED}
    playground.advance(60)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
