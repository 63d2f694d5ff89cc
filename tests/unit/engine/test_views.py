"""Overviews of instances, and documents in Maestro's shape."""

import json
from dataclasses import replace

import pytest
from pydantic.fields import FieldInfo
from sqlalchemy import event
from tests.engines import BUSY, DONE, FATAL_ERROR, START, USER_ERROR, Playground

from calve.engine import Initiator, Outcome, StartStatus, State, StepStatus
from calve.engine.model import Attempt, Run, Scope, Snapshot, Started
from calve.engine.views import (
    Iterations,
    Overview,
    StepOverview,
    attempt_json,
    failures,
    instance_json,
    overview_json,
    overview_of,
    restart_plan_json,
    run_json,
    started_json,
    step_source,
)
from calve.errors import ActionRefused
from calve.store.engine.trees import read_leaves

TWO = """
Workflow:
  id: w
  day: 20260301
  jobs:
    - job: {id: a, type: Sleep, tags: [slow]}
    - job: {id: b, type: Sleep}
  dag: sequential
"""
LOOP = """
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        concurrency: 2
        ranges: {i: {from: 0, to: 4}}
        jobs:
          - job: {id: job, type: Sleep}
"""
WHILE = """
Workflow:
  id: w
  jobs:
    - while:
        id: again
        condition: i < 2
        loop_params: {i: 0}
        jobs:
          - job: {id: job, type: Sleep, '!i<long>': i + 1}
"""
OUTER = """
Workflow:
  id: outer
  jobs:
    - subworkflow: {id: sub, subworkflow_id: w, subworkflow_version: latest}
"""


def _overview(playground: Playground, run: Run) -> Overview:
    return overview_of(playground.tools, playground.fresh(run))


def test_a_start_is_answered_as_maestro_does(playground: Playground) -> None:
    """With which run it is, and what became of the request."""
    playground.push(TWO)
    started = playground.begin(request_id="r")
    answer = {
        "workflow_id": "w",
        "workflow_version_id": 1,
        "workflow_instance_id": 1,
        "workflow_run_id": 1,
        "workflow_uuid": started.run.uuid,
        "status": "CREATED",
        "timeline_event": {
            "timestamp": START,
            "type": "LOG",
            "level": "INFO",
            "message": "Started by an unknown user.",
        },
    }
    assert started_json(started) == answer
    again = Started(StartStatus.DUPLICATED, started.run)
    assert started_json(again) == {**answer, "status": "DUPLICATED"}


def test_an_instance_says_who_began_it_and_when(playground: Playground) -> None:
    """What there is no value for is left out."""
    playground.push(TWO)
    run = playground.begin(initiator=Initiator(user="ann")).run
    said = instance_json(run)
    assert said == {
        **run_json(run),
        "correlation_id": run.uuid,
        "run_config": {"policy": "START_FRESH_NEW_RUN"},
        "run_properties": {},
        "initiator": {"type": "MANUAL", "user": "ann", "depth": 0},
        "run_policy": "START_FRESH_NEW_RUN",
        "request_time": START,
        "create_time": START,
        "modify_time": START,
    }
    full = replace(
        run,
        is_queued=True,
        message="why",
        tags=("t",),
        request_id="r",
        started_at=START + 2,
        ended_at=START + 3,
        initiator=Initiator(timezone="UTC", trigger={"signals": {}}),
    )
    assert instance_json(full) == {
        **said,
        "initiator": {"type": "MANUAL", "timezone": "UTC", "trigger": {"signals": {}}, "depth": 0},
        "run_config": {"policy": "START_FRESH_NEW_RUN", "runtime_tags": [{"name": "t", "namespace": "RUNTIME"}]},
        "request_id": "r",
        "tags": ["t"],
        "start_time": START + 2,
        "end_time": START + 3,
        "modify_time": START + 3,
        "is_queued": True,
        "message": "why",
    }


def test_an_overview_has_every_step_also_those_that_have_not_begun(playground: Playground) -> None:
    """In the order of the definition, and counted by status."""
    playground.push(TWO)
    playground.script.parts["a"] = BUSY
    run = playground.start()
    overview = _overview(playground, run)
    assert [(step.step_id, step.ordinal, step.type, step.status) for step in overview.steps] == [
        ("a", 1, "Sleep", StepStatus.RUNNING),
        ("b", 2, "Sleep", StepStatus.NOT_CREATED),
    ]
    assert [step.message for step in overview.steps] == ["", ""]
    said = overview_json(overview)
    assert said["runtime_overview"] == {
        "total_step_count": 2,
        "step_overview": {"RUNNING": {"cnt": 1, "steps": [[1, START, None]]}, "NOT_CREATED": {"cnt": 1}},
        "rollup_overview": {"total_leaf_count": 1, "overview": {"RUNNING": {"cnt": 1, "ref": {"w:1": ["1:a:1"]}}}},
        "run_status": "IN_PROGRESS",
    }
    assert said["aggregated_info"] == {
        "workflow_instance_status": "IN_PROGRESS",
        "step_aggregated_views": {
            "a": {"status": "RUNNING", "workflow_run_id": 1, "start_time": START},
            "b": {"status": "NOT_CREATED"},
        },
    }
    assert said["steps"][1] == {"step_id": "b", "step_instance_id": 2, "type": "Sleep", "status": "NOT_CREATED"}
    assert said["params"]["day"]["evaluated_result"] == 20260301
    assert json.loads(json.dumps(said)) == said


def test_an_attempt_shows_its_times_and_no_secret(playground: Playground) -> None:
    """Its params are evaluated, secrets stand as stars in them."""
    playground.secrets["token"] = "open sesame"
    playground.push(TWO.replace("tags:", "'hidden<secret>': token, tags:"))
    playground.script.parts["a"] = [USER_ERROR, Outcome(State.DONE, artifacts={"job": 7})]
    run = playground.start()
    waiting = attempt_json(run, playground.attempt(run, "a"))
    assert waiting["status"] == "USER_FAILED"
    assert waiting["next_attempt_time"] > START
    playground.advance(3_600)
    said = attempt_json(run, playground.attempt(run, "a"))
    assert (said["step_id"], said["step_attempt_id"], said["step_instance_id"]) == ("a", 2, 1)
    assert (said["retries"], said["tags"], said["artifacts"]) == ({"error": 1}, [{"name": "slow"}], {"job": 7})
    assert said["runtime_state"]["status"] == said["status"] == "SUCCEEDED"
    assert said["runtime_state"].keys() >= {"create_time", "start_time", "end_time"}
    assert said["params"]["hidden"]["evaluated_result"] == "***"
    assert "open sesame" not in json.dumps(said)
    assert "signal_dependencies" not in said


def test_an_attempt_shows_what_its_dependencies_matched() -> None:
    """If it has some."""
    run = Run("u", "w", 1, 1, 1, "w", "u")
    attempt = Attempt("x", "u", "u", "s", 1, 1, "Sleep", dependencies=({"name": "x", "seen": 3},), worker="me")
    said = attempt_json(run, attempt)
    assert (said["signal_dependencies"], said["worker"]) == ({"dependencies": [{"name": "x"}]}, "me")


def test_a_foreach_is_a_count_of_its_iterations(playground: Playground) -> None:
    """And the overview of an iteration is that of its own steps."""
    playground.push(LOOP)
    playground.script.parts["job"] = [Outcome(State.DONE), BUSY]
    run = playground.start()
    overview = _overview(playground, run)
    (loop,) = overview.steps
    assert loop.iterations == Iterations(done=1, active=2, failed=0, total=4)
    assert overview_json(overview)["steps"][0]["iterations"] == {"done": 1, "active": 2, "failed": 0, "total": 4}
    assert overview.rollup == {StepStatus.SUCCEEDED: 1, StepStatus.RUNNING: 2}
    assert loop.attempt is not None
    iteration = playground.state.child_runs(loop.attempt.uuid)[0]
    inner = overview_of(playground.tools, iteration)
    assert [step.step_id for step in inner.steps] == ["job"]
    assert inner.rollup == {StepStatus.SUCCEEDED: 1}
    assert overview_json(inner)["runtime_overview"]["rollup_overview"] == {
        "total_leaf_count": 1,
        "overview": {"SUCCEEDED": {"cnt": 1}},
    }


def test_an_overview_reads_its_steps_once(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also to find what failed; and to write them down, defaults are not worked out for each."""
    playground.push(TWO)
    playground.script.parts["b"] = FATAL_ERROR
    run = playground.start()
    before = overview_json(_overview(playground, run))
    run, loaded, load = playground.fresh(run), list[str](), playground.state.load

    def counted(uuid: str) -> Snapshot | None:
        loaded.append(uuid)
        return load(uuid)

    monkeypatch.setattr(playground.state, "load", counted)
    monkeypatch.setattr(FieldInfo, "get_default", lambda *_, **__: pytest.fail("a default was worked out again"))
    overview = overview_of(playground.tools, run)
    assert [failure.path for failure in overview.failures] == [("b",)]
    assert loaded == [run.uuid]
    assert overview_json(overview) == before


@pytest.mark.parametrize(("outcome", "queries"), [(DONE, 1), (FATAL_ERROR, 2)])
def test_a_loop_is_gone_through_once_if_nothing_in_it_is_to_be_named(
    playground: Playground, outcome: Outcome, queries: int
) -> None:
    """What is unfinished or failed is named; of what succeeded, it is enough to count it."""
    playground.push(LOOP)
    playground.script.parts["job"] = outcome
    run = playground.start()
    name = playground.attempt(run, "loop").artifacts["maestro_foreach"]["loop_workflow_id"]
    asked: list[str] = []
    with playground.store._database.read() as connection:
        event.listen(connection, "before_cursor_execute", lambda *given: asked.append(given[2]))
        leaves = read_leaves(connection, Scope(run.root_uuid, name), 100)
    assert len(asked) == queries
    assert bool(leaves.named) == (queries == 2)


def test_a_while_does_not_know_how_many_there_will_be(playground: Playground) -> None:
    """It counts what has been."""
    playground.push(WHILE)
    overview = _overview(playground, playground.start())
    assert overview.steps[0].iterations == Iterations(done=2, active=0, failed=0)
    assert overview_json(overview)["steps"][0]["iterations"] == {"done": 2, "active": 0, "failed": 0}


def test_a_subworkflow_names_its_child(playground: Playground) -> None:
    """The instance that it has started."""
    playground.push(TWO)
    playground.push(OUTER)
    overview = _overview(playground, playground.start("outer"))
    assert overview_json(overview)["steps"][0]["child"]["workflow_id"] == "w"


def test_failures_are_found_however_deep(playground: Playground) -> None:
    """With the path that leads there, and at most as many as are asked for."""
    playground.push(LOOP)
    playground.script.parts["job"] = FATAL_ERROR
    run = playground.start()
    found = failures(playground.state, run)
    assert ["/".join(failure.path) for failure in found] == ["loop/1/job", "loop/2/job"]
    assert found[0].message == "no way"
    assert len(failures(playground.state, run, limit=1)) == 1


def test_a_failure_in_a_subworkflow_is_at_its_step(playground: Playground) -> None:
    """The step of the subworkflow is part of the path; steps that succeeded are no failures."""
    playground.push(TWO)
    playground.push(OUTER)
    playground.script.parts["b"] = FATAL_ERROR
    run = playground.start("outer")
    assert [failure.path for failure in failures(playground.state, run)] == [("sub", "b")]


def test_what_is_gone_has_neither_steps_nor_failures(playground: Playground) -> None:
    """A run that was deleted meanwhile is shown as it was."""
    playground.push(TWO)
    run = replace(playground.start(), uuid="gone")
    assert overview_of(playground.tools, run).steps[0] == StepOverview("a", 1, "Sleep")
    assert failures(playground.state, run) == []


INSIDE = """
Workflow:
  id: w
  times: 7
  jobs:
    - foreach:
        id: loop
        ranges: {i: {from: 0, to: 1}}
        jobs:
          - job: {id: job, type: Sleep, timeout: '${times} min', retry_policy: {error_retry_limit: '${times}'}}
          - job: {id: plain, type: NoOp}
"""


def test_a_step_in_a_loop_knows_the_params_of_its_instance(playground: Playground) -> None:
    """Its timeout and its retries refer to them; where they cannot be told, they are left out."""
    playground.push(INSIDE)
    run = playground.start()
    loop = playground.attempt(run, "loop")
    (iteration,) = playground.state.child_runs(loop.uuid)
    attempt = playground.attempt(iteration, "job")
    source = step_source(playground.tools, iteration, attempt)
    said = attempt_json(iteration, attempt, source)
    assert (said["timeout_in_millis"], said["step_retry"]["error_retry_limit"]) == (420_000, 7)
    nothing = replace(source, of_run=replace(source.of_run, around={}))
    said = attempt_json(iteration, attempt, nothing)
    assert "timeout_in_millis" not in said
    assert said["step_retry"] == {
        "error_retries": 0,
        "platform_retries": 0,
        "timeout_retries": 0,
        "retryable": True,
    }


def test_an_attempt_of_another_version_shows_its_own_definition(playground: Playground) -> None:
    """What a restart carries over was made from the definition of its own run."""
    playground.push(TWO)
    playground.script.parts["b"] = FATAL_ERROR
    run = playground.start()
    playground.push(TWO.replace("id: a, type: Sleep", "id: a, type: NoOp"))
    attempt = playground.attempt(run, "a")
    later = replace(run, uuid="later", run_id=2, version_id=2)
    said = attempt_json(later, attempt, step_source(playground.tools, later, attempt))
    assert said["definition"]["step"]["type"] == "Sleep"
    assert (said["workflow_run_id"], said["workflow_version_id"], said["workflow_uuid"]) == (1, 1, run.uuid)


def test_a_loop_that_has_not_begun_has_nothing_inside(playground: Playground) -> None:
    """Its document is that of any step."""
    playground.push(OUTER.replace("sub, ", "sub, tags: [few], "))
    playground.push(TWO)
    playground.engine.limit_tag("few", 0)
    run = playground.start("outer")
    attempt = playground.attempt(run, "sub")
    said = attempt_json(run, attempt, step_source(playground.tools, run, attempt))
    assert (said["status"], said["artifacts"]) == ("WAITING_FOR_PERMITS", {})


def test_nobody_hands_over_artifacts_of_a_loop(playground: Playground) -> None:
    """They say how far it has come: the engine goes on by them."""
    playground.push(LOOP)
    playground.script.parts["job"] = BUSY
    run = playground.start()
    loop = playground.attempt(run, "loop")
    with pytest.raises(ActionRefused, match="runs other steps"):
        playground.engine.put_outputs(loop.uuid, {}, {"maestro_foreach": 5})
    inner = playground.attempt(playground.state.child_runs(loop.uuid)[0], "job")
    playground.engine.put_outputs(inner.uuid, {}, {"maestro_foreach": 5})
    assert playground.attempt(run, "loop").artifacts == loop.artifacts


def test_what_a_restart_would_do_is_shown_step_by_step(playground: Playground) -> None:
    """With the reason for each, and why it would be refused."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}")
    run = playground.start()
    assert restart_plan_json(playground.engine.plan_restart(playground.address(run))) == {
        "workflow_version_id": 1,
        "restart_version_id": 1,
        "steps": [{"step_id": "a", "fate": "KEPT", "reason": "SUCCEEDED, unchanged", "obstacle": ""}],
        "refusal": "All steps of w instance 1 are complete. Restart it from the beginning, or name a step.",
        "repeats": [],
    }
