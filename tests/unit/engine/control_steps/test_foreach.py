"""Foreach: what begins when, and how it ends."""

from collections.abc import Callable

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground

from calve.engine import Outcome, RunStatus, State, StepContext, StepStatus
from calve.engine.model import Changes, Run

BUSY = Outcome(State.CONTINUE, poll_after=60)
LOOP = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        {options}
        loop_params: {{i: {values}}}
        jobs:
          - job: {{id: a, type: Sleep, value: 0, '!twice<long>': i * 2}}
    - job: {{id: after, type: NoOp}}
  dag: sequential
"""


def loop(values: object = (1, 2, 3, 4, 5), options: str = "concurrency: 2") -> str:
    """Return a workflow with one foreach."""
    return LOOP.format(values=list(values) if isinstance(values, tuple) else values, options=options)


def iterations(playground: Playground, run: Run, step_id: str = "loop") -> list[Run]:
    """Return the latest runs of a loop's iterations."""
    key = next(key for key in ("maestro_foreach", "maestro_while") if key in playground.attempt(run, step_id).artifacts)
    return playground.state.latest_inline(playground.attempt(run, step_id).artifacts[key]["loop_workflow_id"])


def when(choose: Callable[[int], Outcome]) -> Callable[[StepContext], Outcome]:
    """Return what a step does by its iteration's ``i``."""
    return lambda context: choose(int(context.workflow_params["i"]))


def numbers(runs: list[Run], status: RunStatus) -> list[int]:
    """Return which iterations are in a status."""
    return [run.instance_id for run in runs if run.status is status]


def test_every_combination_runs_once(playground: Playground) -> None:
    """The first list varies fastest, and loop_index counts from 0."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        loop_params: {a: [1, 2], b: [x, y]}
        jobs:
          - job: {id: s, type: NoOp, '!seen': 'a + "-" + b + "-" + loop_index'}
""")
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    seen = [playground.result(each, "s", "seen") for each in iterations(playground, run)]
    assert seen == ["1-x-0", "2-x-1", "1-y-2", "2-y-3"]
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 4}


def test_an_empty_loop_is_done_at_once(playground: Playground) -> None:
    """And the steps after it run."""
    playground.push(loop("[]"))
    run = playground.start()
    assert playground.statuses(run) == {"loop": StepStatus.SUCCEEDED, "after": StepStatus.SUCCEEDED}


def test_the_window_is_never_exceeded(playground: Playground) -> None:
    """The next one begins when one is over."""
    playground.push(loop())
    playground.script.parts["a"] = BUSY
    run = playground.start()
    assert [each.instance_id for each in iterations(playground, run)] == [1, 2]
    playground.script.parts["a"] = when(lambda i: DONE if i == 2 else BUSY)
    playground.advance(60)
    assert numbers(iterations(playground, run), RunStatus.IN_PROGRESS) == [1, 3]
    playground.script.parts["a"] = DONE
    playground.advance(60)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_strict_ordering_lets_none_run_ahead(playground: Playground) -> None:
    """The window spans consecutive iterations from the oldest that is not over."""
    playground.push(loop((1, 2, 3, 4, 5, 6), "concurrency: 2\n        strict_ordering: true"))
    playground.script.parts["a"] = when(lambda i: BUSY if i == 1 else DONE)
    run = playground.start()
    assert [each.instance_id for each in iterations(playground, run)] == [1, 2]
    playground.script.parts["a"] = DONE
    playground.advance(60)
    assert playground.fresh(run).status is RunStatus.SUCCEEDED
    assert len(iterations(playground, run)) == 6


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [("", 20), ("step_concurrency: 3", 3), ("instance_step_concurrency: 4", 4)],
)
def test_the_usual_window_is_how_many_steps_may_run(playground: Playground, properties: str, wanted: int) -> None:
    """Of the tree or of the workflow, whichever is less."""
    text = loop("[1]", "").replace("  id: w", f"  id: w\n  {properties}")
    playground.push(text)
    run = playground.start()
    assert playground.attempt(run, "loop").artifacts["maestro_foreach"]["concurrency"] == wanted


def test_after_a_failure_nothing_more_begins(playground: Playground) -> None:
    """What is under way comes to its end first."""
    playground.push(loop())
    playground.script.parts["a"] = when(lambda i: FATAL_ERROR if i == 1 else BUSY)
    run = playground.start()
    assert playground.statuses(run)["loop"] is StepStatus.RUNNING
    playground.script.parts["a"] = DONE
    playground.advance(60)
    assert playground.statuses(run) == {"loop": StepStatus.FATALLY_FAILED}
    assert len(iterations(playground, run)) == 2
    assert "2 of 5" in playground.told(run, "loop")


def test_with_fail_immediately_the_others_are_killed(playground: Playground) -> None:
    """At once."""
    playground.push(loop(options="concurrency: 3\n        failure_mode: FAIL_IMMEDIATELY"))
    playground.script.parts["a"] = when(lambda i: FATAL_ERROR if i == 2 else BUSY)
    run = playground.start()
    assert playground.fresh(run).status is RunStatus.FAILED
    assert [each.status for each in iterations(playground, run)] == [
        RunStatus.FAILED,
        RunStatus.FAILED,
        RunStatus.FAILED,
    ]


def test_a_failure_may_be_ignored(playground: Playground) -> None:
    """The loop stops, and the steps after it run."""
    playground.push(loop(options="concurrency: 1\n        failure_mode: IGNORE_FAILURE"))
    playground.script.parts["a"] = FATAL_ERROR
    run = playground.start()
    assert playground.statuses(run) == {"loop": StepStatus.COMPLETED_WITH_ERROR, "after": StepStatus.SUCCEEDED}
    assert len(iterations(playground, run)) == 1


@pytest.mark.parametrize(
    ("ends", "wanted"),
    [
        ({1: State.STOPPED, 2: State.TIMED_OUT, 3: State.FATAL_ERROR}, StepStatus.FATALLY_FAILED),
        ({1: State.STOPPED, 2: State.TIMED_OUT, 3: State.DONE}, StepStatus.TIMED_OUT),
        ({1: State.STOPPED, 2: State.DONE, 3: State.DONE}, StepStatus.STOPPED),
    ],
)
def test_the_worst_end_counts(playground: Playground, ends: dict[int, State], wanted: StepStatus) -> None:
    """A failure before a timeout, a timeout before a stop."""
    playground.push(loop("[1, 2, 3]", "concurrency: 3"))
    playground.script.parts["a"] = when(lambda i: Outcome(ends[i]))
    run = playground.start()
    assert playground.statuses(run)["loop"] is wanted


def test_too_many_iterations_are_refused(playground: Playground) -> None:
    """Nothing begins."""
    ranges = "ranges: {i: {to: n}, j: {to: 100}}"
    playground.push(loop("[1]").replace("loop_params: {i: [1]}", ranges).replace("id: w\n", "id: w\n  n: 1\n"))
    run = playground.start(params={"n": 251})
    assert playground.statuses(run) == {"loop": StepStatus.FATALLY_FAILED}
    assert "[25100] iterations is over the limit" in playground.told(run, "loop")
    run = playground.start(params={"n": 1_000_000})
    assert playground.statuses(run) == {"loop": StepStatus.INTERNALLY_FAILED}
    assert "New array size is over the limit" in playground.told(run, "loop")


def test_too_many_steps_are_refused(playground: Playground) -> None:
    """25,000 iterations of 41 steps are over a million."""
    jobs = "\n".join(f"          - job: {{id: s{number}, type: NoOp}}" for number in range(41))
    playground.push(f"""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        ranges: {{i: {{from: 0, to: 25000}}}}
        jobs:
{jobs}
""")
    run = playground.start()
    assert "[1025000] steps" in playground.told(run, "loop")


def test_a_turn_begins_few_of_many(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit makes a bounded number of runs, and all of them come about."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        concurrency: 500
        ranges: {i: {from: 0, to: 1300}}
        jobs:
          - job: {id: a, type: NoOp}
""")
    made: list[int] = []
    commit = playground.state.commit

    def counting(changes: Changes) -> object:
        made.append(len(changes.new_runs) + len(changes.runs))
        return commit(changes)

    monkeypatch.setattr(playground.state, "commit", counting)
    run = playground.start()
    assert run.status is RunStatus.SUCCEEDED
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 1300}
    assert max(made) <= 501
    assert len([number for number in made if number > 1]) == 3


def test_results_are_gathered_over_iterations(playground: Playground) -> None:
    """One that has none gets the default of the type."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        loop_params: {i: [1, 2, 3]}
        jobs:
          - job: {id: choose, type: NoOp, transition: ["IF i != 2 THEN a"]}
          - job: {id: a, type: NoOp, '!twice<long>': i * 2}
    - job: {id: sum, type: NoOp, '!all<array<long>>': "params.getFromForeach('loop', 'a', 'twice')"}
  dag: sequential
""")
    run = playground.start()
    assert playground.result(run, "sum", "all") == [2, 0, 6]


def test_an_empty_loop_gives_an_empty_list(playground: Playground) -> None:
    """There is nothing to gather."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        loop_params: {i: []}
        jobs:
          - job: {id: a, type: NoOp, x: 1}
    - job: {id: sum, type: NoOp, '!all<array<long>>': "params.getFromForeach('loop', 'a', 'x')"}
  dag: sequential
""")
    assert playground.result(playground.start(), "sum", "all") == []


def test_stopping_the_loop_stops_its_iterations(playground: Playground) -> None:
    """And the loop ends after them."""
    playground.push(loop())
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.engine.stop(playground.address(run, "loop"))
    playground.settle()
    assert playground.statuses(run)["loop"] is StepStatus.STOPPED
    assert {each.status for each in iterations(playground, run)} == {RunStatus.STOPPED}
    assert playground.script.ended == ["a", "a"]


def test_a_loop_that_takes_too_long_times_out(playground: Playground) -> None:
    """With all that is in it."""
    playground.push(loop(options="timeout: 1 hour"))
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.advance(3_601)
    assert playground.statuses(run)["loop"] is StepStatus.TIMED_OUT
    assert {each.status for each in iterations(playground, run)} == {RunStatus.TIMED_OUT}
