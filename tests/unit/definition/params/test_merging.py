"""Params laid over params: modes, types, maps, sources."""

from typing import Any

import pytest
from tests.unit.definition.params.cases import param, params

from calve.definition.model import InternalMode, ParamMode, ParamType
from calve.definition.params.casts import NESTING
from calve.definition.params.parameter import ParamSource, source_of
from calve.definition.params.precedence import MergeContext, cleaned, merge
from calve.errors import ParamError

_DEFINITION = MergeContext(ParamSource.DEFINITION)
_LAUNCH = MergeContext(ParamSource.LAUNCH)
_RESTART = MergeContext(ParamSource.RESTART, is_restart=True)
_SYSTEM = MergeContext(ParamSource.TEMPLATE_SCHEMA)
_UPSTREAM = MergeContext(ParamSource.SUBWORKFLOW, is_upstream=True)
_UPSTREAM_RESTART = MergeContext(ParamSource.FOREACH, is_upstream=True, is_restart=True)
_OUTPUT = MergeContext(ParamSource.OUTPUT_PARAMETER)


def _merged(base: dict[str, Any], overlay: dict[str, Any], context: MergeContext = _DEFINITION) -> Any:
    return merge(params(x=base), params(x=overlay), context)["x"]


def _refusal(base: dict[str, Any], overlay: dict[str, Any], context: MergeContext = _DEFINITION) -> str:
    with pytest.raises(ParamError) as raised:
        _merged(base, overlay, context)
    assert raised.value.context["param"]
    return raised.value.message


def test_a_later_value_wins_and_its_source_is_recorded() -> None:
    """The usual case."""
    merged = _merged({"value": "hello"}, {"value": "goodbye"})
    assert (merged.value, merged.mode, source_of(merged)) == ("goodbye", ParamMode.MUTABLE, ParamSource.DEFINITION)


def test_an_expression_replaces_a_value_and_a_value_an_expression() -> None:
    """A param is one or the other."""
    merged = _merged({"type": "LONG", "value": 1}, {"type": "LONG", "expression": "1 + 1"})
    assert (merged.value, merged.expression) == (None, "1 + 1")
    merged = _merged({"type": "LONG", "expression": "1 + 1"}, {"type": "LONG", "value": 1})
    assert (merged.value, merged.expression) == (1, None)


def test_what_is_only_in_one_is_kept_in_order() -> None:
    """First those of the base, then the new ones."""
    merged = merge(params(a="1", b="2"), params(c="3", a="4"), _DEFINITION)
    assert [(name, one.value) for name, one in merged.items()] == [("a", "4"), ("b", "2"), ("c", "3")]
    assert source_of(merged["b"]) is None


def test_maps_are_merged_key_by_key_and_deep() -> None:
    """Each member has its own source."""
    base = {"type": "MAP", "value": {"a": {"type": "MAP", "value": params(b="1", c="2")}, "d": param(value="3")}}
    overlay = {"type": "MAP", "value": {"a": {"type": "MAP", "value": params(c="4", e="5")}}}
    merged = _merged(base, overlay)
    inner = merged.value["a"].value
    assert {name: one.value for name, one in inner.items()} == {"b": "1", "c": "4", "e": "5"}
    assert source_of(inner["c"]) is ParamSource.DEFINITION
    assert source_of(inner["b"]) is None
    assert merged.value["d"].value == "3"


def test_string_maps_are_merged_key_by_key() -> None:
    """Texts replace texts."""
    base = {"type": "STRING_MAP", "value": {"a": "1", "b": "2"}}
    assert _merged(base, {"type": "STRING_MAP", "value": {"b": "3", "c": "4"}}).value == {"a": "1", "b": "3", "c": "4"}


def test_a_map_without_a_value_counts_as_empty() -> None:
    """An optional map that is filled later."""
    base = {"type": "MAP", "internal_mode": "OPTIONAL"}
    assert _merged(base, {"type": "MAP", "value": params(a="1")}).value["a"].value == "1"
    assert _merged({"type": "STRING_MAP"}, {"type": "STRING_MAP"}).value == {}


def test_an_expression_replaces_a_whole_map() -> None:
    """And a map cannot be merged into an expression."""
    literal = {"type": "MAP", "value": params(a="1")}
    assert _merged(literal, {"type": "MAP", "expression": "m"}).value is None
    assert _refusal({"type": "MAP", "expression": "m"}, literal) == (
        "MAP param [x] definition exp=[m] is not a literal"
    )
    texts = {"type": "STRING_MAP", "value": {}}
    assert _refusal({"type": "STRING_MAP", "expression": "m"}, texts) == (
        "STRING_MAP param [x] definition exp=[m] is not a literal"
    )
    assert _refusal({"value": "a"}, literal) == "ParameterDefinition type mismatch, [x] is not a [MAP] but [STRING]"
    assert _refusal(literal, texts) == "ParameterDefinition type mismatch, [x] is not a [STRING_MAP] but [MAP]"


@pytest.mark.parametrize(
    ("base", "overlay", "value"),
    [
        ({"value": ""}, {"type": "LONG", "value": 234}, "234"),
        ({"value": ""}, {"type": "DOUBLE", "value": 122.12}, "122.12"),
        ({"value": ""}, {"type": "BOOLEAN", "value": True}, "true"),
        ({"type": "STRING_ARRAY", "value": []}, {"type": "LONG_ARRAY", "value": [1, 2]}, ["1", "2"]),
        ({"type": "DOUBLE", "value": 1.5}, {"type": "LONG", "value": 122}, 122.0),
        ({"type": "DOUBLE", "value": 1.5}, {"value": "122"}, 122.0),
        ({"type": "LONG", "value": 1}, {"value": "234"}, 234),
        ({"type": "BOOLEAN", "value": False}, {"value": "trUe"}, True),
        ({"type": "SECRET", "value": "a"}, {"value": "b"}, "b"),
        ({"type": "LONG", "value": 1}, {"expression": "1"}, None),
    ],
)
def test_the_type_of_the_base_stays_and_values_are_cast(
    base: dict[str, Any], overlay: dict[str, Any], value: Any
) -> None:
    """Along the casts, and no others."""
    merged = _merged(base, overlay)
    assert merged.value == value
    assert merged.type == param(**base).type


@pytest.mark.parametrize(
    ("base", "overlay", "kinds"),
    [
        ({"type": "LONG", "value": 1}, {"value": "goodbye"}, ("STRING", "LONG")),
        ({"type": "LONG", "value": 1}, {"type": "DOUBLE", "value": 1.5}, ("DOUBLE", "LONG")),
        ({"type": "DOUBLE_ARRAY", "value": []}, {"type": "LONG_ARRAY", "value": [1]}, ("LONG_ARRAY", "DOUBLE_ARRAY")),
        ({"type": "MAP", "value": {}}, {"value": "a"}, ("STRING", "MAP")),
        ({"value": "a"}, {"type": "SECRET", "value": "s"}, ("SECRET", "STRING")),
    ],
)
def test_a_value_of_another_type_is_refused(
    base: dict[str, Any], overlay: dict[str, Any], kinds: tuple[str, str]
) -> None:
    """In Maestro's words."""
    assert _refusal(base, overlay) == f"ParameterDefinition type mismatch name [x] from [{kinds[0]}] != to [{kinds[1]}]"


_MAY: dict[ParamMode, str] = {
    ParamMode.MUTABLE: "start restart output",
    ParamMode.MUTABLE_ON_START_RESTART: "start restart",
    ParamMode.MUTABLE_ON_START: "start",
    ParamMode.IMMUTABLE: "",
    ParamMode.CONSTANT: "",
}


@pytest.mark.parametrize("mode", ParamMode)
@pytest.mark.parametrize(("stage", "context"), [("start", _LAUNCH), ("restart", _RESTART), ("output", _OUTPUT)])
@pytest.mark.parametrize(
    ("base", "overlay"),
    [
        ({"value": "hello"}, {"value": "goodbye"}),
        ({"type": "STRING_MAP", "value": {"a": "1"}}, {"type": "STRING_MAP", "value": {"a": "2"}}),
        ({"type": "MAP", "value": {}}, {"type": "MAP", "value": {"a": {"type": "LONG", "value": 1}}}),
    ],
)
def test_the_mode_says_when_a_param_may_change(
    base: dict[str, Any], overlay: dict[str, Any], mode: ParamMode, stage: str, context: MergeContext
) -> None:
    """The table of modes; what does not change is never refused."""
    strict = {**base, "mode": mode}
    if stage in _MAY[mode]:
        assert _merged(strict, overlay, context).mode is mode
    else:
        assert _refusal(strict, overlay, context) == f"Cannot modify param with mode [{mode}] for parameter [x]"
    assert _merged(strict, base, context).mode is mode
    assert _merged(strict, overlay, _SYSTEM).mode is mode


def test_the_mode_of_a_map_counts_for_its_members() -> None:
    """A member is at least as strict as the map around it."""
    base = {"type": "MAP", "mode": "MUTABLE_ON_START", "value": params(a="1")}
    overlay = {"type": "MAP", "value": params(a="2")}
    assert _merged(base, overlay).value["a"].mode is ParamMode.MUTABLE_ON_START
    assert _refusal(base, overlay, _RESTART) == "Cannot modify param with mode [MUTABLE_ON_START] for parameter [a]"


def test_a_mode_may_get_stricter_but_not_looser() -> None:
    """Unless the system or a parent does it, and a parent does not loosen it either."""
    loose, strict = {"value": "a", "mode": "MUTABLE"}, {"value": "b", "mode": "MUTABLE_ON_START"}
    assert _merged(loose, strict).mode is ParamMode.MUTABLE_ON_START
    assert _refusal(strict, loose) == (
        "Cannot modify param mode to be less strict for parameter [x] from [MUTABLE_ON_START] to [MUTABLE]"
    )
    assert _merged(strict, loose, _SYSTEM).mode is ParamMode.MUTABLE
    merged = _merged(strict, {**loose, "meta": {"source": "DEFINITION"}}, _UPSTREAM)
    assert (merged.value, merged.mode) == ("a", ParamMode.MUTABLE_ON_START)
    assert source_of(merged) is ParamSource.SUBWORKFLOW


def test_a_parent_may_change_what_only_the_system_may() -> None:
    """If the param has a source other than the parent's definition, for then no user wrote it."""
    base = {"value": "a", "mode": "CONSTANT"}
    assert _merged(base, {"value": "b", "meta": {"source": "SYSTEM_INJECTED"}}, _UPSTREAM).value == "b"
    for meta in (None, {"source": "DEFINITION"}):
        refused = _refusal(base, {"value": "b", "meta": meta}, _UPSTREAM)
        assert refused == "Cannot modify param with mode [CONSTANT] for parameter [x]"


def test_a_parent_that_restarts_changes_less() -> None:
    """What is mutable on start only stays as it was."""
    base = {"value": "a", "mode": "MUTABLE_ON_START"}
    assert _refusal(base, {"value": "b"}, _UPSTREAM_RESTART) == (
        "Cannot modify param with mode [MUTABLE_ON_START] for parameter [x]"
    )
    kept = _merged({"value": "0", "mode": "MUTABLE_ON_START"}, {"type": "LONG", "value": 0}, _UPSTREAM_RESTART)
    assert kept.value == "0"


@pytest.mark.parametrize("internal", InternalMode)
def test_an_internal_mode_implies_a_mode(internal: InternalMode) -> None:
    """RESERVED is CONSTANT, the others are MUTABLE; it stays until the params are cleaned."""
    base = {"type": "LONG", "value": 2, "internal_mode": internal}
    merged = _merged(base, {"type": "LONG", "value": 3}, _SYSTEM)
    assert merged.mode is (ParamMode.CONSTANT if internal is InternalMode.RESERVED else ParamMode.MUTABLE)
    assert merged.internal_mode is internal
    assert cleaned({"x": merged})["x"].internal_mode is None


def test_a_user_may_not_set_an_internal_mode_or_a_source() -> None:
    """Only the system may."""
    base = {"type": "LONG", "value": 2}
    internal = {"type": "LONG", "value": 3, "internal_mode": "OPTIONAL"}
    for context in (_DEFINITION, _UPSTREAM):
        assert _refusal(base, internal, context) == "Cannot modify system mode for parameter [x]"
    assert _merged(base, internal, _SYSTEM).internal_mode is InternalMode.OPTIONAL
    sourced = {"type": "LONG", "value": 3, "meta": {"source": "SYSTEM"}}
    assert _refusal(base, sourced) == "Cannot modify source for parameter [x]"
    reserved = {"value": "a", "internal_mode": "RESERVED"}
    assert _refusal(reserved, {"value": "b"}) == "Cannot modify param with mode [CONSTANT] for parameter [x]"
    with pytest.raises(ParamError, match="no param source"):
        _merged(base, {"type": "LONG", "value": 3, "meta": {"source": "nobody"}})


def test_a_source_is_kept_where_nothing_changes() -> None:
    """By the system and by parents; a user who repeats a value becomes its source."""
    base = {"value": "a", "mode": "MUTABLE", "meta": {"source": "SYSTEM_DEFAULT"}}
    for context, source in (
        (_SYSTEM, ParamSource.SYSTEM_DEFAULT),
        (_UPSTREAM, ParamSource.SYSTEM_DEFAULT),
        (_LAUNCH, ParamSource.LAUNCH),
    ):
        assert source_of(_merged(base, {"value": "a"}, context)) is source
    new = merge({}, params(x=base), _SYSTEM)["x"]
    assert source_of(new) is ParamSource.SYSTEM_DEFAULT
    assert source_of(merge({}, params(x=base), _UPSTREAM)["x"]) is ParamSource.SUBWORKFLOW


def test_tags_are_united_and_validators_inherited() -> None:
    """A tag of the same name is the later one."""
    merged = _merged({"value": "a", "tags": ["1", "3"], "validator": "v"}, {"value": "b", "tags": ["2", "3"]})
    assert [tag.name for tag in merged.tags] == ["1", "3", "2"]
    assert merged.validator == "v"
    assert _merged({"value": "a", "validator": "v"}, {"value": "b", "validator": "w"}).validator == "w"


def test_what_is_optional_and_not_given_is_dropped() -> None:
    """Also within maps, and if it is an empty map."""
    optional = {"internal_mode": "OPTIONAL"}
    kept = cleaned(
        params(
            a=optional,
            b={**optional, "value": "given"},
            c={**optional, "type": "MAP", "value": {}},
            d={**optional, "type": "MAP"},
            e={**optional, "expression": "1"},
            f={"type": "MAP", "value": {"g": {"type": "STRING", **optional}}},
            h={"type": "STRING_MAP", "value": {}, **optional},
        )
    )
    assert list(kept) == ["b", "e", "f", "h"]
    assert kept["f"].value == {}


def test_what_is_required_must_be_given() -> None:
    """Internal mode or not."""
    for definition in ({"type": "STRING", "internal_mode": "REQUIRED"}, {"type": "STRING"}):
        with pytest.raises(ParamError) as raised:
            cleaned(params(x=definition))
        assert raised.value.message == "[x] is a required parameter (type=[STRING])"
    with pytest.raises(ParamError, match=r"\[y\] is a required"):
        cleaned(params(x={"type": "MAP", "value": {"y": {"type": "LONG"}}}))


def test_maps_may_not_be_nested_without_end() -> None:
    """The interpreter's stack is safe from them."""
    definition: dict[str, Any] = {"type": "STRING", "value": ""}
    for _ in range(NESTING + 1):
        definition = {"type": "MAP", "value": {"a": definition}}
    with pytest.raises(ParamError, match="nested deeper"):
        merge({}, params(x=definition), _DEFINITION)


def test_every_type_merges_with_itself() -> None:
    """A table of all types."""
    values: dict[ParamType, Any] = {
        ParamType.STRING: "a",
        ParamType.LONG: 1,
        ParamType.DOUBLE: 1.5,
        ParamType.BOOLEAN: True,
        ParamType.STRING_MAP: {"a": "b"},
        ParamType.MAP: params(a="b"),
        ParamType.STRING_ARRAY: ["a"],
        ParamType.LONG_ARRAY: [1],
        ParamType.DOUBLE_ARRAY: [1.5],
        ParamType.BOOLEAN_ARRAY: [True],
        ParamType.SECRET: "s",
    }
    for kind in ParamType:
        definition = {"type": kind, "value": values[kind]}
        assert _merged(definition, definition).type is kind
