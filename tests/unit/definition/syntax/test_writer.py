"""Values are written as people would write them, and read back as they were."""

import math
from typing import Any

import pytest

from calve.definition.problems import Problems
from calve.definition.syntax import read
from calve.definition.syntax.writer import to_json, to_yaml


def _read_back(text: str) -> Any:
    problems = Problems()
    node = read(text, name="a.yaml", problems=problems)
    assert not list(problems)
    assert node is not None
    return node.plain()


def test_a_workflow_looks_as_a_person_would_write_it() -> None:
    """Block style, keys in their order, short lists on a line, texts of several lines as they are."""
    value = {
        "Workflow": {
            "id": "demo.pipeline",
            "tags": ["a", "b: c", "10"],
            "jobs": [
                {"job": {"id": "job.1", "type": "Spark", "retries": 3, "script": "SELECT 1\n  FROM t\n\nWHERE x"}},
                {"job": {"id": "job.2", "note": "x\n", "empty": {}, "none": [], "kept": "x\n\n"}},
            ],
            "matrix": [[1, 2.5], [None, True], [[]]],
            "IF a ? b : c": "job.2 -> job.3",
            "cron": "*/5 * * * *",
            "query": "${my_query}",
        }
    }
    text = """\
Workflow:
  id: demo.pipeline
  tags: [a, 'b: c', '10']
  jobs:
    - job:
        id: job.1
        type: Spark
        retries: 3
        script: |-
          SELECT 1
            FROM t

          WHERE x
    - job:
        id: job.2
        note: |
          x
        empty: {}
        none: []
        kept: |+
          x

  matrix:
    - [1, 2.5]
    - [null, true]
    - - []
  'IF a ? b : c': job.2 -> job.3
  cron: '*/5 * * * *'
  query: ${my_query}
"""
    assert to_yaml(value) == text
    assert _read_back(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("010", "'010'"),
        ("1e3", "'1e3'"),
        ("0o7", "'0o7'"),
        ("1_000", "'1_000'"),
        ("2026-01-01", "'2026-01-01'"),
        ("12:30", "'12:30'"),
        ("NO", "'NO'"),
        ("y", "'y'"),
        ("null", "'null'"),
        ("~", "'~'"),
        ("", "''"),
        (" leading", "' leading'"),
        ("it's", "it's"),
        ("'tis", "'''tis'"),
        ("- x", "'- x'"),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a:", "'a:'"),
        ("a #b", "'a #b'"),
        ("#", "'#'"),
        ("<<", "'<<'"),
        ("---", "'---'"),
        ("grüße 😀", "grüße 😀"),
        ("tab\tbed", '"tab\\tbed"'),
        ("\x1b[0m", '"\\u001b[0m"'),
        ("a\u2028b\x85\ufeff", '"a\\u2028b\\u0085\\ufeff"'),
        ("\n", '"\\n"'),
        (" x\ny", '" x\\ny"'),
        ("x\n \ny", '"x\\n \\ny"'),
        ("x\r\ny", '"x\\r\\ny"'),
        (1e22, "1.0e+22"),
        (-1.5e-9, "-1.5e-09"),
        (0.1, "0.1"),
        (None, "null"),
        (False, "false"),
        ("word " * 60 + "end", "word " * 60 + "end"),
    ],
)
def test_a_scalar_is_quoted_only_where_it_must_be(value: Any, text: str) -> None:
    """Also where other readers of YAML would see a number, a date or a boolean."""
    assert to_yaml(value) == f"{text}\n"
    assert to_yaml({"a": value}) == f"a: {text}\n"
    assert _read_back(to_yaml({"a": value})) == {"a": value}
    assert type(_read_back(text)) is type(value)


def test_a_long_list_has_a_line_for_each() -> None:
    """So have lists of texts with several lines."""
    assert to_yaml(["x" * 50, "y" * 50]) == f"- {'x' * 50}\n- {'y' * 50}\n"
    assert to_yaml({"a": ["x\ny", 1]}) == "a:\n  - |-\n    x\n    y\n  - 1\n"
    assert to_yaml(("a", "b")) == "[a, b]\n"


def test_a_text_of_several_lines_may_be_all_there_is() -> None:
    """Its lines are indented even so."""
    assert to_yaml("a\n---\nb\n") == "|\n  a\n  ---\n  b\n"


def test_a_key_longer_than_yaml_allows_on_a_line_is_marked() -> None:
    """As long as reading allows."""
    value = {"k" * 1024: {"a": [1]}, "l" * 1020: "x"}
    assert to_yaml(value).startswith("? kkk")
    assert _read_back(to_yaml(value)) == value


@pytest.mark.parametrize("value", [{1, 2}, b"x", [object()]])
def test_what_is_not_json_is_not_written(value: Any) -> None:
    """It is a mistake of the caller."""
    with pytest.raises(TypeError):
        to_yaml(value)
    with pytest.raises(TypeError):
        to_json(value)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_numbers_that_are_none_are_not_written(value: float) -> None:
    """JSON has no word for them."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_yaml(value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_json(value)


def test_json_is_written_as_it_is_read() -> None:
    """Characters stay as they are unless nobody could see them."""
    assert to_json({"a": ["é", "\x7f\ufeff", 1.5, None]}) == '{"a": ["é", "\\u007f\\ufeff", 1.5, null]}'
    assert to_json({"a": [1]}, indent=2) == '{\n  "a": [\n    1\n  ]\n}'
