"""Edges are drawn with >>, between steps of one graph, and each knows its line."""

from typing import Any, assert_type

import pytest

from calve.dsl import Ends, Step, Workflow, foreach, noop
from calve.errors import DefinitionInvalid, RequestInvalid


def edges(wf: Workflow) -> dict[str, dict[str, str]]:
    """Return the successors of each step of a workflow, with their conditions."""
    return {step.id: step.transition.successors for step in wf.build().workflow.all_steps()}


def problems(wf: Workflow) -> list[dict[str, Any]]:
    """Return what is wrong with a workflow."""
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    found: list[dict[str, Any]] = caught.value.context["problems"]
    return found


def test_a_chain_leads_from_one_to_the_next() -> None:
    """``a >> b >> c`` is two edges."""
    with Workflow("w") as wf:
        a, b, c = noop("a"), noop("b"), noop("c")
        assert_type(a, Step)
        assert_type(a >> b >> c, Ends)
    assert edges(wf) == {"a": {"b": "true"}, "b": {"c": "true"}, "c": {}}


def test_lists_fan_out_and_in() -> None:
    """A list may stand on either side, also twice in a row after a step."""
    with Workflow("w") as wf:
        a, b, c, d, e = (noop(name) for name in "abcde")
        a >> [b, c] >> d
        [b, c] >> e
    assert edges(wf) == {
        "a": {"b": "true", "c": "true"},
        "b": {"d": "true", "e": "true"},
        "c": {"d": "true", "e": "true"},
        "d": {},
        "e": {},
    }


def test_two_lists_in_a_row_join_each_with_each() -> None:
    """``a >> [b, c] >> (d, e)`` draws four edges after the first two."""
    with Workflow("w") as wf:
        a, b, c, d, e = (noop(name) for name in "abcde")
        a >> [b, c] >> (d, e)
    assert edges(wf)["c"] == {"d": "true", "e": "true"}


def test_a_step_may_be_named_by_its_id() -> None:
    """An id stands for a step on both sides, also one that is described later."""
    with Workflow("w") as wf:
        a = noop("a")
        a >> "b" >> "c"
        b = noop("b")
        noop("c")
        "d" >> b
        noop("d")
    assert edges(wf) == {"a": {"b": "true"}, "b": {"c": "true"}, "c": {}, "d": {"b": "true"}}


def test_conditions_belong_to_the_edges_that_follow() -> None:
    """``when`` gives an expression, ``otherwise`` the negation of all of them, whenever it is drawn."""
    with Workflow("w") as wf:
        check, a, b, c, d = (noop(name) for name in ("check", "a", "b", "c", "d"))
        check.otherwise() >> d
        check.when(" x > 1 ") >> a
        check.when("y") >> [b, c]
    assert edges(wf)["check"] == {"a": "x > 1", "b": "y", "c": "y", "d": "!((x > 1) || (y) || (y))"}


def test_otherwise_without_conditions_always_holds() -> None:
    """As in YAML."""
    with Workflow("w") as wf:
        a, b = noop("a"), noop("b")
        a.otherwise() >> b
    assert edges(wf)["a"] == {"b": "true"}


def test_a_condition_may_stand_in_a_chain_and_in_a_list() -> None:
    """``a >> b.when(…) >> c`` has the condition on the edge from b; in a list each has its own."""
    with Workflow("w") as wf:
        a, b, c, d = (noop(name) for name in "abcd")
        a >> b.when("x") >> c
        a >> [b.when("y"), c] >> d
    assert edges(wf) == {"a": {"b": "true", "c": "true"}, "b": {"c": "x", "d": "y"}, "c": {"d": "true"}, "d": {}}


def test_an_edge_may_be_drawn_again_but_not_otherwise() -> None:
    """The same edge twice is one edge; with another condition it is a problem at its line."""
    with Workflow("w") as wf:
        a, b = noop("a"), noop("b")
        a >> b
        a >> b
    assert edges(wf)["a"] == {"b": "true"}
    with Workflow("w") as wf:
        a, b = noop("a"), noop("b")
        a >> b
        a.when("x") >> b
    (problem,) = problems(wf)
    assert problem["code"] == "edge_twice"
    assert problem["message"] == "a >> b is drawn twice: if true, and if x"


def test_unknown_steps_are_named_with_a_hint_at_their_lines() -> None:
    """Both ends are checked, and both problems are told."""
    with Workflow("w") as wf:
        first = noop("first")
        first >> "secnod"
        "firts" >> noop("second")
    target, source = problems(wf)
    assert (target["code"], target["hint"]) == ("unknown_step", "did you mean second?")
    assert (source["code"], source["hint"]) == ("unknown_step", "did you mean first?")
    assert source["line"] == target["line"] + 1


def test_a_cycle_is_a_problem() -> None:
    """The steps of the cycle are named."""
    with Workflow("w") as wf:
        a, b = noop("a"), noop("b")
        a >> b >> a
    assert [problem["code"] for problem in problems(wf)] == ["cycle"]


def test_sequential_steps_take_no_edges() -> None:
    """An edge that is drawn besides is a problem."""
    with Workflow("w") as wf:
        a, b = noop("a"), noop("b")
        a >> b
        wf.sequential()
    (problem,) = problems(wf)
    assert problem["code"] == "edge_unused"


@pytest.mark.parametrize("other", [5, None, object()])
def test_an_edge_joins_steps_only(other: Any) -> None:
    """Anything else is refused on either side, and the error names the line."""
    with Workflow("w"):
        a = noop("a")
        with pytest.raises(RequestInvalid, match=r"test_edges\.py:\d+: an edge joins steps"):
            a >> other
        with pytest.raises(RequestInvalid, match=r"test_edges\.py:\d+: an edge joins steps"):
            other >> a


def test_an_edge_stays_in_one_workflow() -> None:
    """Two workflows may be described at once, but not joined."""
    with Workflow("one"):
        a = noop("a")
        with Workflow("two"):
            b = noop("b")
            with pytest.raises(RequestInvalid, match="b is in the workflow two, and the other side"):
                a >> b


def test_an_edge_does_not_lead_into_a_loop() -> None:
    """The loop itself is what others lead to."""
    with Workflow("w"):
        a = noop("a")
        with foreach("loop", loop_params={"i": [1]}):
            b = noop("b")
        with pytest.raises(RequestInvalid, match="the foreach loop") as caught:
            [b] >> a
    assert "draw an edge to the loop" in caught.value.remedy


def test_no_edge_is_drawn_after_the_end() -> None:
    """The description ends with the ``with``."""
    with Workflow("w"):
        a, b = noop("a"), noop("b")
    with pytest.raises(RequestInvalid, match="the description of the workflow w has ended"):
        a >> b


def test_a_step_is_no_sequence() -> None:
    """Brackets name a param, so that a loop over a step would never end; it is refused."""
    with Workflow("w"):
        a: Any = noop("a")
    with pytest.raises(TypeError):
        list(a)
    with pytest.raises(TypeError):
        assert "x" in a
