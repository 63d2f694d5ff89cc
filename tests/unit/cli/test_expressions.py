"""``calve eval``."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from calve.cli import entry
from calve.cli.options import parse_param

DATA = Path(__file__).parents[2] / "data" / "maestro" / "sel_cases.jsonl"


def _answers(lines: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    monkeypatch.setattr("sys.stdin", io.StringIO(text + "\n\n"))
    assert entry.run(["eval", "--jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_an_expression_is_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    """Its last semicolon may be missing."""
    assert entry.run(["eval", "x + 1", "-p", "x=10"]) == 0
    assert capsys.readouterr().out == "LONG  11\n"


def test_a_result_is_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """With its type."""
    assert entry.run(["eval", "x.split(',')", "-p", "x=a,b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"type": "STRING_ARRAY", "value": ["a", "b"]}


def test_a_quirk_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error."""
    assert entry.run(["eval", "010"]) == 0
    said = capsys.readouterr()
    assert said.out == "LONG  10\n"
    assert said.err.startswith("1:1: ")


@pytest.mark.parametrize("expression", ["1 +", "1 / 0", "throw 'no'", "System.exit(1)"])
def test_an_expression_that_gives_nothing_is_an_error(expression: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With exit code 1."""
    assert entry.run(["eval", expression]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_what_is_not_said_is_wrong_usage() -> None:
    """Neither an expression nor a stream, or both."""
    assert entry.run(["eval"]) == 2
    assert entry.run(["eval", "1", "--jsonl"]) == 2
    assert entry.run(["eval", "--jsonl", "-p", "x=1"]) == 2


@pytest.mark.parametrize(
    ("given", "value"),
    [
        ("x=5", 5),
        ('x="5"', "5"),
        ("x=[1, 2]", [1, 2]),
        ("x=a=b", "a=b"),
        ("x=NaN", "NaN"),
        ("x=", ""),
        ("x=" + "[" * 9999, "[" * 9999),
    ],
)
def test_a_param_is_json_where_it_reads_as_json(given: str, value: Any) -> None:
    """Otherwise it is text."""
    assert parse_param(given) == ("x", value)


def test_a_stream_is_answered_line_by_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong with a line is its answer."""
    answers = _answers(
        [
            {"expr": "1 + 1"},
            {"expr": "1 + 1", "level": "sel"},
            {"expr": "x", "params": {"x": [1, 2]}, "limits": None},
            {"expr": "zzz;", "limits": {"visit": 100}},
            {"expr": "zzz", "level": "expr"},
            {"expr": "while(true) 1;", "limits": {"loop": 3}},
            "nonsense",
            [1],
            {"expr": 3},
            {"expr": "1", "params": [1]},
            {"expr": "1", "limits": {"stak": 3}},
            {"expr": "1", "limits": [3]},
            {"expr": "1", "limits": {"loop": True}},
            {"expr": "1", "parms": {"x": 1}},
            {"expr": "1", "params": 0},
            {"expr": "1", "level": "max"},
            {"expr": "1", "level": "param", "param_type": "INT"},
        ],
        monkeypatch,
        capsys,
    )
    assert answers[0] == {"type": "LONG", "value": 2}
    assert answers[1]["error"].startswith("ParseException: ")
    assert answers[2] == {"type": "LONG_ARRAY", "value": [1, 2]}
    assert answers[3] == {"type": "NULL", "value": None}
    assert "Invalid return type" in answers[4]["error"]
    assert answers[5]["error"].startswith("IllegalStateException: ")
    assert all(answer["error"].startswith("InvalidRequest: ") for answer in answers[6:])
    assert "stak" in answers[10]["error"]
    assert answers[13]["error"] == "InvalidRequest: parms looks like params"
    assert answers[15]["error"] == "InvalidRequest: level is sel, expr or param, not max"


def test_maestros_own_cases_pass_through_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every case of the language itself, as a stream; the long loop has a test of its own."""
    cases = [json.loads(line) for line in DATA.read_text().splitlines()]
    chosen = [case for case in cases if case["level"] in {"sel", "expr", "param"} and case.get("expect") != 11_000_000]
    keys = ("expr", "params", "limits", "param_type")
    sent = [{key: case[key] for key in keys if key in case} for case in chosen]
    for line, case in zip(sent, chosen, strict=True):
        if case["level"] == "param":
            line["level"] = "param"
    for case, answer in zip(chosen, _answers(sent, monkeypatch, capsys), strict=True):
        if "error" in case:
            is_named = case["level"] == "sel" and case["error"] != "*"
            assert (case["error"] if is_named else "") in answer["error"], case
        elif isinstance(case["expect"], dict) and "any_of_type" in case["expect"]:
            assert answer["type"] == case["type"]
        else:
            assert answer["value"] == case["expect"], case


def test_numbers_that_json_does_not_know_are_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Java's."""
    source = "m = new Map(); m.put('a', new double[]{1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0, 1.5}); return m;"
    assert _answers([{"expr": source}], monkeypatch, capsys) == [
        {"type": "MAP", "value": {"a": ["Infinity", "-Infinity", "NaN", 1.5]}}
    ]
