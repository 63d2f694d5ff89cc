"""The graph of a workflow: cycles, ways that lead nowhere, steps that nothing reaches."""

from typing import Any

import pytest
from tests.unit.definition.placing import definition, only, placed, step

from calve.definition.document import entry
from calve.definition.graph import check_graph, find_cycles
from calve.definition.problems import Problems


def _problems(*steps: dict[str, Any]) -> Problems:
    problems = Problems()
    check_graph(entry(placed(definition(*steps)), "workflow"), problems)
    return problems


def test_a_graph_without_cycles_has_no_problems() -> None:
    """A diamond is fine."""
    assert not [*_problems(step("a", "b", "c"), step("b", "d"), step("c", "d"), step("d"))]


def test_a_cycle_is_named_and_drawn() -> None:
    """The way round is shown, from its first step on."""
    problem = only(_problems(step("start", "a"), step("a", "b"), step("b", "c"), step("c", "a")))
    assert problem.code == "cycle"
    assert problem.message == "DAG contains cycle: a -> b -> c -> a"
    assert problem.drawing.splitlines() == ["a ──▶ b ──▶ c", "▲           │", "└───────────┘"]


def test_a_step_that_leads_to_itself_is_a_cycle() -> None:
    """Even the smallest one is drawn."""
    problem = only(_problems(step("a", "a")))
    assert problem.drawing.splitlines() == ["a ─┐", "▲  │", "└──┘"]


def test_a_long_cycle_is_drawn_in_one_row() -> None:
    """Its middle is left out."""
    names = [f"s{number}" for number in range(10)]
    problem = only(_problems(*(step(name, names[(index + 1) % 10]) for index, name in enumerate(names))))
    assert problem.drawing.splitlines()[0] == "s0 ──▶ s1 ──▶ s2 ──▶ (4 more) ──▶ s7 ──▶ s8 ──▶ s9"


def test_two_cycles_are_two_problems() -> None:
    """Each knot is told of."""
    assert len(find_cycles({"a": {"b": "true"}, "b": {"a": "true"}, "c": {"d": ""}, "d": {"c": ""}})) == 2


def test_a_shorter_way_back_is_found_first() -> None:
    """Of two ways round, the shorter is shown."""
    edges = {"a": {"b": "", "c": ""}, "b": {"c": ""}, "c": {"a": ""}}
    assert find_cycles(edges) == [("a", "c")]


def test_a_step_that_is_not_there_is_drawn_as_a_dead_end() -> None:
    """The nearest name is offered."""
    problem = only(_problems(step("check", "recovry"), step("recovery")))
    assert problem.code == "unknown_step"
    assert problem.hint == "did you mean recovery?"
    assert problem.drawing == "check ──▶ recovry ✗"
    assert problem.path == "workflow.steps[0].step.transition.successors.recovry"


def test_a_step_behind_a_condition_that_is_false_is_never_reached() -> None:
    """And so is what comes after it."""
    dead = {"step": {"id": "a", "type": "NoOp", "transition": {"successors": {"b": "false;"}}}}
    found = list(_problems(dead, step("b", "c"), step("c")))
    assert [problem.code for problem in found] == ["unreachable_step", "unreachable_step"]
    assert found[0].message == "b can never run: the condition of every edge to it is false"
    assert found[0].drawing == "a ──[false;] ✗─▶ b"
    assert found[1].message == "c can never run: b before it is never reached"
    assert found[1].drawing == "b ──✗─▶ c"


def test_the_cycle_itself_is_not_called_unreachable_too() -> None:
    """What hangs behind it is."""
    found = {problem.code for problem in _problems(step("a", "b"), step("b", "a", "c"), step("c"))}
    assert found == {"cycle", "unreachable_step"}


def test_predecessors_must_be_those_that_the_successors_give() -> None:
    """Maestro's JSON may name them, and then they are compared."""
    wrong = {"step": {"id": "b", "type": "NoOp", "transition": {"predecessors": ["x"]}}}
    assert only(_problems(step("a", "b"), wrong)).code == "predecessors_differ"
    right = {"step": {"id": "b", "type": "NoOp", "transition": {"predecessors": ["a"]}}}
    assert not [*_problems(step("a", "b"), right)]


def test_the_steps_of_a_loop_are_a_graph_of_their_own() -> None:
    """A step inside cannot lead out."""
    loop = {"foreach": {"id": "loop", "steps": [step("in", "out")]}}
    assert only(_problems(loop, step("out"))).code == "unknown_step"


@pytest.mark.parametrize("steps", [None, 3, [1, {"step": None}, {"step": {"id": 3}}, {}]])
def test_what_is_no_step_is_left_to_the_models(steps: Any) -> None:
    """The graph of a broken document is checked as far as there is one."""
    problems = Problems()
    check_graph(entry(placed({"workflow": {"steps": steps}}), "workflow"), problems)
    assert not [*problems]
