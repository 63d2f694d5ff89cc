"""References in text are replaced once, as Maestro replaces them."""

from typing import Any

import pytest
from tests.unit.definition.params.cases import cases, param

from calve.definition.params.interpolation import (
    NOT_EVALUATED,
    SIZE_LIMIT,
    escaped,
    interpolate,
    references,
    rendered,
    step_reference,
    walk,
)
from calve.definition.params.literals import evaluate_literal, literal_references
from calve.errors import ParamError

_CASES = cases("misc_cases.jsonl", kind="interpolate")


def test_every_case_of_maestro_is_here() -> None:
    """Thirteen stand in its tests."""
    assert len(_CASES) == 13


@pytest.mark.parametrize("case", _CASES, ids=lambda case: str(case["value"]))
def test_a_literal_gives_what_maestro_gives(case: dict[str, Any]) -> None:
    """The value, what it refers to, and the words of the error."""
    values = case["params"] | dict.fromkeys(case.get("unevaluated", ()), NOT_EVALUATED)
    literal = param(type=case["type"], value=case["value"])
    if "error" in case:
        with pytest.raises(ParamError) as raised:
            evaluate_literal(literal, values)
        assert case["error_contains"] in raised.value.message
    else:
        assert evaluate_literal(literal, values) == case["expect"]
        assert set(literal_references(literal)) == set(case["refs"])


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("nothing", ()),
        ("$a ${b} $a", ("a", "b")),
        ("$$a $${b} $$$c $$$$d", ("c",)),
        ("$a.b ${a.b}", ("a", "a.b")),
        ("$_a ${_a} $1 ${} ${a", ()),
        ("${a b} $-", ()),
    ],
)
def test_references_are_the_names_that_are_looked_up(text: str, names: tuple[str, ...]) -> None:
    """Each once, in the order of the text; what is escaped or malformed is text."""
    assert references(text) == names


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (12, "12"),
        (3.0, "3.0"),
        (1e10, "1.0E10"),
        (0.001, "0.001"),
        (1e-4, "1.0E-4"),
        (-0.0, "-0.0"),
        ("$x", "$x"),
        ([], "[]"),
        ((1, 2), "[1,2]"),
        ([1.5, 1e7], "[1.5,1.0E7]"),
        ({}, "{}"),
        ({"a": {"b": [True, None]}, "c": 'q"\\\n\x01é'}, '{"a":{"b":[true,null]},"c":"q\\"\\\\\\n\\u0001é"}'),
        ({"n": float("nan"), "i": float("-inf")}, '{"n":"NaN","i":"-Infinity"}'),
    ],
)
def test_a_value_stands_in_a_text_as_java_writes_it(value: Any, text: str) -> None:
    """Scalars as Java prints them, arrays and maps as compact JSON."""
    assert interpolate("$x", {"x": value}) == text
    assert rendered(value) == text


def test_an_escaped_text_is_itself() -> None:
    """So a value can be handed on as a literal."""
    assert interpolate(escaped("a $b $$ ${c}"), {}) == "a $b $$ ${c}"


def test_a_text_that_grows_beyond_the_limit_is_refused() -> None:
    """A few references to long texts would fill the memory otherwise."""
    with pytest.raises(ParamError, match="longer than"):
        interpolate("$x" * 1000, {"x": "y" * (SIZE_LIMIT // 10)})


def test_two_keys_that_become_one_are_refused() -> None:
    """Neither value could be preferred."""
    literal = param(type="STRING_MAP", value={"$a": "x", "1": "y"})
    with pytest.raises(ParamError, match="duplicate key with values"):
        evaluate_literal(literal, {"a": 1})


def test_the_longest_step_id_that_fits_a_dotted_name_is_meant() -> None:
    """Ids of steps may hold dots."""
    steps = {"job", "job.1", "other"}
    assert step_reference("job.1.out", steps) == ("job.1", "out")
    assert step_reference("job.out.inner", steps) == ("job", "out.inner")
    assert step_reference("job.1", steps) == ("job", "1")
    assert step_reference("job.1.", {"job.1"}) is None
    assert step_reference("none.x", steps) is None
    assert step_reference("job", steps) is None


def test_a_path_is_walked_through_maps() -> None:
    """Names that hold dots go first."""
    members = {"a.b": 1, "a": {"b": 2, "c": {"d": 3}}, "x": 4}
    assert walk(members, "a.b") == 1
    assert walk(members, "a.c.d") == 3
    assert walk(members, "a.c") == {"d": 3}
    assert walk(members, "a.z") is None
    assert walk(members, "x.y") is None
