"""Loops in loops in workflows in workflows."""

import pytest
from tests.engines import FATAL_ERROR, Playground

from calve.engine import Outcome, RunStatus, State, StepStatus, Tools
from calve.engine.decisions import Transactions
from calve.engine.instances import Cache
from calve.engine.model import Run, RunPolicy
from calve.errors import DefinitionInvalid

BUSY = Outcome(State.CONTINUE, poll_after=60)
INNER = """
Workflow:
  id: inner
  run_strategy: parallel
  jobs:
    - while:
        id: twice
        loop_params: {n: 0}
        condition: n < 2
        jobs:
          - foreach:
              id: each
              loop_params: {k: [a, b]}
              jobs:
                - job: {id: leaf, type: Sleep, '!seen': x + i + n + k + loop_index}
          - job: {id: count, type: NoOp, '!n<long>': n + 1}
        dag: sequential
"""
OUTER = """
Workflow:
  id: w
  x: top
  jobs:
    - job: {id: before, type: NoOp, '!made': x + '!'}
    - foreach:
        id: loop
        loop_params: {i: [1, 2]}
        jobs:
          - subworkflow: {id: sub, workflow_id: inner, '!from_before': before__made}
          - job: {id: beside, type: NoOp, '!same': "params.getFromStep('before', 'made')", '!outer': before__made}
  dag: sequential
"""


def tree(playground: Playground, run: Run) -> list[Run]:
    """Return all runs of a tree."""
    found = [run]
    for each in found:
        for attempt in playground.state.attempts(each.uuid):
            found += playground.state.child_runs(attempt.uuid)
    return found


def test_values_of_all_levels_are_seen_inside(playground: Playground) -> None:
    """Loop params, params of the workflows around, and what steps around the loop gave."""
    playground.push(INNER)
    playground.push(OUTER)
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    runs = tree(playground, run)
    assert {each.root_uuid for each in runs} == {run.uuid}
    leaves = [each for each in runs if each.inline_step == "each"]
    seen = sorted(str(playground.result(each, "leaf", "seen")) for each in leaves)
    assert seen == sorted(f"top{i}{n}{k}{index}" for i in (1, 2) for n in (0, 1) for index, k in enumerate("ab"))
    assert {each.depth for each in leaves} == {4}
    beside = [each for each in runs if each.inline_step == "loop"]
    assert {str(playground.result(each, "beside", "same")) for each in beside} == {"top!"}
    assert {str(playground.result(each, "beside", "outer")) for each in beside} == {"top!"}
    assert {each.params["from_before"]["result"] for each in runs if each.workflow_id == "inner"} == {"top!"}
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 1 + 2 + 8 + 4}


@pytest.mark.parametrize(
    ("action", "wanted"), [("stop", RunStatus.STOPPED), ("kill", RunStatus.FAILED), ("time out", RunStatus.TIMED_OUT)]
)
def test_the_end_of_the_instance_goes_all_the_way_down(playground: Playground, action: str, wanted: RunStatus) -> None:
    """And the instance is over when everything in it is."""
    playground.push(INNER)
    playground.push(OUTER.replace("  id: w", "  id: w\n  timeout: 1 hour"))
    playground.script.parts["leaf"] = BUSY
    run = playground.start()
    if action == "time out":
        playground.advance(3_601)
    else:
        getattr(playground.engine, action)(playground.address(run))
        playground.settle()
    runs = tree(playground, playground.fresh(run))
    assert {each.status for each in runs} == {wanted}
    assert len(runs) == 1 + 2 + 2 + 2 + 4
    assert playground.script.ended == ["leaf"] * 4


def test_a_failure_comes_all_the_way_up(playground: Playground) -> None:
    """And a restart goes all the way down, to what had failed alone."""
    playground.push(INNER)
    playground.push(OUTER)
    playground.script.parts["leaf"] = lambda context: (
        FATAL_ERROR if str(context.params["seen"]).startswith("top11b") else Outcome(State.DONE)
    )
    first = playground.start()
    assert first.status is RunStatus.FAILED
    assert playground.statuses(first) == {"before": StepStatus.SUCCEEDED, "loop": StepStatus.FATALLY_FAILED}
    playground.script.parts.clear()
    playground.script.calls.clear()
    run = playground.restart(first)
    assert run.status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["leaf"]
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 1 + 2 + 8 + 4}


def test_a_step_deep_inside_runs_again(playground: Playground) -> None:
    """By its path; of a while, the iterations after it too."""
    playground.push(INNER)
    playground.push(OUTER)
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first, "loop", "2", "sub", "twice", "1", "each", "2", "leaf")
    assert run.status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["leaf"] * 3, "itself, and two of the second round"
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 1 + 2 + 8 + 4}


def test_everything_runs_again_from_the_beginning(playground: Playground) -> None:
    """At every level, and nothing counts twice."""
    playground.push(INNER)
    playground.push(OUTER)
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING)
    assert playground.script.calls == ["leaf"] * 8
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 1 + 2 + 8 + 4}


def test_loops_deeper_than_the_limit_are_refused(playground: Playground) -> None:
    """Ten levels below the instance are as deep as it goes."""
    text, indent = "Workflow:\n  id: w\n  jobs:\n", "    "
    for level in range(11):
        head = f"{indent}- foreach:\n{indent}    id: l{level}\n"
        text += f"{head}{indent}    loop_params: {{i{level}: [1]}}\n{indent}    jobs:\n"
        indent += "      "
    text += f"{indent}- job: {{id: a, type: NoOp}}\n"
    with pytest.raises(DefinitionInvalid, match="deep"):
        playground.push(text)


def test_a_worker_that_knew_the_instance_before_its_loop_reads_it_again(playground: Playground) -> None:
    """What it remembers has not got the steps yet that the iterations refer to."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: first, type: Sleep, out: none}
    - foreach:
        id: loop
        loop_params: {i: [1]}
        jobs:
          - job: {id: a, type: Sleep, '!seen': first__out}
          - job: {id: b, type: Sleep, '!seen': first__out}
        dag: sequential
  dag: sequential
""")
    playground.script.parts["first"] = Outcome(State.DONE, {"out": "this"})
    run = playground.begin().run
    other = Tools(
        playground.state,
        playground.tools.blueprints,
        playground.tools.vocabulary,
        Cache(),
        playground.clock,
        playground.tools.new_id,
    )
    playground.do(playground.claim()[0])
    Transactions(other).keep_artifacts(task := playground.claim()[0], {"seen": "by the other"})
    playground.do(task)
    iteration = playground.state.child_runs(playground.attempt(run, "loop").uuid)[0]
    Transactions(other).record(playground.claim()[0], Outcome(State.DONE))
    playground.settle()
    assert playground.result(iteration, "b", "seen") == "this"
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
