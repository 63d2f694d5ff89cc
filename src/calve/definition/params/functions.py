"""The functions of ``params`` in expressions, and the facts about the running instance that they read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from calve.definition.model import ParamType
from calve.definition.params.parameter import InitiatorType, Parameter
from calve.definition.params.secrets import holds_secret
from calve.errors import ExpressionFailed
from calve.expressions.java import parse_long


@dataclass(frozen=True, slots=True)
class InstanceView:
    """The instance that an expression belongs to; in a dry run only what its definition declares."""

    workflow_id: str
    initiator: InitiatorType = InitiatorType.MANUAL
    run_policy: str = "START_FRESH_NEW_RUN"
    workflow_instance_id: int | None = None
    workflow_run_id: int | None = None
    owner: str | None = None
    initiator_timezone: str | None = None
    initiator_user: str | None = None
    first_time_trigger_timezone: str | None = None
    signal_params: Mapping[str, Any] | None = None
    """The evaluated params of the signal trigger that started it."""
    is_dry_run: bool = False
    declared_signals: frozenset[str] = frozenset()
    declared_signal_params: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StepView:
    """The step that an expression belongs to."""

    step_id: str
    step_instance_id: int
    step_instance_uuid: str
    step_attempt_id: int
    type: str
    sub_type: str | None = None
    error_retries: int = 0
    dependencies: tuple[Mapping[str, str | int] | None, ...] = ()
    """The params of the signals that its dependencies matched, in their order."""


@dataclass(frozen=True, slots=True)
class UpstreamStep:
    """Another step of the same instance."""

    type: str
    status: str
    end_time: int | None = None
    params: Mapping[str, Parameter] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ForeachResults:
    """The values of a param by iteration of a foreach, numbered from 1; some may be missing."""

    type: ParamType
    count: int
    values: Mapping[int, Any]


class InstanceFacts(Protocol):
    """What a running instance can tell an expression; by default nothing has run yet."""

    @property
    def instance(self) -> InstanceView:
        """The instance itself."""
        ...

    @property
    def own_step(self) -> StepView | None:
        """The step whose params are evaluated, or None for those of the workflow."""
        ...

    @property
    def environment(self) -> str:
        """The name of the environment that calve runs in."""
        ...

    def step(self, step_id: str) -> UpstreamStep | None:  # noqa: ARG002 - the default
        """Return a step of the instance; None if there is none with that id."""
        return None

    def signal(self, name: str) -> Mapping[str, str | int] | None:  # noqa: ARG002 - the default
        """Return the params of a signal that started the instance; None if there is none of that name."""
        return None

    def foreach_results(self, foreach_id: str, step_id: str, param: str) -> ForeachResults | None:  # noqa: ARG002 - the default
        """Return the values of a param by iteration of a foreach; None if it has not started."""
        return None

    def subworkflow_param(self, subworkflow_id: str, step_id: str, param: str) -> Parameter | None:  # noqa: ARG002 - the default
        """Return a param of a step of a subworkflow; None if there is none."""
        return None

    def next_unique_id(self) -> int | str:
        """Return a unique id."""
        ...


STEP_STATUS = "MAESTRO_STEP_STATUS"
STEP_END_TIME = "MAESTRO_STEP_END_TIME"
DRY_RUN_VALUE = 20_220_101
"""The value of a declared signal's param in a dry run."""

_ABSENT = {ParamType.STRING: None, ParamType.LONG: 0, ParamType.DOUBLE: 0.0, ParamType.BOOLEAN: False}

_RUNNER = "INITIATOR_RUNNER_NAME"
_OF_WORKFLOWS = frozenset({"owner", "FIRST_TIME_TRIGGER_TIMEZONE"})
_INSTANCE_FIELDS: dict[str, Callable[[InstanceView], str | int | None]] = {
    "INITIATOR_TIMEZONE": lambda instance: instance.initiator_timezone,
    "INITIATOR_TYPE": lambda instance: "VALIDATION" if instance.is_dry_run else instance.initiator.value,
    _RUNNER: lambda instance: instance.initiator_user,
    "RUN_POLICY": lambda instance: instance.run_policy,
    "owner": lambda instance: instance.owner,
    "FIRST_TIME_TRIGGER_TIMEZONE": lambda instance: instance.first_time_trigger_timezone,
    "workflow_id": lambda instance: instance.workflow_id,
    "workflow_instance_id": lambda instance: instance.workflow_instance_id,
    "workflow_run_id": lambda instance: instance.workflow_run_id,
}


@dataclass(frozen=True, slots=True)
class InstanceFunctions:
    """Evaluates ``params.<name>(…)`` from the facts of an instance."""

    facts: InstanceFacts

    def call(self, name: str, arguments: tuple[str, ...]) -> Any:
        """Return the result of a function.

        Raises:
            ExpressionFailed: there is no such function, or it has no result.
        """
        found = _FUNCTIONS.get((name, len(arguments)))
        if found is None:
            given = f" with args: {','.join(arguments)}" if arguments else ""
            raise ExpressionFailed(
                f"params does not support calling method: {name}{given}", kind="UnsupportedOperationException"
            )
        asked, function = found
        try:
            value = function(self.facts, *arguments)
        except _Unanswered as error:
            raise ExpressionFailed(
                f"{name} throws an exception {asked.format(*arguments)}: {error.reason}", kind="MaestroInternalError"
            ) from None
        if holds_secret(value):
            raise ExpressionFailed(
                f"{name}({', '.join(arguments)}) holds a secret, which cannot be read in an expression",
                kind="MaestroInternalError",
            )
        return value


class _Unanswered(Exception):
    """A function has no result, for a reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _next_unique_id(facts: InstanceFacts) -> int | str:
    return facts.next_unique_id()


def _environment(facts: InstanceFacts) -> str:
    return facts.environment


def _from_instance(facts: InstanceFacts, field: str) -> Any:
    instance = facts.instance
    if field not in _INSTANCE_FIELDS:
        raise _Unanswered(f"Invalid field name [{field}] for getFromInstance call")
    if field in _OF_WORKFLOWS and facts.own_step is not None:
        raise _Unanswered(f"getFromInstance('{field}') call can only be used to define a workflow parameter")
    if field == _RUNNER and instance.initiator is not InitiatorType.MANUAL:
        raise _Unanswered(f"Method [{field}] (only for MANUAL run) does not support initiator [{instance.initiator}]")
    value = _INSTANCE_FIELDS[field](instance)
    # A param cannot be null, so an unset field is an empty text.
    return "" if value is None else value


def _own_step(facts: InstanceFacts, what: str) -> StepView:
    step = facts.own_step
    if step is None:
        raise _Unanswered(f"fromStep [{what}] is only available in step execution context")
    return step


def _from_own_step(facts: InstanceFacts, field: str) -> str | int:
    step = _own_step(facts, field)
    match field:
        case "step_id":
            return step.step_id
        case "step_instance_id":
            return step.step_instance_id
        case "step_instance_uuid":
            return step.step_instance_uuid
        case "step_attempt_id":
            return step.step_attempt_id
        case "step_type_info":
            return step.sub_type or step.type.upper()
        case "MAESTRO_STEP_ERROR_RETRIES":
            return step.error_retries
        case _:
            raise _Unanswered(f"Invalid field name [{field}] for getFromStep call")


def _step(facts: InstanceFacts, step_id: str) -> UpstreamStep:
    step = facts.step(step_id)
    if step is None:
        raise _Unanswered(f"Cannot find the referenced step id [{step_id}] in the current workflow")
    return step


def _from_step(facts: InstanceFacts, step_id: str, param: str) -> Any:
    step = _step(facts, step_id)
    if param == STEP_STATUS:
        return step.status
    if param == STEP_END_TIME:
        if step.end_time is None:
            raise _Unanswered(f"ERROR: step [{step_id}]'s [{param}] is not set yet.")
        return step.end_time
    found = step.params.get(param)
    if found is None:
        raise _Unanswered(f"Cannot find the referenced param name [{param}] in step [{step_id}]")
    if not found.is_evaluated:
        raise _Unanswered(
            f"Referenced param [{param}] in step [{step_id}] is not evaluated yet. "
            "Note that a step can only reference its upstream step's param."
        )
    return found.result


def _from_trigger(facts: InstanceFacts, param: str) -> Any:
    instance = facts.instance
    if instance.is_dry_run:
        return _declared(facts, param, instance.declared_signal_params, "param name")
    _check_signal(facts, f"cannot get a param [{param}] from it")
    if instance.signal_params is None:
        raise _Unanswered(f"Cannot get param [{param}] as signal initiator's param is null")
    value = instance.signal_params.get(param)
    if value is None:
        raise _Unanswered(f"Cannot find param [{param}] from the signal initiator")
    return value


def _from_signal(facts: InstanceFacts, signal: str, param: str) -> str | int:
    instance = facts.instance
    if instance.is_dry_run:
        return _declared(facts, signal, instance.declared_signals, "name")
    _check_signal(facts, f"cannot get a param [{param}] from the signal [{signal}]")
    value = (facts.signal(signal) or {}).get(param)
    if value is None:
        raise _Unanswered(f"Cannot find param [{param}] for signal [{signal}] in the initiator")
    return value


def _from_signal_or_default(facts: InstanceFacts, signal: str, param: str, default: str) -> str | int:
    try:
        return _from_signal(facts, signal, param)
    except _Unanswered:
        return default


def _declared(facts: InstanceFacts, name: str, declared: frozenset[str], what: str) -> int:
    if name not in declared:
        raise _Unanswered(
            f"Signal {what} [{name}] does not exist in the signal trigger definition for workflow "
            f"[{facts.instance.workflow_id}]"
        )
    return DRY_RUN_VALUE


def _check_signal(facts: InstanceFacts, consequence: str) -> None:
    initiator = facts.instance.initiator
    if initiator is not InitiatorType.SIGNAL:
        raise _Unanswered(f"Initiator [{initiator}] is not a signal trigger and {consequence}")


def _from_dependency(facts: InstanceFacts, index: str, param: str) -> str | int:
    dependencies = _own_step(facts, param).dependencies
    number = parse_long(index)
    if number is None or not 0 <= number < len(dependencies):
        raise _Unanswered(f"Signal dependency index is out of bound [{index} > {len(dependencies)}]")
    value = (dependencies[number] or {}).get(param)
    if value is None:
        raise _Unanswered(f"Cannot find param [{param}] for signal dependency index [{index}]")
    return value


def _from_foreach(facts: InstanceFacts, foreach_id: str, step_id: str, param: str) -> list[Any]:
    _check_type(facts, foreach_id, "foreach", "getFromForeach")
    results = facts.foreach_results(foreach_id, step_id, param)
    if results is None:
        raise _Unanswered(
            f"Cannot load param [{param}] of step [{step_id}] from foreach [{foreach_id}] as it is not initialized"
        )
    if results.type not in _ABSENT:
        raise _Unanswered(f"cannot get param from foreach with a type: {results.type}")
    absent = _ABSENT[results.type]
    return [results.values.get(iteration, absent) for iteration in range(1, results.count + 1)]


def _from_subworkflow(facts: InstanceFacts, subworkflow_id: str, step_id: str, param: str) -> Any:
    _check_type(facts, subworkflow_id, "subworkflow", "getFromSubworkflow")
    found = facts.subworkflow_param(subworkflow_id, step_id, param)
    if found is None or not found.is_evaluated:
        raise _Unanswered(f"Cannot find the param name: [{param}]")
    return found.result


def _check_type(facts: InstanceFacts, step_id: str, wanted: str, function: str) -> None:
    found = _step(facts, step_id).type
    if found.lower() != wanted:
        raise _Unanswered(f"step [{step_id}] is a type of [{found}] instead of {wanted} step, cannot call {function}")


_FUNCTIONS: dict[tuple[str, int], tuple[str, Callable[..., Any]]] = {
    ("nextUniqueId", 0): ("", _next_unique_id),
    ("getExecutionEnvironment", 0): ("", _environment),
    ("getFromInstance", 1): ("for fieldName=[{}]", _from_instance),
    ("getFromStep", 1): ("fieldName=[{}]", _from_own_step),
    ("getFromStep", 2): ("for stepId=[{}], paramName=[{}]", _from_step),
    ("getFromSignal", 1): ("for paramName=[{}]", _from_trigger),
    ("getFromSignal", 2): ("for signalName=[{}], paramName=[{}]", _from_signal),
    ("getFromSignalOrDefault", 3): ("for signalName=[{}], paramName=[{}], default=[{}]", _from_signal_or_default),
    ("getFromSignalDependency", 2): ("for signalDependencyIndex=[{}], paramName=[{}]", _from_dependency),
    ("getFromForeach", 3): ("for foreachStepId=[{}], stepId=[{}], paramName=[{}]", _from_foreach),
    ("getFromSubworkflow", 3): ("for subworkflowStepId=[{}], stepId=[{}], paramName=[{}]", _from_subworkflow),
}
"""By name and number of arguments: the description of the call in errors, and the function."""
