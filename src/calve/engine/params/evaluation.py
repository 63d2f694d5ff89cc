"""The params of runs and steps, merged and evaluated when they are needed."""

import json
from typing import Any

from pydantic import TypeAdapter, ValidationError

from calve.definition.model import Params as Definitions, Step, StringArrayParam, TypedStep
from calve.definition.params import (
    DEFAULT_PARAMS,
    DEFAULT_TIMEOUT_DAYS,
    FileText,
    InstanceFunctions,
    Language,
    MergeContext,
    Parameter,
    ParamSource,
    ParsedRetryPolicy,
    SecretText,
    StepScope,
    cleaned,
    continued_workflow_params,
    evaluate_before_step,
    evaluate_condition,
    evaluate_file,
    evaluate_in_step,
    evaluate_step_params,
    evaluate_workflow_params,
    fresh_workflow_params,
    merge,
    parse_duration,
    parse_retry_policy,
    restarted_workflow_params,
    step_params,
    template_params,
    values_of,
)
from calve.definition.step_types import unresolved_references
from calve.engine.instances import Params, RunState, UnitOfWork, type_of
from calve.engine.model import Attempt, Json, RunPolicy
from calve.engine.params.scope import RunningInstance, StepParams, params_from_stored, params_of, run_params
from calve.errors import ParamError

DAY = 86_400_000
RUN_PARAMS = 128
_DEFINITIONS: TypeAdapter[Definitions] = TypeAdapter(Definitions)
_FACTS = cleaned(merge({}, DEFAULT_PARAMS.step, MergeContext(ParamSource.SYSTEM_DEFAULT)))


def definitions_of(written: Json) -> Definitions:
    """Return params from their definitions in JSON's types.

    Raises:
        ParamError: one of them is not a valid param.
    """
    try:
        return _DEFINITIONS.validate_python(dict(written))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        raise ParamError(f"Param [{name}] is invalid: {first['msg']}", param=name) from None


def written(params: Definitions) -> dict[str, Any]:
    """Return definitions of params in JSON's types."""
    return {name: param.as_json() for name, param in params.items()}


def merged_run_params(work: UnitOfWork, state: RunState) -> Definitions:
    """Return the params of a run before they are evaluated.

    Raises:
        ParamError: a change is not allowed, or a required param has no value.
    """
    run = state.run
    given = definitions_of(run.run_params)
    if len(given) > RUN_PARAMS and not run.initiator.type.is_upstream:
        raise ParamError(f"There are [{len(given)}] run params, more than the limit of [{RUN_PARAMS}]")
    if run.policy is RunPolicy.START_FRESH_NEW_RUN:
        return fresh_workflow_params(
            defaults=work.tools.vocabulary.defaults.workflow,
            definition=state.blueprint.workflow.params,
            run=given,
            initiator=run.initiator.type,
        )
    before = {each.run_id: each for each in work.tools.state.runs(run.workflow_id, run.instance_id)}
    if run.restart.is_latest:
        last = before[run.run_id - 1]
        numbers = [number for number in sorted(before) if number < run.run_id]
        earlier = {name: param for number in numbers for name, param in before[number].run_params.items()}
        return continued_workflow_params(
            previous=params_from_stored(last.params),
            defaults=work.tools.vocabulary.defaults.workflow,
            older=work.tools.blueprints.get(last.owner_workflow, last.version_id).workflow.params,
            newer=state.blueprint.workflow.params,
            run=definitions_of(earlier),
            restart=given,
            initiator=run.initiator.type,
        )
    return restarted_workflow_params(
        previous=params_from_stored(before[run.run_id - 1].params),
        run=definitions_of(before[1].run_params),
        restart=given,
        initiator=run.initiator.type,
    )


def evaluate_run(work: UnitOfWork, state: RunState) -> Params:
    """Return the params of a run, evaluated.

    Raises:
        ParamError: the value of a param is missing or invalid.
        ExpressionError: an expression cannot be evaluated.
    """
    merged = merged_run_params(work, state)
    return evaluate_workflow_params(merged, workflow_id=state.run.workflow_id, language=_language(work, state, None))


def evaluate_step(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> Params:
    """Return the params of a step, evaluated.

    Raises:
        ParamError: the value of a param is missing or invalid.
        ExpressionError: an expression cannot be evaluated.
    """
    known, params = _defined(work, state, step, attempt)
    of_run = run_params(state)
    scope = StepScope(step.id, of_run, StepParams(state))
    found = evaluate_step_params(params, scope=scope, language=_language(work, state, attempt), known=known)
    step_type = work.tools.vocabulary.types.find(type_of(step))
    defined = {name: param.definition for name, param in of_run.items()}
    for _, error in unresolved_references(step_type, params, values_of(found), defined.get):
        raise error
    return found


def evaluate_file_of(work: UnitOfWork, state: RunState, attempt: Attempt, file: FileText) -> str | SecretText:
    """Return the text of a file that a step reads, with its references replaced by their values.

    Raises:
        ParamError: a reference has no value; the message names file, line and column.
    """
    scope = StepScope(attempt.step_id, run_params(state), StepParams(state))
    language = _language(work, state, attempt)
    return evaluate_file(file, own=params_of(state, attempt), scope=scope, language=language)


def evaluate_ahead(
    work: UnitOfWork, state: RunState, step: Step, attempt: Attempt, wanted: Definitions
) -> dict[str, Parameter]:
    """Evaluate definitions that refer to the params of a step, before the step's params themselves are evaluated.

    Raises:
        ParamError: a value is missing or invalid.
        ExpressionError: an expression cannot be evaluated.
    """
    known, params = _defined(work, state, step, attempt)
    scope = StepScope(step.id, run_params(state), StepParams(state))
    language = _language(work, state, attempt)
    return {
        name: evaluate_before_step(name, definition, params=params, scope=scope, language=language, known=known)
        for name, definition in wanted.items()
    }


def evaluate_beside(work: UnitOfWork, state: RunState, attempt: Attempt, wanted: Definitions) -> dict[str, Parameter]:
    """Evaluate definitions that refer to the params of a step that has run.

    Raises:
        ParamError: a value is missing or invalid.
        ExpressionError: an expression cannot be evaluated.
    """
    scope = StepScope(attempt.step_id, run_params(state), StepParams(state))
    language, own = _language(work, state, attempt), params_of(state, attempt)
    return {
        name: evaluate_in_step(name, definition, own=own, scope=scope, language=language)
        for name, definition in wanted.items()
    }


def _defined(work: UnitOfWork, state: RunState, step: Step, attempt: Attempt) -> tuple[Params, Definitions]:
    """Return the params that every step has, already evaluated, and the definitions of the others."""
    defaults, run = work.tools.vocabulary.defaults, state.run
    known = _own_facts(defaults.step, state, attempt, work.now)
    params = step_params(
        defaults={name: param for name, param in defaults.step.items() if name not in known},
        type_defaults=defaults.of_type(type_of(step)),
        template=_template(work, state, step),
        injected={},
        definition=step.params,
        run={},
        restart=definitions_of(state.restart_params(step.id)),
        initiator=run.initiator.type,
        is_fresh=run.policy.is_fresh,
    )
    return known, params


def _own_facts(defaults: Definitions, state: RunState, attempt: Attempt, now: int) -> Params:
    """Return the params that every step has; their values are known here, without evaluating expressions."""
    values = {
        "workflow_instance_id": state.outermost.run.instance_id,
        "step_instance_uuid": attempt.uuid,
        "step_attempt_id": attempt.attempt_id,
        "step_id": attempt.step_id,
    }
    return {
        name: Parameter(name, _FACTS[name], value, now)
        for name, value in values.items()
        if defaults.get(name) is DEFAULT_PARAMS.step[name]
    }


def _template(work: UnitOfWork, state: RunState, step: Step) -> Definitions:
    """Return the params of a step's job template, overridden by the workflow's params of the same names."""
    if not isinstance(step, TypedStep) or step.sub_type is None:
        return {}

    def above(below: Definitions, own: Definitions) -> Definitions:
        return merge(below, own, MergeContext(ParamSource.TEMPLATE_SCHEMA))

    bare = step.model_copy(update={"params": {}})
    schema = work.tools.vocabulary.templates.step_params(bare, state.blueprint.workflow.params, above)
    return template_params(schema=schema, workflow=run_params(state))


def condition_holds(work: UnitOfWork, state: RunState, attempt: Attempt, expression: str) -> bool:
    """Tell whether the condition of a transition is true, given the params of the step before it.

    Raises:
        ParamError: a reference cannot be resolved, or the result is not a boolean.
        ExpressionError: it cannot be evaluated.
    """
    if expression.strip(" ;") in {"true", ""}:
        return True
    return condition_over(work, state, attempt, expression, params_of(state, attempt))


def condition_over(work: UnitOfWork, state: RunState, attempt: Attempt, expression: str, own: Params) -> bool:
    """Tell whether a condition is true, given some params of a step.

    Raises:
        ParamError: a reference cannot be resolved, or the result is not a boolean.
        ExpressionError: it cannot be evaluated.
    """
    scope = StepScope(attempt.step_id, run_params(state), StepParams(state))
    language = _language(work, state, attempt)
    return evaluate_condition(expression, own=own, scope=scope, language=language)


def targets_of(work: UnitOfWork, state: RunState, attempt: Attempt) -> tuple[str, ...]:
    """Return the tables that a step writes exactly once, with references replaced by the params of the step.

    Raises:
        ParamError: a reference in a name cannot be resolved.
    """
    step = state.blueprint.steps[attempt.step_id]
    named = step.targets if isinstance(step, TypedStep) else ()
    if not named:
        return ()
    definition = StringArrayParam(value=list(named))
    scope = StepScope(attempt.step_id, run_params(state), StepParams(state))
    language = _language(work, state, attempt)
    found = evaluate_in_step("targets", definition, own=params_of(state, attempt), scope=scope, language=language)
    return tuple(name for text in found.result for name in _names_in(text))


def _names_in(text: str) -> list[str]:
    """Return the tables that a text names: one, none, or those of a list in JSON."""
    if not text.startswith("["):
        return [text] if text else []
    names: list[str] = json.loads(text)
    return names


def timeout_of(timeout: int | str | None, state: RunState, *, default_days: int | None = None) -> int | None:
    """Return a timeout in milliseconds; None for no limit.

    Raises:
        ParamError: it is not positive, or too long.
    """
    if timeout is None:
        return None if default_days is None else default_days * DAY
    return parse_duration(timeout, values_of(run_params(state)))


def run_timeout(state: RunState) -> int:
    """Return the timeout of a run in milliseconds.

    Raises:
        ParamError: it is not positive, or too long.
    """
    found = timeout_of(state.blueprint.workflow.timeout, state, default_days=DEFAULT_TIMEOUT_DAYS)
    return found or DEFAULT_TIMEOUT_DAYS * DAY


def retry_policy(step: Step, state: RunState) -> ParsedRetryPolicy:
    """Return the retry policy of a step.

    Raises:
        ParamError: a value in the policy is not a number, or out of range.
    """
    policy = step.retry_policy if isinstance(step, TypedStep) else None
    return parse_retry_policy(policy, values_of(run_params(state)) if policy else {})


def _language(work: UnitOfWork, state: RunState, attempt: Attempt | None) -> Language:
    return Language(functions=InstanceFunctions(RunningInstance(work, state, attempt)), clock=work.tools.clock)
