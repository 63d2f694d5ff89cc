"""Values in SQL."""

from decimal import Decimal
from typing import Any

import pytest

from calve.errors import StepFailed
from calve.steps.spark.sql_script import bound, literal
from calve.steps.sql import split


def _bound(sql: str, **values: Any) -> list[str]:
    return [bound(statement, values) for statement in split(sql, "spark")]


def test_a_name_in_code_is_replaced_and_nothing_else_is() -> None:
    """Names in quotes and comments are text, and two colons are a cast."""
    sql = r"SELECT ':n', x::int, m:a, 'it\'s; :n' FROM t -- :n" + "\nWHERE x = :n"
    assert _bound(sql, n=3) == [r"SELECT ':n', x::int, m:a, 'it\'s; :n' FROM t -- :n" + "\nWHERE x = 3"]


def test_a_statement_without_names_is_left_as_it_is() -> None:
    """Also its escapes."""
    assert _bound(r"SELECT r'C:\', 'a\:b'") == [r"SELECT r'C:\', 'a\:b'"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (-3, "(-3)"),
        (0.5, "0.5D"),
        (float("nan"), "double('nan')"),
        (Decimal("1.50"), "(1.50BD)"),
        ("it's a \\ and\n", r"'it\'s a \\ and\n'"),
        ([1, "a"], "array(1, 'a')"),
        ({"a": 1}, "map('a', 1)"),
    ],
)
def test_every_value_of_a_param_has_a_literal(value: Any, text: str) -> None:
    """What would end a text early is escaped."""
    assert literal(value, "p") == text


def test_a_value_that_sql_does_not_know_is_refused_by_name() -> None:
    """So is a whole number that no type of Spark holds."""
    with pytest.raises(StepFailed, match=r"parameters\.p is a int"):
        literal(2**70, "p")


def test_a_text_cannot_escape_its_quotes() -> None:
    """The statement stays one, with one text in it."""
    [sql] = _bound("SELECT :p", p="'; DROP TABLE t; --")
    assert [statement.sql for statement in split(sql, "spark")] == [sql]


def test_statements_of_spark_are_told_apart() -> None:
    """By semicolons in code: raw texts end at their quote, comments nest, and a script is one statement."""
    text = r"SELECT r'a\'; /* a /* b; */ c; */ SELECT 'x\';y'; BEGIN SELECT 1; SELECT 2; END"
    found = [statement.sql for statement in split(text, "spark")]
    assert found == [r"SELECT r'a\'", r"/* a /* b; */ c; */ SELECT 'x\';y'", "BEGIN SELECT 1; SELECT 2; END"]
