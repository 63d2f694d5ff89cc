"""The functions that describe steps of one type, made from the declaration of the type."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from calve.definition.step_types import Field, StepType
from calve.dsl.any_step import add_step
from calve.dsl.graph import Step
from calve.dsl.signatures import docstring, function_name, own_keywords, shared_keywords, signature
from calve.dsl.values import located_param


def step_function(step_type: StepType) -> Callable[..., Step]:
    """Return the function that describes steps of a type, with its fields as keywords."""
    name, accepted = function_name(step_type), signature(step_type)
    own, shared = own_keywords(step_type), shared_keywords(step_type)

    def describe(*args: Any, **keywords: Any) -> Step:
        try:
            bound = accepted.bind(*args, **keywords)
        except TypeError as error:
            raise TypeError(f"{name}() {error}") from None
        bound.apply_defaults()
        given = bound.arguments
        step_id = given["step_id"]
        values = {field.name: _value(field, given[key], step_id) for key, field in own.items()}
        common = {of_step: given[key] for key, of_step in shared.items()}
        return _add(step_type, values, common | {"step_id": step_id, "more": given["more"]}, {*own, *shared})

    describe.__name__ = describe.__qualname__ = name
    describe.__module__ = __package__
    describe.__doc__ = docstring(step_type)
    describe.__signature__ = accepted  # type: ignore[attr-defined]
    return describe


def _add(step_type: StepType, values: Mapping[str, Any], common: Mapping[str, Any], keywords: set[str]) -> Step:
    params, members = _params(values, step_type.params), _params(values, step_type.fields)
    if step_type.config and members:
        params[step_type.config] = {"type": "MAP", "value": members}
    if step_type.is_leaf:
        return add_step("step", common, {"type": step_type.name}, params, keywords)
    return add_step(step_type.name, common, {item.name: values[item.name] for item in step_type.keys}, params, keywords)


def _params(values: Mapping[str, Any], fields: Sequence[Field]) -> dict[str, Any]:
    given = {item.name: values[item.name] for item in fields if values[item.name] is not None}
    return {name: _map(value) if name == "loop_params" else located_param(value) for name, value in given.items()}


def _map(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a MAP, even where all values are texts."""
    return {"type": "MAP", "value": {name: located_param(value) for name, value in values.items()}}


def _value(field: Field, given: Any, step_id: str) -> Any:
    """Return the value of a keyword."""
    if given is None and field.from_id:
        return step_id
    if field.is_step and isinstance(given, Step):
        return given.id
    if field.name == "subworkflow_version" and isinstance(given, int):
        return str(given)  # as the same in YAML
    return given
