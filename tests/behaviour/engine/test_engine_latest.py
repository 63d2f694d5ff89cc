"""Continuing an instance with the newest version of its workflow: what is kept, what runs again, what is refused."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.engines import DONE, FATAL_ERROR, Playground

from calve.capture import Superseded
from calve.definition import ProjectFiles
from calve.engine import Engine, Outcome, Run, RunPolicy, RunStatus, State, StepContext, StepStatus
from calve.engine.restarts import Fate
from calve.errors import ActionRefused, ParamError, RequestInvalid

S = StepStatus
CHAIN = """
Workflow:
  id: w
  day: 1
  other: 1
  dag: sequential
  jobs:
    - job: {id: a, type: Sleep, x: 1, out: none}
    - job: {id: b, type: Sleep, '!seen': a__out, y: "${day}"}
    - job: {id: c, type: Sleep, z: 1}
"""


def latest(playground: Playground, run: Run, *path: str, **request: Any) -> Run:
    """Continue with the newest version; forget what was called before."""
    playground.script.calls.clear()
    return playground.restart(run, *path, is_latest=True, **request)


def failed(playground: Playground, text: str = CHAIN, step: str = "c", **request: Any) -> Run:
    """Return an instance in which a step failed; it succeeds from now on."""
    playground.push(text)
    playground.script.parts[step] = FATAL_ERROR
    run = playground.start(**request)
    assert run.status is RunStatus.FAILED
    playground.script.parts[step] = DONE
    return run


def fates(playground: Playground, run: Run, *path: str, **request: Any) -> dict[str, Fate]:
    """Return what a restart would do with each step."""
    plan = playground.engine.plan_restart(playground.address(run, *path), is_latest=True, **request)
    return {step.step_id: step.fate for step in plan.steps}


def test_a_fix_of_the_step_that_failed_keeps_the_others(playground: Playground) -> None:
    """The new definition counts, and what succeeded is not done again."""
    playground.script.parts["a"] = Outcome(State.DONE, {"out": "kept"})
    run = failed(playground)
    playground.push(CHAIN.replace("z: 1", "z: 2"))
    assert fates(playground, run) == {"a": Fate.KEPT, "b": Fate.KEPT, "c": Fate.RUNS_AGAIN}
    again = latest(playground, run)
    assert playground.script.calls == ["c"]
    assert (again.status, again.version_id, again.run_id) == (RunStatus.SUCCEEDED, 2, 2)
    assert playground.result(again, "c", "z") == 2


def test_without_latest_the_version_stays(playground: Playground) -> None:
    """As in Maestro."""
    run = failed(playground)
    playground.push(CHAIN.replace("z: 1", "z: 2"))
    again = playground.restart(run)
    assert (again.version_id, playground.result(again, "c", "z")) == (1, 1)


def test_a_changed_step_runs_again_with_all_after_it(playground: Playground) -> None:
    """Whatever succeeded there."""
    run = failed(playground)
    playground.push(CHAIN.replace("x: 1", "x: 2"))
    plan = playground.engine.plan_restart(playground.address(run), is_latest=True)
    assert [(step.fate, step.reason) for step in plan.steps] == [
        (Fate.RUNS_AGAIN, "changed: x"),
        (Fate.RUNS_AGAIN, "comes after a"),
        (Fate.RUNS_AGAIN, "was FATALLY_FAILED"),
    ]
    assert (plan.from_version, plan.to_version) == (1, 2)
    again = latest(playground, run)
    assert playground.script.calls == ["a", "b", "c"]
    assert playground.state.rollup(again.root_uuid) == {S.SUCCEEDED: 3}


@pytest.mark.parametrize(
    "change",
    [
        ("type: Sleep, x: 1", "type: Sleep, name: First, x: 1"),
        ("type: Sleep, x: 1", "type: Sleep, description: It is first, x: 1"),
        ("type: Sleep, x: 1", "type: Sleep, tags: [slow], x: 1"),
        ("type: Sleep, x: 1", "type: Sleep, timeout: 3 hours, x: 1"),
        ("type: Sleep, x: 1", "type: Sleep, failure_mode: fail_immediately, x: 1"),
        ("type: Sleep, x: 1", "type: Sleep, retry_policy: {error_retry_limit: 9}, x: 1"),
        ("  other: 1\n", "  other: 2\n"),
        ("  other: 1\n", ""),
        ("  other: 1\n", "  other: 1\n  third: 1\n"),
    ],
)
def test_what_does_not_change_the_result_keeps_it(playground: Playground, change: tuple[str, str]) -> None:
    """How a step is called, retried or limited, and params that it does not refer to."""
    run = failed(playground)
    playground.push(CHAIN.replace(*change))
    assert latest(playground, run).status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["c"]


def test_a_param_of_the_workflow_changes_the_steps_that_refer_to_it(playground: Playground) -> None:
    """And those after them."""
    run = failed(playground)
    playground.push(CHAIN.replace("day: 1", "day: 2"))
    again = latest(playground, run)
    assert playground.script.calls == ["b", "c"]
    assert playground.result(again, "b", "y") == "2"


def test_a_param_that_was_given_stays_given(playground: Playground) -> None:
    """At the start, or by a restart: the default of the newest version is none of its business."""
    run = failed(playground, params={"day": 7})
    playground.push(CHAIN.replace("day: 1", "day: 2"))
    again = latest(playground, run)
    assert playground.script.calls == ["c"]
    assert again.params["day"]["result"] == 7
    playground.push(CHAIN.replace("day: 1", "day: 3").replace("z: 1", "z: 3"))
    assert latest(playground, again).params["day"]["result"] == 7
    assert playground.script.calls == ["c"]


def test_a_restart_may_give_params_too(playground: Playground) -> None:
    """What refers to them runs again."""
    run = failed(playground)
    again = latest(playground, run, params={"day": 9})
    assert playground.script.calls == ["b", "c"]
    assert playground.result(again, "b", "y") == "9"
    with pytest.raises(ParamError, match="is not a LONG"):
        playground.restart(again, is_latest=True, params={"day": "x"})


DATED = """
Workflow:
  id: w
  '!at<long>': System.currentTimeMillis()
  '!always<long>(immutable)': System.currentTimeMillis()
  n: 1
  '!twice<long>': n * 2
  dag: sequential
  jobs:
    - job: {id: a, type: Sleep, x: "${at}"}
    - job: {id: b, type: Sleep, x: "${always}"}
    - job: {id: c, type: Sleep, x: "${twice}"}
    - job: {id: d, type: Sleep}
"""


def test_what_an_instance_is_about_stays(playground: Playground) -> None:
    """A time that was taken when it started is not taken again, unless its definition changed."""
    run = failed(playground, DATED, "d")
    playground.clock.now += 5_000
    playground.push(DATED.replace("id: d, type: Sleep", "id: d, type: Sleep, y: 1"))
    again = latest(playground, run)
    assert again.params["at"] == run.params["at"] | {"definition": again.params["at"]["definition"]} | {
        "evaluated_time": again.params["at"]["evaluated_time"]
    }
    assert playground.script.calls == ["d"]


def test_a_param_that_depends_on_a_changed_one_is_evaluated_again(playground: Playground) -> None:
    """And what refers to it runs again."""
    run = failed(playground, DATED, "d")
    playground.push(DATED.replace("n: 1", "n: 2"))
    again = latest(playground, run)
    assert playground.script.calls == ["c", "d"]
    assert again.params["twice"]["result"] == 4


def test_steps_come_and_go(playground: Playground) -> None:
    """New ones run, though they stand between steps that are kept; removed ones vanish."""
    run = failed(playground)
    playground.push("""
Workflow:
  id: w
  day: 1
  other: 1
  jobs:
    - job: {id: a, type: Sleep, x: 1, out: none, transition: [b, beside]}
    - job: {id: b, type: Sleep, '!seen': a__out, y: "${day}", transition: [d]}
    - job: {id: beside, type: Sleep}
    - job: {id: d, type: Sleep}
""")
    plan = playground.engine.plan_restart(playground.address(run), is_latest=True)
    assert {step.step_id: step.fate for step in plan.steps} == {
        "a": Fate.KEPT,
        "b": Fate.KEPT,
        "beside": Fate.RUNS,
        "d": Fate.RUNS,
        "c": Fate.REMOVED,
    }
    again = latest(playground, run)
    assert sorted(playground.script.calls) == ["beside", "d"]
    assert (again.status, playground.statuses(again)) == (
        RunStatus.SUCCEEDED,
        dict.fromkeys("ab", S.SUCCEEDED) | {"beside": S.SUCCEEDED, "d": S.SUCCEEDED},
    )
    assert playground.state.rollup(again.root_uuid) == {S.SUCCEEDED: 4}


CHOICE = """
Workflow:
  id: w
  n: 1
  jobs:
    - job: {id: a, type: Sleep, transition: [IF n == 1: b, IF n == 2: c]}
    - job: {id: b, type: Sleep, transition: [d]}
    - job: {id: c, type: Sleep, transition: [d]}
    - job: {id: d, type: Sleep}
"""


def test_a_changed_condition_is_judged_again(playground: Playground) -> None:
    """The step that it leaves is kept; those to which it leads run or do not, as it says now."""
    run = failed(playground, CHOICE, "d")
    playground.push(CHOICE.replace("n == 1", "n == 7").replace("n == 2", "n == 1"))
    assert fates(playground, run) == {"a": Fate.KEPT, "b": Fate.RUNS_AGAIN, "c": Fate.RUNS_AGAIN, "d": Fate.RUNS_AGAIN}
    again = latest(playground, run)
    assert playground.script.calls == ["c", "d"]
    assert playground.statuses(again) == {"a": S.SUCCEEDED, "b": S.UNSATISFIED, "c": S.SUCCEEDED, "d": S.SUCCEEDED}


def test_a_condition_over_a_changed_param_is_judged_again(playground: Playground) -> None:
    """The step itself does not refer to the param."""
    run = failed(playground, CHOICE, "d")
    playground.push(CHOICE.replace("n: 1", "n: 2"))
    latest(playground, run)
    assert playground.script.calls == ["c", "d"]


def test_conditions_that_give_the_same_keep_what_they_led_to(playground: Playground) -> None:
    """A step that did not run stays so, whatever its definition."""
    run = failed(playground, CHOICE, "d")
    playground.push(CHOICE.replace("n == 1", "n < 2").replace("id: c, type: Sleep", "id: c, type: Sleep, x: 1"))
    again = latest(playground, run)
    assert playground.script.calls == ["d"]
    assert playground.statuses(again)["c"] is S.UNSATISFIED


def test_after_a_step_that_was_the_last_nothing_follows(playground: Playground) -> None:
    """Though the newest version leads elsewhere."""
    playground.script.parts["a"] = Outcome(State.DONE, message="nothing there", is_last=True)
    text = """
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, transition: [b]}
    - job: {id: b, type: Sleep}
    - job: {id: z, type: Sleep}
"""
    run = failed(playground, text, "z")
    playground.push(
        text.replace("transition: [b]", "transition: [b, c]").replace(
            "{id: z", "{id: c, type: Sleep}\n    - job: {id: z"
        )
    )
    again = latest(playground, run)
    assert playground.script.calls == ["z"]
    assert playground.statuses(again) == {"a": S.SUCCEEDED, "b": S.UNSATISFIED, "c": S.UNSATISFIED, "z": S.SUCCEEDED}


def test_a_second_fix_counts_from_what_ran(playground: Playground) -> None:
    """Not from the version of the run before: a step that was kept may have run with an older one."""
    run = failed(playground)
    playground.script.parts["c"] = [FATAL_ERROR, FATAL_ERROR, DONE]
    playground.push(CHAIN.replace("z: 1", "z: 2"))
    second = latest(playground, run)
    assert second.status is RunStatus.FAILED
    playground.push(CHAIN.replace("z: 1", "z: 3"))
    third = latest(playground, second)
    assert playground.script.calls == ["c"]
    playground.push(CHAIN.replace("x: 1", "x: 4").replace("z: 1", "z: 3"))
    assert latest(playground, third).status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["a", "b", "c"]


def test_a_run_that_cannot_begin_loses_nothing(playground: Playground) -> None:
    """Its params had no value when its turn came: the next restart keeps what the ones before kept."""
    playground.push(CHAIN)
    playground.script.parts["c"] = [FATAL_ERROR, DONE]
    run = playground.start()
    broken = CHAIN.replace("day: 1", "'!day<long>': 1 / (System.currentTimeMillis() - 1700000005000)")
    playground.push(broken)
    started = playground.engine.restart(playground.address(run), is_latest=True)
    playground.clock.now = 1_700_000_005_000
    playground.settle()
    second = playground.fresh(started.run)
    assert (second.status, set(second.carried)) == (RunStatus.FAILED, {"a", "b", "c"})
    playground.clock.now += 1
    playground.push(CHAIN)
    latest(playground, second)
    assert playground.script.calls == ["c"]


def test_there_has_to_be_something_to_run(playground: Playground) -> None:
    """A succeeded instance and no change of its steps."""
    playground.push(CHAIN)
    run = playground.start()
    playground.push(CHAIN.replace("other: 1", "other: 2"))
    with pytest.raises(RequestInvalid, match="version 2 changes none of them"):
        latest(playground, run)


def test_a_step_can_be_named_beside_what_changed(playground: Playground) -> None:
    """One of the workflow itself."""
    playground.push(CHAIN)
    run = playground.start()
    latest(playground, run, "b")
    assert playground.script.calls == ["b", "c"]
    with pytest.raises(RequestInvalid, match="only a step of the workflow itself"):
        playground.restart(run, "loop", "1", "a", is_latest=True)


def test_a_step_can_be_kept_though_it_changed(playground: Playground) -> None:
    """One that has a result."""
    run = failed(playground)
    playground.push(CHAIN.replace("x: 1", "x: 2"))
    plan = playground.engine.plan_restart(playground.address(run), is_latest=True, keep=("a",))
    assert plan.steps[0].reason == "SUCCEEDED, kept as asked"
    latest(playground, run, keep=("a",))
    assert playground.script.calls == ["c"]
    again = failed(playground)
    with pytest.raises(RequestInvalid, match="c has no result to keep"):
        playground.restart(again, is_latest=True, keep=("c",))
    with pytest.raises(RequestInvalid, match="has no step nope"):
        playground.restart(again, is_latest=True, keep=("nope",))
    with pytest.raises(RequestInvalid, match="Only a restart with the newest version keeps steps"):
        playground.restart(again, keep=("a",))


def test_a_step_can_be_skipped(playground: Playground) -> None:
    """As in every restart."""
    run = failed(playground)
    playground.push(CHAIN.replace("x: 1", "x: 2"))
    assert fates(playground, run, skip=("b",))["b"] is Fate.SKIPPED
    again = latest(playground, run, skip=("b",))
    assert (playground.script.calls, playground.statuses(again)["b"]) == (["a", "c"], S.SKIPPED)


def test_only_what_is_over_continues(playground: Playground) -> None:
    """And only from what is incomplete."""
    playground.push(CHAIN)
    run = playground.begin().run
    for call in (playground.engine.restart, playground.engine.plan_restart):
        with pytest.raises(ActionRefused):
            call(playground.address(run, "a"), is_latest=True)
    playground.settle()
    with pytest.raises(RequestInvalid, match="is not RESTART_FROM_BEGINNING"):
        playground.restart(run, is_latest=True, policy=RunPolicy.RESTART_FROM_BEGINNING)


ASKING = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: a, type: Sleep, out: 1}
    - job: {id: ask, type: Approval, approval: {message: "Publish ${a.out}?"}}
    - job: {id: c, type: Sleep, z: 1}
"""


def test_an_approval_stands(playground: Playground) -> None:
    """Also where what came before it ran again, as long as the question is the same."""
    playground.push(ASKING)
    playground.script.parts["c"] = [FATAL_ERROR, FATAL_ERROR, DONE]
    run = playground.start()
    playground.engine.approve(playground.address(run, "ask"), by="ann", comment="go")
    playground.settle()
    playground.push(ASKING.replace("z: 1", "z: 2"))
    second = latest(playground, run)
    assert (second.status, playground.script.calls) == (RunStatus.FAILED, ["c"])
    playground.push(ASKING.replace("id: a, type: Sleep", "id: a, type: Sleep, x: 2").replace("z: 1", "z: 2"))
    third = latest(playground, second)
    assert (third.status, playground.script.calls) == (RunStatus.SUCCEEDED, ["a", "c"])
    assert playground.result(third, "ask", "decided_by") == "ann"
    assert "The same question was approved in an earlier run." in playground.told(third, "ask")


def test_another_question_is_asked(playground: Playground) -> None:
    """Since nobody has answered it."""
    playground.push(ASKING)
    playground.script.parts["c"] = FATAL_ERROR
    run = playground.start()
    playground.engine.approve(playground.address(run, "ask"), by="ann")
    playground.settle()
    playground.push(ASKING.replace("out: 1", "out: 2"))
    again = latest(playground, run)
    assert playground.statuses(again)["ask"] is S.RUNNING
    playground.engine.approve(playground.address(run, "ask"), by="ann")
    playground.settle()
    assert playground.script.calls == ["a", "c"]


@pytest.mark.parametrize("on_reject", ["fail", "succeed"])
def test_a_rejected_question_is_asked_again(playground: Playground, on_reject: str) -> None:
    """When its step runs again."""
    text = ASKING.replace('?"}', f'?", on_reject: {on_reject}}}')
    playground.push(text)
    playground.script.parts["c"] = FATAL_ERROR
    run = playground.start()
    playground.engine.reject(playground.address(run, "ask"), by="ann")
    playground.settle()
    playground.push(text.replace("id: a, type: Sleep", "id: a, type: Sleep, x: 2"))
    again = latest(playground, run)
    assert playground.statuses(again)["ask"] is S.RUNNING
    playground.engine.stop(playground.address(run))
    playground.settle()


LOOP = """
Workflow:
  id: w
  p: 1
  jobs:
    - foreach:
        id: loop
        concurrency: 10
        loop_params: {i: [1, 2, 3]}
        jobs:
          - job: {id: a, type: Sleep, x: 1}
          - job: {id: b, type: Sleep, y: "${p}"}
        dag: sequential
    - job: {id: after, type: Sleep, '!all<array<long>>': "params.getFromForeach('loop', 'a', 'x')"}
  dag: sequential
"""


def in_iterations(playground: Playground, *failing: int) -> list[tuple[str, int]]:
    """Let b fail in some iterations; return where what is called will be noted: the step, and the iteration."""
    calls: list[tuple[str, int]] = []
    broken = set(failing)

    def act(context: StepContext) -> Outcome:
        step, i = context.place.step_id, context.workflow_params.get("i", 0)
        calls.append((step, i))
        if step == "b" and i in broken:
            broken.discard(i)
            return FATAL_ERROR
        return DONE

    playground.script.parts |= dict.fromkeys(("a", "b", "after"), act)
    return calls


def test_iterations_that_succeeded_are_kept(playground: Playground) -> None:
    """While the body and what it goes over are the same."""
    calls = in_iterations(playground, 2)
    playground.push(LOOP)
    run = playground.start()
    playground.push(LOOP.replace("id: after, type: Sleep", "id: after, type: Sleep, x: 1"))
    calls.clear()
    assert latest(playground, run).status is RunStatus.SUCCEEDED
    assert calls == [("b", 2), ("after", 0)]


def test_a_changed_body_runs_again_from_what_changed(playground: Playground) -> None:
    """In every iteration; the steps before the change are kept."""
    calls = in_iterations(playground, 2)
    playground.push(LOOP)
    run = playground.start()
    playground.push(LOOP.replace('y: "${p}"', 'y: "${p}", z: 1'))
    calls.clear()
    again = latest(playground, run)
    assert (again.status, sorted(calls)) == (RunStatus.SUCCEEDED, [("after", 0), ("b", 1), ("b", 2), ("b", 3)])
    calls.clear()
    latest(playground, again, params={"p": 2})
    assert sorted(calls) == [("after", 0), ("b", 1), ("b", 2), ("b", 3)]


FILES = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: copy, type: Spark, spark: {file: copy.sql}}
    - foreach:
        id: loop
        loop_params: {i: [1, 2]}
        jobs: [{job: {id: clean, type: Spark, spark: {file: clean.sql}}}]
    - job: {id: end, type: Sleep}
"""


@pytest.mark.parametrize(
    ("written", "called"),
    [("copy.sql", ["copy", "clean", "clean", "end"]), ("clean.sql", ["clean", "clean", "end"]), ("", ["end"])],
)
def test_a_step_whose_file_was_written_since_runs_again(
    playground: Playground, tmp_path: Path, written: str, called: list[str]
) -> None:
    """A file is part of what a step does, though the definition that names it is the same."""
    for name in ("copy.sql", "clean.sql"):
        (tmp_path / name).write_text("SELECT 1")
        os.utime(tmp_path / name, (0, 0))
    object.__setattr__(playground.tools, "files", ProjectFiles(tmp_path, tmp_path))
    run = failed(playground, FILES, "end")
    playground.push(FILES)
    if written:
        os.utime(tmp_path / written, (playground.clock() / 1000 + 60,) * 2)
    plan = playground.engine.plan_restart(playground.address(run), is_latest=True)
    reasons = [step.reason for step in plan.steps if step.fate is Fate.RUNS_AGAIN]
    assert any(f"file {written}" in reason for reason in reasons) is bool(written)
    assert latest(playground, run).status is RunStatus.SUCCEEDED
    assert playground.script.calls == called


def test_a_longer_list_runs_what_is_new(playground: Playground) -> None:
    """An iteration with other values runs from the beginning."""
    calls = in_iterations(playground)
    playground.push(LOOP)
    run = playground.start()
    playground.push(LOOP.replace("[1, 2, 3]", "[1, 2, 7, 8]"))
    calls.clear()
    again = latest(playground, run)
    assert sorted(calls) == [("a", 7), ("a", 8), ("after", 0), ("b", 7), ("b", 8)]
    playground.push(LOOP.replace("[1, 2, 3]", "[1]"))
    calls.clear()
    shorter = latest(playground, again)
    assert calls == [("after", 0)]
    assert playground.result(shorter, "after", "all") == [1]


def test_after_a_changed_step_a_loop_starts_over(playground: Playground) -> None:
    """And where every iteration sees another param of the loop."""
    text = LOOP.replace("  jobs:\n    - foreach", "  jobs:\n    - job: {id: first, type: Sleep, x: 1}\n    - foreach")
    calls = in_iterations(playground)
    playground.push(text)
    run = playground.start()
    playground.push(text.replace("id: first, type: Sleep, x: 1", "id: first, type: Sleep, x: 2"))
    calls.clear()
    again = latest(playground, run)
    every = sorted([*((step, i) for step in "ab" for i in (1, 2, 3)), ("after", 0)])
    assert sorted(calls) == every
    playground.push(
        text.replace("id: first, type: Sleep, x: 1", "id: first, type: Sleep, x: 2").replace(
            "concurrency: 10", "concurrency: 9\n        more: 1"
        )
    )
    calls.clear()
    latest(playground, again)
    assert sorted(calls) == every


WHILE = """
Workflow:
  id: w
  jobs:
    - while:
        id: loop
        condition: n < 3
        loop_params: {n: 0}
        jobs:
          - job: {id: a, type: Sleep, x: 1, '!n<long>': n + 1}
          - job: {id: b, type: Sleep}
        dag: sequential
    - job: {id: after, type: Sleep}
  dag: sequential
"""


def test_a_while_that_changed_starts_over(playground: Playground) -> None:
    """Since each iteration begins with what the one before it left; otherwise it goes on where it stopped."""
    playground.push(WHILE)
    playground.script.parts["b"] = [DONE, FATAL_ERROR, FATAL_ERROR, DONE]
    run = playground.start()
    playground.push(WHILE.replace("id: after, type: Sleep", "id: after, type: Sleep, x: 1"))
    second = latest(playground, run)
    assert playground.script.calls == ["b"]
    playground.push(WHILE.replace("x: 1", "x: 2"))
    assert latest(playground, second).status is RunStatus.SUCCEEDED
    assert playground.script.calls == [*["a", "b"] * 3, "after"]


OUTER = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - subworkflow: {id: sub, subworkflow_id: inner}
    - job: {id: after, type: Sleep}
"""
INNER = "Workflow: {id: inner, dag: sequential, jobs: [{job: {id: a, type: Sleep}}, {job: {id: b, type: Sleep, x: 1}}]}"


def test_a_subworkflow_continues_with_its_newest_version(playground: Playground) -> None:
    """The one that its step names, as it stands now; what succeeded in it is kept."""
    playground.push(INNER)
    run = failed(playground, OUTER, "b")
    playground.push(INNER.replace("x: 1", "x: 2"))
    again = latest(playground, run)
    assert (again.status, playground.script.calls) == (RunStatus.SUCCEEDED, ["b", "after"])
    child = playground.state.run("inner", 1)
    assert child is not None
    assert (child.version_id, child.run_id) == (2, 2)


def test_a_subworkflow_that_succeeded_is_kept(playground: Playground) -> None:
    """Though there is a newer version of it."""
    playground.push(INNER)
    run = failed(playground, OUTER, "after")
    playground.push(INNER.replace("x: 1", "x: 2"))
    latest(playground, run)
    assert playground.script.calls == ["after"]


def test_a_step_may_become_another_kind_of_step(playground: Playground) -> None:
    """A job becomes a loop, a loop a subworkflow."""
    playground.push(INNER)
    run = failed(playground, CHAIN)
    loop = "- foreach: {id: c, loop_params: {i: [1, 2]}, jobs: [{job: {id: inner1, type: Sleep}}]}"
    playground.push(CHAIN.replace("- job: {id: c, type: Sleep, z: 1}", loop))
    second = latest(playground, run)
    assert (second.status, playground.script.calls) == (RunStatus.SUCCEEDED, ["inner1", "inner1"])
    playground.push(CHAIN.replace("- job: {id: c, type: Sleep, z: 1}", "- subworkflow: {id: c, subworkflow_id: inner}"))
    third = latest(playground, second)
    assert (third.status, playground.script.calls) == (RunStatus.SUCCEEDED, ["a", "b"])


WRITING = """
Workflow:
  id: w
  dag: sequential
  jobs:
    - job: {id: prepare, type: Sleep, x: 1}
    - job: {id: capture, type: IpCapture, ip_capture: {source_tables: [db.events]}}
    - job: {id: write, type: Spark, targets: [db.daily], spark: {script: "SELECT * FROM ${capture.relation}"}}
    - job: {id: commit, type: IpCommit, ip_commit: {capture_step: capture}}
    - job: {id: report, type: Sleep, x: 1}
"""
CAPTURED = Outcome(State.DONE, {"capture_id": "c1", "relation": "r"}, {"capture_id": "c1"})


def written(playground: Playground, *, failing: str, outputs: dict[str, Any] | None = None) -> Run:
    """Return an instance that failed after it wrote something."""
    playground.script.parts["capture"] = CAPTURED
    playground.script.parts["write"] = Outcome(State.DONE, outputs or {"published": True})
    return failed(playground, WRITING, failing)


@pytest.mark.parametrize(
    "change", [("SELECT *", "SELECT 1"), ("id: prepare, type: Sleep, x: 1", "id: prepare, type: Sleep, x: 2")]
)
def test_what_was_published_is_not_written_again(playground: Playground, change: tuple[str, str]) -> None:
    """The change would have no effect, in silence; the step can be kept, and the command that is offered works."""
    run = written(playground, failing="commit")
    playground.push(WRITING.replace(*change))
    plan = playground.engine.plan_restart(playground.address(run), is_latest=True)
    assert {step.step_id for step in plan.steps if step.obstacle} == {"write"}
    with pytest.raises(
        RequestInvalid, match=r"write cannot run again: it has published what it wrote to db.daily"
    ) as no:
        latest(playground, run)
    assert "calve restart w 1 --latest --keep write." in no.value.remedy
    again = latest(playground, run, keep=("write",))
    assert again.status is RunStatus.SUCCEEDED
    assert "write" not in playground.script.calls


def test_what_is_held_back_for_the_commit_is_written_again(playground: Playground) -> None:
    """Nobody has seen it."""
    run = written(playground, failing="commit", outputs={"published": False})
    playground.push(WRITING.replace("SELECT *", "SELECT 1"))
    assert latest(playground, run).status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["write", "commit", "report"]


@pytest.mark.parametrize("outputs", [{"published": True}, {"published": False}])
def test_a_committed_capture_is_worked_on_once(playground: Playground, outputs: dict[str, Any]) -> None:
    """Neither it nor what used it runs again with another definition; what comes after does."""
    run = written(playground, failing="report", outputs=outputs)
    playground.push(WRITING.replace("SELECT *", "SELECT 1").replace("[db.events]", "[db.others]"))
    with pytest.raises(RequestInvalid, match="worked on the capture of capture, which is committed") as no:
        latest(playground, run)
    assert "--keep capture --keep write" in no.value.remedy
    playground.push(WRITING.replace("id: report, type: Sleep, x: 1", "id: report, type: Sleep, x: 2"))
    assert latest(playground, run).status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["report"]


def test_what_was_published_inside_a_loop_is_not_written_again(playground: Playground) -> None:
    """The iteration says so, and how it can be kept."""
    text = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        loop_params: {i: [1]}
        jobs:
          - job: {id: write, type: Spark, targets: [db.daily], spark: {script: "SELECT 1"}}
          - job: {id: check, type: Sleep}
        dag: sequential
"""
    run = failed(playground, text, "check")
    playground.push(text.replace("SELECT 1", "SELECT 2"))
    again = latest(playground, run)
    assert again.status is RunStatus.FAILED
    (iteration,) = playground.state.child_runs(playground.attempt(again, "loop").uuid)
    assert "calve restart w 1 --latest --keep write." in iteration.message
    assert latest(playground, again, keep=("write",)).status is RunStatus.SUCCEEDED
    assert playground.script.calls == ["check"]


@pytest.mark.parametrize(("options", "latest_option"), [({}, ""), ({"is_latest": True}, "--latest ")])
def test_a_capture_that_was_abandoned_is_not_worked_on(
    playground: Playground, options: dict[str, Any], latest_option: str
) -> None:
    """Only a step after the capture is concerned."""
    text = WRITING.replace("dag: sequential", "").replace("x: 1}", "x: 1, transition: [capture]}", 1)
    text = text.replace("[db.events]}", "[db.events]}, transition: [write]").replace(
        'relation}"}', 'relation}"}, transition: [commit]'
    )
    playground.script.parts["capture"] = CAPTURED
    playground.script.parts |= {"write": FATAL_ERROR, "report": FATAL_ERROR}
    playground.push(text)
    run = playground.start()
    tools = replace(playground.tools, superseded=lambda capture_id: Superseded(capture_id, "w/1/capture", "c2", None))
    playground.engine = Engine(tools)
    plan = playground.engine.plan_restart(playground.address(run), **options)
    assert "capture c1 was abandoned for the newer capture c2" in plan.refusal
    with pytest.raises(ActionRefused, match="cannot continue where it stopped: capture c1 was abandoned") as refused:
        playground.restart(run, **options)
    assert refused.value.remedy.endswith(f"calve restart w 1 {latest_option}--step capture")
    playground.script.parts["report"] = DONE
    assert playground.restart(run, "report").run_status is RunStatus.SUCCEEDED
