"""Text of several SQL statements is taken apart where it should be."""

import pytest

from calve.cli.statements import split


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("", []),
        (" ; ;\n", []),
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';'; SELECT 2", ["SELECT ';'", "SELECT 2"]),
        ("SELECT 'it''s; fine'; SELECT 2", ["SELECT 'it''s; fine'", "SELECT 2"]),
        (r"SELECT 'a\';b'; SELECT 2", [r"SELECT 'a\';b'", "SELECT 2"]),
        ("SELECT r'\\'; SELECT 2", ["SELECT r'\\'", "SELECT 2"]),
        ('SELECT "a;b"; SELECT 2', ['SELECT "a;b"', "SELECT 2"]),
        ("SELECT `a;``b` FROM t; SELECT 2", ["SELECT `a;``b` FROM t", "SELECT 2"]),
        ("SELECT 1 -- no; end\n; SELECT 2", ["SELECT 1 -- no; end", "SELECT 2"]),
        ("SELECT 1 /* no; end */; SELECT 2", ["SELECT 1 /* no; end */", "SELECT 2"]),
        ("SELECT 1 /* a /* b; */ c; */; SELECT 2", ["SELECT 1 /* a /* b; */ c; */", "SELECT 2"]),
        ("-- only; a comment\n; /* and; another */", []),
        ("-- it's a comment\nSELECT 1; SELECT 2", ["-- it's a comment\nSELECT 1", "SELECT 2"]),
        ("SELECT '--'; SELECT '/*'; SELECT 3", ["SELECT '--'", "SELECT '/*'", "SELECT 3"]),
        ("SELECT 1 /* never closed; ", ["SELECT 1 /* never closed;"]),
        ("'x'", ["'x'"]),
    ],
)
def test_statements_end_at_semicolons_outside_quotes_and_comments(text: str, statements: list[str]) -> None:
    """A semicolon ends a statement unless quotes or a comment hold it; empty statements are dropped."""
    assert split(text) == statements
