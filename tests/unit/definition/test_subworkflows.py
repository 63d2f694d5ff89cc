"""Which workflows wait for which, and where one would wait for itself."""

import pytest

from calve.definition import installed, load
from calve.definition.composites import Subworkflow, endless_cycle, subworkflows
from calve.definition.model import Workflow


def _workflow(name: str, *jobs: str) -> Workflow:
    text = f"Workflow: {{id: {name}, v: x, jobs: [{', '.join(jobs)}]}}"
    return load(text, name="test", vocabulary=installed()).required().workflow


def _sub(name: str, more: str = "") -> str:
    return f"{{subworkflow: {{id: to_{name.strip('${}')}, workflow_id: '{name}'{more}}}}}"


def _cycle(*workflows: Workflow, exclusive: str) -> tuple[str, ...]:
    """Return the cycle that pushing the first of some workflows would close."""
    known = {workflow.id: workflow for workflow in workflows[1:]}
    return endless_cycle(workflows[0], lambda name, _: known.get(name), lambda name: name in exclusive.split())


def test_what_a_step_starts_is_read_from_its_definition() -> None:
    """As far as that says it, in loops too."""
    loop = f"{{foreach: {{id: l, loop_params: {{i: [1]}}, jobs: [{_sub('b', ', sync: false, version: 3')}]}}}}"
    by_expression = "{subworkflow: {id: e, params: {'!subworkflow_id': v}}}"
    found = list(subworkflows(_workflow("w", _sub("a"), loop, _sub("${v}", ", version: '${v}'"), by_expression)))
    assert found == [
        Subworkflow("a", "active", is_awaited=True),
        Subworkflow("b", "3", is_awaited=False),
        Subworkflow(None, None, is_awaited=True),
        Subworkflow(None, "active", is_awaited=True),
    ]


@pytest.mark.parametrize(
    "job",
    [
        _sub("w"),
        _sub("w", ", version: 1"),
        f"{{foreach: {{id: l, loop_params: {{i: [1]}}, jobs: [{_sub('w')}]}}}}",
        f"{{while: {{id: l, condition: 'false', loop_params: {{i: 1}}, jobs: [{_sub('w')}]}}}}",
    ],
)
def test_a_workflow_inside_itself_waits_for_itself(job: str) -> None:
    """Whatever its version, and in a loop; only if one instance runs at a time."""
    assert _cycle(_workflow("w", job), exclusive="w") == ("w", "w")
    assert _cycle(_workflow("w", job), exclusive="") == ()


def test_a_cycle_around_corners_is_found() -> None:
    """The shortest way is drawn, from the workflow that is exclusive."""
    a = _workflow("a", _sub("b"), _sub("side"))
    b = _workflow("b", _sub("c"), _sub("gone"))
    c = _workflow("c", _sub("side"), _sub("a"))
    side = _workflow("side", _sub("b"))
    assert _cycle(a, b, c, side, exclusive="a b c side") == ("a", "b", "c", "a")
    assert _cycle(c, a, b, side, exclusive="c") == ("c", "side", "b", "c")
    assert _cycle(a, b, c, side, exclusive="c") == ("c", "a", "b", "c")
    assert _cycle(a, b, c, side, exclusive="side") == ("side", "b", "c", "a", "side")


def test_what_is_not_waited_for_closes_no_cycle() -> None:
    """Nor does what only a run can tell, or a cycle elsewhere."""
    a = _workflow("a", _sub("b"))
    assert _cycle(a, _workflow("b", _sub("a", ", sync: false")), exclusive="a b") == ()
    assert _cycle(a, _workflow("b", _sub("${v}")), exclusive="a b") == ()
    assert _cycle(a, _workflow("b", _sub("b")), exclusive="b") == ()
