"""Loops hold steps of their own."""

from typing import Any, assert_type

import pytest

from calve.dsl import Loop, Workflow, expr, foreach, noop, while_
from calve.errors import DefinitionInvalid, RequestInvalid


def _steps(wf: Workflow) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = wf.build().as_json()["workflow"]["steps"]
    return found


def test_steps_inside_belong_to_the_loop() -> None:
    """Also those of a loop inside a loop; the steps after it belong to the workflow again."""
    with Workflow("w") as wf:
        with foreach("days", loop_params={"day": [1, 2]}, strict_ordering=True, x=1) as days:
            assert_type(days, Loop)
            with foreach("regions", loop_params={"region": ["eu"]}):
                noop("inner")
            noop("middle")
        days >> noop("outer")
    loop, outer = _steps(wf)
    assert list(outer) == ["step"]
    assert loop["foreach"]["transition"] == {"successors": {"outer": "true"}}
    assert loop["foreach"]["strict_ordering"] is True
    assert loop["foreach"]["params"]["x"] == {"type": "LONG", "value": 1}
    regions, middle = loop["foreach"]["steps"]
    assert middle["step"]["id"] == "middle"
    assert regions["foreach"]["steps"] == [{"step": {"id": "inner", "type": "NoOp"}}]


def test_steps_inside_may_be_sequential() -> None:
    """The order is the loop's own."""
    with Workflow("w") as wf, while_("until", condition="n < 2", loop_params={"n": 0}) as until:
        noop("a", n=expr("n + 1", type="LONG"))
        noop("b")
        until.sequential()
    (loop,) = _steps(wf)
    assert loop["while"]["condition"] == "n < 2"
    assert loop["while"]["steps"][0]["step"]["transition"] == {"successors": {"b": "true"}}


def test_edges_outside_may_be_drawn_inside() -> None:
    """The workflow is still being described."""
    with Workflow("w") as wf:
        a, b = noop("a"), noop("b")
        with foreach("loop", loop_params={"i": range(2)}):
            a >> b
            noop("c")
    assert _steps(wf)[0]["step"]["transition"] == {"successors": {"b": "true"}}


def test_a_loop_without_steps_is_a_problem() -> None:
    """At the line of the loop."""
    with Workflow("w") as wf:
        foreach("loop", loop_params={"i": [1]})
    with pytest.raises(DefinitionInvalid, match=r"test_loops\.py:\d+: steps cannot be empty"):
        wf.build()


def test_a_loop_is_described_once() -> None:
    """A second ``with`` for it is refused."""
    with Workflow("w"):
        with foreach("loop", loop_params={"i": [1]}) as loop:
            noop("a")
        with pytest.raises(RequestInvalid, match="the foreach loop has already been described"), loop:
            pass


def test_a_loop_is_described_in_its_workflow() -> None:
    """Not after its end."""
    with Workflow("w"):
        loop = foreach("loop", loop_params={"i": [1]})
    with pytest.raises(RequestInvalid, match="the description of the workflow w has ended"), loop:
        pass
