"""Params are evaluated when they are needed, once, and mean what Maestro means by them."""

import json
from typing import Any

import pytest
from tests.unit.definition.params.cases import cases, param, params

from calve.definition.params.casts import NESTING
from calve.definition.params.evaluation import (
    FileText,
    Language,
    evaluate_condition,
    evaluate_file,
    evaluate_in_step,
    evaluate_step_params,
    evaluate_workflow_params,
)
from calve.definition.params.interpolation import SIZE_LIMIT
from calve.definition.params.parameter import Parameter
from calve.definition.params.scopes import StepScope
from calve.definition.params.secrets import Secret, SecretText
from calve.errors import CalveError, ExpressionError, ExpressionFailed, ExpressionInvalid, ParamError
from calve.expressions import Limits

_CASES = cases("sel_cases.jsonl", level="param")
_NOW = 1_600_000_000_000


class _Signals:
    """Knows one signal."""

    def call(self, name: str, arguments: tuple[str, ...]) -> Any:
        if (name, arguments) == ("getFromSignal", ("signal", "day")):
            return 20_200_101
        raise ExpressionFailed("no such signal", kind="MaestroInternalError")


_LANGUAGE = Language(functions=_Signals(), clock=lambda: _NOW)


def _known(**values: Any) -> dict[str, Parameter]:
    return {name: Parameter(name, param(value="-"), value, 1) for name, value in values.items()}


def _workflow(**definitions: Any) -> dict[str, Any]:
    found = evaluate_workflow_params(params(**definitions), workflow_id="w", language=_LANGUAGE)
    return {name: one.result for name, one in found.items()}


def _step(scope: StepScope, **definitions: Any) -> dict[str, Any]:
    found = evaluate_step_params(params(**definitions), scope=scope, language=_LANGUAGE)
    return {name: one.result for name, one in found.items()}


def _refusal(scope: StepScope | None = None, **definitions: Any) -> CalveError:
    with pytest.raises((ParamError, ExpressionError)) as raised:
        _workflow(**definitions) if scope is None else _step(scope, **definitions)
    return raised.value


def expression(text: str, type_: str = "STRING", **fields: Any) -> dict[str, Any]:
    """Return the definition of a param by an expression."""
    return {"type": type_, "expression": text, **fields}


def test_every_case_of_maestro_is_here() -> None:
    """35 stand in its tests of params."""
    assert len(_CASES) == 35


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["expr"])
def test_an_expression_gives_what_maestro_gives(case: dict[str, Any]) -> None:
    """The value, cast to the type of the param, and the words of the error."""
    given = {name: value for name, value in case["params"].items() if "__" not in name}
    far = [(name.split("__"), value) for name, value in case["params"].items() if "__" in name]
    steps = {step_id: _known(**{name: value}) for (step_id, name), value in far}
    scope = StepScope("step0", _known(**given), steps)
    definition = expression(case["expr"], case["param_type"])
    if "error" in case:
        assert case["error_contains"] in _refusal(scope, bar=definition).message
    else:
        result = _step(scope, bar=definition)["bar"]
        assert result == case["expect"]
        assert type(result) is type(case["expect"])


def test_params_of_a_workflow_see_each_other_in_any_order() -> None:
    """By expression and by text."""
    assert _workflow(
        c="$b!",
        b=expression("a + 1", "LONG"),
        a=expression("40 + 1", "LONG"),
        d={"type": "STRING_ARRAY", "value": ["$a", "${b}"]},
    ) == {"c": "42!", "b": 42, "a": 41, "d": ["41", "42"]}


def test_an_expression_of_a_workflow_sees_through_params_only_what_it_names() -> None:
    """As in Maestro."""
    assert _workflow(
        a="1",
        unseen=expression("params.get('a') == null", "BOOLEAN"),
        seen=expression("b = a; return params.get('a') + params['a'];"),
    ) == {"a": "1", "unseen": True, "seen": "11"}


def test_a_name_that_does_not_exist_is_refused() -> None:
    """In Maestro's words, with the param that names it."""
    assert _refusal(x=expression("y")).message == "Param [x] referenced a non-existing param [y] in workflow [w]"
    assert _refusal(x="$y").message == "Param [x] referenced a non-existing param [y] in workflow [w]"
    assert _refusal(StepScope("s"), x="$y").message == (
        "Param [x]: Cannot find the referenced param [y] in step [s] or upstream steps or the workflow"
    )


def test_a_cycle_is_named_in_full() -> None:
    """In a workflow and in a step, by expression and by text."""
    definitions = {"start": "$a", "a": "$b", "b": expression("c"), "c": {"type": "STRING_MAP", "value": {"k": "$a"}}}
    assert _refusal(None, **definitions).message == (
        "In workflow [w], param [a] definition contains a cyclic reference chain: a → b → c → a"
    )
    assert _refusal(StepScope("s"), bar=expression("foo + 1", "LONG"), foo=expression("bar + 1", "LONG")).message == (
        "In step [s], param [bar] definition contains a cyclic reference chain: bar → foo → bar"
    )
    assert _refusal(None, x="$x").message.endswith("x → x")
    members = {"type": "MAP", "value": {"inner": {"type": "STRING", "value": "$x"}}}
    assert _refusal(None, x=members).message.endswith("x → x")


def test_a_loop_param_may_be_defined_by_itself() -> None:
    """The workflow's comes before the step's own that has no value yet."""
    scope = StepScope("s", _known(i=5))
    assert _step(scope, i=expression("i + 1", "LONG")) == {"i": 6}
    assert _step(scope, i=expression("i + 1", "LONG"), j=expression("i", "LONG")) == {"i": 6, "j": 6}
    assert _step(scope, j=expression("i", "LONG"), i=expression("i + 1", "LONG")) == {"j": 5, "i": 6}


def test_in_a_step_the_order_of_definitions_counts_for_names_of_the_workflow() -> None:
    """What was evaluated first is seen by what comes after."""
    scope = StepScope("s", _known(foo=1, bar=6))
    foo, bar = expression("bar + 1", "LONG"), expression("foo + 1", "LONG")
    assert _step(scope, foo=foo, bar=bar) == {"foo": 7, "bar": 8}
    assert _step(scope, bar=bar, foo=foo) == {"bar": 2, "foo": 3}


def test_an_expression_of_a_step_sees_the_workflow_through_params() -> None:
    """All of it, and the step's own where it names them."""
    scope = StepScope("s", _known(a="w", b="w"))
    assert _step(scope, own="o", x=expression("params.get('a') + params['b'] + own")) == {"own": "o", "x": "wwo"}
    assert _step(scope, own="o", x=expression("params.containsKey('own')", "BOOLEAN"))["x"] is False


def test_a_param_of_another_step_is_named_with_two_underscores() -> None:
    """Also one whose id ends in an underscore, and the step's own."""
    scope = StepScope("me", {}, {"job": _known(a=1), "_odd_": _known(a=2), "late": {"a": Parameter("a", param())}})
    assert _step(scope, x=expression("job__a + _odd___a", "LONG")) == {"x": 3}
    assert _step(scope, x="${job__a}") == {"x": "1"}
    assert _step(scope, x=expression("me__y", "LONG"), y=7) == {"x": 7, "y": 7}
    assert _refusal(scope, x=expression("me__z")).message == (
        "Param [x] referenced a non-existing param [me__z] in step [me]"
    )
    assert "Cannot find the referenced param name [z] in step [job]" in _refusal(scope, x=expression("job__z")).message
    assert "Referenced param [a] in step [late] is not evaluated yet." in _refusal(scope, x="${late__a}").message


def test_three_underscores_can_be_cut_in_two_ways() -> None:
    """The step that exists is meant; both or none is an error."""
    assert _step(StepScope("s", {}, {"step2_": _known(foo=1)}), x="${step2___foo}") == {"x": "1"}
    assert _step(StepScope("s", {}, {"step2": _known(_foo=1)}), x="${step2___foo}") == {"x": "1"}
    both = StepScope("s", {}, {"step2": {}, "step2_": {}})
    assert "cannot be parsed due to ambiguity (both step ids [step2] and [step2_] exist" in (
        _refusal(both, x=expression("step2___foo")).message
    )
    none = StepScope("s", {}, {"step1": {}})
    assert "cannot find either step id [step3] or [step3_]" in _refusal(none, x=expression("step3____foo")).message


def test_what_is_no_step_may_be_a_signal() -> None:
    """In a workflow and in a step."""
    assert _workflow(x=expression("signal__day", "LONG")) == {"x": 20_200_101}
    assert _step(StepScope("s"), x="${signal__day}") == {"x": "20200101"}
    assert "Failed to evaluate the param with a definition: [step2__foo]" in (
        _refusal(StepScope("s"), x=expression("step2__foo")).message
    )
    with pytest.raises(ParamError, match="Failed to evaluate the param"):
        evaluate_workflow_params(params(x="${signal__day}"), workflow_id="w")


def test_a_text_may_name_a_step_and_a_path_with_dots() -> None:
    """The longest id that fits; a param of that very name comes first."""
    steps = {"job": _known(out="a"), "job.1": _known(out="b", capture={"table": {"id": 7}})}
    scope = StepScope("s", _known(**{"job.out": "literal"}), steps)
    assert _refusal(scope, x="${job.1.captur}").remedy == "Did you mean capture?"
    assert _refusal(scope, x="${job.1.nothing_like_it}").remedy == ""
    assert _step(scope, x="${job.out} ${job.1.out} ${job.1.capture.table.id}") == {"x": "literal b 7"}
    assert "Cannot find the referenced param name [none] in step [job.1]" in _refusal(scope, x="${job.1.none}").message
    assert "Cannot find the referenced param [none.x]" in _refusal(scope, x="${none.x}").message
    assert _step(scope, x="${s.y}", y="own") == {"x": "own", "y": "own"}
    assert "Cannot find the referenced param [s.z]" in _refusal(scope, x="${s.z}").message


def test_a_workflow_param_without_result_cannot_be_read() -> None:
    """By a step."""
    scope = StepScope("s", {"a": Parameter("a", param())})
    assert "Referenced param [a] in the workflow is not evaluated yet" in _refusal(scope, x="$a").message


def test_a_map_is_evaluated_member_by_member() -> None:
    """Each cast to its own type; members are not in each other's sight."""
    members = params(
        a="$x",
        b=expression("x + 1", "LONG"),
        c=expression("1 + 1"),
        d={"type": "MAP", "value": {"e": {"type": "DOUBLE", "value": 1.5}}},
        f={"type": "MAP", "value": {}},
    )
    assert _workflow(x=4, m={"type": "MAP", "value": members}, n="$m") == {
        "x": 4,
        "m": {"a": "4", "b": 5, "c": "2", "d": {"e": 1.5}, "f": {}},
        "n": '{"a":"4","b":5,"c":"2","d":{"e":1.5},"f":{}}',
    }
    assert _refusal(m={"type": "MAP", "value": params(a="1", b="$a")}).message == (
        "Param [m] referenced a non-existing param [a] in workflow [w] (m.b, line 1, column 1)"
    )
    wrong = _refusal(m={"type": "MAP", "value": params(a=expression("'x'", "LONG"))})
    assert wrong.message == 'Param [m]: Param [m.a]: For input string: "x"'
    assert _workflow(e=expression("m = new Map(); m.put('a', 1L); return m;", "MAP")) == {"e": {"a": 1}}


def test_within_a_map_an_expression_sees_through_params_only_what_it_names() -> None:
    """Not what other members name."""
    members = params(a="$x", b=expression("params.get('x') == null", "BOOLEAN"))
    assert _workflow(x=4, m={"type": "MAP", "value": members})["m"] == {"a": "4", "b": True}


def test_a_chain_may_be_long() -> None:
    """Thousands of params that refer to each other, last one first, until they are too large together."""
    chain = {f"p{number}": param(value=f"${{p{number - 1}}}") for number in range(7_000, 0, -1)}
    first = {"p0": param(type="LONG", expression="1")}
    assert evaluate_workflow_params({**chain, **first}, workflow_id="w")["p7000"].result == "1"
    chain = {f"p{number}": param(value=f"${{p{number - 1}}}") for number in range(10_000, 0, -1)}
    with pytest.raises(ParamError, match="Parameters' total size"):
        evaluate_workflow_params({**chain, **first}, workflow_id="w")


def test_params_together_may_not_be_too_large() -> None:
    """However the text came about."""
    bare = {"a": "", "b": "y"}
    found = evaluate_workflow_params(params(**bare), workflow_id="w", language=_LANGUAGE)
    size = len(json.dumps({name: one.as_json() for name, one in found.items()}, separators=(",", ":")))
    room = (SIZE_LIMIT - size) // 2
    assert len(_workflow(a="x" * room, b="y")["a"]) == room
    assert "Parameters' total size [75000" in _refusal(a="x" * (room + 1), b="y").message
    doubling = {f"p{number}": f"${{p{number - 1}}}" * 2 for number in range(1, 40)}
    assert "larger than system limit [750000] with param [p16]" in _refusal(None, p0="xxxxxxxxxx", **doubling).message


def test_maps_may_not_be_nested_without_end() -> None:
    """The interpreter's stack is safe from them."""
    definition: dict[str, Any] = {"type": "STRING", "value": ""}
    for _ in range(NESTING + 2):
        definition = {"type": "MAP", "value": {"a": definition}}
    assert "Param [x]: Maps are nested deeper" in _refusal(x=definition).message


def test_a_param_without_a_value_has_no_result() -> None:
    """It would have been dropped, or asked for, when params were merged."""
    for kind in ("STRING", "MAP", "LONG_ARRAY"):
        assert "Param [x]" in _refusal(x={"type": kind}).message


def test_every_error_names_the_param() -> None:
    """Those of the language keep their class and kind."""
    invalid = _refusal(x=expression("1 +"))
    assert isinstance(invalid, ExpressionInvalid)
    assert invalid.message.startswith("Param [x]: Expression validator throws an exception for expr=[1 +]")
    assert invalid.context["param"] == "x"
    failed = _refusal(x=expression("1 / 0", "LONG"))
    assert isinstance(failed, ExpressionFailed)
    assert failed.message.startswith("Param [x]: Expression evaluation throws an exception for expr=[1 / 0]")
    assert failed.kind == "MaestroInvalidExpressionException"
    duplicate = _refusal(a="1", x={"type": "STRING_MAP", "value": {"$a": "x", "1": "y"}})
    assert duplicate.message == "Param [x]: There is a duplicate key with values [x] and [y]"
    limited = Language(limits=Limits(loop=10))
    with pytest.raises(ExpressionError, match=r"Param \[x\]"):
        evaluate_workflow_params(
            params(x=expression("for (i = 0; i < 100; i += 1) {} return 1;", "LONG")), workflow_id="w", language=limited
        )


def test_a_param_tells_when_and_how_it_was_evaluated() -> None:
    """Its JSON holds definition, result, time, source and notes."""
    definition = expression("1 + 1", mode="CONSTANT", meta={"source": "DEFINITION"})
    found = evaluate_workflow_params(params(x=definition), workflow_id="w", language=_LANGUAGE)["x"]
    told = "Implicitly converted the evaluated result to a string for type class java.lang.Long"
    assert found.as_json() == {
        "type": "STRING",
        "expression": "1 + 1",
        "mode": "CONSTANT",
        "meta": {"source": "DEFINITION", "info": told},
        "evaluated_result": "2",
        "evaluated_time": _NOW,
    }
    assert (found.type.value, found.mode.value, found.source) == ("STRING", "CONSTANT", "DEFINITION")
    assert json.loads(json.dumps(found.as_json())) == found.as_json()
    assert Parameter("y", param(value="a")).as_json() == {"type": "STRING", "value": "a"}


def test_a_condition_is_true_or_false() -> None:
    """Over the step's params, which have values, and the workflow's."""
    scope = StepScope("s", _known(limit=5))
    own = _known(rows=7)
    assert evaluate_condition("rows > limit", own=own, scope=scope)
    assert not evaluate_condition("'False'", own=own, scope=scope)
    with pytest.raises(ParamError, match=r"Param \[condition\] is expected to be a Boolean compatible type"):
        evaluate_condition("rows", own=own, scope=scope)


def test_a_definition_beside_a_steps_params_sees_them() -> None:
    """A signal's match params, for one."""
    scope = StepScope("s", _known(db="prod"))
    definition = param(type="MAP", value=params(table="$db.$name", rows=expression("s__rows", "LONG")))
    found = evaluate_in_step("signal", definition, own=_known(name="t", rows=3), scope=scope)
    assert found.result == {"table": "prod.t", "rows": 3}


@pytest.mark.parametrize("text", ["s", "s + 'x'", "params.get('s')", "params['s']", "m", "t"])
def test_a_secret_cannot_be_read_in_an_expression(text: str) -> None:
    """By whatever way, and also not as part of a text or a map."""
    known = _known(s=Secret("password"), t=SecretText(("a", Secret("password"))), m={"a": [Secret("password")]})
    refused = _refusal(StepScope("step", known), x=expression(text))
    assert "holds a secret and cannot be read in an expression" in refused.message
    assert refused.remedy


def test_the_place_of_a_reference_in_a_longer_text_is_reported() -> None:
    """By the field, the line and the column; an expression has only its param."""
    script = {"type": "MAP", "value": params(script="SELECT 1;\nSELECT ${dya}", audit=["$$dya", "$x"])}
    assert _refusal(StepScope("s", _known(x=1)), spark=script).message == (
        "Param [spark]: Cannot find the referenced param [dya] in step [s] or upstream steps or the workflow "
        "(spark.script, line 2, column 8)"
    )
    assert _refusal(StepScope("s", _known(dya=1)), spark=script).message.endswith("(spark.audit[1], line 1, column 1)")
    assert _refusal(x="a\n$y").message.endswith("(x, line 2, column 1)")
    assert _refusal(x=expression("y")).message.endswith("in workflow [w]")


FILE = FileText("SELECT '${day}', '$$x', $n\nFROM ${job.out}, ${me.own}", "copy.sql", "spark.file")


def test_a_file_is_resolved_as_a_text_of_the_step() -> None:
    """With the params of the workflow, of the step and of the steps before; what is escaped is text."""
    scope = StepScope("me", _known(day=20_260_301, n=1.5), {"job": _known(out="db.t")})
    assert evaluate_file(FILE, own=_known(own="o"), scope=scope) == "SELECT '20260301', '$x', 1.5\nFROM db.t, o"


def test_a_file_sees_the_params_that_a_text_in_its_place_would_see() -> None:
    """Of two of one name, that of the step counts if it comes before the field that names the file."""
    own = _known(before="step", spark={"file": "copy.sql"}, after="step")
    scope = StepScope("me", _known(before="workflow", after="workflow"))
    text = "$before $after"
    inline = _step(scope, before="step", spark={"type": "MAP", "value": params(script=text)}, after="step")
    found = evaluate_file(FileText(text, "copy.sql", "spark.file"), own=own, scope=scope)
    assert found == inline["spark"]["script"] == "step workflow"


def test_a_secret_in_a_file_stays_one() -> None:
    """Until the step runs."""
    found = evaluate_file(FileText("key=${key}", "f", "x.file"), own=_known(key=Secret("k")), scope=StepScope("me"))
    assert found == SecretText(("key=", Secret("k")))


def test_a_file_may_be_longer_than_a_param() -> None:
    """But what its references add may not."""
    long = "-" * SIZE_LIMIT
    scope = StepScope("me", _known(long=long, x=1))
    assert evaluate_file(FileText(f"{long}$x", "f", "x.file"), own={}, scope=scope) == f"{long}1"
    with pytest.raises(ParamError, match="becomes longer than"):
        evaluate_file(FileText(f"{long}$long$long", "f", "x.file"), own={}, scope=scope)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1,\n  '${dya}'", "copy.sql:2:4: Param [spark.file]: Cannot find the referenced param [dya] in step"),
        ("${job.nothing}", "copy.sql:1:1: Cannot find the referenced param name [nothing] in step [job]"),
        (
            "${spark.file}",
            "copy.sql:1:1: Param [spark.file]: Cannot find the referenced param [spark.file] in step [me]",
        ),
        ("$null", "copy.sql:1:1: param [null] has no value"),
        ("$day\n ${ day }", "copy.sql:2:2: ${ day } is not a reference"),
        ("${hiveconf:day}", "copy.sql:1:1: ${hiveconf:day} is not a reference"),
        ("'${day'\n}", "copy.sql:1:2: ${day' is not a reference"),
    ],
)
def test_what_a_file_refers_to_in_vain_is_reported_with_its_place(text: str, message: str) -> None:
    """Before anything is done with it."""
    scope = StepScope("me", _known(day=1) | {"null": Parameter("null", param(), None)}, {"job": _known(out="x")})
    with pytest.raises(ParamError) as raised:
        evaluate_file(FileText(text, "copy.sql", "spark.file"), own={}, scope=scope)
    assert raised.value.message.startswith(message)
