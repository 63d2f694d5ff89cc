"""A secret is a name until a step runs."""

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.definition.params.cases import param, params

from calve.definition.params.evaluation import evaluate_step_params, evaluate_workflow_params
from calve.definition.params.parameter import InitiatorType, Parameter
from calve.definition.params.precedence import restarted_workflow_params, subworkflow_params
from calve.definition.params.scopes import StepScope
from calve.definition.params.secrets import Secret, SecretText, holds_secret, joined, restored, reveal, shown, stored
from calve.errors import CalveError, ParamError

CLEAR = 'hun"ter2\\$x'
_DEFINITIONS = params(
    token={"type": "SECRET", "value": "prod/token"},
    by_expression={"type": "SECRET", "expression": "'prod/' + kind"},
    kind="other",
    url="https://user:$token@host/$kind?$$x",
    nested="<${url}>",
    texts={"type": "STRING_ARRAY", "value": ["plain", "Bearer ${token}"]},
    headers={"type": "STRING_MAP", "value": {"Authorization": "Bearer $token", "Accept": "*"}},
    options={"type": "MAP", "value": params(password={"type": "SECRET", "value": "db"}, url="$url", n=1)},
    as_json="$options",
    twice="$holder",
    holder={"type": "MAP", "value": params(text="$as_json")},
)


def _evaluated() -> dict[str, Parameter]:
    return evaluate_workflow_params(_DEFINITIONS, workflow_id="w")


def _resolve(name: str) -> str:
    return {"prod/token": CLEAR, "prod/other": "o", "db": "d"}[name]


def test_a_secret_shows_stars() -> None:
    """However it is asked for."""
    for secret, text in ((Secret("s"), "***"), (SecretText(("a", Secret("s"), "b")), "a***b")):
        assert (repr(secret), str(secret), f"{secret}", f"{secret!s:>8}"[-3:]) == (text, text, text, text[-3:])
        assert f"{secret:>8}" == text.rjust(8)
        assert pickle.loads(pickle.dumps(secret)) == secret
        with pytest.raises(TypeError):
            json.dumps(secret)


def test_a_text_with_a_secret_keeps_its_parts() -> None:
    """And gives them up only where it is revealed."""
    found = _evaluated()
    assert found["token"].result == Secret("prod/token")
    assert found["by_expression"].result == Secret("prod/other")
    assert found["url"].result == SecretText(("https://user:", Secret("prod/token"), "@host/other?$x"))
    assert str(found["nested"].result) == "<https://user:***@host/other?$x>"
    assert reveal(found["url"].result, _resolve) == f"https://user:{CLEAR}@host/other?$x"
    assert reveal(found["nested"].result, _resolve) == f"<https://user:{CLEAR}@host/other?$x>"
    assert reveal(found["kind"].result, _resolve) == "other"


def test_secrets_are_revealed_within_arrays_and_maps() -> None:
    """What holds none is as it was."""
    found = {name: reveal(one.result, _resolve) for name, one in _evaluated().items()}
    assert found["texts"] == ["plain", f"Bearer {CLEAR}"]
    assert found["headers"] == {"Authorization": f"Bearer {CLEAR}", "Accept": "*"}
    assert found["options"] == {"password": "d", "url": f"https://user:{CLEAR}@host/other?$x", "n": 1}
    assert reveal((Secret("db"), 1.5), _resolve) == ["d", 1.5]


def test_a_secret_within_json_is_quoted_as_json() -> None:
    """Once for each text that it stands in, or the JSON would break."""
    found = {name: reveal(one.result, _resolve) for name, one in _evaluated().items()}
    assert json.loads(found["as_json"]) == found["options"]
    assert json.loads(json.loads(found["twice"])["text"]) == found["options"]


def test_the_clear_text_is_nowhere_but_in_what_is_revealed() -> None:
    """A canary: a resolver that gives it away is used, and all that can be shown is searched."""
    found = _evaluated()
    revealed = {name: reveal(one.result, _resolve) for name, one in found.items()}
    assert CLEAR in revealed["url"]
    for text in _shown(found):
        assert "hunter" not in text.replace('"', "").replace("\\", "")
        assert "hun" not in text


def _shown(found: dict[str, Parameter]) -> Iterator[str]:
    for one in found.values():
        yield json.dumps(one.as_json())
        yield json.dumps(one.as_stored())
        yield repr(one)
        yield str(one.result)
        yield f"{one.as_definition()} {one.as_definition().as_json()}"
        yield str(pickle.dumps(one.result))
    for failing in ({"expression": "token"}, {"expression": "url"}, {"type": "LONG", "value": None}):
        scope = StepScope("s", found)
        with pytest.raises(CalveError) as raised:
            evaluate_step_params(params(x=failing), scope=scope)
        yield f"{raised.value!r} {raised.value.as_json()}"


def test_the_json_of_a_param_shows_stars_and_the_name_of_the_secret() -> None:
    """The name is part of the definition; it is no secret."""
    found = _evaluated()
    assert found["token"].as_json()["value"] == "prod/token"
    assert found["token"].as_json()["evaluated_result"] == "***"
    assert found["options"].as_json()["evaluated_result"] == {
        "password": "***",
        "url": "https://user:***@host/other?$x",
        "n": 1,
    }
    assert shown((Secret("a"), {"b": 1})) == ["***", {"b": 1}]


def test_what_is_passed_to_a_child_or_kept_for_a_restart_can_still_be_revealed() -> None:
    """Though it shows stars there too."""
    found = _evaluated()
    passed = subworkflow_params(workflow=found, step={}, explicit=False)
    child = evaluate_workflow_params(passed, workflow_id="child")
    restarted = restarted_workflow_params(previous=found, run={}, restart={}, initiator=InitiatorType.MANUAL)
    again = evaluate_workflow_params(restarted, workflow_id="w")
    for name, one in found.items():
        expected = reveal(one.result, _resolve)
        assert reveal(child[name].result, _resolve) == expected
        assert reveal(again[name].result, _resolve) == expected
    assert passed["url"].value == "https://user:***@host/other?$$x"
    assert "kept" not in str(child["url"].as_json())


def test_a_new_value_replaces_a_kept_secret() -> None:
    """What was kept belongs to the old one."""
    previous = {"x": _evaluated()["url"]}
    merged = restarted_workflow_params(
        previous=previous, run={}, restart=params(x="plain"), initiator=InitiatorType.MANUAL
    )
    assert evaluate_workflow_params(merged, workflow_id="w")["x"].result == "plain"


def test_a_param_is_stored_with_the_names_of_its_secrets() -> None:
    """And read again, from JSON."""
    for one in (*_evaluated().values(), Parameter("x", param(value="a")), Parameter("y", param(), "1", 2, ("a", "b"))):
        assert Parameter.from_stored(json.loads(json.dumps(one.as_stored()))) == one


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"name": "x", "definition": {"type": "NONE"}, "evaluated_time": None, "note": None},
        {"name": "x", "definition": {"type": "STRING"}, "evaluated_time": 1, "note": None, "result": {"a": 1}},
        {"name": "x", "definition": {"type": "STRING"}, "evaluated_time": 1, "note": None, "result": {"parts": [1]}},
    ],
)
def test_what_was_not_stored_by_calve_is_refused(kept: dict[str, Any]) -> None:
    """With an error of ours."""
    with pytest.raises(ParamError, match="cannot be read"):
        Parameter.from_stored(kept)


def test_a_key_cannot_hold_a_secret() -> None:
    """Keys are shown everywhere."""
    definitions = params(s={"type": "SECRET", "value": "n"}, m={"type": "STRING_MAP", "value": {"a$s": "b"}})
    with pytest.raises(ParamError, match=r"Param \[m\]: The key \[a\*\*\*\] holds a secret"):
        evaluate_workflow_params(definitions, workflow_id="w")


def test_a_secret_without_text_is_named() -> None:
    """By its name alone."""
    wrong: Any = {"s": None}.get
    with pytest.raises(ParamError, match=r"The secret \[s\] has no text"):
        reveal([Secret("s")], wrong)


def test_parts_are_joined() -> None:
    """A text without secrets is a plain one."""
    assert joined(["a", "b"]) == "ab"
    assert joined([]) == ""
    assert joined(["", Secret("s"), ""]) == SecretText((Secret("s"),))
    assert joined([SecretText(("a", Secret("s"))), "b", "c"]) == SecretText(("a", Secret("s"), "bc"))
    assert not holds_secret({"a": [1, {"b": "c"}]})
    assert restored(stored({"a": [Secret("s"), None, 1.5, True]})) == {"a": [Secret("s"), None, 1.5, True]}
