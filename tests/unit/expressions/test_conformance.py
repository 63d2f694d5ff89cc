"""Expressions give what Maestro gives: its own tests, and thousands of programs that it was asked about."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from calve.errors import ExpressionError, ExpressionFailed, ExpressionThrew
from calve.expressions import Limits, evaluate, evaluate_text, inputs, names, parse

_DATA = Path(__file__).parents[2] / "data"


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (_DATA / name).read_text().splitlines()]


def _is_same(one: Any, other: Any) -> bool:
    match one, other:
        case float(), (float() | int() | str()):
            number = float(other)
            return one == number or (math.isnan(one) and math.isnan(number))
        case list(), list():
            return len(one) == len(other) and all(map(_is_same, one, other))
        case dict(), dict():
            return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
        case _:
            return bool(one == other)


def _outcome(case: dict[str, Any]) -> dict[str, Any]:
    limits = Limits(**case.get("limits", {}))
    try:
        match case["level"]:
            case "sel":
                result = evaluate(case["expr"], case["params"], limits=limits)
                return {"type": result.type, "expect": result.value}
            case "expr":
                return {"expect": evaluate_text(case["expr"], case["params"], limits=limits).value}
            case "validate":
                return {"expect": sorted(inputs(parse(case["expr"], length=limits.length)))}
            case _:
                return {"expect": names(parse(case["expr"]))}
    except ExpressionError as error:
        return {"error": error.kind, "message": error.message}


_MANY_TURNS = "i < 1000;"
"""In a loop that turns eleven million times."""
_CASES = [
    case for case in _lines("maestro/sel_cases.jsonl") if case["level"] in {"sel", "expr", "validate", "validate_vars"}
]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case['level']}: {case['expr']}"[:60])
def test_a_case_of_maestro(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    """The value, its type, or the failure is the one that Maestro's own test expects."""
    if _MANY_TURNS in case["expr"]:
        request.getfixturevalue("untraced")
    outcome = _outcome(case)
    if "error" in case:
        assert case["error"] in {"*", outcome["error"]}
        assert case.get("error_contains", "") in outcome["message"]
    elif isinstance(case["expect"], dict) and "any_of_type" in case["expect"]:
        assert outcome["type"] == case["expect"]["any_of_type"]
    else:
        assert "error" not in outcome, outcome
        assert _is_same(outcome["expect"], case["expect"])
        assert case.get("type", outcome.get("type")) == outcome.get("type")


_PARAMS = [case for case in _lines("maestro/sel_cases.jsonl") if case["level"] == "param" and "error" not in case]
_EXTENSIONS = [case for case in _lines("maestro/sel_cases.jsonl") if case["level"] == "ext"]


@pytest.mark.parametrize("case", _PARAMS, ids=lambda case: case["expr"][:60])
def test_a_parameter_has_its_value_before_any_cast(case: dict[str, Any]) -> None:
    """A result of the type that is asked for is the value; others are cast elsewhere."""
    result = evaluate_text(case["expr"], case["params"])
    wanted = case["param_type"].replace("STRING_MAP", "MAP")
    assert _is_same(result.value, case["expect"]) or result.type != wanted


class _Answering:
    """Functions of ``params`` that know one answer."""

    def __init__(self, case: dict[str, Any]) -> None:
        self._case = case

    def call(self, name: str, arguments: tuple[str, ...]) -> Any:
        """Return the answer, or fail."""
        assert name in self._case["expr"]
        assert all(argument in self._case["expr"] for argument in arguments)
        if "error" in self._case:
            raise ExpressionFailed("there is no such signal", kind="IllegalArgumentException")
        return self._case["expect"]


@pytest.mark.parametrize("case", _EXTENSIONS, ids=lambda case: case["expr"][:60])
def test_a_function_of_params_is_asked(case: dict[str, Any]) -> None:
    """What it answers is the value; where it fails, so does the expression."""
    if "error" not in case:
        assert evaluate_text(case["expr"], case["params"], functions=_Answering(case)).value == case["expect"]
        return
    with pytest.raises(ExpressionFailed, match=case["error_contains"]) as raised:
        evaluate_text(case["expr"], case["params"], functions=_Answering(case))
    assert raised.value.kind == case["error"]


def test_thousands_of_programs_end_as_they_do_in_maestro() -> None:
    """The type, the value, the visits and the memory are equal, or the failure is."""
    different: list[str] = []
    for case in _lines("sel_differential.jsonl"):
        limits = Limits(**case.get("limits", {}))
        try:
            result = evaluate(case["expr"], case.get("params", {}), limits=limits)
        except ExpressionThrew as error:
            is_same = case.get("type") == "ERROR" and case["value"] == error.message
        except ExpressionError as error:
            is_same = case.get("error") == error.kind
        else:
            is_same = (
                (case.get("type"), case.get("visits"), case.get("memory"))
                == (result.type, result.visits, result.memory)
            ) and _is_same(result.value, case["value"])
        if not is_same:
            different.append(case["expr"])
    assert not different
