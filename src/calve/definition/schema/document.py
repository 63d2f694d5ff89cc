"""The schema of a whole document."""

from collections.abc import Iterable, Mapping

from pydantic.json_schema import models_json_schema

from calve.definition.model.alerting import Alerting
from calve.definition.model.base import Model
from calve.definition.model.retries import RetryPolicy
from calve.definition.model.workflow import GitInfo
from calve.definition.schema.jobs import jobs
from calve.definition.schema.ordering import ordering
from calve.definition.schema.requests import requests
from calve.definition.schema.shapes import ref
from calve.definition.schema.starting import starting
from calve.definition.schema.workflows import around_workflow, workflows
from calve.definition.step_types import STEP_TYPES, StepType
from calve.definition.step_types.json_schema import Schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MODELS: tuple[type[Model], ...] = (RetryPolicy, Alerting, GitInfo)


def schema(types: Mapping[str, StepType] = STEP_TYPES, templates: Iterable[str] = ()) -> Schema:
    """Return the JSON Schema of a definition.

    Args:
        types: the step types to complete and check.
        templates: names of job templates, which may stand as the type of a job too.
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
            **starting(),
            **jobs(types, tuple(templates)),
            **requests(),
            **_models(),
        },
    }


def _models() -> dict[str, Schema]:
    """Return the parts that are written as the models have them."""
    _, found = models_json_schema([(model, "validation") for model in _MODELS], ref_template="#/$defs/{model}")
    return dict(found["$defs"])
