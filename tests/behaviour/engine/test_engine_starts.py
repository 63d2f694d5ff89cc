"""Starting instances, and running them again: requests, versions, params, priorities."""

import pytest
from tests.engines import BUSY, FATAL_ERROR, Playground

from calve.engine import Initiator, RunPolicy, RunStatus, StartStatus, StepStatus
from calve.errors import ActionRefused, ParamError, RequestInvalid, WorkflowMissing

pytestmark = pytest.mark.each_store

S = StepStatus
ONE = "Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}"


def test_the_same_request_starts_once(playground: Playground) -> None:
    """The second answer names the first instance."""
    playground.push(ONE)
    first, second = (playground.begin(request_id="r1") for _ in range(2))
    assert (first.status, second.status) == (StartStatus.CREATED, StartStatus.DUPLICATED)
    assert second.run.uuid == first.run.uuid
    assert playground.begin(request_id="r2").run.instance_id == 2


def test_the_same_request_restarts_once(playground: Playground) -> None:
    """Also when the first answer was lost."""
    playground.push(ONE)
    run = playground.start()
    again = playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING, request_id="r1")
    repeated = playground.engine.restart(
        playground.address(run), policy=RunPolicy.RESTART_FROM_BEGINNING, request_id="r1"
    )
    assert (repeated.status, repeated.run.uuid) == (StartStatus.DUPLICATED, again.uuid)


def test_a_version_is_chosen_by_name_or_number(playground: Playground) -> None:
    """Each instance keeps the definition that it began with."""
    for n in (1, 2, 3):
        playground.push(f"Workflow: {{id: w, n: {n}, run_strategy: parallel, jobs: [{{job: {{id: a, type: Sleep}}}}]}}")
    playground.state.activate("w", 2, playground.clock())
    chosen = {
        version: playground.start(version=version).params["n"]["result"]
        for version in ("active", "latest", "default", "1", 3)
    }
    assert chosen == {"active": 2, "latest": 3, "default": 2, "1": 1, 3: 3}
    playground.state.activate("w", None, playground.clock())
    assert playground.start(version="default").version_id == 3
    with pytest.raises(WorkflowMissing, match="no version active") as missing:
        playground.begin()
    assert missing.value.remedy == "The latest is 3, the active one none."
    with pytest.raises(WorkflowMissing, match="no version 9"):
        playground.begin(version=9)


def test_run_params_change_what_their_mode_lets_them(playground: Playground) -> None:
    """They take the declared type; one that is not declared is added."""
    playground.push("""
Workflow:
  id: w
  n: 1
  label: x
  'fixed(constant)': 1
  jobs:
    - job: {id: a, type: Sleep, '!m<long>': n + 1}
""")
    run = playground.start(params={"n": 41, "label": "y", "more": "yes"})
    assert playground.result(run, "a", "m") == 42
    assert {name: run.params[name]["result"] for name in ("label", "more")} == {"label": "y", "more": "yes"}
    with pytest.raises(ParamError, match=r"Cannot modify param with mode \[CONSTANT\] for parameter \[fixed\]"):
        playground.begin(params={"fixed": 2})
    with pytest.raises(ParamError, match="is not a LONG"):
        playground.begin(params={"n": "many"})


def test_run_params_may_be_definitions(playground: Playground) -> None:
    """Which a trigger passes on, for one."""
    playground.push("Workflow: {id: w, n: 1, jobs: [{job: {id: a, type: Sleep}}]}")
    run = playground.start(definitions={"n": {"type": "LONG", "expression": "20 + 1"}})
    assert run.params["n"]["result"] == 21
    with pytest.raises(ParamError, match="is invalid"):
        playground.begin(definitions={"n": {"type": "LONG", "value": "x"}})


def test_the_size_of_run_params_is_limited(playground: Playground) -> None:
    """128, as in Maestro."""
    playground.push(ONE)
    with pytest.raises(ParamError, match="more than the limit"):
        playground.begin(params={f"p{n}": n for n in range(129)})


def test_a_start_with_bad_params_may_be_kept_as_failed(playground: Playground) -> None:
    """So that someone can look at it."""
    playground.push("Workflow: {id: w, 'fixed(constant)': 1, jobs: [{job: {id: a, type: Sleep}}]}")
    run = playground.start(params={"fixed": 2}, persist_failed_run=True)
    assert run.status is RunStatus.FAILED
    assert "Cannot modify param with mode [CONSTANT]" in run.message


@pytest.mark.parametrize(
    ("criticality", "priority"), [("critical", 0), ("high", 1), ("medium", 2), ("low", 3), (None, 2)]
)
def test_criticality_is_priority(playground: Playground, criticality: str | None, priority: int) -> None:
    """Unless the start says otherwise."""
    key = f"criticality: {criticality}, " if criticality else ""
    playground.push(f"Workflow: {{id: w, {key}jobs: [{{job: {{id: a, type: Sleep}}}}]}}")
    assert playground.start().priority == priority
    assert playground.start(priority=7).priority == 7


def test_the_more_critical_comes_first(playground: Playground) -> None:
    """When there is more to do than hands."""
    for name, criticality in (("low", "low"), ("high", "high"), ("usual", "medium")):
        playground.push(
            f"Workflow: {{id: {name}, criticality: {criticality}, jobs: [{{job: {{id: {name}, type: Sleep}}}}]}}"
        )
        playground.begin(name)
    for task in playground.claim(steps=0):
        playground.do(task)
    while tasks := playground.claim(runs=0, steps=1):
        playground.do(tasks[0])
    assert playground.script.calls == ["high", "usual", "low"]


def test_a_start_says_who_and_what(playground: Playground) -> None:
    """Its initiator and its tags stay with it."""
    playground.push(ONE)
    run = playground.start(initiator=Initiator(user="ann", timezone="UTC"), tags=("nightly",))
    assert (run.initiator.user, run.tags) == ("ann", ("nightly",))


def test_a_restart_keeps_results_and_takes_new_params(playground: Playground) -> None:
    """By their modes; what is IMMUTABLE is evaluated again."""
    playground.push("""
Workflow:
  id: w
  n: 1
  kept: 1
  start_only(mutable_on_start): 1
  '!at<long>(immutable)': System.currentTimeMillis()
  '!once<long>(constant)': System.currentTimeMillis()
  jobs:
    - job: {id: a, type: Sleep, m: 1, '!sum<long>': n + kept}
""")
    playground.script.parts["a"] = FATAL_ERROR
    run = playground.start(params={"kept": 10, "start_only": 5})
    playground.advance(100)
    again = playground.restart(run, params={"n": 2}, step_params={"a": {"m": 7}})
    assert playground.result(again, "a", "sum") == 12
    assert playground.result(again, "a", "m") == 7
    assert again.params["start_only"]["result"] == 5
    assert again.params["at"]["result"] == playground.clock()
    assert again.params["once"]["result"] == playground.clock() - 100_000
    with pytest.raises(ParamError, match="MUTABLE_ON_START"):
        playground.engine.restart(playground.address(run), params={"start_only": 6})


def test_only_what_is_over_can_be_restarted(playground: Playground) -> None:
    """And only if something of it is incomplete, or all of it is meant."""
    playground.push(ONE)
    playground.script.parts["a"] = BUSY
    run = playground.start()
    with pytest.raises(ActionRefused, match="is IN_PROGRESS: RESTART is not possible"):
        playground.engine.restart(playground.address(run))
    playground.engine.stop(playground.address(run))
    playground.settle()
    playground.script.parts.clear()
    again = playground.restart(run)
    assert (again.run_id, again.status) == (2, RunStatus.SUCCEEDED)
    with pytest.raises(RequestInvalid, match="All steps of w instance 1 are complete"):
        playground.engine.restart(playground.address(run))
    assert playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING).run_id == 3
    assert playground.restart(run, "a").run_id == 4


def test_an_iteration_is_not_restarted_by_itself(playground: Playground) -> None:
    """The instance around it is, with a path."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach: {id: loop, ranges: {i: {from: 0, to: 1}}, jobs: [{job: {id: a, type: NoOp}}]}
""")
    run = playground.start()
    (iteration,) = playground.state.child_runs(playground.attempt(run, "loop").uuid)
    with pytest.raises(RequestInvalid, match="is an iteration"):
        playground.engine.restart(playground.address(iteration))


def test_a_restart_names_steps_that_exist(playground: Playground) -> None:
    """Those whose params change, and those that are skipped."""
    playground.push(ONE)
    run = playground.start()
    with pytest.raises(RequestInvalid, match="w has no step b") as unknown:
        playground.engine.restart(playground.address(run), skip=("b",))
    assert unknown.value.remedy == "It has a."
    with pytest.raises(RequestInvalid, match="w has no step b"):
        playground.engine.restart(playground.address(run), step_params={"b": {"n": 1}})


def test_a_failed_step_runs_again_while_its_run_continues(playground: Playground) -> None:
    """As another attempt of the same run; what waited for it goes on."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: bad, type: Sleep, transition: [next]}
    - job: {id: slow, type: Sleep}
    - job: {id: next, type: Sleep}
""")
    playground.script.parts |= {"bad": FATAL_ERROR, "slow": BUSY}
    run = playground.start()
    playground.script.parts.pop("bad")
    playground.restart(run, "bad")
    assert playground.statuses(run) == {"bad": S.SUCCEEDED, "slow": S.RUNNING, "next": S.SUCCEEDED}
    assert [attempt.status for attempt in playground.state.attempts(run.uuid, "bad")] == [S.FATALLY_FAILED, S.SUCCEEDED]
    with pytest.raises(ActionRefused, match="RESTART is not possible") as refused:
        playground.engine.restart(playground.address(run, "slow"))
    assert refused.value.context["possible"] == ["STOP", "KILL", "SKIP"]


def test_a_step_whose_failure_ends_or_spares_the_run_waits_for_its_end(playground: Playground) -> None:
    """Only FAIL_AFTER_RUNNING leaves something to run again."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: bad, type: Sleep, failure_mode: ignore_failure}
    - job: {id: slow, type: Sleep}
""")
    playground.script.parts |= {"bad": BUSY, "slow": BUSY}
    run = playground.start()
    playground.engine.stop(playground.address(run, "bad"))
    playground.settle()
    with pytest.raises(RequestInvalid, match="its failure mode is IGNORE_FAILURE"):
        playground.engine.restart(playground.address(run, "bad"))


def test_params_that_nothing_knows_are_warned_of_or_refused(playground: Playground) -> None:
    """Refused before anything is started; a repeated request is answered as before."""
    playground.push(
        "Workflow: {id: w, day: '1', run_strategy: parallel, jobs: [{job: {id: a, type: Sleep, limit: 1}}]}"
    )
    (warning,) = playground.begin(params={"dya": "2", "day": "3"}, request_id="r").warnings
    assert (warning["message"], warning["hint"]) == ("Workflow w has no param dya.", "Did you mean day?")
    assert playground.begin(params={"day": "3", "limit": 5}, refuse_unknown_params=True).warnings == ()
    for given in ({"params": {"dya": "2"}}, {"definitions": {"dya": {"type": "STRING", "value": "2"}}}):
        with pytest.raises(RequestInvalid, match="Workflow w has no param dya"):
            playground.begin(**given, refuse_unknown_params=True)
        with pytest.raises(RequestInvalid, match="Workflow w has no param dya"):
            playground.engine.start_all("w", [{}, {**given, "refuse_unknown_params": True}])
    assert playground.begin(params={"dya": "2"}, request_id="r", refuse_unknown_params=True).run.instance_id == 1
    answers = playground.engine.start_all("w", [{"params": {"dya": 1}}, {}])
    assert [len(answer.warnings) for answer in answers] == [1, 0]
    assert [answer.run.instance_id for answer in answers] == [3, 4]


def test_a_restart_with_params_that_nothing_knows_is_warned_of_or_refused(playground: Playground) -> None:
    """What the run before was given is known to the instance, whatever the definition says."""
    playground.push("Workflow: {id: w, day: '1', jobs: [{job: {id: a, type: Sleep, limit: 1}}]}")
    run = playground.start(params={"extra": "x"})
    anew = {"policy": RunPolicy.RESTART_FROM_BEGINNING}
    with pytest.raises(RequestInvalid, match="Workflow w has no param dya") as refused:
        playground.restart(run, params={"dya": "2"}, refuse_unknown_params=True, **anew)
    assert refused.value.remedy == "Did you mean day?"
    with pytest.raises(RequestInvalid, match="Step a of workflow w has no param lmit") as refused:
        playground.restart(run, step_params={"a": {"lmit": 2}}, refuse_unknown_params=True, **anew)
    assert refused.value.remedy == "Did you mean limit?"
    again = playground.restart(
        run, params={"extra": "y"}, step_params={"a": {"limit": 2}}, refuse_unknown_params=True, **anew
    )
    assert (again.run_id, again.params["extra"]["result"]) == (2, "y")
    started = playground.engine.restart(playground.address(run), params={"dya": "2"}, **anew)
    assert [warning["param"] for warning in started.warnings] == ["dya"]
    playground.settle()


def test_a_subworkflow_takes_the_params_of_the_workflow_above(playground: Playground) -> None:
    """So that they are known there, as long as its version is there."""
    playground.push("Workflow: {id: inner, day: '1', jobs: [{job: {id: a, type: Sleep}}]}")
    playground.push("Workflow: {id: w, jobs: [{subworkflow: {id: s, workflow_id: inner}}]}")
    with pytest.raises(RequestInvalid, match="Workflow w has no param dya"):
        playground.begin(params={"dya": "2"}, refuse_unknown_params=True)
    run = playground.start(params={"day": "2"}, refuse_unknown_params=True)
    assert run.status is RunStatus.SUCCEEDED
    playground.state.activate("inner", None, playground.clock())
    assert playground.begin(params={"dya": "2"}, refuse_unknown_params=True).warnings == ()
    playground.settle()


def test_run_params_that_no_run_could_have_are_refused(playground: Playground) -> None:
    """A list to go over that is far too long, as a value or as a definition, for a start and a restart."""
    jobs = "[{foreach: {id: l, loop_params: {'!i<long_array>': many}, jobs: [{job: {id: a, type: Sleep}}]}}]"
    playground.push(f"Workflow: {{id: w, many: [1], jobs: {jobs}}}")
    numbers = list(range(1_000_000))
    run = playground.start()
    for given in ({"params": {"many": numbers}}, {"definitions": {"many": {"type": "LONG_ARRAY", "value": numbers}}}):
        with pytest.raises(ParamError, match=r"The run params have \[\d+\] characters, more than the limit"):
            playground.begin(**given)
        with pytest.raises(ParamError, match="more than the limit"):
            playground.restart(run, policy=RunPolicy.RESTART_FROM_BEGINNING, **given)
    assert playground.start(params={"many": [1, 2]}).status is RunStatus.SUCCEEDED
