"""What keeping workflows and versions means, over every database."""

import pytest
from tests.behaviour.engine.values import NOW, attempt_of, ended, fresh, iteration, pushed, registered, running, started

from calve.engine import Breakpoint, Changes, Instances, LogChunk, RunStatus, Start
from calve.engine.ports import Controls, Definitions, EngineState, Queue
from calve.errors import RequestInvalid, WorkflowMissing
from calve.store import SqlEngineState

pytestmark = pytest.mark.each_store


def test_the_store_is_what_the_engine_needs(engine: SqlEngineState) -> None:
    """The type check holds it against the port, this test its names."""
    port = [name for part in (Definitions, Instances, Queue, Controls) for name in vars(part) if name[0] != "_"]
    assert len(port) > 40
    assert all(hasattr(engine, name) for name in port)
    assert _as_port(engine).workflow("daily") is None


def _as_port(engine: EngineState) -> EngineState:
    return engine


def test_each_push_is_a_version(engine: SqlEngineState) -> None:
    """Versions count from 1, and never change."""
    first = engine.push("daily", {"a": 1}, {"owner": "me"}, is_active=True, author="ann", now=NOW)
    second = engine.push("daily", {"a": [2, "é\0"]}, {}, is_active=False, author="bob", now=NOW + 1)
    assert (first.version_id, second.version_id) == (1, 2)
    assert engine.versions("daily") == [second, first]
    assert engine.version("daily", 2) == engine.version("daily", "2") == engine.version("daily", "latest") == second
    assert engine.version("daily", "active") == engine.version("daily", "default") == first
    for selector in ("3", 0, "nonsense", "²"):
        assert engine.version("daily", selector) is None
    assert engine.version("weekly", "latest") is None
    assert engine.versions("weekly") == []


def test_a_workflow_may_have_no_active_version(engine: SqlEngineState) -> None:
    """Then the default is the latest."""
    engine.push("daily", {"a": 1}, {}, is_active=True, author="me", now=NOW)
    engine.activate("daily", None, NOW + 5)
    assert engine.version("daily", "active") is None
    default = engine.version("daily", "default")
    assert default is not None
    assert default.version_id == 1
    engine.activate("daily", 1, NOW + 6)
    found = engine.workflow("daily")
    assert found is not None
    assert (found.active_version, found.modified_at) == (1, NOW + 6)


@pytest.mark.parametrize("place", [("weekly", None), ("daily", 2), ("daily", 0)])
def test_only_what_is_there_can_be_activated(engine: SqlEngineState, place: tuple[str, int | None]) -> None:
    """An unknown workflow or version is named."""
    pushed(engine)
    with pytest.raises(WorkflowMissing, match=place[0]):
        engine.activate(*place, NOW)


def test_properties_are_kept_but_for_three(engine: SqlEngineState) -> None:
    """A push without a run strategy, a step concurrency or alerting sets them back; the rest stays."""
    all_of_them = {"owner": "ann", "step_concurrency": 7, "alerting": {"x": 1}, "run_strategy": "PARALLEL", "tags": []}
    engine.push("daily", {}, all_of_them, is_active=True, author="me", now=NOW)
    engine.push("daily", {}, {"description": "new", "owner": None}, is_active=True, author="me", now=NOW + 1)
    found = engine.workflow("daily")
    assert found is not None
    assert found.properties == {"owner": "ann", "tags": [], "description": "new"}
    assert (found.created_at, found.modified_at, found.latest_version) == (NOW, NOW + 1, 2)


def test_a_run_strategy_is_not_changed_under_instances(engine: SqlEngineState) -> None:
    """FIRST_ONLY beside two live instances is refused, and nothing is written."""
    pushed(engine, strategy="PARALLEL")
    runs = [started(engine).run, started(engine).run]
    with pytest.raises(RequestInvalid, match="FIRST_ONLY"):
        pushed(engine, strategy="FIRST_ONLY")
    assert len(engine.versions("daily")) == 1
    ended(engine, runs[0], RunStatus.FAILED, is_blocking=True)
    with pytest.raises(RequestInvalid, match="STRICT_SEQUENTIAL"):
        pushed(engine, strategy="STRICT_SEQUENTIAL")
    pushed(engine, strategy="FIRST_ONLY")
    assert len(engine.versions("daily")) == 2


def test_workflows_are_listed_by_id(engine: SqlEngineState) -> None:
    """Page by page, and by a part of the name that is no pattern."""
    for workflow_id in ("b", "a_1", "A-2", "ab"):
        pushed(engine, workflow_id)
    found = [each.workflow_id for each in engine.workflows()]
    assert sorted(found) == ["A-2", "a_1", "ab", "b"]
    first = engine.workflows(limit=2)
    assert [each.workflow_id for each in first + engine.workflows(after=first[-1].workflow_id)] == found
    assert {each.workflow_id for each in engine.workflows(contains="A")} == {"A-2", "a_1", "ab"}
    assert [each.workflow_id for each in engine.workflows(contains="_")] == ["a_1"]


def test_a_deleted_workflow_leaves_nothing_but_its_numbers(engine: SqlEngineState) -> None:
    """Runs, iterations, attempts, logs, events, tasks and breakpoints go; the next instance gets the next number."""
    pushed(engine)
    pushed(engine, "other")
    other = started(engine, "other").run
    run = running(engine)
    attempt = attempt_of(run)
    child = iteration(run, attempt, 1, status=RunStatus.SUCCEEDED)
    engine.commit(Changes(runs=[run], new_attempts=[attempt], new_runs=[child], logs=[LogChunk(attempt.uuid, 0, "x")]))
    engine.set_breakpoint(Breakpoint("daily", "merge"))
    with pytest.raises(RequestInvalid, match="daily/1 is not over"):
        engine.delete_workflow("daily", NOW)
    ended(engine, run, RunStatus.SUCCEEDED)
    engine.delete_workflow("daily", NOW)
    assert engine.workflow("daily") is None
    assert engine.workflows() == [engine.workflow("other")]
    assert engine.versions("daily") == []
    assert engine.breakpoints() == []
    assert engine.runs("daily", 1) == []
    assert engine.load(child.uuid) is None
    assert engine.attempt(attempt.uuid) is None
    assert engine.log(attempt.uuid) == []
    assert {event.run_uuid for event in engine.events()} == {other.uuid}
    with pytest.raises(WorkflowMissing):
        engine.delete_workflow("daily", NOW)
    with pytest.raises(WorkflowMissing):
        engine.commit(Changes(starts=[Start(fresh())]))
    pushed(engine)
    assert [version.version_id for version in engine.versions("daily")] == [2]  # others may know the former first one
    with pytest.raises(WorkflowMissing, match="version 1 of workflow daily"):
        engine.activate("daily", 1, NOW)
    assert started(engine).run.instance_id == 2


def test_the_tasks_of_a_deleted_workflow_are_gone(engine: SqlEngineState) -> None:
    """Nothing is left in the queue that would find no run."""
    pushed(engine)
    run = started(engine).run
    ended(engine, run, RunStatus.STOPPED)
    engine.delete_workflow("daily", NOW)
    assert engine.claim(registered(engine), NOW, runs=9, steps=9) == []
