"""What an expression can ask of the running instance."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.unit.definition.params.cases import cases, param, params

from calve.definition.model import ParamType
from calve.definition.params.evaluation import Language, evaluate_workflow_params
from calve.definition.params.functions import ForeachResults, InstanceFunctions, InstanceView, StepView, UpstreamStep
from calve.definition.params.parameter import InitiatorType, Parameter
from calve.definition.params.secrets import Secret
from calve.errors import ExpressionError, ExpressionFailed
from calve.expressions import evaluate_text

_CASES = cases("sel_cases.jsonl", level="ext")


def _done(name: str, result: Any) -> Parameter:
    return Parameter(name, param(value="-"), result, 1)


_LATE = Parameter("late", param(value="-"))
_SIGNALLED = InstanceView(
    "sample-wf", initiator=InitiatorType.SIGNAL, signal_params={"param1": "value1", "param2": 123}
)
_FOREACH = StepView("foreach-job", 123, "bar", 2, "foreach", error_retries=4, dependencies=({"param1": "hello"}, None))
_STEPS = {
    "foreach-job": UpstreamStep(
        "foreach",
        "SUCCEEDED",
        99,
        {
            "param1": _done("param1", "foo"),
            "late": _LATE,
            "secret": _done("secret", [Secret("s")]),
        },
    ),
    "sub": UpstreamStep("SUBWORKFLOW", "RUNNING"),
}
_SIGNALS: dict[str, dict[str, str | int]] = {"signal-a": {"param1": "value1"}, "signal-b": {"param2": 123}}
_RESULTS = ForeachResults(ParamType.LONG, 6, {1: 15})


@dataclass(frozen=True)
class _Facts:
    """An instance that a signal started, at its foreach step."""

    instance: InstanceView = _SIGNALLED
    own_step: StepView | None = _FOREACH
    environment: str = "test"
    results: ForeachResults | None = _RESULTS

    def step(self, step_id: str) -> UpstreamStep | None:
        return _STEPS.get(step_id)

    def signal(self, name: str) -> Mapping[str, str | int] | None:
        return _SIGNALS.get(name)

    def foreach_results(self, foreach_id: str, step_id: str, param: str) -> ForeachResults | None:  # noqa: ARG002
        return self.results

    def subworkflow_param(self, subworkflow_id: str, step_id: str, param: str) -> Parameter | None:  # noqa: ARG002
        return {"out": _done("out", 5), "late": _LATE}.get(param)

    def next_unique_id(self) -> int | str:
        return 7


_AT_STEP = _Facts()
_DRY = replace(
    _SIGNALLED,
    initiator=InitiatorType.MANUAL,
    is_dry_run=True,
    declared_signals=frozenset({"signal-name"}),
    declared_signal_params=frozenset({"p"}),
)


def _ask(text: str, facts: _Facts = _AT_STEP) -> Any:
    return evaluate_text(text, {}, functions=InstanceFunctions(facts)).value


def _refusal(text: str, facts: _Facts = _AT_STEP) -> str:
    with pytest.raises(ExpressionError) as raised:
        _ask(text, facts)
    return raised.value.message


def test_every_case_of_maestro_is_here() -> None:
    """17 stand in its tests of functions."""
    assert len(_CASES) == 17


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["expr"])
def test_a_function_gives_what_maestro_gives(case: dict[str, Any]) -> None:
    """The value, and the words of the error."""
    facts = _Facts(instance=_DRY) if "dry-run" in case["context"] else _Facts()
    if "error" in case:
        assert case["error_contains"] in _refusal(case["expr"], facts)
    else:
        assert _ask(case["expr"], facts) == case["expect"]


def test_an_instance_tells_about_itself() -> None:
    """What is not set is empty."""
    at_workflow = _Facts(
        instance=InstanceView("w", owner="me", initiator_user="you", workflow_instance_id=3, workflow_run_id=1),
        own_step=None,
    )
    asked = {
        name: _ask(f"params.getFromInstance('{name}')", at_workflow)
        for name in (
            "INITIATOR_TIMEZONE",
            "INITIATOR_TYPE",
            "INITIATOR_RUNNER_NAME",
            "RUN_POLICY",
            "owner",
            "FIRST_TIME_TRIGGER_TIMEZONE",
            "workflow_id",
            "workflow_instance_id",
            "workflow_run_id",
        )
    }
    assert list(asked.values()) == ["", "MANUAL", "you", "START_FRESH_NEW_RUN", "me", "", "w", 3, 1]
    assert _ask("params.getFromInstance('INITIATOR_TYPE')", _Facts(instance=_DRY)) == "VALIDATION"
    assert _ask("params.getFromInstance('workflow_run_id')") == ""
    assert _ask("params.nextUniqueId()") == 7


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("params.getFromInstance('owner')", "call can only be used to define a workflow parameter"),
        ("params.getFromInstance('FIRST_TIME_TRIGGER_TIMEZONE')", "can only be used to define a workflow parameter"),
        (
            "params.getFromInstance('INITIATOR_RUNNER_NAME')",
            "(only for MANUAL run) does not support initiator [SIGNAL]",
        ),
        ("params.getFromInstance('x')", "Invalid field name [x] for getFromInstance call"),
        ("params.getFromStep('x')", "getFromStep throws an exception fieldName=[x]: Invalid field name [x]"),
        ("params.getFromStep('none', 'x')", "Cannot find the referenced step id [none] in the current workflow"),
        ("params.getFromStep('sub', 'x')", "Cannot find the referenced param name [x] in step [sub]"),
        ("params.getFromStep('foreach-job', 'late')", "Referenced param [late] in step [foreach-job] is not evaluated"),
        ("params.getFromStep('foreach-job', 'secret')", "holds a secret"),
        ("params.getFromStep('sub', 'MAESTRO_STEP_END_TIME')", "step [sub]'s [MAESTRO_STEP_END_TIME] is not set yet."),
        ("params.getFromSignal('none')", "Cannot find param [none] from the signal initiator"),
        ("params.getFromSignal('signal-a', 'none')", "Cannot find param [none] for signal [signal-a] in the initiator"),
        ("params.getFromSignal('none', 'none')", "Cannot find param [none] for signal [none] in the initiator"),
        ("params.getFromSignalDependency('2', 'x')", "Signal dependency index is out of bound [2 > 2]"),
        ("params.getFromSignalDependency('-1', 'x')", "Signal dependency index is out of bound [-1 > 2]"),
        ("params.getFromSignalDependency('a', 'x')", "Signal dependency index is out of bound [a > 2]"),
        ("params.getFromSignalDependency('1', 'x')", "Cannot find param [x] for signal dependency index [1]"),
        ("params.getFromForeach('sub', 'a', 'b')", "step [sub] is a type of [SUBWORKFLOW] instead of foreach step"),
        ("params.getFromSubworkflow('sub', 'a', 'none')", "Cannot find the param name: [none]"),
        ("params.getFromSubworkflow('sub', 'a', 'late')", "Cannot find the param name: [late]"),
        ("params.getFromSubworkflow('foreach-job', 'a', 'b')", "instead of subworkflow step, cannot call"),
        ("params.nextUniqueId('x')", "does not support calling method: nextUniqueId with args: x"),
        ("params.none()", "does not support calling method: none"),
    ],
)
def test_what_has_no_answer_says_why(text: str, reason: str) -> None:
    """In Maestro's words, with what was asked."""
    assert reason in _refusal(text)


def test_a_step_tells_about_itself_and_others() -> None:
    """Its sub type rather than its type, if it has one."""
    facts = _Facts(own_step=replace(StepView("s", 1, "u", 2, "TITUS"), sub_type="Spark", error_retries=3))
    assert _ask("params.getFromStep('step_type_info')", facts) == "Spark"
    assert _ask("params.getFromStep('MAESTRO_STEP_ERROR_RETRIES')", facts) == 3
    assert _ask("params.getFromStep('step_attempt_id')", facts) == 2
    assert _ask("params.getFromStep('foreach-job', 'MAESTRO_STEP_STATUS')") == "SUCCEEDED"
    assert _ask("params.getFromStep('foreach-job', 'MAESTRO_STEP_END_TIME')") == 99
    assert _ask("params.getFromSubworkflow('sub', 'a', 'out')") == 5
    workflow = _Facts(own_step=None)
    assert "fromStep [step_id] is only available in step execution context" in (
        _refusal("params.getFromStep('step_id')", workflow)
    )
    assert "only available in step execution" in _refusal("params.getFromSignalDependency('0', 'p')", workflow)


def test_a_signal_is_asked_only_where_one_started_the_instance() -> None:
    """Otherwise there is the default, or none."""
    manual = _Facts(instance=InstanceView("w"))
    assert "is not a signal trigger and cannot get a param [p] from it" in _refusal("params.getFromSignal('p')", manual)
    assert "cannot get a param [p] from the signal [s]" in _refusal("params.getFromSignal('s', 'p')", manual)
    assert _ask("params.getFromSignalOrDefault('s', 'p', 'd')", manual) == "d"
    bare = _Facts(instance=InstanceView("w", initiator=InitiatorType.SIGNAL))
    assert "Cannot get param [p] as signal initiator's param is null" in _refusal("params.getFromSignal('p')", bare)


def test_a_dry_run_knows_declared_signals_only() -> None:
    """By a stub."""
    dry = _Facts(instance=_DRY)
    assert _ask("params.getFromSignal('p')", dry) == 20220101
    assert _ask("params.getFromSignalOrDefault('signal-name', 'x', 'd')", dry) == 20220101
    assert _ask("params.getFromSignalOrDefault('none', 'x', 'd')", dry) == "d"
    assert "Signal param name [q] does not exist in the signal trigger definition for workflow [sample-wf]" in (
        _refusal("params.getFromSignal('q')", dry)
    )
    assert "Signal name [none] does not exist" in _refusal("params.getFromSignal('none', 'p')", dry)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (ParamType.STRING, "a", ["a", None]),
        (ParamType.LONG, 1, [1, 0]),
        (ParamType.DOUBLE, 1.5, [1.5, 0.0]),
        (ParamType.BOOLEAN, True, [True, False]),
    ],
)
def test_a_foreach_gives_an_array_over_its_iterations(kind: ParamType, given: Any, expected: list[Any]) -> None:
    """With a stand-in for those that have no value."""
    functions = InstanceFunctions(_Facts(results=ForeachResults(kind, 2, {1: given})))
    assert functions.call("getFromForeach", ("foreach-job", "a", "b")) == expected


def test_a_foreach_has_no_array_of_maps_and_none_before_it_starts() -> None:
    """In Maestro's words."""
    asked = "params.getFromForeach('foreach-job', 'a', 'b')"
    maps = _Facts(results=ForeachResults(ParamType.MAP, 2, {}))
    assert "cannot get param from foreach with a type: MAP" in _refusal(asked, maps)
    assert "Cannot load param [b] of step [a] from foreach [foreach-job] as it is not initialized" in (
        _refusal(asked, _Facts(results=None))
    )


def test_params_ask_through_their_language() -> None:
    """By function, or by the name of a signal."""
    definitions = params(
        a={"type": "LONG", "expression": "params.getFromSignal('param2')"},
        b={"type": "STRING", "expression": "sig__p"},
    )
    language = Language(functions=InstanceFunctions(_Facts()))
    with pytest.raises(ExpressionError):
        InstanceFunctions(_Facts()).call("getFromSignal", ("sig", "p"))
    found = evaluate_workflow_params({"a": definitions["a"]}, workflow_id="w", language=language)
    assert found["a"].result == 123


def test_a_failure_of_a_function_is_one_of_the_language() -> None:
    """So that an expression fails like any other."""
    with pytest.raises(ExpressionFailed) as raised:
        InstanceFunctions(_Facts()).call("getFromStep", ("none", "x"))
    assert raised.value.kind == "MaestroInternalError"
    assert raised.value.message.startswith("getFromStep throws an exception for stepId=[none], paramName=[x]: Cannot")
