"""A definition with its params replaced by their values, as ``calve render`` shows it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from calve.definition.dry_run.resolution import CheckedFile, Resolution, resolve
from calve.definition.files import StepFiles
from calve.definition.model import (
    Definition,
    ForeachStep,
    MapParam,
    Param,
    Params,
    Step,
    StringMapParam,
    StringParam,
    WhileStep,
)
from calve.definition.params import Parameter, holds_secret
from calve.definition.run_params import check_run_params, given_params
from calve.definition.vocabulary import Vocabulary
from calve.expressions import Clock, system_millis


def rendered(
    definition: Definition,
    given: Mapping[str, Any],
    vocabulary: Vocabulary,
    clock: Clock = system_millis,
    files: StepFiles | None = None,
) -> Definition:
    """Return the definition with each param that is known before a run replaced by its value.

    A SQL file that ``files`` finds is shown as text in the field that could hold it.

    Raises:
        ParamError: a param cannot be evaluated, or a given value does not fit its param.
        ExpressionError: an expression failed.
        RequestInvalid: the definition does not know a given param.
    """
    run = given_params(given, definition.workflow.params)
    check_run_params(definition.workflow, run, vocabulary, files)
    resolution = resolve(definition, vocabulary, run=run, clock=clock, files=files)
    if resolution.failures:
        raise resolution.failures[0].error
    workflow = definition.workflow
    resolved = _replaced({**workflow.params, **run}, resolution.workflow)
    steps = tuple(_step(step, resolution) for step in workflow.steps)
    return definition.model_copy(update={"workflow": workflow.model_copy(update={"params": resolved, "steps": steps})})


def _step(step: Step, resolution: Resolution) -> Step:
    params = _replaced(step.params, resolution.steps.get(step.id, {}))
    for file in resolution.files:
        params = _with_text(params, file) if file.step_id == step.id and file.text is not None else params
    update: dict[str, Any] = {"params": params}
    if isinstance(step, ForeachStep | WhileStep):
        update["steps"] = tuple(_step(inner, resolution) for inner in step.steps)
    return step.model_copy(update=update)


def _replaced(params: Params, evaluated: Mapping[str, Parameter]) -> Params:
    return {name: _value(param, evaluated[name]) if name in evaluated else param for name, param in params.items()}


def _value(written: Param, param: Parameter) -> Param:
    """Return a param with its value as a literal; one that holds a secret stays as it is."""
    if holds_secret(param.result):
        return written
    return replace(param, definition=written).as_literal()


def _with_text(params: Params, file: CheckedFile) -> Params:
    """Return params with the text of a file in the field that could hold it, in place of its name."""
    config, _, field = file.field.partition(".")
    held = params.get(config)
    if not file.holds or not isinstance(held, MapParam | StringMapParam) or held.value is None:
        return params
    text = str(file.text)
    others = {name: member for name, member in held.value.items() if name != field}
    added = {file.holds: StringParam(value=text) if isinstance(held, MapParam) else text}
    return {**params, config: held.model_copy(update={"value": {**others, **added}})}
