"""What callers get: values in plain Python, their parameters as they were, and only errors of ours."""

import threading
from typing import Any

import pytest

from calve.errors import ExpressionError, ExpressionFailed, ExpressionInvalid, ExpressionThrew
from calve.expressions import Limits, ResultType, evaluate, evaluate_text, inputs, names, parse

_NOW = 1_700_000_000_000


class Functions:
    """Functions of ``params`` that answer with what they were asked."""

    def call(self, name: str, arguments: tuple[str, ...]) -> Any:
        """Return the call, or fail."""
        if name == "fails":
            raise ExpressionFailed("no such step", kind="IllegalArgumentException")
        if name == "exhausts":
            raise MemoryError
        return {"name": name, "arguments": list(arguments)}


def _value(text: str, **params: object) -> Any:
    return evaluate(text, params, clock=lambda: _NOW).value


def _kind(text: str, **params: object) -> str:
    with pytest.raises(ExpressionError) as raised:
        evaluate(text, params)
    return raised.value.kind


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("'a';", ResultType.STRING, "a"),
        ("String s; s;", ResultType.STRING, None),
        ("1;", ResultType.LONG, 1),
        ("1.5;", ResultType.DOUBLE, 1.5),
        ("true;", ResultType.BOOLEAN, True),
        ("'a,b'.split(',');", ResultType.STRING_ARRAY, ["a", "b"]),
        ("new double[1];", ResultType.DOUBLE_ARRAY, [0.0]),
        ("new boolean[]{true};", ResultType.BOOLEAN_ARRAY, [True]),
        ("int[] x; x;", ResultType.LONG_ARRAY, []),
        ("Map m; m;", ResultType.MAP, None),
        ("null;", ResultType.NULL, None),
        ("", ResultType.VOID, None),
        ("new DateTime(0L);", ResultType.DATETIME, "1970-01-01T00:00:00.000Z"),
        ("DateTimeZone.UTC;", ResultType.DATETIME_ZONE, "UTC"),
        ("DateTimeFormat.forPattern('yyyy');", ResultType.DATETIME_FORMATTER, None),
        ("new DateTime(0L).monthOfYear();", ResultType.DATETIME_PROPERTY, "Property[monthOfYear]"),
        ("Days.daysBetween(new DateTime(0L), new DateTime(86400000L));", ResultType.DATETIME_DAYS, "P1D"),
        ("UUID.randomUUID();", ResultType.UUID, None),
        ("Math;", ResultType.MATH, None),
        ("Util;", ResultType.PRESET_UTIL_FUNCTION, None),
        ("System;", ResultType.PRESET_MISC_FUNC_FIELDS, None),
        ("params;", ResultType.PRESET_PARAMS, None),
    ],
)
def test_every_type_has_its_value(text: str, type_: ResultType, value: object) -> None:
    """Plain Python, or None."""
    result = evaluate(text, {})
    assert (result.type, result.value) == (type_, value)


def test_parameters_of_every_type_come_in() -> None:
    """A list is an array by what is in it."""
    params: dict[str, Any] = {
        "s": "𝒳é",
        "n": 5,
        "d": 0.5,
        "b": False,
        "e": [],
        "ss": ["a", None],
        "ns": (1, 2),
        "ds": [1, 2.5],
        "bs": [True],
        "m": {"a": {"b": [1]}, "c": "x", "d": True, "e": 1.5},
        "nothing": None,
    }
    expected = {**params, "ns": [1, 2], "ds": [1.0, 2.5]}
    for name, value in expected.items():
        assert evaluate(f"{name};", params).value == value
        assert evaluate(f"params.get('{name}');", params).value == value
    assert evaluate("ss[0];", {"ss": [ResultType.MAP]}).value == "MAP"
    assert evaluate("ss[1] + e.length;", params).value == "null0"
    assert evaluate("params.containsKey('s') == true;", params).value is True
    assert evaluate("String k; params.containsKey(k) || params.get(k) != null;", params).value is False


@pytest.mark.parametrize(
    ("param", "kind"),
    [
        (2**63, "UnsupportedOperationException"),
        ([1, 2**63], "UnsupportedOperationException"),
        ([1, "a"], "UnsupportedOperationException"),
        (b"bytes", "UnsupportedOperationException"),
        (object(), "UnsupportedOperationException"),
        ({"a": None}, "IllegalArgumentException"),
        ({"a": object()}, "IllegalArgumentException"),
    ],
)
def test_other_parameters_are_refused_when_they_are_used(param: object, kind: str) -> None:
    """They do no harm where they are not."""
    assert _kind("x;", x=param) == kind
    assert _value("1;", x=param) == 1


def test_parameters_stay_as_they_are() -> None:
    """An expression works on a copy."""
    params: dict[str, Any] = {"m": {"k": "v"}, "a": [1, 2], "n": 1}
    text = "m.put('k', 'changed'); a[0] = 9; n += 5; m.put('self', m.get('k')); return n;"
    assert evaluate(text, params).value == 6
    assert params == {"m": {"k": "v"}, "a": [1, 2], "n": 1}
    assert _kind("n = 'text';", **params) == "IllegalArgumentException"
    assert _kind("nothing = 1;", nothing=None) == "UnsupportedOperationException"


def test_a_program_can_be_evaluated_by_many_threads() -> None:
    """Nothing leaks from one evaluation to another."""
    program = parse("for (i=0; i<200; i+=1) { int x=0; x+=n; m.put('k' + i, x); } return m.get('k199');")
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = evaluate(program, {"n": number, "m": {}}).value

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: 200 * number for number in range(8)}


def test_strings_are_halves_of_characters_inside_and_whole_outside() -> None:
    """A half that has lost its partner comes out as a question mark."""
    assert _value("'𝒳'.length();") == 2
    assert _value("'a𝒳b'.substring(1, 3);") == "𝒳"
    assert _value("'𝒳'.substring(0, 1);") == "?"
    assert _value("'𝒳'.substring(1) + 'é';") == "?é"
    assert _value("'𐐨é'.toUpperCase();") == "𐐀É"
    assert _value("'a𝒳b'.replaceAll('.', '-');") == "---"
    assert _value("'\ud800' + x.length();", x="\udc00𝒳") == "?3"
    assert evaluate("params['𝒳'];", {"𝒳": 1}).value == 1
    assert _value("m;", m={"𝒳": "𝒳"}) == {"𝒳": "𝒳"}


def test_functions_of_params_get_texts_and_give_values() -> None:
    """Up to three, and nothing but texts."""
    assert evaluate("params.getFromStep('a', 'b');", {}, functions=Functions()).value == {
        "name": "getFromStep",
        "arguments": ["a", "b"],
    }
    assert evaluate("params.now().get('arguments');", {}, functions=Functions()).value == []
    for text, kind in (
        ("params.f(1);", "UnsupportedOperationException"),
        ("params.f('a', 'b', 'c', 'd');", "UnsupportedOperationException"),
        ("params.fails();", "IllegalArgumentException"),
        ("params.exhausts();", "IllegalStateException"),
    ):
        with pytest.raises(ExpressionError) as raised:
            evaluate(text, {}, functions=Functions())
        assert raised.value.kind == kind
    assert _kind("params.getFromStep('a');") == "UnsupportedOperationException"


class TestAsWorkflowsDo:
    """Expressions of a workflow."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [("1 + 1", 2), (" 1 + 1; ", 2), ("if (true) {return 3;}", 3), ("\n'a'\n", "a"), ("return 5", 5)],
    )
    def test_the_last_semicolon_may_be_missing(self, text: str, value: object) -> None:
        """Unless a block ends the text."""
        assert evaluate_text(text, {}).value == value

    def test_what_looks_like_json_is_no_block(self) -> None:
        """It is no expression either."""
        with pytest.raises(ExpressionInvalid, match="ParseException") as raised:
            evaluate_text('{"a": 1}', {})
        assert raised.value.kind == "MaestroInvalidExpressionException"
        assert raised.value.context["cause"] == "ParseException"

    @pytest.mark.parametrize("text", ["", "null", "int x = 1;", "new DateTime(0L)", "{x}"])
    def test_not_every_type_can_be_a_parameter(self, text: str) -> None:
        """Nothing, and a date, cannot."""
        with pytest.raises(ExpressionError) as raised:
            evaluate_text(text, {})
        assert raised.value.kind == "MaestroInvalidExpressionException"

    def test_a_throw_tells_its_text(self) -> None:
        """And the expression."""
        with pytest.raises(ExpressionThrew) as raised:
            evaluate_text("throw 'x'", {})
        assert raised.value.message == "Expression throws an error [ERROR: x] for expr=[throw 'x']"

    def test_a_map_may_hold_what_cannot_leave_it(self) -> None:
        """That is found out only at the end."""
        with pytest.raises(ExpressionFailed, match="Expression evaluation is failed with an exception") as raised:
            evaluate_text("m = new Map(); m.put('a', null); m;", {})
        assert raised.value.kind == "MaestroInternalError"

    def test_too_little_time_is_told_apart(self) -> None:
        """It is not the expression's own mistake."""
        limits = Limits(seconds=0)
        with pytest.raises(ExpressionError, match="Expression evaluation is failed with an exception") as raised:
            evaluate_text("while (true) 1;", {}, limits=limits)
        assert raised.value.kind == "MaestroInternalError"


def test_names_are_inputs_if_they_are_read_first() -> None:
    """Classes are no inputs."""
    program = parse("int x = y; z = x + Math.max(y, w[0]); w = 1; q[z] = 2; params.get('k');")
    assert names(program) == {
        "x": False,
        "y": True,
        "z": False,
        "Math": True,
        "w": True,
        "q": False,
        "params": True,
    }
    assert inputs(program) == {"y", "w", "params"}


def test_a_parsed_program_is_kept() -> None:
    """To parse a text again costs nothing; only so many sizes of the stack are kept compiled."""
    program = parse("1 + 1;")
    assert parse("1 + 1;") is program
    assert {evaluate(program, {}, limits=Limits(stack=size)).value for size in range(5, 15)} == {2}


def test_the_clock_comes_from_outside() -> None:
    """All that asks for the time gets the same."""
    assert _value("System.currentTimeMillis();") == _NOW
    assert _value("new DateTime().getMillis();") == _NOW
    assert _value("DateTime d; new DateTime(d).getMillis();") == _NOW
    assert _value("new DateTime(0L).isBefore(null);") is True
    assert _value("Util.timeoutForDateTimeDeadline(new DateTime(), '1 hour');") == "3600000 milliseconds"
    assert evaluate("System.currentTimeMillis();", {}).value > _NOW
