"""Laws that params keep, whatever they are."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import assume, example, given, strategies as st
from pydantic import TypeAdapter

from calve.definition.model import Param, ParamMode, Params, ParamType, RetryPolicy
from calve.definition.model.steps import ExponentialBackoff
from calve.definition.params import (
    Language,
    MergeContext,
    Parameter,
    ParamSource,
    RetryReason,
    SecretText,
    StepScope,
    cast,
    escaped,
    evaluate_step_params,
    evaluate_workflow_params,
    interpolate,
    merge,
    parse_duration,
    parse_retry_policy,
    references,
    reveal,
)
from calve.errors import ExpressionError, ParamError
from calve.expressions import Limits

_PARAM: TypeAdapter[Param] = TypeAdapter(Param)
_NAMES = st.sampled_from(["a", "b", "c", "d.e", "f_1"])
_TEXTS = (
    st.text(alphabet=st.sampled_from("$${}abc.de_1 \u00e9"), max_size=30)
    | st.text(max_size=20)
    | st.sampled_from(["$a", "${b} $c", "${d.e}", "${s__a}", "${d__e}", "${q__r}", "${a___b}", "${f_1}$a$$a"])
)
_LONGS = st.integers(-(2**63), 2**63 - 1)
_DOUBLES = st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = _TEXTS | _LONGS | _DOUBLES | st.booleans()
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3), max_leaves=6
)
_LITERALS: dict[ParamType, st.SearchStrategy[Any]] = {
    ParamType.STRING: _TEXTS,
    ParamType.LONG: _LONGS,
    ParamType.DOUBLE: _DOUBLES,
    ParamType.BOOLEAN: st.booleans(),
    ParamType.STRING_MAP: st.dictionaries(_TEXTS, _TEXTS, max_size=3),
    ParamType.STRING_ARRAY: st.lists(_TEXTS, max_size=3),
    ParamType.LONG_ARRAY: st.lists(_LONGS, max_size=3),
    ParamType.DOUBLE_ARRAY: st.lists(_DOUBLES, max_size=3),
    ParamType.BOOLEAN_ARRAY: st.lists(st.booleans(), max_size=3),
    ParamType.SECRET: _TEXTS,
}
_EXPRESSIONS = st.sampled_from(
    [
        *("1 + 1", "a", "b + 'x'", "a + b", "f_1", "s__a", "d__e", "q__r", "a___b", "params.get('a')"),
        *("new int[]{1, 2}", "m = new Map(); m.put('x', a); return m;", "1 / 0", "throw 'x';", "new DateTime(0)"),
    ]
) | st.text(alphabet="ab+-;(){}'1. ", max_size=12)
_MODES = st.none() | st.sampled_from(ParamMode)


def _typed(draw: st.DrawFn, kind: ParamType) -> dict[str, Any]:
    fields: dict[str, Any] = {"type": kind, "mode": draw(_MODES)}
    if draw(st.integers(0, 3)) == 0:
        return {**fields, "expression": draw(_EXPRESSIONS)}
    return {**fields, "value": draw(_LITERALS[kind])}


@st.composite
def any_param(draw: st.DrawFn, depth: int = 0) -> Param:
    """Draw a param of any type, with a value or an expression."""
    if depth < 2 and draw(st.integers(0, 3)) == 0:
        members = draw(st.dictionaries(_NAMES, any_param(depth=depth + 1), max_size=3))
        return _PARAM.validate_python({"type": "MAP", "mode": draw(_MODES), "value": members})
    return _PARAM.validate_python(_typed(draw, draw(st.sampled_from(list(_LITERALS)))))


any_params = st.dictionaries(_NAMES, any_param(), max_size=4)


@given(st.text().filter(lambda text: "$" not in text))
def test_a_text_without_a_dollar_is_itself(text: str) -> None:
    """And refers to nothing."""
    assert interpolate(text, {}) == text
    assert references(text) == ()


@given(_TEXTS)
def test_an_escaped_text_is_itself(text: str) -> None:
    """Whatever is in it."""
    assert interpolate(escaped(text), {}) == text
    assert references(escaped(text)) == ()


@given(st.integers(0, 20), st.booleans())
def test_a_pair_of_dollars_is_one(pairs: int, is_odd: bool) -> None:  # noqa: FBT001
    """And a dollar that is left over belongs to the name after it."""
    text = "$$" * pairs + ("$" if is_odd else "") + "a"
    assert interpolate(text, {"a": "x"}) == "$" * pairs + ("x" if is_odd else "a")


class _Watched(dict[str, Any]):
    """Values that tell which of them were looked up."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002
        self.asked.append(key)
        return "-"


@given(_TEXTS)
def test_references_are_exactly_what_is_looked_up(text: str) -> None:
    """In the same order."""
    watched = _Watched()
    interpolate(text, watched)
    assert tuple(dict.fromkeys(watched.asked)) == references(text)


@given(_TEXTS, st.dictionaries(_NAMES, _VALUES))
def test_interpolation_raises_only_our_errors(text: str, values: dict[str, Any]) -> None:
    """And gives text."""
    try:
        assert isinstance(interpolate(text, values), str | SecretText)
    except ParamError as error:
        assert error.context["reference"] in references(text)  # noqa: PT017 - it need not be raised


@given(st.sampled_from(ParamType), _VALUES | st.none())
def test_a_cast_is_done_once(kind: ParamType, value: Any) -> None:
    """What fits a type stays as it is; what does not is refused with an error of ours."""
    try:
        fitting = cast("x", kind, value).value
    except ParamError:
        return
    again = cast("x", kind, fitting)
    assert again.value == fitting
    assert again.note is None


@given(_TEXTS | st.integers())
@example("1d 1h 1min 1s 1ms")
def test_a_duration_is_positive_or_refused(value: int | str) -> None:
    """Whatever is written."""
    try:
        milliseconds = parse_duration(value, {})
    except ParamError:
        return
    assert 0 < milliseconds <= 120 * 86_400_000


@given(st.integers(1, 86_400), st.integers(0, 2**31 - 1), st.integers(1, 86_400), st.integers(0, 99))
def test_a_delay_is_the_power_up_to_its_ceiling(backoff: int, exponent: int, ceiling: int, retries: int) -> None:
    """Computed the long way."""
    policy = RetryPolicy(
        backoff=ExponentialBackoff(
            error_retry_backoff_in_secs=backoff,
            error_retry_exponent=exponent,
            error_retry_limit_in_secs=ceiling,
        )
    )
    delay = parse_retry_policy(policy, {}).delay(RetryReason.ERROR, retries)
    assert delay == min(backoff * exponent**retries, ceiling)


_CONTEXTS = st.builds(MergeContext, st.sampled_from(ParamSource), is_upstream=st.booleans(), is_restart=st.booleans())
_SYSTEM = MergeContext(ParamSource.SYSTEM)


def _normal(params: Params) -> Params:
    return merge({}, params, _SYSTEM)


def _plain(params: Mapping[str, Param]) -> Any:
    return {name: _without_source(param.as_json()) for name, param in params.items()}


def _without_source(written: Any) -> Any:
    match written:
        case dict():
            return {key: _without_source(value) for key, value in written.items() if key != "meta"}
        case _:
            return written


@given(any_params, any_params, _CONTEXTS)
def test_a_user_never_loosens_a_mode(base: Params, overlay: Params, context: MergeContext) -> None:
    """Only the system may."""
    assume(not context.source.is_system)
    base = _normal(base)
    try:
        merged = merge(base, overlay, context)
    except ParamError as error:
        assert error.context["param"]  # noqa: PT017 - it need not be raised
        return
    assert merged.keys() == base.keys() | overlay.keys()
    _never_looser(base, merged)


def _never_looser(base: Mapping[str, Param], merged: Mapping[str, Param]) -> None:
    for name, before in base.items():
        after = merged[name]
        assert before.mode is not None
        assert after.mode is not None
        assert after.mode.strictness >= before.mode.strictness
        assert after.type is before.type
        if before.type is ParamType.MAP and isinstance(before.value, dict) and isinstance(after.value, dict):
            _never_looser(before.value, after.value)  # type: ignore[arg-type] # a MAP holds params


@st.composite
def _layers(draw: st.DrawFn) -> list[Params]:
    """Draw three layers in which a name has one type, and no mode."""
    types = {name: draw(st.sampled_from(list(_LITERALS))) for name in ("a", "b", "c")}

    def layer(depth: int) -> Params:
        found: Params = {}
        for name, kind in types.items():
            if draw(st.booleans()):
                found[name] = _PARAM.validate_python({"type": kind, "value": draw(_LITERALS[kind])})
        if depth and draw(st.booleans()):
            found["m"] = _PARAM.validate_python({"type": "MAP", "value": layer(depth - 1)})
        return found

    return [layer(2) for _ in range(3)]


@given(_layers(), _CONTEXTS)
def test_merging_is_associative_where_modes_allow_all(layers: list[Params], context: MergeContext) -> None:
    """Maps key by key, all the way down."""
    first, second, third = layers
    left = merge(merge(merge({}, first, context), second, context), third, context)
    right = merge(merge({}, first, context), merge(merge({}, second, context), third, context), _SYSTEM)
    assert _plain(left) == _plain(right)


@given(any_params, _CONTEXTS)
def test_merging_what_is_there_changes_nothing(params: Params, context: MergeContext) -> None:
    """So a restart may repeat what the run before was given."""
    base = _normal(params)
    overlay = {
        name: param.model_copy(update={"meta": None}) for name, param in base.items() if param.type is not ParamType.MAP
    }
    assert _plain(merge(base, overlay, context)) == _plain(base)


_LANGUAGE = Language(limits=Limits(seconds=5), clock=lambda: 0)


@given(any_params, st.randoms(use_true_random=False))
def test_the_order_of_definitions_does_not_matter_to_a_workflow(params: Params, order: random.Random) -> None:
    """Nor to a step whose params have names of their own."""
    names = list(params)
    order.shuffle(names)
    for evaluate in (_as_workflow, _as_step):
        assert _outcome(evaluate, params) == _outcome(evaluate, {name: params[name] for name in names})


def _as_workflow(params: Params) -> dict[str, Parameter]:
    return evaluate_workflow_params(params, workflow_id="w", language=_LANGUAGE)


def _as_step(params: Params) -> dict[str, Parameter]:
    scope = StepScope("s", {}, {"d": {"e": Parameter("e", _PARAM.validate_python({"type": "STRING"}), "far", 0)}})
    return evaluate_step_params(params, scope=scope, language=_LANGUAGE)


def _outcome(evaluate: Callable[[Params], dict[str, Parameter]], params: Params) -> Any:
    """Return the results, or that there are none: which error comes first does depend on the order."""
    try:
        found = evaluate(params)
    except (ParamError, ExpressionError) as error:
        assert error.context["param"]  # noqa: PT017 - it need not be raised
        return None
    assert list(found) == list(params)
    return {name: repr(one.result) for name, one in found.items()}


@given(any_params)
def test_what_was_evaluated_can_be_passed_on_and_stored(params: Params) -> None:
    """With the same results; only an IMMUTABLE param is evaluated anew."""
    try:
        found = _as_workflow({name: _mutable(param) for name, param in params.items()})
    except (ParamError, ExpressionError):
        return
    again = _as_workflow({name: one.as_definition() for name, one in found.items()})
    for name, one in found.items():
        assert repr(again[name].result) == repr(one.result)
        assert reveal(again[name].result, str.upper) == reveal(one.result, str.upper)
        assert Parameter.from_stored(one.as_stored()) == one


def _mutable(param: Param) -> Param:
    value: Any = param.value
    if param.type is ParamType.MAP and value is not None:
        value = {name: _mutable(member) for name, member in value.items()}
    return param.model_copy(update={"mode": None, "value": value})
