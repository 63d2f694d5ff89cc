"""New runs of workflows and of instances."""

import pytest
from tests.engines import Playground

from calve.engine import RunStatus
from calve.engine.instances import new_run, restarted_run
from calve.engine.model import Initiator, Json, Restart, Run, RunPolicy
from calve.errors import WorkflowMissing

ONE = """
Workflow:
  id: w
  {extra}
  jobs:
    - job: {{id: a, type: NoOp}}
"""


def launched(playground: Playground, version: str | int = "active", run_params: Json | None = None) -> Run:
    """Return a new run of the workflow."""
    return new_run(playground.tools, "w", version, run_params=run_params or {}, initiator=Initiator(), now=5)


@pytest.mark.parametrize(("said", "priority"), [("CRITICAL", 0), ("HIGH", 1), ("MEDIUM", 2), ("LOW", 3)])
def test_what_is_critical_comes_first(playground: Playground, said: str, priority: int) -> None:
    """Lower numbers come first."""
    playground.push(ONE.format(extra=f"criticality: {said}"))
    assert launched(playground).priority == priority


def test_a_new_run_is_the_root_of_its_tree(playground: Playground) -> None:
    """With the properties that its workflow has now."""
    playground.push(ONE.format(extra="step_concurrency: 3"))
    run = launched(playground)
    assert (run.run_id, run.root_uuid, run.priority, run.created_at) == (1, run.uuid, 2, 5)
    assert run.properties["step_concurrency"] == 3
    assert "instance_step_concurrency" not in run.properties


def test_the_limit_of_the_tree_stands_among_the_properties(playground: Playground) -> None:
    """It is the version's, and goes down from there."""
    playground.push(ONE.format(extra="instance_step_concurrency: 4"))
    assert launched(playground).properties["instance_step_concurrency"] == 4


def test_versions_are_chosen_by_name_or_number(playground: Playground) -> None:
    """Whatever way they are written."""
    playground.push(ONE.format(extra="description: one"))
    playground.push(ONE.format(extra="description: two"))
    versions = [launched(playground, version).version_id for version in (1, "1", "ACTIVE", "latest", "default")]
    assert versions == [1, 1, 2, 2, 2]


def test_what_is_not_there_cannot_be_run(playground: Playground) -> None:
    """The error says what there is."""
    with pytest.raises(WorkflowMissing, match="Workflow w does not exist"):
        launched(playground)
    playground.push(ONE.format(extra="description: one"))
    with pytest.raises(WorkflowMissing, match="no version 3") as missing:
        launched(playground, 3)
    assert "latest is 1, the active one 1" in missing.value.remedy


def test_a_run_again_stays_in_its_tree(playground: Playground) -> None:
    """It is as new, but for what it is a run of."""
    playground.push(ONE.format(extra="description: one"))
    first = playground.start()
    second = restarted_run(
        first, uuid="u", policy=RunPolicy.RESTART_FROM_BEGINNING, run_params={}, restart=Restart(), now=9
    )
    assert (second.uuid, second.root_uuid, second.instance_id, second.run_id) == ("u", first.uuid, 1, 2)
    assert (second.status, second.params, second.ended_at, second.seq) == (RunStatus.CREATED, {}, None, 0)
