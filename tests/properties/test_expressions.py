"""Whatever the expression and its parameters: it ends, and with nothing but a result or an error of ours."""

import json
from typing import Any

from hypothesis import given, settings, strategies as st
from tests.scope import in_ci

from calve.errors import ExpressionError
from calve.expressions import Limits, evaluate, evaluate_text, inputs, lint, names, parse

_LIMITS = Limits(loop=50, array=50, visit=5_000, memory=50_000, seconds=5)
_WORDS = st.sampled_from(
    """
    a b x int String double boolean Map DateTime if else while for return throw break continue new import true false
    null params Util Math ( ) ( ) [ ] { } ; ; ; ; , . = == != < > <= >= + - * / % && || ! ? : += 1 0 2.5 'a' "b" ''
    9223372036854775807 .length .get( .put( .split( .substring( .format( .toString() 'a'.replaceAll( '(a*)*b' '%d'
    """.split()  # noqa: SIM905 - as it is read
)
_PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
_PARAMS = st.dictionaries(
    st.sampled_from(["a", "b", "x"]),
    st.recursive(
        _PLAIN, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_size=3,
)

_NUMBERS = st.sampled_from(["a", "b", "1", "2", "-3", "a.length", "x"])
_EXPRESSIONS = st.recursive(
    _NUMBERS | st.sampled_from(["'s'", "true", "null", "params", "m", "'a,b'.split(',')", "2.5", "new Map()"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "&&", "||"]), inner).map(
            "({0[0]} {0[1]} {0[2]})".format
        ),
        st.tuples(inner, inner, inner).map("({0[0]} ? {0[1]} : {0[2]})".format),
        st.tuples(st.sampled_from(["a", "m", "s"]), inner).map("({0[0]} = {0[1]})".format),
        inner.map("m.get({})".format),
        st.tuples(inner, inner).map("m.put({0[0]}, {0[1]})".format),
        inner.map("String.format('%s', {})".format),
        inner.map("'abc'.substring({})".format),
        inner.map("new int[{}]".format),
    ),
    max_leaves=6,
)
_STATEMENTS = st.recursive(
    _EXPRESSIONS.map("{};".format),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "{" + " ".join(parts) + "}"),
        st.tuples(_EXPRESSIONS, inner, inner).map("if ({0[0]}) {0[1]} else {0[2]}".format),
        st.tuples(_EXPRESSIONS, inner).map("while ({0[0]}) {0[1]}".format),
        inner.map("for (i = 0; i < 3; i += 1) {}".format),
        _EXPRESSIONS.map("int a = {};".format).map(lambda text: "{" + text + "}"),
        _EXPRESSIONS.map("return {};".format),
        st.just("break;"),
    ),
    max_leaves=8,
)


def _try(text: str, params: dict[str, Any]) -> None:
    for function in (evaluate, evaluate_text):
        try:
            result = function(text, params, limits=_LIMITS)
        except ExpressionError as error:
            json.dumps(error.as_json())
        else:
            json.dumps(result.value, ensure_ascii=False).encode()
            assert 0 < result.visits < _LIMITS.visit
            assert 0 <= result.memory < _LIMITS.memory


@given(st.text(max_size=60), _PARAMS)
@settings(max_examples=in_ci(100, otherwise=300), deadline=None)
def test_any_text_is_an_expression_or_an_error(text: str, params: dict[str, Any]) -> None:
    """Even one of characters that mean nothing."""
    _try(text, params)


@given(st.lists(_WORDS, max_size=20).map(" ".join), _PARAMS)
@settings(max_examples=in_ci(100, otherwise=500), deadline=None)
def test_any_words_are_an_expression_or_an_error(text: str, params: dict[str, Any]) -> None:
    """In whatever order."""
    _try(text, params)


@given(st.lists(_STATEMENTS, min_size=1, max_size=4).map(" ".join), _PARAMS)
@settings(max_examples=in_ci(100, otherwise=500), deadline=None)
def test_any_program_ends_within_its_limits(text: str, params: dict[str, Any]) -> None:
    """With what it took, or with what it wanted too much of; and twice the same."""
    _try(f"m = new Map(); s = 'q'; {text}", params)


@given(st.text(alphabet="ab01.*+?{}()[]|\\^$,-&<>=!:isxdwQE", max_size=25), st.text(alphabet="ab01 .", max_size=20))
@settings(max_examples=in_ci(100, otherwise=500), deadline=None)
def test_any_pattern_ends(pattern: str, text: str) -> None:
    """Even one that tries everything."""
    _try("x.split(a);", {"x": text, "a": pattern})
    _try("x.replaceAll(a, b);", {"x": text, "a": pattern, "b": "[$0]"})


@given(st.text(alphabet="%sdfexgcbhn-#+ 0,(<.123456789$", max_size=15), _PLAIN)
@settings(max_examples=in_ci(100, otherwise=500), deadline=None)
def test_any_format_ends(pattern: str, value: object) -> None:
    """Even one that asks for a billion characters."""
    _try("String.format(a, b);", {"a": pattern, "b": value})


@given(st.lists(_WORDS, max_size=20).map(" ".join))
@settings(max_examples=in_ci(100, otherwise=300), deadline=None)
def test_any_program_can_be_examined(text: str) -> None:
    """Its names and its warnings are found without running it."""
    try:
        program = parse(text)
    except ExpressionError:
        return
    assert inputs(program) <= names(program).keys()
    assert all(warning.line >= 1 for warning in lint(program, known=[]))
