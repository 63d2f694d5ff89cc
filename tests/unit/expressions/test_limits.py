"""No expression takes more than it may, however it is written."""

import sys
from contextlib import suppress

import pytest

from calve.errors import ExpressionError, ExpressionFailed, ExpressionInvalid, LimitReached
from calve.expressions import Limits, evaluate, parse


def _kind(text: str, *, limits: Limits | None = None, **params: object) -> str:
    with pytest.raises(ExpressionError) as raised:
        evaluate(text, params, limits=limits or Limits())
    return raised.value.kind


def test_the_length_counts_halves_of_characters() -> None:
    """A character beyond U+FFFF counts twice, as it does in Java."""
    assert parse("'𝒳';", length=6).text == "'𝒳';"
    for text, length in (("'𝒳';", 5), ("1+1;", 4)):
        with pytest.raises(LimitReached) as raised:
            parse(text, length=length)
        assert raised.value.kind == "IllegalArgumentException"


@pytest.mark.parametrize("visits", range(60))
def test_visits_end_an_evaluation_where_maestro_ends_it(visits: int) -> None:
    """The limit is reached when the count is, and not one visit sooner."""
    text = "x = new int[]{1, 2}; x[0] = true ? -x[1] : 2; for (;;) break; (x.length == 2) ? 'a'.length() : 0;"
    needed = evaluate(text, {}).visits
    assert needed == 63
    limits = Limits(visit=needed + 1 - visits)
    if visits == 0:
        assert evaluate(text, {}, limits=limits).visits == needed
    else:
        assert _kind(text, limits=limits) == "IllegalStateException"


def test_a_failure_before_the_limit_is_the_failure() -> None:
    """What goes wrong first is told."""
    for text, enough in (("1/0 + 1 + 1 + 1 + 1;", 13), ("x = 1/0 > 1 ? 1 : 2;", 15), ("if (1/0 > 1) 1;", 11)):
        assert _kind(text, limits=Limits(visit=enough)) == "ArithmeticException"
        assert _kind(text, limits=Limits(visit=enough - 1)) == "IllegalStateException"
    assert _kind("while (true) 1;", limits=Limits(visit=30)) == "IllegalStateException"


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("1;", 1),
        ("1 + (2 + (3 + 4));", 4),
        ("'a'.substring(0, 1);", 4),
        ("new String[]{'a', 'b'};", 3),
        ("new Map();", 1),
        ("int x = 1;", 2),
        ("int x;", 1),
        ("for (;;) break;", 2),
        ("for (i=0; i<1;) i+=1;", 3),
        ("x = new int[2]; x[1] = 5;", 2),
        ("params.foo;", 2),
    ],
)
def test_the_stack_ends_an_evaluation(text: str, needed: int) -> None:
    """So many values are held at once, and not one more."""
    evaluate(text, {}, limits=Limits(stack=needed))
    assert _kind(text, limits=Limits(stack=needed - 1)) == "ArrayIndexOutOfBoundsException"


def test_memory_counts_every_object_before_it_is_made() -> None:
    """32 bytes each, and two for each character."""
    assert evaluate("'a' + 'bc';", {}).memory == 38
    assert _kind("'a' + 'bc';", limits=Limits(memory=38)) == "IllegalStateException"
    assert _kind("x = 1; x == x;", limits=Limits(memory=64)) == "IllegalStateException"
    assert _kind("x = 1; x + x;", limits=Limits(memory=64)) == "IllegalStateException"
    assert _kind("x = 1; x == 1;", limits=Limits(memory=64)) == "IllegalStateException"
    assert _kind("'abcdefgh' == 'a';", limits=Limits(memory=50)) == "IllegalStateException"
    assert _kind("x = new int[]{1, 2}; x.length;", limits=Limits(memory=128)) == "IllegalStateException"


def test_a_result_is_not_larger_than_the_memory() -> None:
    """A map that is in others twice comes out twice, and so on."""
    text = "x=new Map(); for (i=0; i<9; i+=1) { Map y=new Map(); y.put('a', x); y.put('b', x); Map x = y; } return x;"
    assert _kind(text, limits=Limits(memory=10_000)) == "IllegalStateException"
    assert _kind(text.replace("return x", "return '' + x"), limits=Limits(memory=10_000)) == "IllegalStateException"


def test_a_loop_ends() -> None:
    """25,001 rounds are too many."""
    assert evaluate("i=0; while (i < 25000) i += 1; i;", {}).value == 25_000
    assert _kind("while (true) 1;") == "IllegalStateException"
    assert _kind("for (;;) 1;") == "IllegalStateException"


def test_an_array_is_not_too_long() -> None:
    """Neither by its length, nor by its elements."""
    assert _kind("new int[25001];") == "IllegalArgumentException"
    assert _kind("new int[]{1, 2};", limits=Limits(array=2)) == "IllegalArgumentException"
    assert _kind("new int[-1];") == "NegativeArraySizeException"
    assert _kind("Util.intsBetween(0, 25001, 1);") == "IllegalArgumentException"
    assert _kind("Util.intsBetween(0, 2147483647, 1);") == "IllegalArgumentException"
    assert _kind("Util.dateIntsBetween('00010101', '99990101', 1);") == "IllegalArgumentException"
    assert len(evaluate("Util.intsBetween(0, 25000, 1);", {}).value) == 25_000


def test_time_ends_an_evaluation() -> None:
    """The clock is looked at in loops, and by what works on much text."""
    limits = Limits(loop=10**9, memory=10**12, visit=10**12, seconds=0.05)
    assert _kind("while (true) 1;", limits=limits) == "TimeoutException"
    assert _kind("s = 'x'; while (true) { s += 'abcdefghijklmnop'; }", limits=limits) == "TimeoutException"
    text = "Util.dateIntsBetween('00010101', '99990101', 1);"
    assert _kind(text, limits=Limits(array=10**9, memory=10**12, seconds=0)) == "TimeoutException"


HOSTILE = [
    "(" * 4_000 + "1" + ")" * 4_000 + ";",
    "- " * 4_900 + "1;",
    "!" * 9_000 + "true;",
    "{" * 4_900 + "}" * 4_900,
    "a=" * 4_900 + "1;",
    "1" + "+1" * 4_900 + ";",
    "1" + "*1+1" * 2_000 + ";",
    "true?" * 1_900 + "1" + ":1" * 1_900 + ";",
    "a[" * 3_000 + "1" + "]" * 3_000 + ";",
    "'a'" + ".trim()" * 1_300 + ";",
    "a.b(" * 2_000 + ")" * 2_000 + ";",
    "if(a)b;else " * 800 + "c;",
    "if(true)" * 1_200 + "1;",
    "for(;;)" * 1_400 + "1;",
    "1||1&&1==1<1+1*(" * 500 + "1" + ")" * 500 + ";",
    "'" + "\\7" * 4_900,
    "/*" * 4_900,
    "x=new Map(); x.put('a', x); x;",
    "x=new Map(); x.put('a', x); 'a' + x;",
    "x=new Map(); x.put('a', x); Util.toJson(x);",
    "x=new Map(); x.put('a', x); String.valueOf(x);",
    "x=new Map(); x.put('a', x); x.foo(x);",
    "x=new Map(); for (i=0; i<60; i+=1) { y=new Map(); y.put('a', x); y.put('b', x); Map x = y; } return x;",
    "x=new Map(); for (i=0; i<60; i+=1) { Map y=new Map(); y.put('a', x); y.put('b', x); Map x = y; } return '' + x;",
    "x=new Map(); for (i=0; i<60; i+=1) { Map y=new Map(); y.put('a', x); y.put('b', x); Map x = y; } return x;",
    "s='a'; while (true) s += s;",
    "s='a'; while (true) s = s + s;",
    "s='ab'; while (true) s = s.replace('a', 'aaaaaaaaaa');",
    "s='ab'; while (true) s = s.replaceAll('a', 'aaaaaaaaaa');",
    "s='ab'; while (true) s = s.replace('', s);",
    "s='a'; a=new String[20000]; for (i=0; i<20; i+=1) s += s; for (i=0; i<20000; i+=1) { a[i] = s; a[i] += 'x'; }",
    "s='a'; for (i=0; i<20; i+=1) s += s; while (true) s.split('');",
    "s='é𝒳'; for (i=0; i<20; i+=1) s += s; a=new String[20000]; for (i=0; i<20000; i+=1) a[i] = s; return a;",
    "s='a'; for (i=0; i<20; i+=1) s += s; m=new Map(); for (i=0; i<9; i+=1) { k=s+'x'; m.put(k, 1); k=''; } ''+m;",
    "s='a'; for (i=0; i<20; i+=1) s += s; String[] a = new String[20000]; String.join(s, a);",
    "s='\"'; for (i=0; i<24; i+=1) s += s; while (true) s.escape();",
    "String.format('%999999999d', 1);",
    "String.format('%.999999999f', 1.0);",
    "String.format('%2147483648d', 1);",
    "'" + "a" * 40 + "'.split('(a+)+b');",
    "'" + "a" * 40 + "'.split('(a|a)*b');",
    "'" + "a" * 40 + "'.replaceAll('(.*)*(.*)*(.*)*b', '');",
    "s='a'; for (i=0; i<16; i+=1) s += s; s.split('(a*)*b');",
    "s='a'; for (i=0; i<16; i+=1) s += s; s.split('a*b');",
    "'a'.split('" + "(" * 3_000 + "');",
    "'a'.split('((a{1000}){1000}){1000}');",
    "'a'.split('a{999999999}');",
    "Util.intsBetween(0, 2147483647, 1);",
    "Util.intsBetween(1, 0, 0);",
    "Util.dateIntsBetween('00010101', '99990101', 1);",
    "while (true) Util.intsBetween(0, 25000, 1);",
    "m=new Map(); i=0; while (true) { i += 1; m.put('' + i, i); }",
    "Double.valueOf('" + "9" * 9_000 + "');",
    "Long.valueOf('" + "9" * 9_000 + "');",
    "''.__class__.__mro__;",
    "params.__class__;",
    "params.get('__class__').x;",
    "new DateTime(9223372036854775807).plusYears(2147483647);",
    "DateTimeFormat.forPattern('" + "y" * 9_000 + "').print(0);",
    "''.toUpperCase().getClass().forName('os');",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:40])
def test_a_hostile_expression_ends_with_an_error_of_calve(text: str, request: pytest.FixtureRequest) -> None:
    """Whatever it does, it does not take the process with it."""
    if "while" in text:
        request.getfixturevalue("untraced")
    with suppress(ExpressionError):
        evaluate(text, {}, limits=Limits(seconds=5))


@pytest.mark.parametrize("nested", [128, 2_000])
def test_nesting_has_an_end(nested: int) -> None:
    """So deep an expression is refused, and where is told."""
    with pytest.raises(ExpressionInvalid) as raised:
        parse("(" * nested + "1" + ")" * nested + ";")
    assert (raised.value.kind, raised.value.context["column"]) == ("StackOverflowError", 128)


def test_long_chains_are_not_deep() -> None:
    """Operators, signs, suffixes and branches may follow one another for as long as the text may be."""
    assert evaluate("1" + "+1" * 4_900 + ";", {}).value == 4_901
    assert evaluate("- " * 4_900 + "1;", {}).value == 1
    assert evaluate("x=3;" + "if(x==9)1;else " * 600 + "return 5;", {}).value == 5
    assert evaluate("(" * 120 + "1" + ")" * 120 + ";", {}).value == 1
    assert evaluate("x;", {"x": {"a": {"b": 1}}}).value == {"a": {"b": 1}}


def test_a_deep_caller_gets_an_error_of_ours() -> None:
    """Wherever Python's own stack ends."""

    def dive(levels: int) -> str:
        if levels:
            return dive(levels - 1)
        try:
            # A text that was not parsed before, as a parsed one is kept.
            evaluate(f"{levels_to_go};" + "(" * 100 + "x" + " == (x" * 10 + ")" * 110 + ";", {"x": "a"})
        except ExpressionError as error:
            return error.kind
        return "none"

    kinds: list[str] = []
    for levels_to_go in range(0, sys.getrecursionlimit(), 10):
        try:
            kinds.append(dive(levels_to_go))
        except RecursionError:
            break
    assert kinds[0] in {"none", "IllegalArgumentException"}
    assert kinds[-1] == "StackOverflowError"


def test_a_parameter_that_holds_itself_is_refused() -> None:
    """It could not be copied."""
    held: dict[str, object] = {}
    held["x"] = held
    with pytest.raises(ExpressionFailed) as raised:
        evaluate("x;", {"x": held})
    assert raised.value.kind == "StackOverflowError"
