"""Params in YAML: what a key says, and what a value is."""

from typing import Any

import pytest

from calve.definition.document import Mark, Node
from calve.definition.forms.params import yaml_params
from calve.definition.problems import Problems

PLACE = Node(None, Mark(3, 7), "p", Mark(3, 1))


def typed(entries: dict[str, Any]) -> tuple[Any, list[str]]:
    """Return the params of entries, and the codes of what is wrong."""
    problems = Problems()
    found = yaml_params({key: PLACE.made(value) for key, value in entries.items()}, problems)
    return PLACE.made(found).plain(), [problem.code for problem in problems]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("x<double>", 1, {"type": "DOUBLE", "value": 1}),
        ("x<array<double>>", [1, 2], {"type": "DOUBLE_ARRAY", "value": [1, 2]}),
        ("x", [1, 2.5], {"type": "DOUBLE_ARRAY", "value": [1, 2.5]}),
        ("x<map>", {}, {"type": "STRING_MAP", "value": {}}),
        ("x<pmap>", {}, {"type": "MAP", "value": {}}),
        ("x<secret>", "db/password", {"type": "SECRET", "value": "db/password"}),
        (
            "x < array< LONG > > ( Mutable_On_Start )",
            [],
            {"type": "LONG_ARRAY", "value": [], "mode": "MUTABLE_ON_START"},
        ),
        ("x<string_map>", {"a": "b"}, {"type": "STRING_MAP", "value": {"a": "b"}}),
        ("!x", 15, {"type": "STRING", "expression": "15"}),
        ("!x<boolean>", True, {"type": "BOOLEAN", "expression": "true"}),
        ("!x<boolean>", False, {"type": "BOOLEAN", "expression": "false"}),
        ("!x<double>", 1.5, {"type": "DOUBLE", "expression": "1.5"}),
        (
            "x",
            {"!a<long>": "1 + 1", "b(constant)": "c"},
            {
                "type": "MAP",
                "value": {
                    "a": {"type": "LONG", "expression": "1 + 1"},
                    "b": {"type": "STRING", "value": "c", "mode": "CONSTANT"},
                },
            },
        ),
        ("x", {"a (b)": "c"}, {"type": "STRING_MAP", "value": {"a (b)": "c"}}),
    ],
)
def test_a_value_is_taken_for_what_its_key_says(key: str, value: Any, expected: dict[str, Any]) -> None:
    """A declared type, a mode or an exclamation mark decides; what is left open follows from the value."""
    assert typed({key: value}) == ({"x": expected}, [])


@pytest.mark.parametrize(
    ("key", "value", "code"),
    [
        ("x", None, "param_without_value"),
        ("!x", None, "param_without_value"),
        ("x<string>", 15, "param_type"),
        ("x<secret>", 15, "param_type"),
        ("x<string>", ["a"], "param_type"),
        ("x<long>", [], "param_type"),
        ("x<array<long>>", {}, "param_type"),
        ("x<map>", {"a": 1}, "param_type"),
        ("x", [{"a": 1}], "param_value"),
        ("x", ["a", 1], "param_value"),
        ("x", [None], "param_value"),
        ("!x", ["a"], "expression_not_text"),
        ("x<array<map>>", [], "param_type_unknown"),
        ("x<strin>", "a", "param_type_unknown"),
        ("x(const)", "a", "param_mode_unknown"),
        ("x(constant)y", "a", "param_key"),
        ("!", "a", "param_key"),
        (" ", "a", "param_key"),
        ("", "a", "param_key"),
        ("<long>", 1, "param_key"),
    ],
)
def test_what_makes_no_param_is_reported(key: str, value: Any, code: str) -> None:
    """Nothing is guessed, and nothing is left out silently."""
    assert typed({key: value}) == ({}, [code])


def test_a_name_stands_for_one_param() -> None:
    """A literal and an expression of the same name are a mistake."""
    found, codes = typed({"x": 1, "!x": "2"})
    assert found == {"x": {"type": "LONG", "value": 1}}
    assert codes == ["said_twice"]


def test_a_param_in_full_is_a_map_in_yaml() -> None:
    """It means what Maestro takes it for, but is probably not what was meant."""
    found, codes = typed({"x": {"type": "LONG", "value": 5}})
    assert found["x"]["value"] == {"type": {"type": "STRING", "value": "LONG"}, "value": {"type": "LONG", "value": 5}}
    assert codes == ["param_looks_typed"]
    assert typed({"x<pmap>": {"type": "LONG", "value": 5}})[1] == []


def test_hints_name_what_was_probably_meant() -> None:
    """A type or mode that is not there brings the nearest one; a number for a text asks for quotes."""
    problems = Problems()
    entries = {"a<lnog>": PLACE.made(1), "b(imutable)": PLACE.made(1), "c<string>": PLACE.made(1)}
    yaml_params(entries, problems)
    assert [problem.hint for problem in problems] == ["did you mean long?", "did you mean immutable?", "quote it"]
    assert [(problem.line, problem.column) for problem in problems.found] == [(3, 1), (3, 1), (3, 7)]
