"""The schema of a whole document: the YAML of the talk, the early form with flat ``steps``, or Maestro's requests."""

from collections.abc import Iterable, Mapping

from pydantic.json_schema import models_json_schema

from calve.definition.model import Alerting, GitInfo, Model, RetryPolicy
from calve.definition.schema.jobs import jobs
from calve.definition.schema.shapes import ref
from calve.definition.schema.triggers import triggers
from calve.definition.schema.workflows import around_workflow, maestro_workflows, ordering, workflows
from calve.definition.step_types import Schema, StepType, load_step_types

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MODELS: tuple[type[Model], ...] = (RetryPolicy, Alerting, GitInfo)


def schema(types: Mapping[str, StepType] | None = None, templates: Iterable[str] = ()) -> Schema:
    """Return the JSON Schema of a definition.

    Args:
        types: the step types to complete and check; those of installed packages too, unless given.
        templates: names of job templates, which may be the type of a job too.
    """
    return {
        "$schema": DIALECT,
        "title": "A workflow of calve",
        "type": "object",
        "anyOf": [{"required": [key]} for key in ("Workflow", "workflow", "jobs", "steps")],
        "if": {"anyOf": [{"required": ["Workflow"]}, {"required": ["workflow"]}]},
        "then": around_workflow(),
        "else": ref("body"),
        "$defs": {
            **workflows(),
            **ordering(),
            **triggers(),
            **jobs(types or load_step_types(), tuple(templates)),
            **maestro_workflows(),
            **_models(),
        },
    }


def _models() -> dict[str, Schema]:
    """Return the parts that are written as the models have them."""
    _, found = models_json_schema([(model, "validation") for model in _MODELS], ref_template="#/$defs/{model}")
    return dict(found["$defs"])
