"""Which params a workflow, a step and a child get, and who wins."""

from typing import Any

import pytest
from tests.unit.definition.params.cases import param, params

from calve.definition.model import Param, ParamMode, Params
from calve.definition.params.parameter import InitiatorType, Parameter, ParamSource, source_of
from calve.definition.params.precedence import (
    fresh_workflow_params,
    restarted_workflow_params,
    step_params,
    subworkflow_params,
    template_params,
    with_outputs,
)
from calve.definition.params.secrets import Secret, SecretText
from calve.errors import ParamError

_UPSTREAM = [InitiatorType.SUBWORKFLOW, InitiatorType.FOREACH, InitiatorType.WHILE, InitiatorType.TEMPLATE]
_USERS = [InitiatorType.MANUAL, InitiatorType.TIME, InitiatorType.SIGNAL]


def _done(name: str, result: Any, **fields: Any) -> Parameter:
    return Parameter(name, param(**fields), result, 1)


def _fresh(initiator: InitiatorType = InitiatorType.MANUAL, **given: Params) -> Params:
    empty: dict[str, Params] = {"defaults": {}, "definition": {}, "run": {}}
    return fresh_workflow_params(**(empty | given), initiator=initiator)


def _step(*, is_fresh: bool = True, initiator: InitiatorType = InitiatorType.MANUAL, **given: Params) -> Params:
    empty: dict[str, Params] = {
        name: {} for name in ("defaults", "type_defaults", "template", "injected", "definition", "run", "restart")
    }
    return step_params(**(empty | given), initiator=initiator, is_fresh=is_fresh)


def _summary(merged: Params) -> dict[str, tuple[Any, str | None]]:
    return {name: (one.value, source_of(one)) for name, one in merged.items()}


def test_a_fresh_run_lays_definition_over_defaults_and_run_params_over_both() -> None:
    """Each records its source."""
    merged = _fresh(defaults=params(a="1", b="1", c="1"), definition=params(b="2", c="2", d="2"), run=params(c="3"))
    assert _summary(merged) == {
        "a": ("1", "SYSTEM_DEFAULT"),
        "b": ("2", "DEFINITION"),
        "c": ("3", "LAUNCH"),
        "d": ("2", "DEFINITION"),
    }


@pytest.mark.parametrize("initiator", InitiatorType)
def test_the_source_of_run_params_is_who_started(initiator: InitiatorType) -> None:
    """Parents are named; all others launch, or restart."""
    expected = initiator.value if initiator in _UPSTREAM else "LAUNCH"
    assert _summary(_fresh(initiator, run=params(x="1"))) == {"x": ("1", expected)}
    restarted = restarted_workflow_params(previous={}, run=params(x="1"), restart={}, initiator=initiator)
    expected = initiator.value if initiator in _UPSTREAM else "RESTART"
    assert _summary(restarted) == {"x": ("1", expected)}


@pytest.mark.parametrize("initiator", _UPSTREAM)
def test_a_parents_params_may_be_looser(initiator: InitiatorType) -> None:
    """The child's mode stays."""
    defaults = params(day={"type": "LONG", "value": 1000, "mode": "MUTABLE_ON_START"})
    run = params(day={"type": "LONG", "value": 1001, "mode": "MUTABLE", "meta": {"source": "DEFINITION"}})
    merged = _fresh(initiator, defaults=defaults, run=run)["day"]
    assert (merged.value, merged.mode) == (1001, ParamMode.MUTABLE_ON_START)
    for user in _USERS:
        with pytest.raises(ParamError, match="less strict"):
            _fresh(user, defaults=defaults, run=params(day={"type": "LONG", "value": 1, "mode": "MUTABLE"}))


def test_a_required_param_is_asked_for() -> None:
    """At the start of the run."""
    with pytest.raises(ParamError, match=r"\[x\] is a required parameter \(type=\[STRING\]\)"):
        _fresh(defaults=params(x={"internal_mode": "REQUIRED"}))


def test_a_restart_keeps_what_the_run_before_found() -> None:
    """Values as they were, expressions of IMMUTABLE ones again, reserved names not at all."""
    previous = {
        "a": _done("a", 5, type="LONG", expression="2 + 3", meta={"source": "SYSTEM_DEFAULT"}),
        "b": _done("b", 7, type="LONG", expression="now", mode="IMMUTABLE"),
        "c": _done("c", "$x", value="$$x"),
        "AUTHORIZED_MANAGERS": _done("AUTHORIZED_MANAGERS", "x", value="x"),
    }
    merged = restarted_workflow_params(
        previous=previous, run=params(d="1"), restart=params(d="2"), initiator=InitiatorType.MANUAL
    )
    assert _summary(merged) == {
        "a": (5, "SYSTEM_DEFAULT"),
        "b": (None, "SYSTEM"),
        "c": ("$$x", "SYSTEM"),
        "d": ("2", "RESTART"),
    }
    assert merged["b"].expression == "now"


def test_a_restart_may_not_change_what_is_mutable_on_start() -> None:
    """But what is mutable on restart."""
    for mode, is_allowed in (("MUTABLE_ON_START", False), ("MUTABLE_ON_START_RESTART", True)):
        previous = {"x": _done("x", "a", value="a", mode=mode)}
        if is_allowed:
            merged = restarted_workflow_params(
                previous=previous, run={}, restart=params(x="b"), initiator=InitiatorType.MANUAL
            )
            assert _summary(merged) == {"x": ("b", "RESTART")}
        else:
            with pytest.raises(ParamError, match=r"Cannot modify param with mode \[MUTABLE_ON_START\]"):
                restarted_workflow_params(
                    previous=previous, run=params(x="b"), restart={}, initiator=InitiatorType.MANUAL
                )


def test_a_step_lays_each_source_over_the_one_before() -> None:
    """In the order of the arguments."""
    order = ("defaults", "type_defaults", "template", "injected", "definition", "run", "restart")
    given: dict[str, Params] = {}
    for index, stage in enumerate(order):
        given[stage] = {f"p{number}": param(value=stage) for number in range(index, len(order))}
    merged = _step(is_fresh=False, **given)  # type: ignore[arg-type] # the names are those of params
    assert [merged[f"p{number}"].value for number in range(len(order))] == list(order)
    assert source_of(merged["p2"]) is ParamSource.TEMPLATE_SCHEMA
    assert source_of(merged["p3"]) is ParamSource.SYSTEM_INJECTED


def test_what_a_step_does_not_define_comes_before_what_it_defines() -> None:
    """Restart params first, then run params, then the definition."""
    merged = _step(
        definition=params(p1="d1", p2="d2"),
        run=params(p2="d3", p3="d4"),
        restart=params(p2="d5", pp="dd"),
        is_fresh=False,
    )
    assert list(_summary(merged).items()) == [
        ("pp", ("dd", "RESTART")),
        ("p3", ("d4", "RESTART")),
        ("p1", ("d1", "DEFINITION")),
        ("p2", ("d5", "RESTART")),
    ]
    for initiator in _UPSTREAM:
        assert _summary(_step(run=params(p="1"), initiator=initiator)) == {"p": ("1", initiator.value)}


def test_the_id_of_a_subworkflow_may_not_change_in_a_restart() -> None:
    """It is mutable on start."""
    defaults = params(subworkflow_id={"internal_mode": "REQUIRED", "mode": "MUTABLE_ON_START"})
    with pytest.raises(ParamError, match=r"Cannot modify param with mode \[MUTABLE_ON_START\]"):
        _step(type_defaults=defaults, run=params(subworkflow_id="1"), is_fresh=False)
    assert _step(type_defaults=defaults, run=params(subworkflow_id="1"))["subworkflow_id"].value == "1"


def test_a_workflow_param_changes_the_template_param_of_its_name() -> None:
    """Only those that the template has."""
    schema = params(spark={"type": "MAP", "value": params(memory="1g", cores="2")}, other="x")
    members = {"memory": param(value="$m")}
    workflow = {
        "spark": _done("spark", {"memory": "4g"}, type="MAP", value=members, meta={"source": "DEFINITION"}),
        "unrelated": _done("unrelated", "y", value="y"),
    }
    merged = template_params(schema=schema, workflow=workflow)
    members_now: Any = merged["spark"].value
    assert {name: one.value for name, one in members_now.items()} == {"memory": "4g", "cores": "2"}
    assert source_of(merged["spark"]) is ParamSource.WORKFLOW_PARAMETER
    assert list(merged) == ["spark", "other"]


def test_a_subworkflow_is_passed_values() -> None:
    """All of the workflow's and the step's own, unless they are to be explicit; not its own id."""
    workflow = {name: _done(name, name.upper(), value="$x") for name in ("a", "b", "c")}
    step = {name: _done(name, "own", value="$y") for name in ("c", "subworkflow_id", "subworkflow_version")}
    passed = subworkflow_params(workflow=workflow, step=step, explicit=False)
    assert {name: one.value for name, one in passed.items()} == {"a": "A", "b": "B", "c": "own"}
    passed = subworkflow_params(workflow=workflow, step=step, explicit=True, always=("b", "none"))
    assert {name: one.value for name, one in passed.items()} == {"b": "B", "c": "own"}


def test_a_param_without_result_cannot_be_passed() -> None:
    """Nor can an IMMUTABLE one, though its expression is known."""
    for mode in ("MUTABLE", "IMMUTABLE"):
        with pytest.raises(ParamError, match="Cannot convert an un-evaluated parameter x to a parameter definition"):
            Parameter("x", param(value="a", mode=mode)).as_definition()


_DEFINITIONS: list[tuple[dict[str, Any], Any, Any]] = [
    ({"value": "$a"}, "50 $", "50 $$"),
    ({"type": "LONG", "expression": "1"}, 1, 1),
    ({"type": "STRING_ARRAY", "value": ["$a"]}, ["$", "b"], ["$$", "b"]),
    ({"type": "STRING_MAP", "value": {"$a": "$b"}}, {"$": "$"}, {"$$": "$$"}),
    ({"type": "LONG_ARRAY", "expression": "a"}, [1], [1]),
    ({"type": "SECRET", "value": "s"}, Secret("s"), "s"),
    ({"value": "$s!"}, SecretText((Secret("s"), "!")), "***!"),
]


@pytest.mark.parametrize(("definition", "result", "value"), _DEFINITIONS)
def test_a_result_becomes_a_literal_that_gives_it(definition: dict[str, Any], result: Any, value: Any) -> None:
    """What looks like a reference in it is none; a secret keeps its name and shows stars."""
    literal = _done("x", result, **definition).as_definition()
    assert (literal.value, literal.expression) == (value, None)


def test_a_map_becomes_a_map_of_literals() -> None:
    """Members by their definitions, or by the types of their values if an expression gave the map."""
    members: dict[str, Param] = {
        "a": param(type="LONG", expression="1"),
        "b": param(expression="now", mode="IMMUTABLE"),
    }
    literal = _done("x", {"a": 1, "b": "then"}, type="MAP", value=members).as_definition()
    assert literal.value == {"a": param(type="LONG", value=1), "b": members["b"]}
    result = {"s": "$", "l": 1, "d": 1.5, "b": True, "m": {"n": [1]}, "e": [], "t": ["$"], "o": [True], "f": [1.5]}
    derived: Any = _done("x", result, type="MAP", expression="m", mode="CONSTANT").as_definition().value
    assert {name: (one.type.value, one.value) for name, one in derived.items() if name != "m"} == {
        "s": ("STRING", "$$"),
        "l": ("LONG", 1),
        "d": ("DOUBLE", 1.5),
        "b": ("BOOLEAN", True),
        "e": ("STRING_ARRAY", []),
        "t": ("STRING_ARRAY", ["$$"]),
        "o": ("BOOLEAN_ARRAY", [True]),
        "f": ("DOUBLE_ARRAY", [1.5]),
    }
    assert derived["m"].value["n"].value == [1]
    assert derived["s"].mode is ParamMode.CONSTANT
    with pytest.raises(ParamError, match=r"Param \[n\] type \[NoneType\] is not supported"):
        _done("x", {"n": None}, type="MAP", expression="m").as_definition()


def test_outputs_change_what_a_step_declares() -> None:
    """Maps key by key, all else as a whole; texts are final."""
    declared = {
        "text": _done("text", "old", value="$x"),
        "number": _done("number", 1, type="LONG", expression="1"),
        "map": _done(
            "map",
            {"a": "1", "b": "2"},
            type="MAP",
            value={"a": param(value="$y"), "b": param(expression="now", mode="IMMUTABLE")},
        ),
        "texts": _done("texts", {"a": "1"}, type="STRING_MAP", value={"a": "1"}),
        "secret": _done("secret", Secret("s"), type="SECRET", value="s"),
        "other": _done("other", 2.5, type="DOUBLE", value=2.5),
    }
    outputs = params(
        text="costs $5 or $x",
        number="12",
        map={"type": "MAP", "value": params(a="3", c=4)},
        texts={"type": "STRING_MAP", "value": {"b": "2"}},
        secret={"type": "SECRET", "value": "t"},
    )
    changed = with_outputs(declared, outputs, evaluated_time=9)
    assert {name: one.result for name, one in changed.items()} == {
        "text": "costs $5 or $x",
        "number": 12,
        "map": {"a": "3", "b": "2", "c": 4},
        "texts": {"a": "1", "b": "2"},
        "secret": Secret("t"),
        "other": 2.5,
    }
    assert changed["text"].source is ParamSource.OUTPUT_PARAMETER
    assert changed["text"].evaluated_time == 9
    assert changed["other"] is declared["other"]


def test_an_output_must_be_declared_mutable_and_a_literal() -> None:
    """In Maestro's words."""
    with pytest.raises(ParamError) as raised:
        with_outputs({}, params(x="1"), evaluated_time=1)
    assert raised.value.message == "Invalid output parameter [x], not defined in params"
    strict = {"x": _done("x", "a", value="a", mode="MUTABLE_ON_START")}
    with pytest.raises(ParamError, match=r"Cannot modify param with mode \[MUTABLE_ON_START\]"):
        with_outputs(strict, params(x="1"), evaluated_time=1)
    with pytest.raises(ParamError, match="must be a literal"):
        with_outputs(strict, params(x={"expression": "1"}), evaluated_time=1)
