"""How instances start, wait for their turn and leave the queue, over every database."""

from dataclasses import replace

import pytest
from tests.behaviour.engine.values import (
    NOW,
    ended,
    fresh,
    loaded,
    pushed,
    refused,
    run_tasks,
    started,
)

from calve.engine import Action, Changes, Event, NewTask, Parent, Run, RunStatus, Start, StartStatus, TaskKind
from calve.errors import Conflict, WorkflowMissing
from calve.store import SqlEngineState

pytestmark = pytest.mark.each_store


def again(run: Run) -> Start:
    """Make a restart."""
    return Start(replace(fresh(run.workflow_id), instance_id=run.instance_id, run_id=run.run_id + 1), is_restart=True)


def active(engine: SqlEngineState, workflow_id: str = "daily") -> list[int]:
    """Return the numbers of the instances that have left the queue and are not over."""
    live = [run for run in engine.instances(workflow_id=workflow_id, limit=1_000) if not run.status.is_terminal]
    return sorted(run.instance_id for run in live if not run.is_queued)


def test_instances_are_numbered_from_one(engine: SqlEngineState) -> None:
    """Each start gets the next number; the answers come in the order of the starts."""
    pushed(engine)
    pushed(engine, "other")
    starts = [Start(fresh(workflow_id)) for workflow_id in ("daily", "other", "daily")]
    found = engine.commit(Changes(starts=starts)).started
    assert [(each.status, each.run.workflow_id, each.run.instance_id) for each in found] == [
        (StartStatus.CREATED, "daily", 1),
        (StartStatus.CREATED, "other", 1),
        (StartStatus.CREATED, "daily", 2),
    ]
    assert [each.run for each in found] == [loaded(engine, start.run.uuid) for start in starts]
    assert [each.run.is_queued for each in found] == [False, False, True]


def test_only_workflows_that_are_there_start(engine: SqlEngineState) -> None:
    """And nothing else of the changes is written."""
    pushed(engine)
    run = fresh()
    refused(engine, Changes(starts=[Start(run), Start(fresh("none"))]), WorkflowMissing)
    assert engine.load(run.uuid) is None


def test_a_request_starts_one_instance(engine: SqlEngineState) -> None:
    """The repeat is answered with what the first one started, also in one and the same commit."""
    pushed(engine, strategy="PARALLEL")
    first = started(engine, request_id="q")
    repeat = started(engine, request_id="q")
    assert (first.status, repeat.status) == (StartStatus.CREATED, StartStatus.DUPLICATED)
    assert repeat.run == first.run
    both = engine.commit(Changes(starts=[Start(fresh(request_id="p")), Start(fresh(request_id="p"))])).started
    assert [each.status for each in both] == [StartStatus.CREATED, StartStatus.DUPLICATED]
    assert both[0].run == both[1].run
    assert len(engine.instances()) == 2


def test_a_repeated_request_leaves_no_trace(engine: SqlEngineState) -> None:
    """Neither its tasks nor its events are written."""
    pushed(engine)
    first = started(engine, request_id="q").run
    run_tasks(engine)
    repeat = fresh(request_id="q")
    events = [Event("START", repeat.uuid, "daily", 0, 1, NOW)]
    seen = engine.events()
    changes = Changes(starts=[Start(repeat)], events=events, tasks=[NewTask(TaskKind.RUN, repeat.uuid)])
    engine.commit(changes)
    assert engine.events() == seen
    assert run_tasks(engine) == {first.uuid}


def test_the_event_of_a_start_gets_its_number(engine: SqlEngineState) -> None:
    """Whoever wrote it could not know it."""
    pushed(engine)
    run = fresh()
    engine.commit(Changes(starts=[Start(run)], events=[Event("START", run.uuid, "daily", 0, 1, NOW)]))
    assert [(event.kind, event.instance_id) for event in engine.events()] == [("START", 1)]


@pytest.mark.parametrize("strategy", ["SEQUENTIAL", "STRICT_SEQUENTIAL", None])
def test_one_at_a_time(engine: SqlEngineState, strategy: str | None) -> None:
    """The next one starts when the one before has ended, oldest first."""
    pushed(engine, strategy=strategy)
    runs = [started(engine).run for _ in range(3)]
    assert run_tasks(engine) == {runs[0].uuid}
    for number, run in enumerate(runs):
        assert active(engine) == [number + 1]
        ended(engine, run, RunStatus.SUCCEEDED)
    assert active(engine) == []
    assert run_tasks(engine) == {run.uuid for run in runs}


def test_a_failed_instance_blocks_until_someone_unblocks_it(engine: SqlEngineState) -> None:
    """STRICT_SEQUENTIAL starts nothing behind it; unblocking lets the next go."""
    pushed(engine, strategy="STRICT_SEQUENTIAL")
    first, second = started(engine).run, started(engine).run
    ended(engine, first, RunStatus.FAILED, is_blocking=True)
    started(engine)
    assert active(engine) == []
    engine.commit(Changes(runs=[replace(loaded(engine, first.uuid), is_blocking=False)]))
    assert active(engine) == [second.instance_id]


def test_a_failed_instance_blocks_until_someone_restarts_it(engine: SqlEngineState) -> None:
    """The restarted one goes first; its earlier run blocks no more."""
    pushed(engine, strategy="STRICT_SEQUENTIAL")
    first = started(engine).run
    started(engine)
    ended(engine, first, RunStatus.FAILED, is_blocking=True)
    (restarted,) = engine.commit(Changes(starts=[again(first)])).started
    assert (restarted.run.instance_id, restarted.run.run_id, restarted.run.is_queued) == (1, 2, False)
    assert active(engine) == [1]
    old = loaded(engine, first.uuid)
    assert (old.is_latest, old.is_blocking) == (False, False)
    ended(engine, restarted.run, RunStatus.SUCCEEDED)
    assert active(engine) == [2]
    assert started(engine).run.instance_id == 3


def test_a_restart_needs_an_instance_that_is_over(engine: SqlEngineState) -> None:
    """And of two restarts of one run, one is refused."""
    pushed(engine, strategy="PARALLEL")
    run = started(engine).run
    refused(engine, Changes(starts=[again(run)]), Conflict)
    ended(engine, run, RunStatus.STOPPED)
    engine.commit(Changes(starts=[again(run)]))
    refused(engine, Changes(starts=[again(run)]), Conflict)
    refused(engine, Changes(starts=[again(replace(run, instance_id=9))]), Conflict)
    assert [each.run_id for each in engine.runs("daily", 1)] == [2, 1]


def test_as_many_at_once_as_may_be(engine: SqlEngineState) -> None:
    """PARALLEL lets go of as many as there is room for."""
    pushed(engine, strategy={"rule": "PARALLEL", "workflow_concurrency": 2})
    runs = [each.run for each in engine.commit(Changes(starts=[Start(fresh()) for _ in range(5)])).started]
    assert active(engine) == [1, 2]
    now = [replace(loaded(engine, run.uuid), status=RunStatus.FAILED) for run in runs[:2]]
    engine.commit(Changes(runs=now))
    assert active(engine) == [3, 4]
    assert run_tasks(engine) == {run.uuid for run in runs[:4]}


def test_the_first_only(engine: SqlEngineState) -> None:
    """What comes while another is not over is written as stopped, and never runs."""
    pushed(engine, strategy="FIRST_ONLY")
    first = started(engine).run
    second = started(engine)
    assert (second.status, second.run.status, second.run.run_status) == (StartStatus.STOPPED, "STOPPED", "STOPPED")
    assert second.run.ended_at == NOW
    assert second.run == loaded(engine, second.run.uuid)
    assert engine.events(run_uuid=second.run.uuid)[-1].after == "STOPPED"
    ended(engine, first, RunStatus.SUCCEEDED)
    assert started(engine).status is StartStatus.CREATED
    assert active(engine) == [3]


def test_the_last_only(engine: SqlEngineState) -> None:
    """Whatever waits is stopped at once, what runs is asked to stop, and the last one follows it."""
    pushed(engine, strategy="LAST_ONLY")
    first = started(engine).run
    second = started(engine, parent=Parent("parent", "step", "attempt")).run
    third = started(engine).run
    assert loaded(engine, second.uuid).status is RunStatus.STOPPED
    assert [event.after for event in engine.events(run_uuid=second.uuid)] == ["CREATED", "STOPPED"]
    asked = loaded(engine, first.uuid).action
    assert asked is not None
    assert (asked.action, asked.at) == (Action.STOP, NOW)
    assert "LAST_ONLY" in asked.reason
    assert run_tasks(engine) == {first.uuid, "parent"}
    ended(engine, first, RunStatus.STOPPED)
    assert active(engine) == [third.instance_id]


def test_the_last_only_in_one_commit(engine: SqlEngineState) -> None:
    """Of many that start together, the last one runs."""
    pushed(engine, strategy="LAST_ONLY")
    found = engine.commit(Changes(starts=[Start(fresh()) for _ in range(3)])).started
    assert [each.run.status for each in found] == [RunStatus.STOPPED, RunStatus.STOPPED, RunStatus.CREATED]
    assert [loaded(engine, each.run.uuid) for each in found] == [each.run for each in found]
    assert active(engine) == [3]


def test_one_runs_and_the_latest_waits(engine: SqlEngineState) -> None:
    """SERIAL_LATEST_ONLY stops what waits, never what runs."""
    pushed(engine, strategy="SERIAL_LATEST_ONLY")
    runs = [started(engine).run for _ in range(3)]
    assert [loaded(engine, run.uuid).status for run in runs] == ["CREATED", "STOPPED", "CREATED"]
    assert loaded(engine, runs[0].uuid).action is None
    assert active(engine) == [1]
    ended(engine, runs[0], RunStatus.SUCCEEDED)
    assert active(engine) == [3]


def test_iterations_do_not_count(engine: SqlEngineState) -> None:
    """A run strategy is about instances of the workflow only."""
    pushed(engine)
    run = fresh(instance_id=7, inline_step="loop", status=RunStatus.IN_PROGRESS)
    engine.commit(Changes(new_runs=[run]))
    assert started(engine).run.is_queued is False
    ended(engine, run, RunStatus.SUCCEEDED)
    assert active(engine) == [1]


def test_a_queued_instance_can_be_ended(engine: SqlEngineState) -> None:
    """It leaves the line, and those behind it move up."""
    pushed(engine)
    first, second, third = (started(engine).run for _ in range(3))
    ended(engine, second, RunStatus.STOPPED, is_queued=False)
    ended(engine, first, RunStatus.SUCCEEDED)
    assert active(engine) == [third.instance_id]


def test_an_instance_that_was_let_go_has_changed(engine: SqlEngineState) -> None:
    """Whoever read it while it was queued cannot write it."""
    pushed(engine)
    first, second = started(engine).run, started(engine).run
    ended(engine, first, RunStatus.SUCCEEDED)
    refused(engine, Changes(runs=[second]), Conflict)


def test_the_order_is_kept_behind_many(engine: SqlEngineState) -> None:
    """Of hundreds that wait, the oldest goes next."""
    pushed(engine)
    runs = [each.run for each in engine.commit(Changes(starts=[Start(fresh()) for _ in range(200)])).started]
    for number in range(3):
        assert active(engine) == [number + 1]
        ended(engine, runs[number], RunStatus.SUCCEEDED)
    assert active(engine) == [4]
