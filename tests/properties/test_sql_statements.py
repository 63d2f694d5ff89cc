"""However statements are quoted and commented, they are taken apart where they end, and bound where they ask."""

from hypothesis import given, strategies as st
from sqlalchemy import create_engine, text

from calve.steps.sql import split

_ANY = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
_QUOTED = _ANY.map(lambda content: "'" + content.replace("'", "''") + "'")
_NAMED = _ANY.map(lambda content: '"' + content.replace('"', '""') + '"')
_DOLLARS = _ANY.filter(lambda content: "$" not in content).map(lambda content: f"$q${content}$q$")
_LINE = _ANY.filter(lambda content: "\n" not in content).map(lambda content: f"--{content}\n")
_BLOCK = _ANY.filter(lambda content: not set("*/") & set(content)).map(lambda content: f"/*{content}*/")
_CODE = st.sampled_from(["SELECT", "x::int", "a[1:2]", ":name", "IN :many", "@v := 1", "1 - 2", "a/b"])
_PIECE = st.one_of(_CODE, _QUOTED, _NAMED, _DOLLARS, _LINE, _BLOCK)
_STATEMENT = st.lists(_PIECE, max_size=5).map(lambda pieces: " ".join(["SELECT", *pieces]).strip())


@given(st.lists(_STATEMENT, max_size=4))
def test_joined_statements_come_apart_again(statements: list[str]) -> None:
    """Each as it was written."""
    assert [statement.sql for statement in split("\n; ".join(statements), "postgresql")] == statements


@given(st.lists(_PIECE, max_size=6))
def test_only_names_in_code_are_bound(pieces: list[str]) -> None:
    """SQLAlchemy sees the same names as the taking apart, whatever stands in quotes."""
    for statement in split(" ".join(["SELECT", *pieces]), "postgresql"):
        assert set(text(statement.template)._bindparams) == statement.names
        assert statement.names == {
            name for name in ("name", "many") if any(name == p.rpartition(":")[2] for p in pieces)
        }


@given(_ANY, _ANY)
def test_literals_and_values_are_returned_unchanged(literal: str, value: str) -> None:
    """Through a database."""
    quoted = "'" + literal.replace("'", "''") + "'"
    (statement,) = split(f"SELECT {quoted}, :value", "sqlite")
    engine = create_engine("sqlite://")
    try:
        with engine.connect() as connection:
            row = connection.execute(text(statement.template), {"value": value}).one()
    finally:
        engine.dispose()
    assert tuple(row) == (literal, value)
