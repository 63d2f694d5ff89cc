"""The habits of the language that surprise, each with its name."""

import pytest

from calve.errors import ExpressionError, ExpressionThrew
from calve.expressions import ResultType, evaluate


def _value(text: str, **params: object) -> object:
    return evaluate(text, params).value


def _kind(text: str, **params: object) -> str:
    with pytest.raises(ExpressionError) as raised:
        evaluate(text, params)
    return raised.value.kind


def test_and_and_or_evaluate_both_sides() -> None:
    """The right side fails although the left one decides."""
    assert _kind("x = null; x != null && x.length() > 0;") == "UnsupportedOperationException"
    assert _kind("true || 1/0 == 1;") == "ArithmeticException"


def test_the_ternary_evaluates_one_side() -> None:
    """It is the way to guard."""
    assert _value("true ? 1 : 1/0;") == 1
    assert _value("false ? 1/0 : (true ? 2 : 3);") == 2


def test_an_undeclared_name_is_null() -> None:
    """It is no error, and compares as false."""
    assert evaluate("zzzzz;", {}).type is ResultType.NULL
    assert _value("z>0 && z<10;") is False


def test_if_and_while_and_a_declaration_have_no_value() -> None:
    """An expression must end with something else."""
    for text in ("if (true) x=1;", "while (false) 1;", "int x = 1;", "for (i=0; i<2; i+=1) i;"):
        assert evaluate(text, {}).type is ResultType.VOID


def test_a_declaration_aliases_and_an_assignment_copies() -> None:
    """Two declared names are one object; an assigned one is a copy."""
    assert _value("y = 1; int x = y; y = 5; x;") == 5
    assert _value("y = 1; x = y; y = 5; x;") == 1


def test_a_map_holds_the_object_and_sees_its_change() -> None:
    """What is put into a map is not copied."""
    assert _value("x=new Map(); y=123; x.put('foo', y); y=111; return x;") == {"foo": 111}


def test_a_key_that_is_changed_can_no_longer_be_found() -> None:
    """The key is an object too: it stays in the map, under neither text."""
    text = "x=new Map(); k='a'; x.put(k, 1); k='b'; "
    assert _value(text + "x.containsKey('a') || x.containsKey('b');") is False
    assert _value(text + "x;") == {"b": 1}
    assert _value(text + "x.put('a', 2); x.size();") == 2
    assert _value(text + "k='a'; x.get('a');") == 1


def test_a_literal_in_a_loop_is_changed_for_the_next_round() -> None:
    """The variable is the literal itself; the next evaluation starts afresh."""
    text = "s=0; for (i=0; i<3; i+=1) { int x=0; x+=1; s+=x; } return s;"
    assert _value(text) == 6
    assert _value(text) == 6
    assert _value(text.replace("int x=0", "x=0")) == 3


def test_a_leading_zero_is_decimal() -> None:
    """There are no octal numbers, and hexadecimal ones cannot be read."""
    assert _value("010;") == 10
    assert _kind("0x10;") == "NumberFormatException"


def test_the_left_side_decides_about_text_and_number() -> None:
    """A number meets a text as a text; a text refuses a number."""
    assert _value("1 == '1';") is True
    assert _kind("'1' == 1;") == "IllegalArgumentException"
    assert _kind("'a' < 'b';") == "UnsupportedOperationException"


def test_null_is_neither_less_nor_greater() -> None:
    """But to ask whether it is less or equal is an error."""
    assert _value("null < 1;") is False
    assert _value("null > 1;") is False
    assert _kind("null <= 1;") == "UnsupportedOperationException"


def test_only_params_are_indexed_by_text() -> None:
    """A map is not, whatever its documentation says."""
    assert _kind("m = new Map(); m['foo'];") == "ClassCastException"
    assert _value("params['foo'];", foo="bar") == "bar"


def test_division_cuts_towards_zero_and_numbers_wrap() -> None:
    """Whole numbers are Java's."""
    assert _value("-7/2;") == -3
    assert _value("-7%3;") == -1
    assert _value("9223372036854775807 + 1;") == -(2**63)
    assert _value("(-9223372036854775807 - 1) / -1;") == -(2**63)
    assert _value("x = 9223372036854775807; x += 1; x;") == -(2**63)
    assert _value("x = 9223372036854775807; y = 2; x += y; x;") == -(2**63) + 1
    assert _kind("1/0;") == "ArithmeticException"
    assert _kind("1%0;") == "ArithmeticException"
    assert _kind("double x = 1;") == "IllegalArgumentException"


def test_days_between_exclude_the_end_and_dates_are_plain_numbers() -> None:
    """``20210101 + 15`` is no date arithmetic."""
    assert _value("Util.dateIntsBetween(d, d + 15, 7);", d=20210101) == [20210101, 20210108, 20210115]
    assert _value("Util.dateIntsBetween(20210103, 20210101, -1);") == [20210102, 20210101]


def test_format_cuts_small_numbers_to_32_bits() -> None:
    """Only large positive ones keep their 64 bits."""
    assert _value("String.format('%s', -3000000000);") == "1294967296"
    assert _value("String.format('%s', 3000000000);") == "3000000000"


def test_a_moment_in_a_gap_does_not_exist() -> None:
    """Clocks skip it."""
    text = "new DateTime(2021, 3, 14, 2, 30, 0, 0, DateTimeZone.forID('America/Los_Angeles'));"
    assert _kind(text) == "IllegalInstantException"


def test_octal_escapes_are_refused_and_unicode_ones_taken() -> None:
    r"""``\7`` is in the grammar, but not in the language."""
    assert _kind(r"'\7';") == "IllegalArgumentException"
    assert _value(r"'\u00e9' + '\\u0041' + '\t\b\n\f\r\'\"';") == "é\\u0041\t\b\n\f\r'\""
    assert _value(r"\u0031 + 1;") == 2
    assert _kind(r"'\u00g9';") == "Error"
    assert _kind(r"x = 1 ) \u00g9;") == "Error"
    assert _kind(r"x = ) ; ; \u00g9;") == "ParseException"


def test_a_throw_ends_with_its_text() -> None:
    """Only texts can be thrown."""
    with pytest.raises(ExpressionThrew, match="ERROR: no way"):
        evaluate("if (true) throw 'no ' + 'way';", {})
    with pytest.raises(ExpressionThrew, match="ERROR: null"):
        evaluate("String s; throw s;", {})
    assert _kind("throw 1;") == "IllegalArgumentException"


def test_a_class_can_be_changed_for_one_evaluation() -> None:
    """Its name is a variable like others; the next evaluation has its own."""
    assert _value("Long = 5; Long + 1;") == 6
    assert _value("Long + 1;") == 1
    assert _value("String + 'x';") == "nullx"


def test_a_for_without_parts_leaves_values_behind() -> None:
    """Two of them at the end are an error."""
    assert _value("for(;false;) 1; {1; int x=2;} 5;") == 5
    assert _kind("for(i=0;i<2;) {i+=1; int x=2;} return 5;") == "RuntimeException"
    assert _kind("break;") == "RuntimeException"
    assert _value("break; 5;") == 5
