"""What one does with workflows apart from any version: activate, tag, change properties, start many."""

from typing import Any

import pytest
from tests.behaviour.engine.values import pushed, started
from tests.engines import PLATFORM_ERROR, Playground

from calve.engine import RunStatus, StartStatus, StepStatus
from calve.errors import ParamError, RequestInvalid, WorkflowMissing
from calve.store import SqlEngineState

JOB = "Workflow:\n  id: w\n  day: '1'\n  jobs:\n    - job: {id: job, type: Sleep}\n"


def test_versions_are_activated_and_deactivated(playground: Playground) -> None:
    """By number or by word; an unknown one is named."""
    playground.push(JOB)
    playground.push(JOB)
    assert playground.engine.activate("w", 1).active_version == 1
    assert playground.engine.activate("w", "latest").active_version == 2
    assert playground.engine.deactivate("w").active_version is None
    with pytest.raises(WorkflowMissing, match="no version 3"):
        playground.engine.activate("w", 3)
    with pytest.raises(WorkflowMissing, match="nothing"):
        playground.engine.deactivate("nothing")


def test_properties_change_without_a_push(playground: Playground) -> None:
    """What is not named stays, what is reset goes; a tag is added once."""
    playground.push(JOB)
    engine = playground.engine
    engine.change_properties("w", {"owner": "ann", "step_concurrency": 3, "run_strategy": "parallel"})
    changed = engine.change_properties("w", {"description": "new", "owner": None}, reset=["step_concurrency"])
    assert changed.properties["owner"] == "ann"
    assert changed.properties["run_strategy"] == {"rule": "PARALLEL"}
    assert "step_concurrency" not in changed.properties
    engine.tag("w", {"name": "gold", "namespace": "PLATFORM", "since": 1})
    engine.tag("w", "daily")
    assert [_name(tag) for tag in engine.tag("w", "gold").properties["tags"]] == ["daily", "gold"]
    assert engine.untag("w", "gold").properties["tags"] == ["daily"]
    assert engine.untag("w", "unknown").properties["tags"] == ["daily"]


def _name(tag: object) -> object:
    return tag["name"] if isinstance(tag, dict) else tag


def test_a_property_that_makes_no_sense_is_refused(playground: Playground) -> None:
    """It is named; so is a workflow that is not there."""
    playground.push(JOB)
    with pytest.raises(RequestInvalid, match="step_concurrency"):
        playground.engine.change_properties("w", {"step_concurrency": 0})
    with pytest.raises(RequestInvalid, match="both set and reset"):
        playground.engine.change_properties("w", {"step_concurrency": 1}, reset=["step_concurrency"])
    with pytest.raises(RequestInvalid, match="tags"):
        playground.engine.tag("w", "")
    with pytest.raises(WorkflowMissing, match="nothing"):
        playground.engine.tag("nothing", "x")


def test_the_run_strategy_is_not_changed_under_instances(playground: Playground) -> None:
    """As a push could not."""
    playground.push(JOB)
    playground.engine.change_properties("w", {"run_strategy": "PARALLEL"})
    playground.begin()
    playground.begin()
    with pytest.raises(RequestInvalid, match="FIRST_ONLY"):
        playground.engine.change_properties("w", {"run_strategy": "FIRST_ONLY"})


def test_instances_start_together_or_not_at_all(playground: Playground) -> None:
    """One that makes no sense keeps the others from starting; a repeated request is the same instance."""
    playground.push(JOB)
    requests: list[dict[str, Any]] = [
        {"request_id": "a", "params": {"day": "2"}},
        {"request_id": "b", "tags": ("t",), "priority": 1},
    ]
    assert [each.status for each in playground.engine.start_all("w", requests)] == [StartStatus.CREATED] * 2
    again = playground.engine.start_all("w", [*requests, {}])
    assert [each.status for each in again] == [StartStatus.DUPLICATED, StartStatus.DUPLICATED, StartStatus.CREATED]
    with pytest.raises(ParamError):
        playground.engine.start_all("w", [{}, {"params": {"day": ["x"]}}])
    with pytest.raises(RequestInvalid, match="same request id"):
        playground.engine.start_all("w", [{"request_id": "a"}, {"request_id": "a"}])
    for number in (0, 11):
        with pytest.raises(RequestInvalid, match="Between 1 and 10"):
            playground.engine.start_all("w", [{}] * number)
    assert [run.instance_id for run in playground.state.numbered("w")] == [3, 2, 1]


def test_everything_that_blocks_is_unblocked(playground: Playground) -> None:
    """Under STRICT_SEQUENTIAL the next instance waits for that."""
    playground.push(JOB.replace("day:", "run_strategy: strict_sequential\n  day:"))
    playground.script.parts["job"] = [PLATFORM_ERROR]
    first, second = playground.begin().run, playground.begin().run
    playground.engine.kill(playground.address(first))
    playground.settle()
    assert playground.fresh(first).status is RunStatus.FAILED
    assert playground.fresh(second).status is RunStatus.CREATED
    assert [run.instance_id for run in playground.engine.unblock_all("w", by="ann")] == [1]
    assert playground.engine.unblock_all("w") == []
    playground.settle()
    assert playground.statuses(second)["job"] is not StepStatus.NOT_CREATED
    playground.engine.kill(playground.address(second))
    playground.settle()


def test_a_restart_takes_definitions_of_params(playground: Playground) -> None:
    """As Maestro's clients send them, for the run and for steps."""
    playground.push(JOB.replace("type: Sleep", "type: Sleep, limit: 1"))
    run = playground.start()
    again = playground.restart(
        run,
        "job",
        definitions={"day": {"type": "STRING", "value": "9"}},
        step_params={"job": {"note": "x"}},
        step_definitions={"job": {"limit": {"type": "LONG", "expression": "return 2 + 3;"}}},
    )
    assert playground.result(again, "job", "limit") == 5
    assert playground.result(again, "job", "note") == "x"
    with pytest.raises(ParamError, match="limit"):
        playground.restart(again, "job", step_definitions={"job": {"limit": {"type": "NOTHING", "value": 1}}})


def test_lists_hold_what_lies_below_namespaces(engine: SqlEngineState) -> None:
    """Upper and lower case are told apart, and a namespace is no mere prefix."""
    for workflow_id in ("a.x", "a.b.y", "A.x", "ab.x", "x", "a_x"):
        pushed(engine, workflow_id)
        started(engine, workflow_id)
    for namespaces, expected in (
        (["a"], ["a.b.y", "a.x"]),
        (["a.b", "ab"], ["a.b.y", "ab.x"]),
        ([], []),
        ([""], ["A.x", "a.b.y", "a.x", "a_x", "ab.x", "x"]),
    ):
        assert sorted(each.workflow_id for each in engine.workflows(namespaces=namespaces)) == expected
        assert sorted(each.workflow_id for each in engine.instances(namespaces=namespaces)) == expected


def test_instances_are_listed_by_number_in_both_directions(playground: Playground) -> None:
    """A page goes down from a number, or lies next above one; they are counted by status."""
    playground.push(JOB)
    playground.engine.change_properties("w", {"run_strategy": {"rule": "PARALLEL", "workflow_concurrency": 10}})
    for _ in range(5):
        playground.begin()
    state = playground.state
    playground.engine.stop(playground.address(state.numbered("w", limit=1)[0]))
    playground.settle()
    assert [run.instance_id for run in state.numbered("w", before=4, limit=2)] == [3, 2]
    assert [run.instance_id for run in state.numbered("w", after=2, limit=2)] == [4, 3]
    assert [run.instance_id for run in state.numbered("w", statuses=[RunStatus.STOPPED])] == [5]
    assert state.instance_counts("w") == {RunStatus.SUCCEEDED: 4, RunStatus.STOPPED: 1}
