"""Maestro's own cases of params and transitions come out as it has them."""

import json
from pathlib import Path
from typing import Any

import pytest

from calve.definition.document import Mark, Node
from calve.definition.forms.dag import branched, branches_of
from calve.definition.forms.params import yaml_params
from calve.definition.problems import Problems

_FILE = Path(__file__).parents[3] / "data" / "maestro" / "misc_cases.jsonl"
_PLACE = Node(None, Mark(1, 1), "")


def cases(kind: str) -> list[Any]:
    """Return the cases of one kind."""
    found = [json.loads(line) for line in _FILE.read_text().splitlines()]
    return [pytest.param(case, id=str(case.get("key", case.get("input")))) for case in found if case["kind"] == kind]


@pytest.mark.parametrize("case", cases("dsl_param"))
def test_a_param_is_typed_as_in_maestro(case: dict[str, Any]) -> None:
    """A key and a value give the same param, or are refused where Maestro refuses them."""
    problems = Problems()
    found = yaml_params({case["key"]: _PLACE.made(case["value"])}, problems)
    if "error" in case:
        assert len(problems.errors) == 1
        assert found == {}
    else:
        expected = dict(case["expect"])
        assert _PLACE.made(found).plain() == {expected.pop("name"): expected}
        assert not problems.found


@pytest.mark.parametrize("case", cases("dsl_transition"))
def test_a_transition_leads_where_it_does_in_maestro(case: dict[str, Any]) -> None:
    """A list of transitions gives the same successors, or is refused where Maestro refuses it."""
    problems = Problems()
    edges = list(branched("here", list(branches_of(_PLACE.made(case["input"]), problems)), problems))
    if "error" in case:
        assert len(problems.errors) == 1
    else:
        assert {edge.target: edge.condition for edge in edges} == (case["expect"] or {})
        assert not problems.found
