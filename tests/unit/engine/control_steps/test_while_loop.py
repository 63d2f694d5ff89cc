"""While: values that go round, until a condition no longer holds."""

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground

from calve.engine import Outcome, RunStatus, State, StepStatus
from calve.engine.control_steps import while_loop
from calve.engine.model import Changes, Run, RunPolicy

BUSY = Outcome(State.CONTINUE, poll_after=60)
COUNT = """
Workflow:
  id: w
  limit<long>: 3
  jobs:
    - while:
        id: loop
        loop_params: {i: 0, text: ''}
        condition: i < limit
        jobs:
          - job: {id: a, type: Sleep, '!i<long>': i + 1}
          - job: {id: b, type: NoOp, '!text': text + loop_index}
        dag: sequential
    - job: {id: after, type: NoOp}
  dag: sequential
"""


def rounds(playground: Playground, run: Run) -> list[Run]:
    """Return the latest runs of the loop's iterations."""
    return playground.state.latest_inline(
        playground.attempt(run, "loop").artifacts["maestro_while"]["loop_workflow_id"]
    )


def test_values_go_from_one_iteration_to_the_next(playground: Playground) -> None:
    """Params of steps change the loop params of the same names; loop_index counts from 0."""
    playground.push(COUNT)
    run = playground.start()
    assert playground.statuses(run) == {"loop": StepStatus.SUCCEEDED, "after": StepStatus.SUCCEEDED}
    begun = [
        (each.params["i"]["result"], each.params["text"]["result"], each.params["loop_index"]["result"])
        for each in rounds(playground, run)
    ]
    assert begun == [(0, "", 0), (1, "0", 1), (2, "01", 2)]
    assert "3 iterations have run: SUCCEEDED" in playground.told(run, "loop")
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 7}


def test_a_condition_that_never_holds_runs_nothing(playground: Playground) -> None:
    """The step is done."""
    playground.push(COUNT)
    run = playground.start(params={"limit": 0})
    assert playground.statuses(run)["loop"] is StepStatus.SUCCEEDED
    assert rounds(playground, run) == []


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        (State.FATAL_ERROR, StepStatus.FATALLY_FAILED),
        (State.STOPPED, StepStatus.STOPPED),
        (State.TIMED_OUT, StepStatus.TIMED_OUT),
    ],
)
def test_an_iteration_that_does_not_succeed_ends_the_loop(
    playground: Playground, end: State, wanted: StepStatus
) -> None:
    """As it ended itself."""
    playground.push(COUNT)
    playground.script.parts["a"] = [DONE, Outcome(end)]
    run = playground.start()
    assert playground.statuses(run) == {"loop": wanted}
    assert len(rounds(playground, run)) == 2


@pytest.mark.parametrize("condition", ["missing < 3", "i + 1", "1 / (i - 1) < 5"])
def test_a_condition_without_an_answer_fails_the_loop(playground: Playground, condition: str) -> None:
    """It says why, and keeps what has run."""
    playground.push(COUNT.replace("condition: i < limit", f"condition: {condition}"))
    run = playground.start()
    assert playground.statuses(run) == {"loop": StepStatus.FATALLY_FAILED}
    assert playground.told(run, "loop")


def test_only_plain_values_go_round(playground: Playground) -> None:
    """A list that a step gives ends the loop."""
    playground.push(COUNT.replace("'!text': text + loop_index", "text: [a]"))
    run = playground.start()
    assert playground.statuses(run) == {"loop": StepStatus.FATALLY_FAILED}
    assert "[text] has an unsupported type" in playground.told(run, "loop")


def test_there_is_a_limit(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that would go on for ever is ended."""
    monkeypatch.setattr(while_loop, "ITERATIONS", 4)
    playground.push(COUNT.replace("condition: i < limit", "condition: i >= 0"))
    run = playground.start()
    assert playground.statuses(run) == {"loop": StepStatus.FATALLY_FAILED}
    assert "more than [4] iterations" in playground.told(run, "loop")
    assert len(rounds(playground, run)) == 4


def test_a_turn_makes_few_of_many_iterations(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many follow each other at once."""
    playground.push(COUNT.replace("type: Sleep", "type: NoOp"))
    made: list[int] = []
    commit = playground.state.commit

    def counting(changes: Changes) -> object:
        made.append(len(changes.new_runs))
        return commit(changes)

    monkeypatch.setattr(playground.state, "commit", counting)
    run = playground.start(params={"limit": 1100})
    assert run.status is RunStatus.SUCCEEDED
    assert len(rounds(playground, run)) == 1000, "a page of them"
    assert sum(made) == 1100
    assert max(made) <= 500


def test_a_restart_continues_with_the_iteration_that_failed(playground: Playground) -> None:
    """It begins with the values that it had, and keeps what it had completed."""
    playground.push(COUNT.replace("{id: b, type: NoOp", "{id: b, type: Sleep"))
    playground.script.parts["b"] = [DONE, FATAL_ERROR, DONE]
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first)
    assert playground.script.calls == ["b", "a", "b"]
    assert [each.run_id for each in rounds(playground, run)] == [1, 2, 1]
    assert run.status is RunStatus.SUCCEEDED
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 7}


def test_a_restart_does_not_repeat_an_iteration_that_succeeded(playground: Playground) -> None:
    """The loop was ended by its condition, not by an iteration."""
    playground.push(COUNT.replace("condition: i < limit", "condition: 6 / (limit - i) > 1"))
    first = playground.start()
    assert playground.statuses(first) == {"loop": StepStatus.FATALLY_FAILED}
    run = playground.restart(first, params={"limit": 4})
    assert [each.run_id for each in rounds(playground, run)] == [1, 1, 1, 1]


def test_a_loop_that_has_run_nothing_begins_with_its_first_values(playground: Playground) -> None:
    """There is no iteration to go on with."""
    playground.push(COUNT.replace("condition: i < limit", "condition: i < 6 / limit"))
    first = playground.start(params={"limit": 0})
    assert playground.statuses(first) == {"loop": StepStatus.FATALLY_FAILED}
    run = playground.restart(first, params={"limit": 2})
    assert [each.run_id for each in rounds(playground, run)] == [1, 1, 1]


def test_a_restart_from_the_beginning_begins_with_the_first_values(playground: Playground) -> None:
    """Each iteration runs again, as far as there still is one."""
    playground.push(COUNT)
    first = playground.start()
    run = playground.restart(first, policy=RunPolicy.RESTART_FROM_BEGINNING, params={"limit": 2})
    assert [each.run_id for each in rounds(playground, run)] == [2, 2, 1]
    assert "2 iterations have run" in playground.told(run, "loop")


def test_a_restart_from_an_iteration_runs_those_after_it_too(playground: Playground) -> None:
    """They depend on what it gives."""
    playground.push(COUNT)
    first = playground.start()
    playground.script.calls.clear()
    run = playground.restart(first, "loop", "2", "b")
    assert [each.run_id for each in rounds(playground, run)] == [1, 2, 2]
    assert playground.script.calls == ["a"], "of the third; the second one's is carried over"
    assert run.status is RunStatus.SUCCEEDED


def test_stopping_stops_the_iteration(playground: Playground) -> None:
    """And then the loop."""
    playground.push(COUNT)
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.engine.stop(playground.address(run))
    playground.settle()
    assert playground.fresh(run).status is RunStatus.STOPPED
    assert [each.status for each in rounds(playground, run)] == [RunStatus.STOPPED]


def test_loops_beside_each_other_share_a_turn(playground: Playground) -> None:
    """When it is full, both go on with the next."""
    loop = COUNT[COUNT.index("    - while:") : COUNT.index("    - job: {id: after")].replace(
        "type: Sleep", "type: NoOp"
    )
    other = loop.replace("id: loop", "id: other").replace("id: a,", "id: c,").replace("id: b,", "id: d,")
    playground.push(COUNT[: COUNT.index("    - while:")] + loop + other)
    run = playground.start(params={"limit": 400})
    assert run.status is RunStatus.SUCCEEDED
    assert playground.state.rollup(run.root_uuid) == {StepStatus.SUCCEEDED: 1600}
