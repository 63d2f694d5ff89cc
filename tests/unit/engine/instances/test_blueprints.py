"""Definitions as the engine runs them."""

import pytest
from tests.engines import Playground

from calve.engine import Blueprints
from calve.engine.instances import Dag, blueprints as module
from calve.engine.model import VersionRecord
from calve.errors import WorkflowMissing


def test_a_blueprint_is_read_once(playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those used last are kept, the others are read again."""
    for name in ("v", "w"):
        playground.push(f"Workflow: {{id: {name}, jobs: [{{job: {{id: a, type: NoOp}}}}]}}")
    read: list[tuple[str, int]] = []

    def version(workflow_id: str, version_id: int) -> VersionRecord | None:
        read.append((workflow_id, version_id))
        return playground.state.version(workflow_id, version_id)

    monkeypatch.setattr(module, "KEPT", 1)
    blueprints = Blueprints(version)
    for name in ("w", "w", "v", "w"):
        blueprints.get(name, 1)
    assert read == [("w", 1), ("v", 1), ("w", 1)]


def test_a_version_that_is_not_there_is_an_error(playground: Playground) -> None:
    """It says which."""
    with pytest.raises(WorkflowMissing, match="Workflow w has no version 3"):
        Blueprints(playground.state.version).get("w", 3)


def test_a_graph_knows_what_comes_after(playground: Playground) -> None:
    """However long the way."""
    playground.push("""
Workflow:
  id: w
  jobs:
    - job: {id: a, type: NoOp, transition: [b, c]}
    - job: {id: b, type: NoOp, transition: [d]}
    - job: {id: c, type: NoOp, transition: [d]}
    - job: {id: d, type: NoOp}
    - job: {id: e, type: NoOp}
""")
    dag = Dag.of(tuple(playground.tools.blueprints.get("w", 1).steps.values()))
    assert dag.predecessors == {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ()}
    assert dag.with_descendants(["a"]) == {"a", "b", "c", "d"}
    assert dag.with_descendants(["c", "e"]) == {"c", "d", "e"}
