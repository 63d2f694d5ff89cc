"""Values of params have the types that YAML gives them, and references become texts."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given, strategies as st

from calve.definition import Mark, Node, Problems
from calve.definition.forms import yaml_params
from calve.dsl import Workflow, expr, foreach, ip_capture, ip_commit, noop, param, secret, spark
from calve.dsl.location import Described, Unsupported
from calve.dsl.values import as_param
from calve.errors import DefinitionInvalid, RequestInvalid

names = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)
scalars = (
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=5)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
)
values = st.recursive(scalars | st.lists(scalars, max_size=3), lambda inner: st.dictionaries(names, inner, max_size=3))


def _bare(made: Any) -> Any:
    """Return a param without the locations inside it; nothing where a value has none."""
    match made:
        case Unsupported():
            return None
        case Described(value):
            return _bare(value)
        case dict():
            return {key: bare for key, item in made.items() if (bare := _bare(item)) is not None}
        case _:
            return made


@given(values)
def test_types_are_those_of_yaml(value: Any) -> None:
    """Whatever the value, Python and YAML infer the same type, or both none."""
    root = Node(None, Mark(1, 1), "")
    expected = yaml_params({"p": root.made(value)}, Problems()).get("p")
    assert _bare(as_param(value)) == (expected.plain() if expected is not None else None)


def _build(**given: Any) -> dict[str, Any]:
    with Workflow("w") as wf:
        noop("a", **given)
    found: dict[str, Any] = wf.build().as_json()["workflow"]["steps"][0]["step"]["params"]
    return found


def test_a_reference_is_a_text() -> None:
    """In texts, f-strings, lists and maps it is ``${step.param}``."""
    with Workflow("w", TABLE="db.t") as wf:
        a = noop("a", table="x")
        a >> noop("b", whole=a["table"], part=f"from {a['table']}", items=[a["table"], "y"], entries={"k": wf["TABLE"]})
    found = wf.build().as_json()["workflow"]["steps"][1]["step"]["params"]
    assert found == {
        "whole": {"type": "STRING", "value": "${a.table}"},
        "part": {"type": "STRING", "value": "from ${a.table}"},
        "items": {"type": "STRING_ARRAY", "value": ["${a.table}", "y"]},
        "entries": {"type": "STRING_MAP", "value": {"k": "${TABLE}"}},
    }


def test_a_reference_to_what_a_step_does_not_give_is_a_problem() -> None:
    """At the line of the step that refers to it."""
    with Workflow("w") as wf:
        change = ip_capture("change", source_tables=["db.t"])
        job = spark("job", script=f"SELECT * FROM {change['realtion']}")
        change >> job >> ip_commit("commit", capture_step=change)
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    (problem,) = caught.value.context["problems"]
    assert problem["code"] == "unknown_output"
    assert problem["path"].startswith("workflow.steps[1].step.params.spark")


def test_a_reference_has_a_form_for_expressions() -> None:
    """Conditions and ``expr`` take ``.sel``."""
    with Workflow("w") as wf:
        a = noop("a")
        with foreach("loop", loop_params={"my-day": [1]}) as loop:
            noop("b")
    assert a["x"].sel == "params.getFromStep('a', 'x')"
    assert wf["DAY"].sel == "DAY"
    assert loop["my-day"].sel == "params.get('my-day')"
    assert str(loop["loop_index"]) == "${loop_index}"


def test_a_loop_refers_to_its_own_params_only() -> None:
    """A slip is told at once, with what was meant."""
    with Workflow("w"):
        loop = foreach("loop", loop_params={"day": [1]})
        with pytest.raises(RequestInvalid, match="loop has no loop param dya") as caught:
            loop["dya"]
    assert caught.value.remedy == "did you mean day?"


def test_ranges_are_expressions_unless_they_go_down() -> None:
    """As ``ranges`` of YAML; a range that goes down has no such form, and is a list."""
    assert _build(up=range(3), down=range(3, 0, -1)) == {
        "up": {"type": "LONG_ARRAY", "expression": "Util.intsBetween(0, 3, 1);"},
        "down": {"type": "LONG_ARRAY", "value": [3, 2, 1]},
    }


def test_params_may_say_more_than_a_value() -> None:
    """Type, mode, tags, validator and notes."""
    given = param([1, 2.5], type="DOUBLE_ARRAY", mode="IMMUTABLE", tags=["t"], validator="@x", meta={"k": 1})
    assert _build(x=given) == {
        "x": {
            "type": "DOUBLE_ARRAY",
            "value": [1.0, 2.5],
            "mode": "IMMUTABLE",
            "tags": ["t"],
            "validator": "@x",
            "meta": {"k": 1},
        }
    }
    fixed = param(expr("1", type="LONG"), mode="CONSTANT")
    assert _build(x=fixed, y=param("text"), z=param([1], type="DOUBLE_ARRAY")) == {
        "x": {"type": "LONG", "expression": "1", "mode": "CONSTANT"},
        "y": {"type": "STRING", "value": "text"},
        "z": {"type": "DOUBLE_ARRAY", "value": [1.0]},
    }
    assert _build(x=param({}, type="STRING_MAP"), y=param({"a": "b"}, type="MAP"), z=secret("s")) == {
        "x": {"type": "STRING_MAP", "value": {}},
        "y": {"type": "MAP", "value": {"a": {"type": "STRING", "value": "b"}}},
        "z": {"type": "SECRET", "value": "s"},
    }


def test_a_type_that_does_not_fit_is_a_problem() -> None:
    """It is not bent to fit: true is no number."""
    with Workflow("w") as wf:
        noop("a", x=param(True, type="DOUBLE"))
    with pytest.raises(DefinitionInvalid, match=r"test_values\.py:\d+: .*steps\[0\]\.step\.params\.x\.value"):
        wf.build()


@pytest.mark.parametrize(
    ("value", "message", "hint"),
    [
        (None, "a param cannot hold None", "a text, a number"),
        (date(2024, 1, 1), "a param cannot hold a date", "a text, a number"),
        (b"x", "a param cannot hold a bytes", "a text, a number"),
        ([1, "a"], "a list holds texts, numbers or booleans, all of one type", ""),
        ([None], "a list holds texts, numbers or booleans, all of one type", ""),
        ({1: "a"}, "the names in a map are texts", ""),
        ({"a": 1, "b": None}, "a param cannot hold None", "a text, a number"),
        (param([1, "a"]), "a list holds texts, numbers or booleans, all of one type", ""),
        ({"a": param([1, "a"])}, "a list holds texts, numbers or booleans, all of one type", ""),
    ],
)
def test_values_that_no_param_can_hold(value: Any, message: str, hint: str) -> None:
    """They are problems of the step, told when the workflow is built."""
    with Workflow("w") as wf:
        noop("a", x=value)
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    (problem,) = caught.value.context["problems"]
    assert problem["message"] == message
    assert problem["hint"].startswith(hint)


def test_a_step_is_not_its_output() -> None:
    """The hint says how to name one."""
    with Workflow("w") as wf:
        a = noop("a")
        spark("b", script="SELECT 1", params={"x": a})  # type: ignore[dict-item]
    with pytest.raises(DefinitionInvalid) as caught:
        wf.build()
    assert caught.value.context["problems"][0]["hint"] == 'to use one of its params, name it: step["param"]'


def test_what_is_described_is_not_changed_later() -> None:
    """A list that grows after the call does not change the step."""
    tables = ["a"]
    tags = ["t"]
    with Workflow("w") as wf:
        noop("a", tables=tables, tags=tags)
    tables.append("b")
    tags.append("u")
    step = wf.build().as_json()["workflow"]["steps"][0]["step"]
    assert (step["params"]["tables"]["value"], step["tags"]) == (["a"], ["t"])
