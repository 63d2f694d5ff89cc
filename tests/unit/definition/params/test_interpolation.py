"""References in text are replaced once, as Maestro replaces them."""

from typing import Any

import pytest
from tests.unit.definition.params.cases import cases, param

from calve.definition.params.interpolation import (
    NOT_EVALUATED,
    SIZE_LIMIT,
    braced_text,
    escaped,
    evaluate_literal,
    interpolate,
    is_reference,
    line_and_column,
    literal_references,
    reference_index,
    references,
    rendered,
    step_reference,
    unresolved_index,
    walk,
)
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


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("$a ${b} $$ $1 $.c {d}", None),
        ("$${a b} $$$${ x", None),
        ("${a b}", 0),
        ("${a} ${}", 5),
        ("$$${ a}", 2),
        ("'${", 1),
        ("${_a}", 0),
    ],
)
def test_a_brace_after_a_dollar_is_a_reference_or_is_escaped(text: str, index: int | None) -> None:
    """Anything else would be handed on as it is."""
    assert unresolved_index(text) == index


def test_a_reference_has_a_place() -> None:
    """The first one of its name, which no other name and no escaped one is taken for."""
    text = "$$day, $days\n ${day.x} $day ${day}"
    assert reference_index(text, "day") == text.index("$day $")
    assert line_and_column(text, text.index("$day $")) == (2, 11)
    assert reference_index(text, "x") is None
    assert line_and_column("", 0) == (1, 1)


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("$a", True), (" ${a.b}\n", True), ("$$", False), ("$a$b", False), ("a", False), ("${a} ", True)],
)
def test_a_text_may_be_one_reference(text: str, is_one: bool) -> None:  # noqa: FBT001 - what is expected
    """And nothing else but blanks."""
    assert is_reference(text) is is_one


def test_what_is_shown_of_a_brace_ends_with_it() -> None:
    """Or with the line."""
    assert braced_text("x ${ a } }", 2) == "${ a }"
    assert braced_text("x ${ a\n}", 2) == "${ a"


def test_an_error_in_a_long_text_shows_the_line() -> None:
    """And where in it the reference stands."""
    with pytest.raises(ParamError) as raised:
        interpolate("one\n  two $a", {})
    assert raised.value.message == "Cannot interpolate [two $a] at line [2] column [7] as param [a] is not found"
