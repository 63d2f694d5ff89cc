"""Runs that are set aside."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.engines import BUSY, FATAL_ERROR, Playground

from calve.engine import SET_ASIDE, FailedRun, RunStatus, StepStatus
from calve.engine.decisions import is_set_aside, quarantine
from calve.engine.model import Task, TaskKind
from calve.store.engine import attention

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


def test_what_was_set_aside_is_found_among_other_failures(
    playground: Playground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also inside of a loop, and without looking for what the others failed of."""
    playground.push("Workflow: {id: bad, run_strategy: parallel, jobs: [{job: {id: fails, type: Sleep}}]}")
    playground.push("""
Workflow:
  id: w
  jobs:
    - foreach: {id: loop, ranges: {i: {from: 0, to: 1}}, jobs: [{job: {id: a, type: Sleep}}]}
""")
    playground.script.parts |= {"fails": FATAL_ERROR, "a": BUSY}
    for _ in range(3):
        playground.start("bad")
    run = playground.start()
    (iteration,) = playground.state.child_runs(playground.attempt(run, "loop").uuid)
    changes = quarantine(playground.tools, task_of(playground, iteration.uuid), "it is hopeless")
    changes.done = []
    playground.state.commit(changes)
    playground.settle()
    assert len(playground.state.failed_runs()) == 4
    explain, explained = attention._explain, list[str]()

    def counted(connection: Any, found: dict[str, FailedRun], namespaces: Sequence[str]) -> None:
        explained.extend(one.run.workflow_id for one in found.values())
        explain(connection, found, namespaces)

    monkeypatch.setattr(attention, "_explain", counted)
    (aside,) = playground.state.failed_runs(saying=SET_ASIDE)
    assert (aside.run.workflow_id, aside.path, explained) == ("w", ("loop", "1", "a"), ["w"])


def test_nothing_happens_to_what_is_over_or_gone(playground: Playground) -> None:
    """The task is done, that is all."""
    playground.push("Workflow: {id: w, jobs: [{job: {id: a, type: NoOp}}]}")
    run = playground.start()
    for uuid in (run.uuid, "gone"):
        changes = quarantine(playground.tools, task_of(playground, uuid), "It is hopeless.")
        assert (changes.runs, changes.attempts, len(changes.done)) == ([], [], 1)
