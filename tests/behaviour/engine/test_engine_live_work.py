"""What failed, what waits and how far it has come, however deep it lies, over both databases."""

from typing import Any

import pytest
from tests.engines import BUSY, DONE, FATAL_ERROR, USER_ERROR, Playground

from calve.engine import PROGRESS, Breakpoint, LiveSteps, LogChunk, Outcome, Run, StepContext
from calve.engine.views import Live, approval_json, attempt_json, overview_json, overview_of

pytestmark = pytest.mark.each_store

PARTS = """
Workflow:
  id: w
  tries: 3
  jobs:
    - foreach:
        id: parts
        concurrency: 10
        ranges: {i: {from: 1, to: 4}}
        jobs:
          - job: {id: load, type: Sleep, '!part<long>': i, retry_policy: {error_retry_limit: "${tries}"}}
"""
ASKING = """
Workflow:
  id: asking
  run_strategy: parallel
  jobs:
    - foreach:
        id: each
        concurrency: 10
        loop_params: {i: [1, 2]}
        jobs:
          - job:
              id: ok
              type: Approval
              approval: {message: "Go on with ${i}?", approvers: [ann, bob], min_approvals: 2}
"""
AROUND = """
Workflow:
  id: around
  jobs:
    - foreach:
        id: subs
        loop_params: {k: [1]}
        jobs:
          - subworkflow: {id: sub, workflow_id: asking}
"""


def shown(playground: Playground, run: Run) -> dict[str, Any]:
    """Return all that is known of a run."""
    return overview_json(overview_of(playground.tools, playground.fresh(run)))


def _part(outcomes: dict[int, Outcome]) -> Any:
    def act(context: StepContext) -> Outcome:
        return outcomes.get(context.params["part"], DONE)

    return act


def test_a_failing_iteration_is_named_while_the_loop_continues(playground: Playground) -> None:
    """With its path, its cause and where its log is."""
    playground.push(PARTS)
    playground.script.parts["load"] = _part({2: FATAL_ERROR, 3: BUSY})
    run = playground.start()
    found = shown(playground, run)
    assert found["status"] == "IN_PROGRESS"
    (failure,) = found["failures"]
    assert (failure["path"], failure["status"], failure["message"]) == ("parts/2/load", "FATALLY_FAILED", "no way")
    assert failure["links"] == {"log": "/api/v3/workflows/w/instances/1/steps/parts/2/load/logs"}
    assert (found["waiting"], found["waiting_count"], found["progress"]) == ([], 0, [])


def test_the_first_failures_of_many_are_named(playground: Playground) -> None:
    """The others are counted."""
    playground.push(PARTS.replace("to: 4", "to: 9"))
    playground.script.parts["load"] = FATAL_ERROR
    found = shown(playground, playground.start())
    assert [failure["path"] for failure in found["failures"]] == [f"parts/{number}/load" for number in range(1, 6)]
    assert found["runtime_overview"]["rollup_overview"]["overview"]["FATALLY_FAILED"]["cnt"] == 8
    assert found["steps"][0]["iterations"]["failed"] == 8


def test_a_failure_that_counts_for_nothing_is_named_too(playground: Playground) -> None:
    """The loop has completed with an error, and one wants to know with which."""
    playground.push(PARTS.replace("id: parts", "id: parts\n        failure_mode: IGNORE_FAILURE"))
    playground.script.parts["load"] = _part({1: FATAL_ERROR})
    found = shown(playground, playground.start())
    assert (found["status"], found["steps"][0]["status"]) == ("SUCCEEDED", "COMPLETED_WITH_ERROR")
    assert [failure["path"] for failure in found["failures"]] == ["parts/1/load"]


def test_a_child_that_fails_before_its_steps_says_why(playground: Playground) -> None:
    """There is no step to be named: its parent's is."""
    playground.push("Workflow: {id: child, n: 2, '!x<long>': 1 / n, jobs: [{job: {id: a, type: NoOp}}]}")
    playground.push("Workflow: {id: w, m: 2, jobs: [{subworkflow: {id: sub, workflow_id: child, '!n<long>': m}}]}")
    found = shown(playground, playground.start(params={"m": 0}))
    (failure,) = found["failures"]
    assert (failure["path"], failure["step_id"]) == ("sub", "sub")
    assert "x" in failure["message"]
    assert "links" not in failure, "nothing has written a log"


def test_a_step_whose_params_cannot_be_evaluated_has_no_log(playground: Playground) -> None:
    """Its work has not begun."""
    playground.push("Workflow: {id: w, n: 2, jobs: [{job: {id: a, type: Sleep, '!x<long>': 1 / n}}]}")
    (failure,) = shown(playground, playground.start(params={"n": 0}))["failures"]
    assert failure["path"] == "a"
    assert "links" not in failure


def test_an_earlier_run_has_no_log_to_follow(playground: Playground) -> None:
    """The path leads to the newest attempt, which is another one's."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = [FATAL_ERROR, DONE]
    first = playground.start()
    assert "links" in shown(playground, first)["failures"][0]
    playground.restart(first)
    assert "links" not in shown(playground, first)["failures"][0]


def test_a_retry_is_shown_with_its_cause_its_number_and_its_time(playground: Playground) -> None:
    """Inside of a loop, with a limit that is a param of the workflow around it."""
    playground.push(PARTS)
    playground.script.parts["load"] = _part({2: USER_ERROR})
    run = playground.start()
    found = shown(playground, run)
    (wait,) = found["waiting"]
    assert (wait["path"], wait["reason"], wait["message"]) == ("parts/2/load", "RETRY", "wrong input")
    assert (wait["step_attempt_id"], wait["max_attempts"]) == (1, 4)
    assert wait["next_attempt_time"] == playground.clock() + 60_000
    assert wait["links"] == {"log": "/api/v3/workflows/w/instances/1/steps/parts/2/load/logs"}
    assert found["failures"] == [], "it has not failed for good"
    playground.advance(60)
    (wait,) = shown(playground, run)["waiting"]
    assert (wait["step_attempt_id"], wait["max_attempts"]) == (2, 4)
    for seconds in (120, 240):
        playground.advance(seconds)
    found = shown(playground, run)
    assert (found["waiting"], found["status"]) == ([], "FAILED")
    assert [failure["path"] for failure in found["failures"]] == ["parts/2/load"]


def test_an_attempt_says_itself_when_it_is_tried_again(playground: Playground) -> None:
    """Its last message is why it failed; one that another has followed waits no longer."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = [USER_ERROR, BUSY]
    run = playground.start()
    said = attempt_json(run, playground.attempt(run, "a"))
    due = playground.clock() + 60_000
    assert said["message"] == "wrong input"
    assert said["waiting"] == {"reason": "RETRY", "message": "wrong input", "next_attempt_time": due}
    logged = [entry["message"] for entry in said["timeline"] if entry["type"] == "LOG"]
    assert logged == ["Retry in 60 s.", "wrong input"]
    playground.advance(60)
    first = attempt_json(run, playground.state.attempts(run.uuid, "a")[0])
    assert first["message"] == "wrong input"
    assert "waiting" not in first
    assert "waiting" not in attempt_json(run, playground.attempt(run, "a")), "it runs"


def test_an_approval_shows_what_it_asks_and_whom(playground: Playground) -> None:
    """However deep it lies, from the top as well as from its own workflow."""
    playground.push(ASKING)
    playground.push(AROUND)
    run = playground.start("around")
    found = shown(playground, run)
    assert [wait["path"] for wait in found["waiting"]] == ["subs/1/sub/each/1/ok", "subs/1/sub/each/2/ok"]
    assert found["waiting_count"] == 2
    wait = found["waiting"][0]
    place = "/api/v3/workflows/around/instances/1/steps/subs/1/sub/each/1/ok/actions"
    assert wait["links"] == {"approve": f"{place}/approve", "reject": f"{place}/reject"}
    assert (wait["reason"], wait["question"]) == ("APPROVAL", "Go on with 1?")
    assert (wait["approvers"], wait["min_approvals"], wait["decisions"]) == (["ann", "bob"], 2, [])
    assert wait["since"] == playground.clock()
    assert "until" not in wait
    child = playground.state.run("asking", 1)
    assert child is not None
    assert [wait["path"] for wait in shown(playground, child)["waiting"]] == ["each/1/ok", "each/2/ok"]


def test_open_approvals_are_listed_oldest_first(playground: Playground) -> None:
    """At their workflows, page by page; who has agreed already is named, and one that is over is listed no more."""
    playground.push(ASKING)
    playground.push(AROUND)
    playground.start("around")
    run = playground.start("asking")
    playground.clock.now += 5_000
    playground.engine.approve(playground.address(run, "each", "1", "ok"), by="ann", comment="fine")
    playground.settle()
    found = [approval_json(one) for one in playground.engine.approvals()]
    assert [(one["workflow_id"], one["workflow_instance_id"], one["path"]) for one in found] == [
        ("asking", 1, "each/1/ok"),
        ("asking", 1, "each/2/ok"),
        ("asking", 2, "each/1/ok"),
        ("asking", 2, "each/2/ok"),
    ]
    (decision,) = found[2]["decisions"]
    assert (decision["by"], decision["is_approved"], decision["comment"]) == ("ann", True, "fine")
    assert found[2]["links"]["approve"].endswith("/asking/instances/2/steps/each/1/ok/actions/approve")
    some = playground.engine.approvals(limit=3)
    rest = playground.engine.approvals(after=some[-1].attempt.uuid)
    assert [approval_json(one) for one in (*some, *rest)] == found
    assert playground.engine.approvals(workflow_id="around") == [], "it has none of its own"
    assert len(playground.engine.approvals(workflow_id="asking", namespaces=["", "x"])) == 4
    assert playground.engine.approvals(namespaces=["x"]) == []
    playground.engine.reject(playground.address(run, "each", "1", "ok"), by="bob")
    playground.engine.stop(playground.address(run))
    playground.settle()
    assert {one.address.instance_id for one in playground.engine.approvals()} == {1}


@pytest.mark.parametrize(("more", "then"), [("", "reject"), (", on_timeout: approve", "approve")])
def test_an_approval_says_until_when(playground: Playground, more: str, then: str) -> None:
    """And what counts then."""
    asked = f"approval: {{message: Go?, timeout: 60{more}}}"
    playground.push(f"Workflow: {{id: w, jobs: [{{job: {{id: ok, type: Approval, {asked}}}}}]}}")
    run = playground.start()
    (wait,) = shown(playground, run)["waiting"]
    assert (wait["until"], wait["on_timeout"]) == (playground.clock() + 60_000, then)
    assert "next_attempt_time" not in attempt_json(run, playground.attempt(run, "ok")), "there is no other attempt"
    playground.advance(60)
    assert playground.engine.approvals() == []


def test_a_rejected_approval_has_no_log(playground: Playground) -> None:
    """Nobody has worked on it."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: ok, type: Approval, approval: {message: Go?}}}]}")
    run = playground.start()
    playground.engine.reject(playground.address(run, "ok"), by="ann", comment="no")
    playground.settle()
    (failure,) = shown(playground, run)["failures"]
    assert failure["message"] == "rejected by ann: no"
    assert "links" not in failure


def test_signals_that_a_step_waits_for_are_named(playground: Playground) -> None:
    """With what their params must be; a loop may wait as well."""
    dependency = "signal_dependencies: [{name: db.ready, match_params: {day: {value: 5, operator: '>='}}}]"
    playground.push(f"Workflow: {{id: w, jobs: [{{job: {{id: a, type: NoOp, {dependency}}}}}]}}")
    (wait,) = shown(playground, playground.start())["waiting"]
    assert (wait["reason"], wait["path"], wait["since"]) == ("SIGNALS", "a", playground.clock())
    assert wait["signals"] == [{"name": "db.ready", "match_params": {"day": {"value": 5, "operator": ">="}}}]
    assert wait["links"]["bypass"].endswith("/steps/a/actions/bypass")


def test_permits_that_a_step_waits_for_are_named(playground: Playground) -> None:
    """With how many steps hold them."""
    playground.engine.limit_tag("gold", 1)
    playground.push(
        "Workflow: {id: w, run_strategy: parallel, jobs: [{job: {id: a, type: Sleep, tags: [gold, free]}}]}"
    )
    playground.script.parts["a"] = BUSY
    playground.start()
    run = playground.start()
    (wait,) = shown(playground, run)["waiting"]
    assert (wait["reason"], wait["since"]) == ("PERMITS", playground.clock())
    gold = {"name": "tag:gold", "limit": 1, "held": 1}
    assert gold in wait["permits"]
    assert "tag:free" not in [permit["name"] for permit in wait["permits"]], "it has no limit"
    playground.engine.stop(playground.address(run))
    playground.settle()


def test_a_paused_step_is_named(playground: Playground) -> None:
    """It waits at a breakpoint until it is resumed."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.engine.pause(Breakpoint("w", "a"))
    (wait,) = shown(playground, playground.start())["waiting"]
    assert (wait["reason"], wait["path"], wait["since"]) == ("BREAKPOINT", "a", playground.clock())
    assert wait["links"]["resume"].endswith("/steps/a/actions/resume")


def test_the_last_line_about_progress_is_shown(playground: Playground) -> None:
    """Of what runs now, wherever it is; steps that tell nothing are left out."""
    playground.push(PARTS)
    playground.script.parts["load"] = BUSY
    run = playground.start()
    steps = playground.state.live_steps(run.uuid)
    assert [attempt.step_id for attempt in steps.running] == ["load"] * 3
    first, second, third = steps.running
    playground.state.append_log(LogChunk(first.uuid, 0, f"{PROGRESS}stage 1 of 4\n"))
    playground.state.append_log(LogChunk(first.uuid, 1, f"{PROGRESS}stage 2 of 4\n{PROGRESS}stage 3 of 4\nso far\n"))
    playground.state.append_log(LogChunk(second.uuid, 0, "x" * 9_000 + f"\n{PROGRESS}stage 1 of 1\n"))
    playground.state.append_log(LogChunk(third.uuid, 0, "no progress\n"))
    found = shown(playground, run)["progress"]
    assert [(one["path"], one["message"]) for one in found] == [
        ("parts/1/load", "stage 3 of 4"),
        ("parts/2/load", "stage 1 of 1"),
    ]


def test_the_number_of_results_of_a_kind_is_limited(playground: Playground) -> None:
    """And all of them counted."""
    playground.push(PARTS.replace("to: 4", "to: 13"))
    playground.script.parts["load"] = USER_ERROR
    run = playground.start()
    steps = playground.state.live_steps(run.uuid, limit=2)
    assert (len(steps.retrying), steps.waiting, steps.running) == (2, 10, ())
    assert shown(playground, run)["waiting_count"] == 10
    assert len(shown(playground, run)["waiting"]) == 5


def test_what_is_over_waits_for_nothing(playground: Playground) -> None:
    """Whatever its attempts said last."""
    playground.push(PARTS)
    playground.script.parts["load"] = USER_ERROR
    run = playground.start()
    playground.engine.stop(playground.address(run))
    playground.settle()
    assert overview_of(playground.tools, playground.fresh(run)).live == Live()
    assert playground.state.live_steps("none") == LiveSteps()
    assert playground.state.ancestry([]) == {}
    assert playground.state.last_lines([]) == {}
    assert playground.state.awaited_permits([]) == {}


def test_an_approval_that_is_deleted_meanwhile_is_omitted(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the list and the look at where it is."""
    playground.push(ASKING)
    playground.start("asking")
    monkeypatch.setattr(type(playground.state), "ancestry", lambda *_: {})
    assert playground.engine.approvals() == []
