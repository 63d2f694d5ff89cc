"""What a trigger makes of signals that came together."""

from typing import Any

import pytest

from calve.definition.model import SignalTrigger
from calve.errors import CalveError, ExpressionError, ParamError
from calve.triggers import Fire, Trigger, TriggerType
from calve.triggers.signals import Arrived, fire_for

TRIGGER = Trigger("w", "signal:0", TriggerType.SIGNAL, 1, {}, {}, None, 1, 0)
GROUP = {"y": Arrived(2, {"day": "friday"}), "x": Arrived(7, {"n": 5})}


def judged(**given: Any) -> Fire | None:
    """Judge two signals by a trigger."""
    definition = SignalTrigger.model_validate({"definitions": {"x": {}, "y": {}}, **given})
    return fire_for(TRIGGER, definition, GROUP, now=1, environment="test")


def test_a_fire_names_its_signals() -> None:
    """Its key does so in one order."""
    fire = judged()
    assert fire is not None
    assert fire.key == "x:7,y:2"
    assert fire.params == {}
    assert fire.initiator.trigger["signal_ids"] == {"y": 2, "x": 7}
    assert fire.initiator.trigger["signals"] == {"y": {"day": "friday"}, "x": {"n": 5}}
    assert fire.initiator.trigger["trigger_uuid"] == TRIGGER.uuid


def test_params_are_evaluated_and_conditions_may_ask_for_them() -> None:
    """So may the expression that tells what is the same."""
    params = {"size": {"type": "LONG", "expression": "params.getFromSignal('x', 'n') * 2"}}
    fire = judged(
        params=params,
        condition="params.getFromSignal('size') == 10",
        dedup_expr="params.getFromSignal('y', 'day') + params.getExecutionEnvironment()",
    )
    assert fire is not None
    assert fire.initiator.trigger["params"] == {"size": 10}
    assert fire.key == "dedup:fridaytest"


def test_a_condition_that_does_not_hold_fires_nothing() -> None:
    """The signals are used up all the same."""
    assert judged(condition="params.getFromSignal('x', 'n') > 5") is None


def test_a_unique_id_is_the_same_when_the_signals_are_examined_again() -> None:
    """But no two are the same."""
    params = {name: {"type": "STRING", "expression": "params.nextUniqueId()"} for name in ("a", "b")}
    first, second = judged(params=params), judged(params=params)
    assert first == second
    assert first is not None
    assert len(set(first.initiator.trigger["params"].values())) == 2


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"condition": "params.getFromSignal('x', 'missing') > 5"}, ExpressionError),
        ({"condition": "params.getFromStep('a', 'b') == 1"}, ExpressionError),
        ({"condition": "params.getFromForeach('a', 'b', 'c') == 1"}, ExpressionError),
        ({"condition": "params.getFromSubworkflow('a', 'b', 'c') == 1"}, ExpressionError),
        ({"condition": "params.getFromStep('step_id') == 1"}, ExpressionError),
        ({"params": {"a": {"type": "STRING", "value": "${nothing}"}}}, ParamError),
        ({"params": {"a": {"type": "SECRET", "value": "password"}}}, ParamError),
    ],
)
def test_what_gives_no_answer_is_an_error(given: dict[str, Any], error: type[CalveError]) -> None:
    """There is no instance yet that could be asked, and no secret is kept."""
    with pytest.raises(error):
        judged(**given)
