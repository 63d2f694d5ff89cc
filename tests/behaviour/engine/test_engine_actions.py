"""What people do to instances and steps: stop, kill, skip, pause, resume, bypass, unblock, delete."""

import pytest
from tests.engines import BUSY, DONE, FATAL_ERROR, USER_ERROR, Playground

from calve.engine import Breakpoint, Run, RunStatus, StepStatus
from calve.errors import ActionRefused, RequestInvalid, WorkflowMissing

S = StepStatus

FOUR = """
Workflow:
  id: w
  jobs:
    - job: {id: runs, type: Sleep, transition: [after]}
    - job: {id: fails, type: Sleep}
    - job: {id: waits, type: Sleep, signal_dependencies: [never]}
    - job: {id: pauses, type: Sleep}
    - job: {id: after, type: Sleep}
"""


@pytest.fixture
def run(playground: Playground) -> Run:
    """Start an instance whose steps stand in four states."""
    playground.push(FOUR)
    playground.engine.pause(Breakpoint("w", "pauses"))
    playground.script.parts |= {"runs": [BUSY, DONE], "fails": [USER_ERROR, DONE]}
    run = playground.start()
    assert playground.statuses(run) == {
        "runs": S.RUNNING,
        "fails": S.USER_FAILED,
        "waits": S.WAITING_FOR_SIGNALS,
        "pauses": S.PAUSED,
    }
    return run


def test_a_stopped_instance_stops_all_its_steps(playground: Playground, run: Run) -> None:
    """The work that is under way is ended first."""
    playground.engine.stop(playground.address(run), by="ann", reason="wrong day")
    playground.settle()
    assert set(playground.statuses(run).values()) == {S.STOPPED}
    ended = playground.fresh(run)
    assert (ended.status, ended.action, ended.timeout_at) == (RunStatus.STOPPED, None, None)
    assert playground.script.ended == ["runs"]
    assert "STOP by ann: wrong day." in playground.told(run, "runs")


def test_a_killed_instance_fails_whatever_the_modes_of_its_steps(playground: Playground) -> None:
    """A failure mode counts for the step itself, not for what comes from above."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, failure_mode: ignore_failure}}]}")
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.engine.kill(playground.address(run), by="ann")
    playground.settle()
    assert playground.statuses(run) == {"a": S.FATALLY_FAILED}
    assert playground.fresh(run).status is RunStatus.FAILED


def test_a_killed_step_fails_by_its_failure_mode(playground: Playground) -> None:
    """One that is to be ignored is COMPLETED_WITH_ERROR, and the run goes on."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, failure_mode: ignore_failure}
    - job: {id: b, type: Sleep}
  dag: sequential
""")
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.engine.kill(playground.address(run, "a"))
    playground.settle()
    assert playground.statuses(run) == {"a": S.COMPLETED_WITH_ERROR, "b": S.SUCCEEDED}


@pytest.mark.parametrize("step", ["runs", "fails", "waits", "pauses"])
def test_one_step_is_stopped_and_the_others_continue(playground: Playground, run: Run, step: str) -> None:
    """Wherever it stands; the run ends as STOPPED when the others are over."""
    playground.engine.stop(playground.address(run, step))
    playground.settle()
    assert playground.statuses(run)[step] is S.STOPPED
    assert playground.fresh(run).status is RunStatus.IN_PROGRESS


@pytest.mark.parametrize("step", ["runs", "fails", "waits", "pauses"])
def test_a_step_is_killed_wherever_it_stands(playground: Playground, run: Run, step: str) -> None:
    """It is FATALLY_FAILED."""
    playground.engine.kill(playground.address(run, step))
    playground.settle()
    assert playground.statuses(run)[step] is S.FATALLY_FAILED


@pytest.mark.parametrize("step", ["runs", "fails", "waits", "pauses"])
def test_a_step_is_skipped_wherever_it_stands(playground: Playground, run: Run, step: str) -> None:
    """The steps after it go on."""
    playground.engine.skip(playground.address(run, step), by="ann")
    playground.settle()
    assert playground.statuses(run)[step] is S.SKIPPED
    assert ("after" in playground.statuses(run)) == (step == "runs")
    assert "SKIP by ann." in playground.told(run, step)


def test_a_step_that_has_ended_is_skipped_by_a_restart(playground: Playground) -> None:
    """In a run of its own, which takes over what was done."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep}
    - job: {id: b, type: Sleep}
    - job: {id: c, type: Sleep}
  dag: sequential
""")
    playground.script.parts["b"] = FATAL_ERROR
    run = playground.start()
    playground.engine.skip(playground.address(run, "b"))
    playground.settle()
    latest = playground.state.run("w", 1)
    assert latest is not None
    assert (latest.run_id, latest.status) == (2, RunStatus.SUCCEEDED)
    assert playground.statuses(latest) == {"a": S.SUCCEEDED, "b": S.SKIPPED, "c": S.SUCCEEDED}
    assert playground.script.calls == ["a", "b", "c"]


def test_an_unsatisfied_step_cannot_be_skipped(playground: Playground) -> None:
    """By Maestro's map it can be restarted only."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, never: false, transition: ["IF never THEN b"]}
    - job: {id: b, type: Sleep}
""")
    run = playground.start()
    with pytest.raises(ActionRefused) as refused:
        playground.engine.skip(playground.address(run, "b"))
    assert refused.value.context["possible"] == ["RESTART"]


def test_to_skip_one_has_to_say_what(playground: Playground, run: Run) -> None:
    """An instance cannot be skipped; a step that has not begun neither."""
    with pytest.raises(RequestInvalid, match="does not name a step"):
        playground.engine.skip(playground.address(run))
    with pytest.raises(WorkflowMissing, match="has not started"):
        playground.engine.skip(playground.address(run, "after"))


def test_a_resumed_step_continues_though_the_breakpoint_stays(playground: Playground, run: Run) -> None:
    """The next instance pauses there again."""
    playground.engine.resume(playground.address(run, "pauses"))
    playground.settle()
    assert playground.statuses(run)["pauses"] is S.SUCCEEDED
    playground.engine.stop(playground.address(run))
    playground.settle()
    assert playground.statuses(playground.start())["pauses"] is S.PAUSED


def test_taking_a_breakpoint_away_resumes_all_that_it_paused(playground: Playground, run: Run) -> None:
    """Over all instances."""
    resumed = playground.engine.unpause(Breakpoint("w", "pauses"))
    assert [each.uuid for each in resumed] == [run.uuid]
    playground.settle()
    assert playground.statuses(run)["pauses"] is S.SUCCEEDED
    assert playground.engine.unpause(Breakpoint("w", "pauses")) == []


@pytest.mark.parametrize(
    ("point", "pauses"),
    [
        (Breakpoint("w", "a"), True),
        (Breakpoint("w", "a", version_id=1), True),
        (Breakpoint("w", "a", version_id=2), False),
        (Breakpoint("w", "a", instance_id=1), True),
        (Breakpoint("w", "a", instance_id=2), False),
        (Breakpoint("w", "a", run_id=1), True),
        (Breakpoint("w", "a", run_id=2), False),
        (Breakpoint("w", "a", attempt_id=1), True),
        (Breakpoint("w", "a", attempt_id=2), False),
        (Breakpoint("w", "a", 1, 1, 1, 1), True),
        (Breakpoint("w", "a", 1, 1, 1, 2), False),
    ],
)
def test_a_breakpoint_pauses_where_its_coordinates_say(
    playground: Playground, point: Breakpoint, *, pauses: bool
) -> None:
    """0 stands for every one."""
    for _ in range(2):
        playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.engine.pause(point)
    run = playground.start(version=1)
    assert playground.statuses(run)["a"] is (S.PAUSED if pauses else S.SUCCEEDED)


def test_a_breakpoint_at_the_second_attempt_pauses_a_retry(playground: Playground) -> None:
    """The first one goes by."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.engine.pause(Breakpoint("w", "a", attempt_id=2))
    playground.script.parts["a"] = USER_ERROR
    run = playground.start()
    playground.advance(60)
    assert [attempt.status for attempt in playground.state.attempts(run.uuid)] == [S.USER_FAILED, S.PAUSED]


def test_a_breakpoint_needs_a_step_that_exists(playground: Playground) -> None:
    """The error names those that do."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    with pytest.raises(WorkflowMissing, match="no step b") as missing:
        playground.engine.pause(Breakpoint("w", "b"))
    assert missing.value.remedy == "It has a."
    with pytest.raises(WorkflowMissing, match="Workflow v does not exist"):
        playground.engine.pause(Breakpoint("v", "a"))


def test_a_bypassed_step_continues_without_its_signals(playground: Playground, run: Run) -> None:
    """Its dependencies are marked as skipped."""
    playground.engine.bypass(playground.address(run, "waits"), by="ann")
    playground.settle()
    attempt = playground.attempt(run, "waits")
    assert attempt.status is S.SUCCEEDED
    assert [dependency["status"] for dependency in attempt.dependencies] == ["SKIPPED"]
    assert "The dependencies were bypassed by ann." in playground.told(run, "waits")


def test_waiting_costs_nothing(playground: Playground, run: Run) -> None:
    """A step that pauses or waits for signals has no task; the retry has one that is due later."""
    counts = playground.state.counts()
    assert sum(counts.values()) == 2  # the retry's, and that of the work
    assert playground.claim() == []
    assert run.status is RunStatus.IN_PROGRESS


def test_every_instance_of_a_workflow_is_stopped_or_killed(playground: Playground) -> None:
    """Those that run, and those in the queue."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = BUSY
    runs = [playground.start() for _ in range(3)]
    assert len(playground.engine.stop_all("w", by="ann")) == 3
    playground.settle()
    assert {playground.fresh(run).status for run in runs} == {RunStatus.STOPPED}
    runs = [playground.start() for _ in range(2)]
    assert len(playground.engine.kill_all("w")) == 2
    playground.settle()
    assert {playground.fresh(run).status for run in runs} == {RunStatus.FAILED}
    assert playground.engine.stop_all("w") == []
    for act in (playground.engine.stop_all, playground.engine.kill_all):
        with pytest.raises(WorkflowMissing, match="Workflow v does not exist"):
            act("v")


def test_an_instance_in_the_queue_ends_without_having_begun(playground: Playground) -> None:
    """No step of it is made."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = BUSY
    playground.start()
    queued = playground.start()
    assert (queued.status, queued.is_queued) == (RunStatus.CREATED, True)
    playground.engine.stop(playground.address(queued))
    playground.settle()
    ended = playground.fresh(queued)
    assert (ended.status, ended.is_queued, ended.started_at) == (RunStatus.STOPPED, False, None)
    assert playground.statuses(queued) == {}


def test_what_is_over_cannot_be_stopped(playground: Playground) -> None:
    """The error says what can be done instead."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    run = playground.start()
    with pytest.raises(ActionRefused, match="is SUCCEEDED: STOP is not possible") as refused:
        playground.engine.stop(playground.address(run))
    assert refused.value.remedy == "Possible actions: RESTART."
    with pytest.raises(ActionRefused):
        playground.engine.stop(playground.address(run, "a"))
    with pytest.raises(WorkflowMissing):
        playground.engine.stop(playground.address(run, "b"))


def test_a_kill_comes_before_a_stop_that_is_under_way(playground: Playground) -> None:
    """The harsher of two actions counts; a second stop changes nothing."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = BUSY
    run = playground.start()
    playground.engine.stop(playground.address(run, "a"))
    playground.engine.kill(playground.address(run))
    playground.settle()
    assert playground.statuses(run) == {"a": S.FATALLY_FAILED}
    assert playground.fresh(run).status is RunStatus.FAILED


def test_a_stop_comes_before_a_resume_that_is_under_way(playground: Playground, run: Run) -> None:
    """What is to end does not begin first."""
    playground.engine.resume(playground.address(run, "pauses"))
    playground.engine.kill(playground.address(run))
    playground.settle()
    assert playground.statuses(run)["pauses"] is S.FATALLY_FAILED
    assert "pauses" not in playground.script.calls


def test_a_workflow_is_deleted_when_none_of_its_instances_is_left(playground: Playground) -> None:
    """Its numbers go on if it comes back."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    playground.script.parts["a"] = [BUSY, DONE]
    run = playground.start()
    with pytest.raises(RequestInvalid):
        playground.engine.delete("w")
    playground.advance(3_600)
    playground.engine.delete("w")
    assert playground.state.workflow("w") is None
    assert playground.state.load(run.uuid) is None
    with pytest.raises(WorkflowMissing):
        playground.engine.delete("w")
    with pytest.raises(WorkflowMissing, match="Workflow w does not exist"):
        playground.begin()
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    assert playground.start().instance_id == 2
