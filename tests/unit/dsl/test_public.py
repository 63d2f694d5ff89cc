"""What ``calve.dsl`` offers is complete, documented, and the same as the declared step types."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from calve import dsl
from calve.definition.model import (
    Definition,
    ForeachStep,
    Model,
    Properties,
    SubworkflowStep,
    TemplateStep,
    TypedStep,
    WhileStep,
    Workflow as WorkflowModel,
)
from calve.definition.step_types import STEP_TYPES, StepType
from calve.dsl.any_step import SHARED

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(dsl, name) for name in dsl.__all__ if inspect.isfunction(getattr(dsl, name))
}
OF_TYPE = {
    "NoOp": "noop",
    "IpCapture": "ip_capture",
    "IpCommit": "ip_commit",
    "while": "while_",
    **{name: name.lower() for name in STEP_TYPES if name not in {"NoOp", "IpCapture", "IpCommit", "while"}},
}
"""The function of each step type."""
USABLE = [step_type for step_type in STEP_TYPES.values() if not step_type.refused]
RENAMED = {"subworkflow_id": "workflow_id", "subworkflow_version": "version"}
MODELS: dict[str, type[Model]] = {
    "subworkflow": SubworkflowStep,
    "foreach": ForeachStep,
    "while": WhileStep,
    "template": TemplateStep,
}
MADE = {"id", "type", "transition", "steps", "params", "sub_type", "sub_type_version"}
"""Fields of a step that come from elsewhere than a keyword that all have."""


def _keywords(function: Callable[..., Any]) -> set[str]:
    found = inspect.signature(function).parameters.values()
    return {parameter.name for parameter in found if parameter.kind is parameter.KEYWORD_ONLY}


def test_exported_names_are_the_public_ones() -> None:
    """There is nothing beside ``__all__`` but modules."""
    public = {name: item for name, item in vars(dsl).items() if not name.startswith("_")}
    assert sorted(dsl.__all__) == sorted(name for name, item in public.items() if not isinstance(item, ModuleType))


@pytest.mark.parametrize("name", [*FUNCTIONS, "Workflow"])
def test_every_function_tells_what_its_arguments_are(name: str) -> None:
    """The docstring has every argument, but for the keywords that all steps share: these are told once."""
    function = getattr(dsl, name)
    text = inspect.getdoc(function) or ""
    assert "Args:" in text
    shared = {*SHARED} if "see ``step``" in text else set()
    own = {item for item in inspect.signature(function).parameters if item not in {*shared, "more"}}
    assert [item for item in own if f"\n    {item}: " not in text and f"\n    *{item}: " not in text] == []


@pytest.mark.parametrize("step_type", USABLE, ids=lambda item: item.name)
def test_every_declared_field_is_a_keyword(step_type: StepType) -> None:
    """And every keyword that is not one of all steps is declared."""
    function = FUNCTIONS[OF_TYPE[step_type.name]]
    declared = {RENAMED.get(item.name, item.name) for item in (*step_type.fields, *step_type.params, *step_type.keys)}
    model = MODELS.get(step_type.name, TypedStep)
    common = ({*model.model_fields} - MADE) | {"params"}
    if step_type.name == "template":
        common |= {"sub_type", "sub_type_version"}
    if "timeout" in declared:
        common |= {"step_timeout"}
    assert _keywords(function) == declared | common


@pytest.mark.parametrize("step_type", USABLE, ids=lambda item: item.name)
def test_what_is_required_is_required_in_python(step_type: StepType) -> None:
    """A keyword has no default exactly where the declared field must be given."""
    parameters = inspect.signature(FUNCTIONS[OF_TYPE[step_type.name]]).parameters
    for item in (*step_type.fields, *step_type.params):
        is_required = parameters[RENAMED.get(item.name, item.name)].default is inspect.Parameter.empty
        # The id of the step is a default for the id of the subworkflow.
        assert is_required == (item.required and item.name != "subworkflow_id"), item.name


def test_step_takes_what_any_step_may_say() -> None:
    """All fields of a typed step."""
    assert _keywords(dsl.step) == ({*TypedStep.model_fields} - {"id", "type", "transition"})


def test_a_workflow_takes_all_fields_of_its_models() -> None:
    """Fields that both a version and the properties have are told apart by a prefix."""
    triggers = {"time_triggers", "signal_triggers", "incremental_triggers"}
    version = {*WorkflowModel.model_fields} - {"id", "steps"} - triggers
    both = version & {*Properties.model_fields}
    properties = {f"properties_{name}" if name in both else name for name in Properties.model_fields}
    beside = {*Definition.model_fields} - {"workflow", "properties"}
    assert _keywords(dsl.Workflow) == version | properties | beside | {"triggers"}
