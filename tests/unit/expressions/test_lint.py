"""Each habit that surprises and can be seen in the source has its warning."""

import pytest

from calve.expressions import lint, parse


def _codes(text: str, known: list[str] | None = None) -> list[tuple[str, int, int]]:
    return [(warning.code, warning.line, warning.column) for warning in lint(parse(text), known=known)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x != null && x.length() > 0;", [("no_short_circuit", 1, 11)]),
        ("n == 0 || 10 / n > 1;", [("no_short_circuit", 1, 8)]),
        ("a && b;", []),
        ("'1' == 1;", [("string_number_equality", 1, 5)]),
        ("1 != '1';", [("string_number_equality", 1, 3)]),
        ("a == '1';", []),
        ("m['foo'];", [("map_index", 1, 2)]),
        ("m.get('a')['foo'];", [("map_index", 1, 11)]),
        ("params['foo'];", []),
        ("params['foo']['bar'];", [("map_index", 1, 14)]),
        ("a[0]; a[b];", []),
        ("010;", [("octal_like", 1, 1)]),
        ("0; 0L; 10; 0.5; '010'; true;", []),
        ("int x = y; x;", [("aliased_declaration", 1, 5)]),
        ("int x = y + 1; x;", []),
        ("1;\nif (a) b = 1;", [("ends_without_value", 2, 1)]),
        ("while (a) b = 1;", [("ends_without_value", 1, 1)]),
        ("for (;;) break;", [("ends_without_value", 1, 1)]),
        ("int x = 1;", [("ends_without_value", 1, 1)]),
        ("if (a) return 1; else if (b) { throw 'x'; } else { return 2; }", []),
        ("if (a) return 1; else if (b) {} else return 2;", [("ends_without_value", 1, 1)]),
        ("if (a) { 1; } else return 2;", [("ends_without_value", 1, 1)]),
        ("if (a) return 1;", [("ends_without_value", 1, 1)]),
        ("", []),
        ("while (a) { int x = 0; x += 1; } 1;", [("literal_mutated_in_loop", 1, 17)]),
        ("while (a) { int x = 0; String s = null; s = 'a'; int y = a.b; y = 1; } 1;", []),
        ("while (a) { int x; x += 1; } 1;", []),
    ],
)
def test_a_warning_has_a_code_and_a_place(text: str, expected: list[tuple[str, int, int]]) -> None:
    """And there is none where nothing surprises."""
    assert _codes(text) == expected


def test_a_name_is_undeclared_only_if_the_known_ones_are_reported() -> None:
    """Classes, params and what is assigned first are known always."""
    text = "x = a + b; Math.max(x, a); params.get('q');"
    assert _codes(text) == []
    assert _codes(text, ["a"]) == [("undeclared_name", 1, 9)]
    assert _codes(text, ["a", "b"]) == []
