"""Runs that are set aside."""

from tests.engines import BUSY, Playground

from calve.engine import RunStatus, StepStatus
from calve.engine.decisions import is_set_aside, quarantine
from calve.engine.model import Task, TaskKind

S = StepStatus


def task_of(playground: Playground, run_uuid: str) -> Task:
    """Return a task about a run, held by the playground."""
    return Task(TaskKind.RUN, run_uuid, run_uuid, None, playground.worker, 1, 0, 0)


def test_what_is_under_way_fails_and_what_is_done_stays(playground: Playground) -> None:
    """The timeline says why."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: done, type: Sleep}
    - job: {id: busy, type: Sleep}
    - job: {id: waits, type: Sleep, signal_dependencies: [never]}
""")
    playground.script.parts["busy"] = BUSY
    run = playground.start()
    changes = quarantine(playground.tools, task_of(playground, run.uuid), "it is hopeless")
    changes.done = []
    playground.state.commit(changes)
    assert playground.statuses(run) == {"done": S.SUCCEEDED, "busy": S.INTERNALLY_FAILED, "waits": S.INTERNALLY_FAILED}
    ended = playground.fresh(run)
    assert is_set_aside(ended)
    assert ended.message.startswith("Set aside: it is hopeless.")
    assert ended.message in playground.told(run, "busy")
    playground.advance(3_600)


def test_what_runs_inside_is_killed_and_who_waits_is_woken(playground: Playground) -> None:
    """A loop's iterations do not go on without it; the failure of one reaches the loop."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach:
        id: loop
        ranges: {i: {from: 0, to: 2}}
        jobs:
          - job: {id: a, type: Sleep}
""")
    playground.script.parts["a"] = BUSY
    run = playground.start()
    iterations = playground.state.child_runs(playground.attempt(run, "loop").uuid)
    changes = quarantine(playground.tools, task_of(playground, run.uuid), "it is hopeless")
    changes.done = []
    playground.state.commit(changes)
    playground.settle()
    assert [playground.fresh(each).status for each in iterations] == [RunStatus.FAILED, RunStatus.FAILED]
    run = playground.start()
    first, second = playground.state.child_runs(playground.attempt(run, "loop").uuid)
    changes = quarantine(playground.tools, task_of(playground, first.uuid), "it is hopeless")
    changes.done = []
    playground.state.commit(changes)
    playground.engine.skip(playground.address(run, "loop", "2", "a"))
    playground.settle()
    assert playground.fresh(second).status is RunStatus.SUCCEEDED
    assert playground.fresh(run).status is RunStatus.FAILED


def test_nothing_happens_to_what_is_over_or_gone(playground: Playground) -> None:
    """The task is done, that is all."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}")
    run = playground.start()
    for uuid in (run.uuid, "gone"):
        changes = quarantine(playground.tools, task_of(playground, uuid), "It is hopeless.")
        assert (changes.runs, changes.attempts, len(changes.done)) == ([], [], 1)
