"""Numbers, maps, dates and the functions around them."""

import pytest

from calve.errors import ExpressionError
from calve.expressions import Limits, evaluate
from calve.expressions.java import double_text

_NOW = 1_700_000_000_000


def _value(text: str, **params: object) -> object:
    return evaluate(text, params, clock=lambda: _NOW).value


def _kind(text: str, **params: object) -> str:
    with pytest.raises(ExpressionError) as raised:
        evaluate(text, params, clock=lambda: _NOW)
    return raised.value.kind


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1e10, "1.0E10"),
        (1e-5, "1.0E-5"),
        (0.001, "0.001"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456.789, "123456.789"),
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (100.0, "100.0"),
    ],
)
def test_a_double_is_written_as_java_does(number: float, text: str) -> None:
    """Plain in the middle, scientific at both ends."""
    assert double_text(number) == text
    assert _value("'' + x;", x=number) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (" 1.5 ", 1.5),
        ("1e3f", 1000.0),
        ("-Infinity", float("-inf")),
        ("0x1.8p1", 3.0),
        ("-0x1p99999", float("-inf")),
        ("0x1p99999", float("inf")),
        ("5.", 5.0),
    ],
)
def test_a_text_becomes_a_double(text: str, number: float) -> None:
    """In all the forms that Java reads."""
    assert _value("Double.parseDouble(t);", t=text) == number
    assert _value("Double.valueOf(t) == new Double(t);", t=text) is True


def test_what_is_no_number_is_reported() -> None:
    """By the name of the failure."""
    for text in ("", " ", "x", "1_0", "0x", "0xp1", "."):
        assert _kind("Double.valueOf(t);", t=text) == "NumberFormatException"
    for text in ("", "+", "1.0", "9223372036854775808", "9" * 50):
        assert _kind("Long.valueOf(t);", t=text) == "NumberFormatException"
    assert _value("Long.valueOf('-5') + Integer.parseLong('+١٢') + new Long('0007');") == 14
    assert _kind("String s; Long.parseLong(s);") == "NumberFormatException"
    assert _kind("String s; Double.parseDouble(s);") == "NullPointerException"


def test_doubles_compute_as_in_java() -> None:
    """Division by zero has a value, and so has every power."""
    assert _value("1.0/0.0;") == float("inf")
    assert _value("-1.0/0.0 == 1.0/(-0.0);") is True
    assert _value("'' + (0.0/0.0) + (1.0 % 0.0) + ((1.0/0.0) % 2.0) + (5.5 % 2.0);") == "NaNNaNNaN1.5"
    assert _value("'' + Math.pow(0.0/0.0, 0) + Math.pow(1, 1.0/0.0) + Math.pow(2, 0.0/0.0);") == "1.0NaNNaN"
    assert _value("'' + Math.pow(-10, 309) + Math.pow(-10, 310) + Math.pow(10.5, 400);") == "-InfinityInfinityInfinity"
    assert _value("'' + Math.pow(0, -1) + Math.pow(-0.0, -1) + Math.pow(0, -2) + Math.pow(-8, 0.5);") == (
        "Infinity-InfinityInfinityNaN"
    )
    assert _value("(0.0/0.0).longValue() + (1.0/0.0).intValue() + (-1.0/0.0).longValue();") == -1
    assert _value("(2.9).longValue() + (-2.9).intValue() + (5).intValue();") == 5
    assert _value("x = 1.0; x += 2.0; x -= 0.5; x *= 4.0; x /= 2.0; x %= 3.0; x = x; x;") == 2.0
    assert _value("1 + 1.5 == 2.5 && 2.5 > 1 && -(1.5) < +(1.5);") is True
    assert 0 <= float(str(_value("Math.random();"))) < 1
    assert _value("Math.min(3, 2) * Math.max(3, 2);") == 6


def test_numbers_have_few_methods() -> None:
    """And what they do not have is told."""
    assert _value("(5).toString() + Long.toString(7) + (1.5).toString() + Double.toString(2.5);") == "571.52.5"
    assert _value("Long.valueOf(5) + Double.valueOf(2.5);") == 7.5
    for text in ("(5).foo();", "(1.5).foo();", "Math.sqrt(2.0);", "System.exit(1);", "UUID.foo();", "true.foo();"):
        assert _kind(text) == "UnsupportedOperationException"
    for text in ("Long.toString('a');", "Double.toString('a');", "Long.parseLong(1);", "Math.min(1, 2.0);"):
        assert _kind(text) == "ClassCastException"
    assert _kind("Math.pow('a', 1);") == "ClassCastException"
    assert _kind("Math.pow(null, 1);") == "NullPointerException"
    assert _kind("String s; Math.pow(s, 1);") == "NullPointerException"
    assert _kind("Math.pow(Math, 1);") == "UnsupportedOperationException"
    assert _kind("Long.valueOf(true);") == "UnsupportedOperationException"


def test_new_makes_few_types() -> None:
    """From a text, or from the like."""
    assert _value("new String() + new String(5) + new String('x') + new Long(5) + new Double(1.5);") == "5x51.5"
    assert _value("new Boolean('TRUE') == new Boolean(true);") is True
    assert _value("String s; new Boolean(s) == true;") is False
    assert _value("String s; new String(s) == null;") is True
    for text in (
        "new String(true);",
        "new Long(1.5);",
        "new Double(1);",
        "new Map(1);",
        "new Long();",
        "new DateTime(1,2,3);",
    ):
        assert _kind(text) == "IllegalArgumentException"
    for text in ("new Days();", "new Foo();", "new Foo[1];", "new DateTime[1];", "x = Math;", "Foo x;"):
        assert _kind(text) == "UnsupportedOperationException"
    assert _kind("DateTime[] x;") == "IllegalArgumentException"
    assert _kind("new int['a'];") == "ClassCastException"


def test_maps_keep_the_order_of_java() -> None:
    """In texts it can be seen."""
    text = "m = new Map(); for (i = 0; i < 14; i += 1) m.put('k' + i, i + 0); m.put('k1', 'x'); '' + m;"
    assert _value(text) == (
        "{k0=0, k1=x, k2=2, k3=3, k4=4, k5=5, k11=11, k6=6, k10=10, k7=7, k13=13, k8=8, k12=12, k9=9}"
    )
    assert _value("Util.toJson(m);", m={"b": 1, "a": {"x": [True]}, "": "n"}) == ('{"":"n","a":{"x":[true]},"b":1}')


def test_maps_have_few_methods() -> None:
    """A map that was declared and not set has hardly any."""
    assert _value("m = new Map(); '' + m.put('a', 1) + m.put('a', 2) + m.get('b') + m.getOrDefault('b', 3);") == (
        "null1null3"
    )
    assert _value("Map m; m.size() == 0 && !m.containsKey('a');") is True
    assert _value("Map m; '' + m;") == "null"
    for text in ("m.get('a');", "m.put('a', 1);", "m.getOrDefault('a', 1);"):
        assert _kind("Map m; " + text) == "NullPointerException"
    assert _kind("m = new Map(); m.put(1, 1);") == "ClassCastException"
    assert _kind("m = new Map(); m.keySet();") == "UnsupportedOperationException"
    assert _kind("m = new Map(); m.put('a', null); m;") == "UnsupportedOperationException"
    assert _value("String k; m = new Map(); m.put(k, 1); m;") == {"null": 1}
    assert _value("String k; m = new Map(); m.put(k, 1); '' + m;") == "{null=1}"


def test_everything_can_be_appended_to_a_text() -> None:
    """Except classes and identifiers."""
    assert _value("'' + null + zzz + true + DateTimeZone.UTC + new DateTime(0L);") == (
        "nullnulltrueUTC1970-01-01T00:00:00.000Z"
    )
    assert _value("DateTime d; DateTimeZone z; DateTimeFormatter f; Property p; Days n; '' + d + z + f + p + n;") == (
        "null" * 5
    )
    assert _value("'' + Days.daysBetween(new DateTime(0L), new DateTime(0L)) + new DateTime(0L).dayOfYear();") == (
        "P0DProperty[dayOfYear]"
    )
    assert str(_value("'' + new int[1];")).startswith("[Lcom.netflix.sel.type.SelLong;@")
    assert str(_value("'' + DateTimeFormat.forPattern('yyyy');")).startswith("org.joda.time.format.DateTimeFormatter@")
    assert _value("m = new Map(); m.put('a', new int[]{1, 2}); m.put('b', Math); m.put('c', null); '' + m;") == (
        "{a=[1, 2], b=Java Math Class, c=NULL}"
    )
    for text in (
        "'' + Math;",
        "'' + UUID.randomUUID();",
        "null == Util;",
        "new DateTime(System);",
        "'a'.equals(Math);",
    ):
        assert _kind(text) in {"UnsupportedOperationException", "IllegalArgumentException"}


def test_failures_show_their_arguments() -> None:
    """Each as Java would."""
    text = "(1).foo('a', null, 1.5, true, new int[]{1}, params, Util, System, DateTimeZone.UTC, UUID.randomUUID());"
    with pytest.raises(ExpressionError) as raised:
        evaluate(text, {})
    message = raised.value.message
    assert "[a, NULL, 1.5, true, [1], PRESET_PARAMS, Preset SEL Utility Function Class, SEL Misc" in message
    assert "com.netflix.sel.type.SelJavaUUID@" in message
    with pytest.raises(ExpressionError, match=r"LONG DO NOT support calling method: foo with args: .a*…") as raised:
        evaluate("(1).foo(x + 'b');", {"x": "a" * 9_000})
    assert len(raised.value.message) < 6_000


def test_operators_refuse_what_they_do_not_know() -> None:
    """With the name that Maestro has for it."""
    for text in ("null == Math;", "true + true;", "null - 1;", "1 && 2;", "1.5 || 2;", "1.5 < null;", "-true;", "!1;"):
        assert _kind(text) == "UnsupportedOperationException"
    for text in ("!1.5;", "-null;", "new Map() + 1;", "UUID = UUID;", "x = true; x += true;", "x = 'a'; x -= 'a';"):
        assert _kind(text) == "UnsupportedOperationException"
    for text in ("new int[1] += 1;", "x += 1;", "m = new Map(); m += m;", "Util = Util;", "z = null;"):
        assert _kind(text) in {"UnsupportedOperationException", "ParseException"}
    for text in (
        "1 + true;",
        "true == 1;",
        "x = 1; x = 'a';",
        "x = 1.5; x = 1;",
        "x = 'a'; x = 1;",
        "x = true; x = 1;",
    ):
        assert _kind(text) == "IllegalArgumentException"
    assert _kind("m = new Map(); m = 1;") == "IllegalArgumentException"
    assert _kind("1.5 + true;") == "ClassCastException"
    assert _value("1 == null || 1.5 == null || true == null || 'a' == null || 1 != null;") is True
    assert _value("null == null && null != 1 && !(null != zzz) && null == x;", x=None) is True
    assert _value("String s; Map m; null == s && null == m && null + s == 'nullnull' && s + 'a' == 'nulla';") is True
    assert _value("null != new int[1] && true != false && 1 == 1" + " == true" * 9 + ";") is True
    assert _value("String s; s += 'a'; s = s; s;") == "nulla"
    assert _value("String s; String t; s = t; s == null;") is True


def test_indexes_are_checked() -> None:
    """By type and by length."""
    assert _kind("x = new int[1]; x[1];") == "ArrayIndexOutOfBoundsException"
    assert _kind("x = new int[1]; x[-1] = 0;") == "ArrayIndexOutOfBoundsException"
    assert _kind("x = new int[1]; x[true];") == "IllegalArgumentException"
    assert _kind("x = new int[1]; x['a'] = 1;") == "ClassCastException"
    assert _kind("x[0] = 1;") == "ClassCastException"
    assert _kind("1[0];") == "ClassCastException"
    assert _kind("new int[]{1, 'a'};") == "IllegalArgumentException"
    assert _kind("x = new int[1]; x.foo;") == "UnsupportedOperationException"
    assert _kind("if (1) 2;") == "ClassCastException"
    assert _value("DateTimeConstants.SUNDAY;") == 7
    assert _value("x = new int[]{1}; y = Arrays.asList(x); y[0];") == 1


def test_json_is_what_jackson_writes() -> None:
    """Texts are escaped, and numbers are Java's."""
    assert _value("Util.toJson(x);", x='a"\\\n\x01é/') == '"a\\"\\\\\\n\\u0001é/"'
    assert _value("Util.toJson(x);", x=[1.0, 1e10, float("nan")]) == '[1.0,1.0E10,"NaN"]'
    assert _value("Util.toJson(null) + Util.toJson(true) + Util.toJson(-5000000000) + Util.toJson(1.5);") == (
        "nulltrue-7050327041.5"
    )
    assert _kind("Util.toJson();") == "IllegalArgumentException"
    assert _kind("Util.toJson(Math);") == "UnsupportedOperationException"
    with pytest.raises(ExpressionError):
        evaluate("Util.toJson(x);", {"x": ["\x01" * 30]}, limits=Limits(memory=300))


class TestDates:
    """Dates, zones and patterns."""

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("new DateTime('2021-03-05T01:02:03Z').toString('yyyyMMdd HH:mm:ss');", "20210305 01:02:03"),
            (
                "new DateTime('2021-03-05', DateTimeZone.forID('Asia/Tokyo')).toString();",
                "2021-03-05T00:00:00.000+09:00",
            ),
            ("new DateTime(0L, DateTimeZone.forID('Asia/Tokyo')).getHourOfDay();", 9),
            ("new DateTime(new DateTime(0L)).getMillis();", 0),
            ("new DateTime(null).getMillis();", _NOW),
            ("DateTimeZone z; new DateTime(z, z).getMillis();", _NOW),
            ("String s; new DateTime(0L).toString(s);", "1970-01-01T00:00:00.000Z"),
            ("new DateTime(0L).plusDays(1).minusHours(1).withYear(2000).getYear();", 2000),
            (
                "new DateTime(0L).withZone(DateTimeZone.forID('Asia/Tokyo')).withTimeAtStartOfDay().getMillis();",
                -32400000,
            ),
            ("new DateTime(0L).isEqual(new DateTime(0L)) && new DateTime(1L).isAfter(new DateTime(0L));", True),
            ("DateTime.parse('2021', DateTimeFormat.forPattern('yyyy')).getYear();", 2021),
            ("new DateTime(0L).monthOfYear().getAsText() + new DateTime(0L).dayOfWeek().get();", "January4"),
            ("new DateTime(0L).dayOfMonth().withMaximumValue().dayOfMonth().withMinimumValue().getMillis();", 0),
            ("DateTimeZone.forID('Asia/Tokyo').getOffset(new DateTime(0L));", 32400000),
            ("String s; '' + DateTimeZone.forID(s);", "UTC"),
            ("DateTime d; DateTimeZone.UTC.getOffset(d);", 0),
            ("Days.daysBetween(new DateTime(0L), new DateTime(864000000L)).getDays();", 10),
            ("DateTimeFormat.forPattern('yyyyMMdd').withZone(DateTimeZone.UTC).parseMillis('19700102');", 86400000),
            ("DateTimeFormat.forPattern('yyyy').parseDateTime(2021).getYear();", 2021),
            (
                "f = DateTimeFormat.forPattern('yyyy'); f.print(0L) + f.print(new DateTime(0L));",
                "19701970",
            ),
            ("DateTime d; DateTimeFormat.forPattern('yyyy').print(d);", "2023"),
            ("Util.dateIntToTs(19700102) + Util.dateIntToTs('19700101');", 86400000),
            ("Util.tsToDateInt(0) + Util.tsToDateInt('86400000');", "1970010119700102"),
            ("Util.incrementDateInt(20210228, 1) + Util.incrementDateInt('20210301', -1);", "2021030120210228"),
            ("Util.dateIntHourToTs('19700102', '01', 'UTC', 1, '1');", 0),
            ("String s; Util.dateIntHourToTs('19700102', '01', s, 1, '1');", 0),
            ("Util.intsBetween(0, 6, 2);", [0, 2, 4]),
            ("Util.intsBetween('3', 0, -2);", [3, 1]),
            ("Util.intsBetween(0, 0, 0);", []),
            ("Util.timeoutForDateIntDeadline('20231115', '');", "6400000 milliseconds"),
            (
                "Util.timeoutForDateIntDeadline(20231115, '1 day, 2 hours and 5 seconds,3 milliseconds');",
                "100005003 milliseconds",
            ),
            ("Util.timeoutForDateIntDeadline(20200101, '0 years, 1 day');", "0 milliseconds"),
            ("UUID.randomUUID().toString().length();", 36),
            ("UUID u; u.toString();", "null"),
        ],
    )  # fmt: skip
    def test_a_date_gives(self, text: str, value: object) -> None:
        """What Joda-Time gives."""
        assert _value(text) == value

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("new DateTime('x');", "IllegalArgumentException"),
            ("new DateTime(1.5);", "IllegalArgumentException"),
            ("new DateTime(1.5, DateTimeZone.UTC);", "IllegalArgumentException"),
            ("new DateTime(new Map());", "IllegalArgumentException"),
            ("new DateTime(new Map(), 5);", "ClassCastException"),
            ("new DateTime(0L, 5);", "ClassCastException"),
            ("new DateTime(2021, 13, 1, 0, 0, 0, 0, DateTimeZone.UTC);", "IllegalFieldValueException"),
            ("new DateTime(0L).plusDays('a');", "IllegalArgumentException"),
            ("new DateTime(0L).plusDays(null);", "IllegalArgumentException"),
            ("new DateTime(0L).plusDays(3000000000);", "IllegalArgumentException"),
            (
                "new DateTime(0L).plusDays(Days.daysBetween(new DateTime(0L), new DateTime(0L)));",
                "IllegalArgumentException",
            ),
            ("new DateTime(0L).foo();", "UnsupportedOperationException"),
            ("DateTime d; d.getYear();", "IllegalArgumentException"),
            ("new DateTime(0L).parse('2021', DateTimeFormat.forPattern('yyyy'));", "IllegalArgumentException"),
            ("DateTimeFormatter f; DateTime.parse('2021', f);", "IllegalArgumentException"),
            ("DateTimeZone.forID('x');", "IllegalArgumentException"),
            ("DateTimeZone.forID(1);", "ClassCastException"),
            ("DateTimeZone.getOffset(new DateTime(0L));", "NullPointerException"),
            ("DateTimeZone.UTC.getOffset(1);", "ClassCastException"),
            ("DateTimeZone.foo();", "UnsupportedOperationException"),
            ("DateTimeZone.FOO;", "UnsupportedOperationException"),
            ("Property p; p.get();", "NullPointerException"),
            ("new DateTime(0L).dayOfYear().foo();", "UnsupportedOperationException"),
            ("Days.getDays();", "NullPointerException"),
            ("Days.foo();", "UnsupportedOperationException"),
            ("Days n; new DateTime(0L).plusDays(n);", "IllegalArgumentException"),
            ("DateTime d; Days.daysBetween(d, d);", "IllegalArgumentException"),
            ("DateTimeFormat.print(0L);", "NullPointerException"),
            ("DateTimeFormat.foo();", "UnsupportedOperationException"),
            ("String s; DateTimeFormat.forPattern('yyyy').parseMillis(s);", "NullPointerException"),
            ("String s; DateTimeFormat.forPattern('yyyy').parseDateTime(s);", "IllegalArgumentException"),
            ("Util.dateIntToTs('x');", "IllegalArgumentException"),
            ("String s; Util.dateIntToTs(s);", "NullPointerException"),
            ("Util.incrementDateInt('20210101', 'x');", "ClassCastException"),
            ("Util.dateIntsBetween(20210101, 20210105, 0);", "IllegalArgumentException"),
            ("Util.dateIntsBetween(20210101, 20210105, 'x');", "NumberFormatException"),
            ("Util.timeoutForDateTimeDeadline(1, '1 day');", "ClassCastException"),
            ("DateTime d; Util.timeoutForDateTimeDeadline(d, '1 day');", "NullPointerException"),
            ("String s; Util.timeoutForDateTimeDeadline(new DateTime(), s);", "NullPointerException"),
            ("Util.timeoutForDateIntDeadline(20200101, '1 month');", "UnsupportedOperationException"),
            ("Util.timeoutForDateIntDeadline(20200101, '1 hour and 1 day');", "IllegalArgumentException"),
            ("Util.timeoutForDateIntDeadline(20200101, '1 hour;');", "IllegalArgumentException"),
            ("Util.timeoutForDateIntDeadline(20200101, '1 hour and 5');", "IllegalArgumentException"),
            ("Util.timeoutForDateIntDeadline(20200101, '9999999999 hours');", "NumberFormatException"),
            ("Util.foo();", "UnsupportedOperationException"),
        ],
    )  # fmt: skip
    def test_a_date_refuses(self, text: str, kind: str) -> None:
        """With the failure of Joda-Time, or that of the call."""
        assert _kind(text) == kind
