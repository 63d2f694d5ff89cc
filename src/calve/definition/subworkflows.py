"""Which workflows a workflow starts, as far as its definition says it. Pure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from calve.definition.model.steps import SubworkflowStep
from calve.definition.model.workflow import Workflow

FindWorkflow = Callable[[str, str], Workflow | None]
"""Gives a workflow in a version (a number, active, latest or default); None if there is none."""


@dataclass(frozen=True, slots=True)
class Subworkflow:
    """What a subworkflow step starts; an id or a version that only a run can tell is None."""

    workflow_id: str | None
    version: str | None
    is_awaited: bool


def subworkflow_of(step: SubworkflowStep) -> Subworkflow:
    """Return what a step starts."""
    workflow_id, version = _literal(step, "subworkflow_id"), _literal(step, "subworkflow_version")
    if "subworkflow_version" not in step.params:
        version = "active"
    return Subworkflow(workflow_id, version, step.sync is not False)


def _literal(step: SubworkflowStep, name: str) -> str | None:
    param = step.params.get(name)
    value = None if param is None or param.expression is not None else param.value
    return str(value) if isinstance(value, str | int) and "$" not in str(value) else None


def subworkflows(workflow: Workflow) -> Iterator[Subworkflow]:
    """Yield what the steps of a workflow start, those inside its loops too."""
    return (subworkflow_of(step) for step in workflow.all_steps() if isinstance(step, SubworkflowStep))
