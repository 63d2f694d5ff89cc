"""Methods of strings: regular expressions, formats and the rest, as Java has them."""

import pytest
import regex

from calve.errors import ExpressionError, LimitReached
from calve.expressions import Limits, evaluate


def _value(text: str, **params: object) -> object:
    return evaluate(text, params).value


def _kind(text: str, **params: object) -> str:
    with pytest.raises(ExpressionError) as raised:
        evaluate(text, params)
    return raised.value.kind


@pytest.mark.parametrize(
    ("pattern", "text", "parts"),
    [
        (r"\s+", "a  b\tc", ["a", "b", "c"]),
        ("[,;]", "a,b;c", ["a", "b", "c"]),
        (r"\|", "a|b", ["a", "b"]),
        (r"\.", "a.b.", ["a", "b"]),
        (",", ",a,,b,,", ["", "a", "", "b"]),
        (",", ",,", []),
        (",", "", [""]),
        ("x", "abc", ["abc"]),
        ("", "abc", ["a", "b", "c"]),
        ("(?=b)", "abab", ["a", "ba", "b"]),
        (r"\d{2}", "a12b345", ["a", "b", "5"]),
        (r"\d{2,}", "a12b345c", ["a", "b", "c"]),
        ("(?<=,)", "a,b", ["a,", "b"]),
        ("(?<!a)b", "abcb", ["abc"]),
        ("(?<=(a*|b))", "abc", ["a", "b", "c"]),
        ("(?<=(?>ab|cb)(?=c))", "abc", ["ab", "c"]),
        ("[^a-c]", "adbec", ["a", "b", "c"]),
        ("[a-c&&[^b]]", "1a2b3c4", ["1", "2b3", "4"]),
        ("[a&&]", "1a2", ["1", "2"]),
        ("[x[yz]]", "1y2", ["1", "2"]),
        (r"[\p{Lu}\x41-\x43-]", "1B2-3", ["1", "2", "3"]),
        (r"[\d\-]", "a1b-c", ["a", "b", "c"]),
        (r"[\Qa.\E]", "1a2.3", ["1", "2", "3"]),
        (r"[\Qa.", "1a2.3", None),
        (r"\Qa.b\E", "1a.b2axb", ["1", "2axb"]),
        (r"\Q.", "1.2", ["1", "2"]),
        (r"(?i)X", "1x2X3", ["1", "2", "3"]),
        (r"(?i:[x-y])z", "1Xz2xZ", ["1", "2xZ"]),
        (r"(?i)\p{Lu}1", "2a12", ["2", "2"]),
        (r"(?-i)x", "1x2", ["1", "2"]),
        ("(?x) x # comment\n y", "1xy2", ["1", "2"]),
        ("(?x)x # comment", "1x2", ["1", "2"]),
        ("(?s)a.b", "1a\nb2", ["1", "2"]),
        ("a.b", "1a\nb2", ["1a\nb2"]),
        ("(?d)a.b", "1a\rb2", ["1", "2"]),
        ("(?m)^", "a\nb", ["a\n", "b"]),
        ("(?m)$\\n", "a\nb\r\nc", ["a", "b\r\nc"]),
        ("a$", "ba\n", ["b", "\n"]),
        ("a$", "ba\r\n", ["b", "\r\n"]),
        (r"a\Z", "ba\n", ["b", "\n"]),
        (r"a\z", "ba", ["b"]),
        (r"\Aa", "aa", ["", "a"]),
        (r"\Ga", "aab", ["", "", "b"]),
        (r"\b", "a b", ["a", " ", "b"]),
        (r"\B", "ab c", ["a", "b c"]),
        (r"\R", "a\r\nb\nc", ["a", "b", "c"]),
        (r"\h\H\v\V\w\W\S\D", "1 x\nya!bc2", ["1", "2"]),
        (r"\x41\x{42}\u0043\0104\t", "1ABCD\t2", ["1", "2"]),
        (r"\cA", "1\u00012", ["1", "2"]),
        (r"\0777", "1?72", ["1", "2"]),
        (r"\p{Alpha}\pL\P{Digit}\p{IsAlphabetic}", "1abcd2", ["1", "2"]),
        (r"\p{Cntrl}", "1\u00012", ["1", "2"]),
        (r"(a)\1", "1aa2", ["1", "2"]),
        (r"(?<n>a)\k<n>", "1aa2", ["1", "2"]),
        (r"(?i)(a)\1", "1aA2", ["1", "2"]),
        (r"(b)?\1", "1b2", ["1b2"]),
        (r"\2(a)", "1a2", ["1a2"]),
        (r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10", "1abcdefghijj2", ["1", "2"]),
        (r"(a)\12", "1aa22", ["1", "2"]),
        ("a*?b", "1aab2", ["1", "2"]),
        ("(?:ab)*?c", "1ababc2", ["1", "2"]),
        ("a*+a", "aaa", ["aaa"]),
        ("(?>a*)a", "aaa", ["aaa"]),
        ("(?:a|ab)(?:c|bcd)", "1abcd2", ["1", "2"]),
        ("(?:ab){2,3}", "1ababababab2", ["1", "", "2"]),
        ("(?:ab){1,2}?c", "1ababc2", ["1", "2"]),
        ("(?:a*)*b", "1aab2", ["1", "2"]),
        ("(?!a)[ab]", "1a2b3", ["1a2", "3"]),
        ("a|b|c", "1a2b3c4", ["1", "2", "3", "4"]),
        ("{2}", "ab", ["a", "b"]),
        ("[a-c&&b-d]", "1a2b3", ["1a2", "3"]),
        ("[&&b]", "1a2b3", ["1a2", "3"]),
        ("[a-z&&[^aeiou]&&[^x]x]", "1a2b3x4", ["1a2", "3", "4"]),
        (r"[\Q\Ea]", "1a2", ["1", "2"]),
        ("(?iu)É[à-ý]", "1éÀ2", ["1", "2"]),
        (r"(?iu)(é)\1", "1éÉ2", ["1", "2"]),
        (r"(?i)(a)\1", "éaA", None),
        ("(?d)a$", "ba\n", ["b", "\n"]),
        ("(?d)a$", "ba\r\n", ["ba\r\n"]),
        (r"(?d)a\Z", "ba\n", ["b", "\n"]),
        ("(?dm)^b", "a\rb\nb", ["a\rb\n"]),
        ("(?dm)a$", "a\ra\n", ["a\r", "\n"]),
        (r"\Gb|", "bab", ["", "", "a", "b"]),
        ("^a", "aa", ["", "a"]),
        ("|a", "aa", ["a", "a"]),
        ("x*", "xxaxx", ["", "", "a"]),
        (r"(?:\2x|(a)(b))+", "1abbx2", ["1", "2"]),
        (r"(a\1?)+", "1aa2", ["1", "2"]),
        (r"e\b", "e\u0301e", ["e\u0301"]),
        ("𝒳.", "1𝒳𝒳2", ["1", "2"]),
    ],
)
def test_split_by_a_regular_expression(pattern: str, text: str, parts: list[str] | None) -> None:
    """Where Java finds a match."""
    if parts is None:
        assert _kind("t.split(p);", t=text, p=pattern) == "IllegalArgumentException"
    else:
        assert _value("t.split(p);", t=text, p=pattern) == parts


@pytest.mark.parametrize(
    "pattern",
    [
        "(", ")", "[", "[a", "*", "+a", "a{", "a{x}", "a{2,1}", "a{1001}", "a{9999999999}", "a**", "\\",
        r"\y", r"\k", r"\k<x>", r"\p{Nope}", r"\p{", r"\x1", r"\u12", r"\x{110000}", r"\x{", r"\0", r"\08",
        "[b-a]", "(?<n>a)(?<n>b)", "(?<1>a)", "(?<n", "(?z)", "(?i", "(?--i)", "(?<=a*b)", "(?<=(a+b|b))",
        "(?<=(?:aa)+)", r"(?<=\1)(a)", "(?<=(?>ab|b?)(?=c))", "(?<=a?+b)", "(?x)[a ]", "[a&&[b]&c]", "[&&]", "[ab&&]",
        r"(?<=(a|bb))\1", r"(?!(a)b)\1", "[a&&", "(" * 60 + ")" * 60, "[" * 60, "(((a|b){500}){500}){500}",
    ],
)  # fmt: skip
def test_a_wrong_pattern_is_refused(pattern: str) -> None:
    """With the failure of the method."""
    assert _kind("'abc'.split(p);", p=pattern) == "IllegalArgumentException"


def test_split_takes_a_limit() -> None:
    """Below zero empty parts at the end stay; above, so many parts there are at most."""
    assert _value("'a,b,,'.split(',', -1);") == ["a", "b", "", ""]
    assert _value("'a,b,,'.split(',', 2);") == ["a", "b,,"]
    assert _value("'a,b,,'.split(',', 1);") == ["a,b,,"]
    assert _value("'abc'.split('', 2);") == ["a", "bc"]
    assert _value("'abc'.split('[bc]', -1);") == ["a", "", ""]


def test_replace_all_knows_groups() -> None:
    """By number and by name; a backslash takes the next character as it is."""
    assert _value("'2021-03'.replaceAll('(\\\\d+)-(\\\\d+)', '$2/$1');") == "03/2021"
    assert _value("'ab'.replaceAll('(?<x>a)', '[${x}]');") == "[a]b"
    assert _value("'ab'.replaceAll('(a)|b', '<$1>');") == "<a><>"
    assert _value("'ab'.replaceAll('(a)', '$12');") == "a2b"
    assert _value("'" + "a" * 12 + "'.replaceAll('" + "(a)" * 12 + "', '$12');") == "a"
    assert _value("'a'.replaceAll('a', r);", r=r"\$1") == "$1"
    assert _value("'abc'.replaceAll('', '-');") == "-a-b-c-"
    assert _value("'abc'.replaceAll('b', '[$0]') + 'abc'.replaceAll('b', 'x');") == "a[b]caxc"
    assert _kind("'bbc'.replaceAll('(?<=(b|bb))c', '$1');") == "IllegalArgumentException"
    assert _kind("'bbc'.replaceAll('(?!(b)c)b', '$1');") == "IllegalArgumentException"
    for replacement in ("$", "$x", "$2", "${y}", "${y", "\\"):
        assert _kind("'a'.replaceAll('(a)', r);", r=replacement) == "IllegalArgumentException"
    assert _value("String s; 'b'.replaceAll('a', s);") == "b"
    assert _kind("String s; 'a'.replaceAll('a', s);") == "IllegalArgumentException"
    assert _kind("String s; 'a'.replaceAll(s, 'a');") == "IllegalArgumentException"


def test_a_search_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pattern that tries everything reaches a limit, and soon."""
    monkeypatch.setattr("calve.expressions.limits._SEARCH_SECONDS", 0.1)
    with pytest.raises(LimitReached, match="take longer than"):
        evaluate("t.split('(a|aa)+[bc]');", {"t": "a" * 100})
    with pytest.raises(LimitReached, match="take longer than"):
        evaluate("while (true) t.split('(a|aa)+[bc]');", {"t": "a" * 25})
    with pytest.raises(LimitReached) as raised:
        evaluate("t.split('(a|aa)+[bc]');", {"t": "a" * 100}, limits=Limits(seconds=0.01))
    assert raised.value.kind in {"TimeoutException", "IllegalStateException"}
    with pytest.raises(LimitReached, match="searches more than"):
        evaluate("t.split('[ab]');", {"t": "a" * 2_000_001})
    assert evaluate("t.split('(a+)+b');", {"t": "a" * 40}).value == ["a" * 40]
    with pytest.raises(LimitReached):
        evaluate("t.split('');", {"t": "a" * 100}, limits=Limits(memory=2_000))
    with pytest.raises(LimitReached):
        evaluate("t.replaceAll('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaa');", {"t": "a" * 100}, limits=Limits(memory=2_000))
    monkeypatch.setattr("calve.expressions.limits._SEARCH_SECONDS", 1e-5)
    with pytest.raises(LimitReached, match="take longer than"):
        evaluate("for (i=0; i<1000; i+=1) t.split('[0-9]');", {"t": "a1b"})


def test_a_pattern_that_the_package_refuses_is_an_error_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is known; one that comes up later does not end the process."""

    def refuse(*_: object) -> None:
        raise regex.error("no")

    monkeypatch.setattr("regex.compile", refuse)
    assert _kind("'a'.split('[a-f]b');") == "IllegalArgumentException"


@pytest.mark.parametrize(
    ("pattern", "argument", "text"),
    [
        ("%s|%S|%5s|%-5s|%.1s", "ab", "ab|AB|   ab|ab   |a"),
        ("%1$s%1$s%<s", "ab", "ababab"),
        ("%d|%5d|%-5d|%05d|%,d|%+d|% d", 1234567, "1234567|1234567|1234567|1234567|1,234,567|+1234567| 1234567"),
        ("%1$(d|%1$08d|%1$,d|%1$+d", -1234567, "(1234567)|-1234567|-1,234,567|-1234567"),
        ("%1$x|%1$X|%1$o|%1$#x|%1$#o|%1$08x|%1$#8x", 255, "ff|FF|377|0xff|0377|000000ff|    0xff"),
        ("%x", -1, "ffffffff"),
        ("%1$f|%1$.2f|%1$.0f|%1$10.1f|%1$-8.1f|%1$08.1f|%1$,.1f", 1234.25, None),
        ("%1$e|%1$.2E|%1$.0e|%1$g|%1$G|%1$.3g", 12345.678, "1.234568e+04|1.23E+04|1e+04|12345.7|12345.7|1.23e+04"),
        ("%1$f|%1$e|%1$g|%1$.0e", 0.0, "0.000000|0.000000e+00|0.00000|0e+00"),
        ("%1$g|%1$.1g", 0.00001, "1.00000e-05|1e-05"),
        ("%.2e", 9.999, "1.00e+01"),
        ("%#.0f|%<#.0e", 1.0, "1.|1.e+00"),
        ("%1$f|%1$5.1F", 1.0, None),
        ("%1$f|%1$E|%1$010f", float("nan"), "NaN|NAN|       NaN"),
        ("%1$f|%1$+E|%1$(,f", float("inf"), "Infinity|+INFINITY|Infinity"),
        ("%(f", float("-inf"), "(Infinity)"),
        ("%1$b|%1$B|%1$s|%1$h|%1$5b", True, "true|TRUE|true|4cf| true"),
        ("%1$h", False, "4d5"),
        ("%1$b|%1$h|%1$s", "a", "true|61|a"),
        ("%1$h|%1$c", 66, "42|B"),
        ("%h", 1.5, "3ff80000"),
        ("%h", float("nan"), "7ff80000"),
        ("%h", 4_294_967_297, "0"),
        ("%1$s|%1$d|%1$f|%1$c|%1$b|%1$h|%1$5x", None, "null|null|null|null|false|null| null"),
        ("%%|%5%|%-3%|%n", None, "%|    %|%  |\n"),
        ("%.1f %<.2f", 0.25, "0.3 0.25"),
        ("%.1f", 0.15, "0.2"),
        ("%,.2f", -1e15, "-1,000,000,000,000,000.00"),
        ("%s", 1e10, "1.0E10"),
        ("%.400f", 1.0, "1." + "0" * 400),
        ("%s", {"a": 1}, "{a=1}"),
    ],
)
def test_format_fills_a_pattern(pattern: str, argument: object, text: str | None) -> None:
    """As Java's formatter does."""
    call = "String.format(p, a);" if pattern.count("%") == 1 or "$" in pattern or "<" in pattern else None
    call = call or f"String.format(p, {', '.join(['a'] * pattern.count('%'))});"
    if text is None:
        if "F" in pattern:
            assert _kind(call, p=pattern, a=argument) == "UnknownFormatConversionException"
        else:
            expected = "1234.250000|1234.25|1234|    1234.3|1234.3  |001234.3|1,234.3"
            assert _value(call, p=pattern, a=argument) == expected
    else:
        assert _value(call, p=pattern, a=argument) == text


@pytest.mark.parametrize(
    ("pattern", "kind"),
    [
        ("%", "UnknownFormatConversionException"),
        ("%q", "UnknownFormatConversionException"),
        ("%tY", "UnknownFormatConversionException"),
        ("%-", "UnknownFormatConversionException"),
        ("%s%s", "MissingFormatArgumentException"),
        ("%2$s", "MissingFormatArgumentException"),
        ("%<s", "MissingFormatArgumentException"),
        ("%0$s", "IllegalFormatArgumentIndexException"),
        ("%--5d", "DuplicateFormatFlagsException"),
        ("%-d", "MissingFormatWidthException"),
        ("%-s", "MissingFormatWidthException"),
        ("%0d", "MissingFormatWidthException"),
        ("%-05d", "IllegalFormatFlagsException"),
        ("%+ d", "IllegalFormatFlagsException"),
        ("%+n", "IllegalFormatFlagsException"),
        ("%+%", "IllegalFormatFlagsException"),
        ("%5n", "IllegalFormatWidthException"),
        ("%99999999999s", "IllegalFormatWidthException"),
        ("%.2d", "IllegalFormatPrecisionException"),
        ("%.2c", "IllegalFormatPrecisionException"),
        ("%#b", "FormatFlagsConversionMismatchException"),
        ("%#s", "FormatFlagsConversionMismatchException"),
        ("%+s", "FormatFlagsConversionMismatchException"),
        ("%,x", "FormatFlagsConversionMismatchException"),
        ("%+x", "FormatFlagsConversionMismatchException"),
        ("%,e", "FormatFlagsConversionMismatchException"),
        ("%f", "IllegalFormatConversionException"),
        ("%a", "IllegalFormatConversionException"),
    ],
)
def test_a_wrong_format_has_its_own_failure(pattern: str, kind: str) -> None:
    """By Java's name."""
    assert _kind("String.format(p, 5);", p=pattern) == kind


def test_an_argument_must_fit_its_format() -> None:
    """A text is no number, and not every number is a character."""
    assert _kind("String.format('%d', 'a');") == "IllegalFormatConversionException"
    assert _kind("String.format('%c', 3000000000);") == "IllegalFormatConversionException"
    assert _kind("String.format('%c', -1);") == "IllegalFormatCodePointException"
    assert _kind("String.format('%a', 1.5);") == "UnknownFormatConversionException"
    assert _kind("String.format();") == "IllegalArgumentException"
    assert _kind("String.format(1);") == "ClassCastException"
    assert _kind("String s; String.format(s, 1);") == "NullPointerException"
    assert str(_value("String.format('%s', new int[1]);")).startswith("[J@")
    assert _value("String.format('%s', new DateTime(0L));") == "1970-01-01T00:00:00.000Z"


def test_join_takes_texts_or_an_array() -> None:
    """And nothing else."""
    assert _value("String.join('-', 'a', 'b');") == "a-b"
    assert _value("String.join('-', 'a,b'.split(','));") == "a-b"
    assert _value("String s; String.join('-', 'a', s);") == "a-null"
    assert _value("String.join('-');") == ""
    assert _kind("String.join('-', 1);") == "ClassCastException"
    assert _kind("String.join('-', new int[1]);") == "ClassCastException"
    assert _kind("String s; String.join(s, 'a');") == "NullPointerException"


def test_escape_is_for_literals() -> None:
    """Of the string itself, or of an argument."""
    assert _value("String.escape('a\\n\\\"');") == 'a\\n\\"'
    assert _value("'\\t\\\\'.escape();") == "\\t\\\\"
    assert _value("String s; 'x'.escape(s);") == "null"
    assert _kind("String.escape();") == "NullPointerException"
    assert _kind("'a'.escape(1);") == "IllegalArgumentException"


def test_the_rest_of_the_methods() -> None:
    """Each as in Java."""
    assert _value("' a '.trim() + 'B'.toLowerCase() + 'ß'.toUpperCase();") == "abSS"
    assert _value("'b'.compareTo('a') + 10 * 'a'.compareTo('abc') + 'a'.lastIndexOf('x');") == 1 - 20 - 1
    assert _value("'abc'.contains('b') && 'abc'.startsWith('a') && 'abc'.endsWith('c') && ''.isEmpty();") is True
    assert _value("'a'.equals('a') && !'a'.equals(1) && !'a'.equals(null);") is True
    assert _value("'aXbX'.replace('X', '--');") == "a--b--"
    assert _value("String.valueOf(1.5) + String.valueOf(null) + String.valueOf(true);") == "1.5nulltrue"
    assert _value("m = new Map(); m.put('a', 1); String.valueOf(m) + String.valueOf(-3000000000);") == "{a=1}1294967296"
    assert str(_value("String.valueOf('a,b'.split(','));")).startswith("[Ljava.lang.String;@")
    for text in (
        "'abc'.substring(4);",
        "'a'.substring('b');",
        "'a'.valueOf(1);",
        "String.length();",
        "'a'.contains(1);",
    ):
        assert _kind(text) == "IllegalArgumentException"
    assert _kind("'a'.charAt(0);") == "UnsupportedOperationException"
