"""Jobs of each kind, typed from the step types."""

from collections.abc import Iterable, Mapping

from calve.definition.model.steps import FOREACH_CONCURRENCY, FailureMode
from calve.definition.schema.shapes import (
    DURATION,
    NAME,
    ONE_OR_MORE,
    TEXT,
    TEXTS,
    TRUTH,
    any_case,
    count,
    ref,
    said,
    words,
)
from calve.definition.step_types import StepType
from calve.definition.step_types.json_schema import IS_PLAIN, Schema, config_schema, needs_schema, value_schema

_FLAT = frozenset({"ICDC"})
"""Types whose fields may stand on the job itself."""


def keys_of_all() -> dict[str, Schema]:
    """Return the keys that every kind of job has."""
    depends_on = said("The jobs that must be complete before it.", ONE_OR_MORE)
    return {
        "id": said("Names the job within the workflow.", NAME),
        "name": said("A title for people.", NAME),
        "description": said("What it is for.", TEXT),
        "failure_mode": said("What its failure does to the others.", words(FailureMode)),
        "tags": ref("tags"),
        "timeout": said("How long it may run: seconds, or a text such as 2 hours.", DURATION),
        "transition": ref("transition"),
        "depends_on": depends_on,
        "dependsOn": depends_on,
        "signal_dependencies": ref("signal_dependencies"),
        "signal_outputs": ref("signal_outputs"),
    }


def jobs(types: Mapping[str, StepType], templates: tuple[str, ...]) -> dict[str, Schema]:
    """Return the jobs of each kind, and the config map of each type."""
    configured = [item for item in types.values() if item.config]
    kinds = {"job": "job", **{item.name: item.name for item in types.values() if not item.is_leaf}}
    usable = [item.name for item in types.values() if item.is_leaf and not item.refused]
    wrapped = {kind: ref(kind) for kind in kinds}
    return {
        "jobs": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "properties": wrapped, "additionalProperties": False, "minProperties": 1},
        },
        "type": said("What the job does.", {"anyOf": [{"enum": [*usable, *templates]}, TEXT]}),
        **{f"config.{item.name}": config_schema(item) for item in configured},
        "job": _job(types),
        "early_step": {"type": "object", "properties": keys_of_all() | {"type": ref("type")}, "required": ["type"]},
        "subworkflow": _of_kind(types["subworkflow"], _subworkflow()),
        "foreach": _of_kind(types["foreach"], _foreach(), "id", "jobs"),
        "while": _of_kind(
            types["while"], _loop() | {"condition": said("Runs while it holds.", TEXT)}, "id", "jobs", "condition"
        ),
        "template": _of_kind(types["template"], _template(configured), "id"),
    }


def _job(types: Mapping[str, StepType]) -> Schema:
    keys = {
        "type": ref("type"),
        "type_version": said("The version of a job template.", NAME),
        "retry_policy": ref("RetryPolicy"),
        "targets": said("The tables it writes, exactly once.", TEXTS),
        "params": said("Params of the job, which may also stand beside its other keys.", {"type": "object"}),
    }
    leaves = [item for item in types.values() if item.is_leaf and not item.refused]
    return {
        "type": "object",
        "properties": keys_of_all() | keys,
        "required": ["id", "type"],
        "allOf": [_if_type(item) for item in leaves if item.config or item.params],
    }


def _if_type(step_type: StepType) -> Schema:
    """Return what holds of jobs of one type, whatever the case of its name."""
    is_type = {"properties": {"type": {"pattern": f"^{any_case(step_type.name)}$"}}, "required": ["type"]}
    keys = {item.name: value_schema(item) for item in step_type.params}
    needs: Schema = {}
    if step_type.config:
        inside = needs_schema(step_type)
        config = ref(f"config.{step_type.name}")
        keys[step_type.config] = {"allOf": [config, inside]} if inside else config
        if inside and step_type.name not in _FLAT:
            said = [{"required": [step_type.config]}, {"required": ["params"]}, {"not": IS_PLAIN}]
            needs = {"anyOf": said}
    return {"if": is_type, "then": {"properties": keys, **needs}}


def _of_kind(step_type: StepType, keys: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "description": step_type.doc,
        "properties": keys_of_all() | keys,
        "required": list(required or ("id",)),
    }


def _subworkflow() -> dict[str, Schema]:
    workflow = said("The workflow to run; the one of the job's own id, if not given.", NAME)
    version = said("active, latest, default, or a number.", NAME, default="active")
    return {
        "workflow_id": workflow,
        "subworkflow_id": workflow,
        "version": version,
        "subworkflow_version": version,
        "sync": said("Wait until it has ended.", TRUTH, default=True),
        "explicit_params": said("Pass down only the job's own params.", TRUTH, default=False),
        "params": {"type": "object"},
    }


def _loop() -> dict[str, Schema]:
    params = said("What the loop goes through, by name.", {"type": "object"})
    return {"loop_params": params, "params": params, "jobs": ref("jobs"), "steps": ref("jobs"), "dag": ref("dag")}


def _foreach() -> dict[str, Schema]:
    concurrency = said("How many iterations may run at once.", count(FOREACH_CONCURRENCY))
    bound: Schema = {"type": ["integer", "string"]}
    bounds: Schema = {
        "type": "object",
        "properties": {"from": bound, "to": bound, "increment": bound},
        "required": ["to"],
        "additionalProperties": False,
    }
    ranged = {"anyOf": [bounds, {"type": "array", "items": bound, "minItems": 2, "maxItems": 3}]}
    return _loop() | {
        "concurrency": concurrency,
        "job_concurrency": concurrency,
        "strict_ordering": said(
            "Let no iteration get further ahead of the oldest one under way than concurrency says.",
            TRUTH,
            default=False,
        ),
        "ranges": said(
            "Whole numbers to go through; to is exclusive.", {"type": "object", "additionalProperties": ranged}
        ),
    }


def _template(configured: Iterable[StepType]) -> dict[str, Schema]:
    named = said("The workflow template.", TEXT)
    configs = {str(item.config): ref(f"config.{item.name}") for item in configured}
    return configs | {
        "type": named,
        "sub_type": named,
        "type_version": NAME,
        "sub_type_version": NAME,
        "params": {"type": "object"},
    }
