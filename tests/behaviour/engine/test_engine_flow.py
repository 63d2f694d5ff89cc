"""Which steps run, and how a run ends: edges, joins, failure modes."""

import pytest
from tests.engines import BUSY, DONE, FATAL_ERROR, Playground

from calve.engine import Outcome, RunStatus, State, StepContext, StepStatus

S = StepStatus


def test_a_step_starts_when_all_before_it_are_complete(playground: Playground) -> None:
    """However many lead to it."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, transition: [c]}
    - job: {id: b, type: Sleep, transition: [c]}
    - job: {id: c, type: Sleep}
""")
    playground.script.parts["b"] = [BUSY, DONE]
    run = playground.start()
    assert playground.statuses(run) == {"a": S.SUCCEEDED, "b": S.RUNNING}
    playground.advance(3_600)
    assert playground.statuses(run) == {"a": S.SUCCEEDED, "b": S.SUCCEEDED, "c": S.SUCCEEDED}
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_a_step_runs_if_any_edge_that_leads_to_it_holds(playground: Playground) -> None:
    """One that no edge allows is UNSATISFIED, and so is all that only it leads to."""
    playground.push("""
Workflow:
  id: w
  n: 5
  jobs:
    - job: {id: a, type: Sleep, transition: ["IF n > 10 THEN big", "OTHERWISE small"]}
    - job: {id: big, type: Sleep, transition: [after.big, end]}
    - job: {id: small, type: Sleep, transition: [end]}
    - job: {id: after.big, type: Sleep, transition: [end]}
    - job: {id: end, type: Sleep}
""")
    run = playground.start()
    assert playground.statuses(run) == {
        "a": S.SUCCEEDED,
        "big": S.UNSATISFIED,
        "small": S.SUCCEEDED,
        "after.big": S.UNSATISFIED,
        "end": S.SUCCEEDED,
    }
    assert run.status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["a", "small", "end"]
    big = playground.attempt(run, "big")
    assert big.edges == {"after.big": False, "end": False}
    assert big.times.keys() == {"create", "end"}
    assert playground.told(run, "big") == "Not run: a -> big: n > 10 is false"
    assert playground.told(run, "after.big") == "Not run: a -> big: n > 10 is false"


def test_a_step_that_does_not_run_says_why(playground: Playground) -> None:
    """For each step before it: its condition, or that there was nothing to do."""
    playground.push("""
Workflow:
  id: w
  n: 5
  jobs:
    - job: {id: a, type: Sleep, transition: ["IF n > 10 THEN d"]}
    - job: {id: b, type: Sleep, transition: ["IF n > 20 THEN d"]}
    - job: {id: c, type: Sleep, transition: [d]}
    - job: {id: d, type: Sleep}
""")
    playground.script.parts["c"] = Outcome(State.DONE, is_last=True)
    run = playground.start()
    why = "a -> d: n > 10 is false; b -> d: n > 20 is false; c: there is nothing to do"
    assert playground.told(run, "d") == f"Not run: {why}"


def test_a_condition_sees_what_its_step_gave(playground: Playground) -> None:
    """Its output params, and the workflow's params."""
    playground.push("""
Workflow:
  id: w
  least: 100
  jobs:
    - job: {id: count, type: Sleep, rows: 0, transition: ["IF rows >= least THEN load", "OTHERWISE nothing"]}
    - job: {id: load, type: Sleep}
    - job: {id: nothing, type: Sleep}
""")
    playground.script.parts["count"] = Outcome(State.DONE, {"rows": 250})
    run = playground.start()
    assert playground.statuses(run) == {"count": S.SUCCEEDED, "load": S.SUCCEEDED, "nothing": S.UNSATISFIED}


def test_a_condition_that_gives_no_answer_fails_the_step_it_leaves(playground: Playground) -> None:
    """As the engine's own failure, which no failure mode ignores."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, n: 0, failure_mode: ignore_failure, transition: ["IF 1 / n > 0 THEN b"]}
    - job: {id: b, type: Sleep}
""")
    run = playground.start()
    assert playground.statuses(run) == {"a": S.INTERNALLY_FAILED}
    assert "The condition of b cannot be evaluated" in playground.told(run, "a")
    assert run.status is RunStatus.FAILED


def test_a_condition_over_what_a_skipped_step_never_gave_does_not_hold(playground: Playground) -> None:
    """The run goes on all the same."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, n: 0, transition: ["IF 1 / n > 0 THEN b", c]}
    - job: {id: b, type: Sleep}
    - job: {id: c, type: Sleep}
""")
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.engine.skip(playground.address(run, "a"))
    playground.settle()
    assert playground.statuses(run) == {"a": S.SKIPPED, "b": S.UNSATISFIED, "c": S.SUCCEEDED}
    assert playground.fresh(run).status is RunStatus.SUCCEEDED


def test_after_a_failure_the_other_branches_run_to_their_end(playground: Playground) -> None:
    """The default; what comes after the failed step is never made."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: bad, type: Sleep, transition: [never]}
    - job: {id: slow, type: Sleep, transition: [later]}
    - job: {id: never, type: Sleep}
    - job: {id: later, type: Sleep}
""")
    playground.script.parts |= {"bad": FATAL_ERROR, "slow": [BUSY, DONE]}
    run = playground.start()
    assert playground.fresh(run).status is RunStatus.IN_PROGRESS
    playground.advance(3_600)
    assert playground.statuses(run) == {"bad": S.FATALLY_FAILED, "slow": S.SUCCEEDED, "later": S.SUCCEEDED}
    assert playground.fresh(run).status is RunStatus.FAILED
    assert "no way" in playground.told(run, "bad")


def test_fail_immediately_stops_the_others(playground: Playground) -> None:
    """Those that run, those that wait to be tried again, and those that have not begun."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: slow, type: Sleep, transition: [later]}
    - job: {id: flaky, type: Sleep}
    - job: {id: first, type: Sleep, transition: [bad]}
    - job: {id: bad, type: Sleep, failure_mode: fail_immediately}
    - job: {id: later, type: Sleep}
""")
    playground.script.parts |= {"slow": BUSY, "flaky": Outcome(State.USER_ERROR), "bad": FATAL_ERROR}
    run = playground.start()
    assert playground.statuses(run) == {
        "slow": S.STOPPED,
        "flaky": S.STOPPED,
        "first": S.SUCCEEDED,
        "bad": S.FATALLY_FAILED,
    }
    assert playground.script.ended == ["slow"]
    assert run.status is RunStatus.FAILED
    assert "bad failed" in playground.told(run, "slow")


def test_an_ignored_failure_lets_the_run_continue(playground: Playground) -> None:
    """The step is COMPLETED_WITH_ERROR, and its edges count."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: bad, type: Sleep, failure_mode: ignore_failure, transition: [next]}
    - job: {id: next, type: Sleep}
""")
    playground.script.parts["bad"] = FATAL_ERROR
    run = playground.start()
    assert playground.statuses(run) == {"bad": S.COMPLETED_WITH_ERROR, "next": S.SUCCEEDED}
    assert run.status is RunStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("outcome", "status", "ending"),
    [
        (Outcome(State.STOPPED), S.STOPPED, RunStatus.STOPPED),
        (Outcome(State.TIMED_OUT), S.TIMED_OUT, RunStatus.TIMED_OUT),
    ],
)
def test_only_a_fatal_failure_is_ignored(
    playground: Playground, outcome: Outcome, status: StepStatus, ending: RunStatus
) -> None:
    """Not what was stopped, or took too long."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: bad, type: Sleep, failure_mode: ignore_failure, transition: [next]}
    - job: {id: next, type: Sleep}
""")
    playground.script.parts["bad"] = outcome
    run = playground.start()
    assert playground.statuses(run) == {"bad": status}
    assert run.status is ending


def test_params_that_cannot_be_evaluated_fail_the_step_whatever_its_failure_mode(playground: Playground) -> None:
    """It never runs, and the timeline says why."""
    playground.push("""
Workflow:
  id: w
  n: 2
  jobs:
    - job: {id: bad, type: Sleep, '!m<long>': 10 / n, failure_mode: ignore_failure}
""")
    run = playground.start(params={"n": 0})
    assert playground.statuses(run) == {"bad": S.INTERNALLY_FAILED}
    assert "The params cannot be evaluated" in playground.told(run, "bad")
    assert run.status is RunStatus.FAILED
    assert playground.script.calls == []
    assert playground.result(playground.start(), "bad", "m") == 5


def test_workflow_params_that_cannot_be_evaluated_fail_the_run(playground: Playground) -> None:
    """Before any step is made."""
    playground.push("""
Workflow:
  id: w
  n: 1
  '!m<long>': 10 / n
  jobs:
    - job: {id: a, type: Sleep}
""")
    run = playground.start(params={"n": 0})
    assert run.status is RunStatus.FAILED
    assert "zero" in run.message
    assert playground.statuses(run) == {}
    assert run.timeline[-1]["message"] == run.message


def test_a_step_may_say_that_there_is_nothing_left_to_do(playground: Playground) -> None:
    """None of its edges holds then; what something else leads to runs, and the run has succeeded, restarts included."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: look, type: Sleep, transition: [work, "IF 1 < 0 THEN mail", both]}
    - job: {id: other, type: Sleep, transition: [both]}
    - job: {id: work, type: Sleep, transition: [after]}
    - job: {id: mail, type: Sleep}
    - job: {id: after, type: Sleep}
    - job: {id: both, type: Sleep}
""")
    playground.script.parts["look"] = Outcome(State.DONE, is_last=True)
    run = playground.start()
    expected = {
        "look": S.SUCCEEDED,
        "other": S.SUCCEEDED,
        "work": S.UNSATISFIED,
        "mail": S.UNSATISFIED,
        "after": S.UNSATISFIED,
        "both": S.SUCCEEDED,
    }
    assert playground.statuses(run) == expected
    assert run.status is RunStatus.SUCCEEDED
    assert playground.attempt(run, "look").edges == {"work": False, "mail": False, "both": False}
    again = playground.restart(run, "other")
    assert playground.statuses(again) == expected
    assert again.status is RunStatus.SUCCEEDED


def test_a_step_knows_its_targets_and_its_place(playground: Playground) -> None:
    """References in the names of targets are replaced; the place is the same in all runs, and told apart in loops."""
    seen: dict[str, tuple[object, ...]] = {}

    def look(context: StepContext) -> Outcome:
        place = context.place
        seen[context.title] = (context.targets, place.stream, place.consumer, place.part, place.work)
        return DONE if len(seen) > 1 else FATAL_ERROR

    playground.push("""
Workflow:
  id: w
  table: db.daily
  more: [db.other, db.third]
  no: ""
  dag: sequential
  jobs:
    - job: {id: a, type: Spark, spark: {script: x}, targets: ["${table}_${half}", "${more}", "${no}"], half: am}
    - foreach:
        id: each
        ranges: {day: [5, 7]}
        concurrency: 1
        jobs:
          - while:
              id: more
              loop_params: {n: 1}
              condition: n < 2
              jobs:
                - job: {id: b, type: Sleep, '!n<long>': n + 1}
""")
    playground.script.parts |= {"a": look, "b": look}
    run = playground.start()
    again = playground.restart(run)
    assert again.status is RunStatus.SUCCEEDED
    first, second, *inner = seen.items()
    assert (first[0], second[0]) == ("w/1/1/a/1", "w/1/2/a/1")
    assert first[1] == second[1] == (("db.daily_am", "db.other", "db.third"), "w/a", "w/a", "", "w/1/a")
    assert [told for _, told in inner] == [
        ((), "w/b", "w/b[day=5]", "each[1]/more[1]", "w/1/each[1]/more[1]/b"),
        ((), "w/b", "w/b[day=6]", "each[2]/more[1]", "w/1/each[2]/more[1]/b"),
    ]


def test_a_target_that_refers_to_nothing_ends_the_step(playground: Playground) -> None:
    """With what is missing, before any work is begun."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Spark, spark: {script: x}, targets: ["${nothing}"]}
""")
    run = playground.start()
    assert run.status is RunStatus.FAILED
    assert "nothing" in playground.told(run, "a")
    assert not playground.script.calls
