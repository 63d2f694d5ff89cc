"""The life cycle of runs and attempts: statuses, times, timelines, events, logs."""

import pytest
from tests.engines import BUSY, DONE, START, USER_ERROR, Playground

from calve.engine import Breakpoint, Outcome, RunStatus, State, StepContext, StepStatus
from calve.engine.decisions import CALLS
from calve.engine.instances import TIMELINE

pytestmark = pytest.mark.each_store

S = StepStatus


def test_a_step_tells_when_it_came_to_each_state(playground: Playground) -> None:
    """On the database's clock, in milliseconds."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep, tags: [few], signal_dependencies: [ready]}
""")
    playground.engine.pause(Breakpoint("w", "a"))
    playground.engine.limit_tag("few", 0)
    playground.script.parts["a"] = [BUSY, DONE]
    run = playground.start()
    playground.advance(10)
    playground.engine.resume(playground.address(run, "a"))
    playground.advance(10)
    playground.engine.bypass(playground.address(run, "a"))
    playground.advance(10)
    playground.engine.limit_tag("few", 1)
    playground.advance(10)
    playground.advance(3_600)
    moments = {name: (at - START) / 1_000 for name, at in playground.attempt(run, "a").times.items()}
    assert moments == {
        "create": 0,
        "initialize": 20,
        "pause": 0,
        "wait_signal": 20,
        "evaluate_param": 30,
        "wait_permit": 30,
        "start": 40,
        "execute": 40,
        "end": 3_640,
    }
    ended = playground.fresh(run)
    assert (ended.created_at, ended.started_at, ended.ended_at) == (START, START, playground.clock())


def test_events_tell_the_way_of_a_run_in_order(playground: Playground) -> None:
    """From its making to its end, with every state in which it stood between two transactions."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: Sleep}
    - job: {id: b, type: NoOp}
  dag: sequential
""")
    playground.script.parts["a"] = [USER_ERROR, DONE]
    run = playground.start()
    playground.advance(60)
    assert playground.moves(run) == [
        "run: None → CREATED",
        "run: CREATED → IN_PROGRESS",
        "a: NOT_CREATED → RUNNING",
        "a: RUNNING → USER_FAILED",
        "a: NOT_CREATED → RUNNING",
        "a: RUNNING → SUCCEEDED",
        "b: NOT_CREATED → SUCCEEDED",
        "run: IN_PROGRESS → SUCCEEDED",
    ]
    events = playground.state.events(run_uuid=run.uuid)
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert {(event.workflow_id, event.instance_id, event.run_id) for event in events} == {("w", 1, 1)}
    assert [event.attempt_id for event in events if event.step_id == "a"] == [1, 1, 2, 2]
    assert [event.kind for event in events[1:3]] == ["WORKFLOW_INSTANCE_STATUS_CHANGE", "STEP_INSTANCE_STATUS_CHANGE"]


def test_a_step_that_waits_tells_so_once(playground: Playground) -> None:
    """However often it is looked at."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep, tags: [few]}}]}")
    playground.engine.limit_tag("few", 0)
    run = playground.start()
    for _ in range(3):
        playground.engine.limit_tag("few", 0)
        playground.settle()
    playground.engine.limit_tag("few", 1)
    playground.settle()
    assert [move for move in playground.moves(run) if move.startswith("a")] == [
        "a: NOT_CREATED → WAITING_FOR_PERMITS",
        "a: WAITING_FOR_PERMITS → RUNNING",
        "a: RUNNING → SUCCEEDED",
    ]


def test_a_timeline_keeps_the_last_entries(playground: Playground) -> None:
    """The oldest go."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    calls = iter(range(100))
    playground.script.parts["a"] = lambda _: Outcome(State.CONTINUE, message=f"call {next(calls)}", poll_after=1)
    run = playground.start()
    for _ in range(40):
        playground.advance(1)
    timeline = playground.attempt(run, "a").timeline
    assert len(timeline) == TIMELINE
    assert timeline[-1] == {"type": "LOG", "timestamp": playground.clock(), "message": "call 40"}


def test_work_is_called_again_and_keeps_what_it_kept(playground: Playground) -> None:
    """Artifacts of earlier calls are there, and it knows that it is not the first."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")
    seen: list[object] = []

    def work(context: StepContext) -> Outcome:
        seen.append((context.is_first, {**context.artifacts}))
        context.log(f"call {len(seen)}")
        context.keep({"job": "job-1"})
        return Outcome(State.CONTINUE, artifacts={"page": len(seen)}, poll_after=5) if len(seen) < 3 else DONE

    playground.script.parts["a"] = work
    run = playground.start()
    playground.advance(4)
    assert len(seen) == 1
    playground.advance(1)
    playground.advance(5)
    assert seen == [
        (True, {}),
        (False, {"job": "job-1", "page": 1, CALLS: 1}),
        (False, {"job": "job-1", "page": 2, CALLS: 2}),
    ]
    attempt = playground.attempt(run, "a")
    assert attempt.status is S.SUCCEEDED
    assert attempt.artifacts == {"job": "job-1", "page": 2, CALLS: 2}
    assert playground.log(attempt) == "call 1\ncall 2\ncall 3\n"
    assert [chunk.number for chunk in playground.state.log(attempt.uuid)] == [0, 1, 2]


def test_what_goes_wrong_in_a_runtime_is_the_platforms_failure(playground: Playground) -> None:
    """The log has the trace, the timeline the reason."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: Sleep}}]}")

    def work(_: StepContext) -> Outcome:
        raise ZeroDivisionError("division by zero")

    playground.script.parts["a"] = work
    run = playground.start()
    attempt = playground.attempt(run, "a")
    assert attempt.status is S.PLATFORM_FAILED
    assert "ZeroDivisionError: division by zero" in playground.told(run, "a")
    assert "Traceback" in playground.log(attempt)


def test_the_steps_of_a_tree_are_counted(playground: Playground) -> None:
    """By status, the newest attempt of each."""
    playground.push("""
Workflow:
  id: w
  never: false
  jobs:
    - job: {id: a, type: Sleep, transition: ["IF never THEN c"]}
    - job: {id: b, type: Sleep}
    - job: {id: c, type: Sleep}
""")
    playground.script.parts["b"] = USER_ERROR
    run = playground.start()
    playground.advance(60)
    assert playground.state.rollup(run.uuid) == {S.SUCCEEDED: 1, S.UNSATISFIED: 1, S.USER_FAILED: 1}
    assert playground.fresh(run).status is RunStatus.IN_PROGRESS
