"""Every pair of a value and a type: what fits, and the words where it does not."""

from typing import Any

import pytest

from calve.definition.model import ParamType
from calve.definition.params.casts import NESTING, Cast, cast, java_class
from calve.definition.params.secrets import Secret, SecretText
from calve.errors import ParamError

_TEXT = SecretText(("a", Secret("s")))
_VALUES: dict[str, Any] = {
    "text": "foo",
    "number text": "12",
    "true text": "TruE",
    "long": 7,
    "double": 1.5,
    "boolean": True,
    "texts": ["a"],
    "longs": [1, 2],
    "doubles": [1.5],
    "booleans": [True],
    "mixed": [1, "a"],
    "maps": [{}],
    "none at all": [],
    "map": {"a": "b"},
    "map of numbers": {"a": 1.0},
    "nested map": {"a": {"b": 1}},
    "secret": Secret("s"),
    "secret text": _TEXT,
    "nothing": None,
}
_LONG = "Param [x] is expected to be a Long compatible type but is [{}]"
_STRING = "Param [x] is expected to be a String compatible type but is [{}]"
_BOOLEAN = "Param [x] is expected to be a Boolean compatible type but is [{}]"
_DOUBLE = "Param [x] is expected to be a Double compatible type but is [{}]"
_FITTING: dict[ParamType, dict[str, Any]] = {
    ParamType.STRING: {
        "text": "foo",
        "number text": "12",
        "true text": "TruE",
        "long": "7",
        "double": "1.5",
        "boolean": "true",
        "secret text": _TEXT,
    },
    ParamType.LONG: {"number text": 12, "long": 7},
    ParamType.DOUBLE: {"number text": 12.0, "long": 7.0, "double": 1.5},
    ParamType.BOOLEAN: {"true text": True, "boolean": True},
    ParamType.STRING_ARRAY: {
        "texts": ["a"],
        "longs": ["1", "2"],
        "doubles": ["1.5"],
        "booleans": ["true"],
        "mixed": ["1", "a"],
        "none at all": [],
    },
    ParamType.LONG_ARRAY: {"longs": [1, 2], "none at all": []},
    ParamType.DOUBLE_ARRAY: {"doubles": [1.5], "none at all": []},
    ParamType.BOOLEAN_ARRAY: {"booleans": [True], "none at all": []},
    ParamType.STRING_MAP: {"map": {"a": "b"}, "map of numbers": {"a": "1.0"}},
    ParamType.MAP: {"map": {"a": "b"}, "map of numbers": {"a": 1.0}, "nested map": {"a": {"b": 1}}},
    ParamType.SECRET: {
        "text": Secret("foo"),
        "number text": Secret("12"),
        "true text": Secret("TruE"),
        "secret": Secret("s"),
    },
}


@pytest.mark.parametrize("kind", _VALUES)
@pytest.mark.parametrize("to", ParamType)
def test_a_value_fits_a_type_or_is_refused_by_name(to: ParamType, kind: str) -> None:
    """All pairs, one table."""
    if kind in _FITTING[to]:
        result = cast("x", to, _VALUES[kind]).value
        assert result == _FITTING[to][kind]
        assert type(result) is type(_FITTING[to][kind])
    else:
        with pytest.raises(ParamError, match=r"Param \[x"):
            cast("x", to, _VALUES[kind])


@pytest.mark.parametrize(
    ("to", "value", "message"),
    [
        (ParamType.LONG, 0.01, _LONG.format("class java.lang.Double")),
        (ParamType.LONG, True, _LONG.format("class java.lang.Boolean")),
        (ParamType.LONG, "foo", 'For input string: "foo"'),
        (ParamType.LONG, "", 'For input string: ""'),
        (ParamType.LONG, "9223372036854775808", 'For input string: "9223372036854775808"'),
        (ParamType.BOOLEAN, 0.01, _BOOLEAN.format("class java.lang.Double")),
        (ParamType.BOOLEAN, "foo", "Param [x] is expected to have a Boolean compatible result but is [foo]"),
        (ParamType.STRING, [1], _STRING.format("class [J")),
        (ParamType.STRING, ["a"], _STRING.format("class [Ljava.lang.String;")),
        (ParamType.STRING, {}, _STRING.format("class java.util.HashMap")),
        (ParamType.STRING, None, _STRING.format("class NoneType")),
        (ParamType.DOUBLE, "foo", "Param [x] is expected to have a Double compatible result but is [foo]"),
        (ParamType.DOUBLE, "1e999", "Param [x] is expected to have a Double compatible result but is [1e999]"),
        (ParamType.DOUBLE, True, _DOUBLE.format("class java.lang.Boolean")),
        (ParamType.DOUBLE, [True], _DOUBLE.format("class [Z")),
        (ParamType.LONG_ARRAY, [1.5], "Param [x] has an invalid evaluated result [[1.5]]"),
        (ParamType.LONG_ARRAY, 5, "Param [x] has an invalid evaluated result [5]"),
        (ParamType.STRING_MAP, {"a": []}, "Param [x.a] is expected to be a String compatible type"),
    ],
)
def test_what_does_not_fit_is_refused_in_maestros_words(to: ParamType, value: Any, message: str) -> None:
    """Users know these texts."""
    with pytest.raises(ParamError) as raised:
        cast("x", to, value)
    assert message in raised.value.message
    assert raised.value.context["param"].startswith("x")


@pytest.mark.parametrize(("text", "number"), [(".5", 0.5), ("5.", 5.0), ("-1.5e3", -1500.0), ("+1E-2", 0.01)])
def test_a_double_may_be_written_in_many_ways(text: str, number: float) -> None:
    """All that BigDecimal reads."""
    assert cast("x", ParamType.DOUBLE, text) == Cast(number)


@pytest.mark.parametrize("text", [" 5", "5 ", "NaN", "Infinity", "1_0", ".", "", "0x1", "1f"])
def test_a_double_may_not_be_written_in_others(text: str) -> None:
    """Nor does BigDecimal read them."""
    with pytest.raises(ParamError):
        cast("x", ParamType.DOUBLE, text)


def test_a_conversion_leaves_a_note() -> None:
    """As Maestro leaves one in the param's meta."""
    told = "Implicitly converted the evaluated result to a"
    assert cast("x", ParamType.STRING, 5).note == ("info", f"{told} string for type class java.lang.Long")
    assert cast("x", ParamType.LONG, "5").note == ("warn", f"{told} long for type String")
    assert cast("x", ParamType.BOOLEAN, "true").note == ("warn", f"{told} boolean for type String")
    assert cast("x", ParamType.STRING_ARRAY, [1]).note == ("info", f"{told} string array for type class [J")
    assert cast("x", ParamType.STRING, "5").note is None


def test_a_list_of_several_types_is_a_list_of_objects() -> None:
    """To Java."""
    assert java_class([1, "a"]) == "class [Ljava.lang.Object;"


def test_a_map_may_not_be_nested_without_end() -> None:
    """Whatever an expression or a function gives can be written as JSON and passed on."""
    value: dict[str, Any] = {}
    for _ in range(NESTING - 1):
        value = {"a": value}
    assert cast("x", ParamType.MAP, value).value == value
    with pytest.raises(ParamError, match=r"Param \[x\] is nested deeper"):
        cast("x", ParamType.MAP, {"a": {"a": value}})
