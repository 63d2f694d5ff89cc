"""The grammar: what is in the language, and what is told of what is not."""

import pytest

from calve.errors import ExpressionInvalid
from calve.expressions import evaluate, parse


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - 4 / 2 % 3;", 5),
        ("1 < 2 == true && !false || false;", True),
        ("2 - 1 - 1;", 0),
        ("-(-2) + +3;", 5),
        ("x = y = 3; x + y;", 6),
        ("x = 10; x -= 1; x *= 2; x /= 3; x %= 4; x;", 2),
        ("true ? false ? 1 : 2 : 3;", 2),
        ("/* a */ 1; // b", 1),
        ("/** a **/ /**/ 1 /*/ */;", 1),
        ("import a.b.*; import static c.d; import e; 1;", 1),
        ("int a = 1, b, c = a; a + b + c;", 2),
        ("new int[]{1, 2,}.length;", 2),
        ("new int[]{,}.length;", 0),
        ("new String[]{'a'}[0].length();", 1),
        ("(new Map()).size();", 0),
        ("x = new int[]{1}; x[0];", 1),
        ("x = new int[]{1}; x[0] += 4; x[0] == 5;", True),
        ("x = new int[]{1}; for (x[0] = 3; x[0] < 5; x[0] += 1) 1; x[0];", 5),
        ("m = new Map(); for (m.put('a', 1); m.size() < 1; m.size()) 1; m.size();", 1),
        ("a = new int[]{7}; for (a[0]; false; (a)) 1; 2;", 2),
        ("1e3 + .5 + 1.f + 2d + 1.5e-1D;", 1003.5 + 0.15 + 0.0),
        ('"it\'s" + \'say "x"\';', 'it\'ssay "x"'),
        ("$a_é = 1; $a_é;", 1),
        ("if (false) 1; else if (true) { return 2; } else 3;", 2),
        ("while (true) { if (true) break; else continue; } 4;", 4),
        ("for (int i = 0; i < 3; i += 1) { continue; } return i;", 3),
        ("{ { } } {1; 2;}", 2),
        ("int x = 1;\n\nx;", 1),
    ],
)
def test_what_is_in_the_language(text: str, value: object) -> None:
    """Each gives its value."""
    result = evaluate(text, {}).value
    assert result == pytest.approx(value) if isinstance(value, float) else result == value


@pytest.mark.parametrize(
    ("text", "kind", "line", "column"),
    [
        ("1+1", "ParseException", 1, 4),
        ("x++;", "ParseException", 1, 2),
        ("1;\n  method();", "ParseException", 2, 9),
        ("a[);", "ParseException", 1, 2),
        ("a[];", "ParseException", 1, 2),
        ("a.1;", "ParseException", 1, 2),
        ("a.if;", "ParseException", 1, 2),
        ("new int;", "ParseException", 1, 8),
        ("new int[][];", "ParseException", 1, 10),
        ("new 5;", "ParseException", 1, 5),
        ("int[] 5;", "ParseException", 1, 1),
        ("if x;", "ParseException", 1, 4),
        ("for (-1;;) 1;", "ParseException", 1, 8),
        ("for (i=0, j=1;;) 1;", "ParseException", 1, 9),
        ("return;", "ParseException", 1, 7),
        ("class;", "ParseException", 1, 1),
        ("1 = 2;", "ParseException", 1, 3),
        ("import 5;", "ParseException", 1, 8),
        ("{ 1;", "ParseException", 1, 5),
        ("1 #", "TokenMgrError", 1, 3),
        (") #", "TokenMgrError", 1, 3),
        ("'open", "TokenMgrError", 1, 1),
        ("'a\nb';", "TokenMgrError", 1, 1),
        ("'\\q';", "TokenMgrError", 1, 1),
        ("/* open", "TokenMgrError", 1, 8),
        ("99999999999999999999;", "NumberFormatException", 1, 1),
    ],
)
def test_what_is_invalid_is_reported_with_its_place(text: str, kind: str, line: int, column: int) -> None:
    """With the line and the column."""
    with pytest.raises(ExpressionInvalid) as raised:
        parse(text)
    error = raised.value
    assert (error.kind, error.context["line"], error.context["column"]) == (kind, line, column)


def test_an_escape_that_cannot_be_read_ends_the_source_there() -> None:
    """What comes before counts, unless it touches the place."""
    for text, kind in (
        (r"1 + \u00", "Error"),
        (r"abc\u00", "Error"),
        (r"'abc\u00", "Error"),
        (r"/* \u00", "Error"),
        (r"; \uuu0041 ; \u00", "ParseException"),
        (r"# \u00", "TokenMgrError"),
    ):
        with pytest.raises(ExpressionInvalid) as raised:
            parse(text)
        assert raised.value.kind == kind
    assert evaluate(r"\uuu0041 = 1; A;", {}).value == 1
