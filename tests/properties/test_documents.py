"""Whatever the text, it is read or refused; whatever the value, it is written so that it is read again."""

import json
import re
from typing import Any

from hypothesis import example, given, strategies as st

from calve.definition import Problems, to_json, to_yaml
from calve.definition.syntax import read

# fmt: off
_FRAGMENTS = st.sampled_from([
    "a", "b: ", "- ", "? ", ": ", "\n", "\n  ", "\t", "{", "}", "[", "]", ",", "&x ", "*x", "!t ", "!!str ", "<<",
    "|\n", ">-\n", "'", '"', "\\", "#", "---\n", "...\n", "%YAML 1.2\n", "@", "010", "1e999", ".nan", "NO", "~",
    "\x85", "\r\n",
])
_AWKWARD = st.sampled_from([
    "", " leading", "trailing ", "multi\nline", "a\n\n", "\na", "a\n b\n", "a\n \nb", "a\tb\n\tc", "\t", "\xa0",
    "a\n\u3000\n", "010", "1e3", "0o7", "0x1F", ".5", "1.", "-1", ".", "-", "+", "12:30", "2026-01-01", "NO", "yes",
    "null", "~", "=", "<<", "- x", "a: b", "a:", ":a", "#", "a #b", "'", '"', "\\", "{a", "a, b]", "? x", "a?", "|",
    ">", "---", "...", "%x", "@x", "`", "!x", "&x", "*x", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffe", "\r\n",
    "x" * 200,
])
# fmt: on
_TEXTS = st.one_of(st.text(), st.lists(_FRAGMENTS, max_size=30).map("".join))


@given(text=st.one_of(_TEXTS, st.binary()), name=st.sampled_from(["a.yaml", "a.json"]))
@example(text="\ufeff\ufeffa: 1", name="a.yaml")
def test_whatever_the_text_it_is_read_or_refused(text: str | bytes, name: str) -> None:
    """Nothing but problems comes of it, and every problem has a place inside of the text."""
    problems = Problems()
    node = read(text, name=name, problems=problems)
    assert node is not None or problems.errors
    lines = len(re.findall(r"\r\n?|\n", text if isinstance(text, str) else text.decode(errors="replace"))) + 1
    for problem in problems:
        assert problem.message
        assert problem.column >= 1
        assert 1 <= problem.line <= lines
        json.dumps(problem.as_json()).encode()


def _read_back(text: str) -> Any:
    problems = Problems()
    node = read(text, name="a.yaml", problems=problems)
    assert not list(problems)
    assert node is not None
    return node.plain()


# NUL and halves of surrogate pairs are no characters of a text: reading refuses them.
_STRINGS = _AWKWARD | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
_SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
_VALUES = st.recursive(
    _SCALARS | _STRINGS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_STRINGS, inner, max_size=5),
    max_leaves=20,
)


@given(_VALUES)
def test_whatever_the_value_its_yaml_is_read_as_the_same(value: Any) -> None:
    """With the same types, in the same order."""
    assert repr(_read_back(to_yaml(value))) == repr(value)


@given(_VALUES, st.sampled_from([None, 2]))
def test_whatever_the_value_its_json_is_read_as_the_same(value: Any, indent: int | None) -> None:
    """By our reader and by others."""
    written = to_json(value, indent=indent)
    assert repr(_read_back(written)) == repr(json.loads(written)) == repr(value)
