"""Jobs of each kind, typed from the step types."""

from collections.abc import Iterable, Mapping

from calve.definition.model import FailureMode
from calve.definition.schema.shapes import (
    DURATION,
    NAME,
    ONE_OR_MORE,
    TEXT,
    TEXTS,
    any_case,
    described,
    ref,
    words,
)
from calve.definition.step_types import (
    IS_PLAIN,
    Schema,
    StepType,
    config_schema,
    key_schema,
    needs_schema,
    value_schema,
)

_FLAT = frozenset({"ICDC"})
"""Types whose fields may also be keys of the job."""


def keys_of_all() -> dict[str, Schema]:
    """Return the keys that every kind of job has."""
    depends_on = described("The jobs that must be complete before it.", ONE_OR_MORE)
    return {
        "id": described("The id of the job, unique in the workflow.", NAME),
        "name": described("A title for people.", NAME),
        "description": described("What it is for.", TEXT),
        "failure_mode": described("What its failure does to the other steps.", words(FailureMode)),
        "tags": ref("tags"),
        "timeout": described("How long it may run: seconds, or a text such as 2 hours.", DURATION),
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
        "type": described("What the job does.", {"anyOf": [{"enum": [*usable, *templates]}, TEXT]}),
        **{f"config.{item.name}": config_schema(item) for item in configured},
        "job": _job(types),
        "early_step": {"type": "object", "properties": keys_of_all() | {"type": ref("type")}, "required": ["type"]},
        "subworkflow": _of_kind(types["subworkflow"], _subworkflow(types["subworkflow"])),
        "foreach": _of_kind(types["foreach"], _foreach(types["foreach"]), "jobs"),
        "while": _of_kind(types["while"], _loop(), "jobs", "condition"),
        "template": _of_kind(types["template"], _template(types["template"], configured)),
    }


def _job(types: Mapping[str, StepType]) -> Schema:
    keys = {
        "type": ref("type"),
        "type_version": described("The version of a job template.", NAME),
        "retry_policy": ref("RetryPolicy"),
        "targets": described("The tables it writes, exactly once.", TEXTS),
        "params": described("Params of the job; they may also be keys of the job itself.", {"type": "object"}),
    }
    leaves = [item for item in types.values() if item.is_leaf and not item.refused]
    return {
        "type": "object",
        "properties": keys_of_all() | keys,
        "required": ["id", "type"],
        "allOf": [_if_type(item) for item in leaves if item.config or item.params],
    }


def _if_type(step_type: StepType) -> Schema:
    """Return the rules for jobs of one type, in any case of its name."""
    is_type = {"properties": {"type": {"pattern": f"^{any_case(step_type.name)}$"}}, "required": ["type"]}
    keys = {item.name: value_schema(item) for item in step_type.params}
    needs: Schema = {}
    if step_type.config:
        inside = needs_schema(step_type)
        config = ref(f"config.{step_type.name}")
        keys[step_type.config] = {"allOf": [config, inside]} if inside else config
        if inside and step_type.name not in _FLAT:
            given = [{"required": [step_type.config]}, {"required": ["params"]}, {"not": IS_PLAIN}]
            needs = {"anyOf": given}
    return {"if": is_type, "then": {"properties": keys, **needs}}


def _of_kind(step_type: StepType, keys: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "description": step_type.doc,
        "properties": keys_of_all() | declared_keys(step_type) | keys,
        "required": ["id", *required],
    }


def declared_keys(step_type: StepType) -> dict[str, Schema]:
    """Return the keys that a type declares in addition to those of all jobs."""
    return {item.name: key_schema(item) for item in step_type.keys}


def _subworkflow(step_type: StepType) -> dict[str, Schema]:
    params = {
        name: described(
            f"{item.doc} By default, the one with the job's id." if item.from_id else item.doc,
            NAME,
            **({"default": item.default} if item.default else {}),
        )
        for item in step_type.params
        for name in (item.keyword, item.name)
    }
    return params | {"params": {"type": "object"}}


def _loop() -> dict[str, Schema]:
    params = described("What the loop iterates over, by name.", {"type": "object"})
    return {"loop_params": params, "params": params, "jobs": ref("jobs"), "steps": ref("jobs"), "dag": ref("dag")}


def _foreach(step_type: StepType) -> dict[str, Schema]:
    bound: Schema = {"type": ["integer", "string"]}
    bounds: Schema = {
        "type": "object",
        "properties": {"from": bound, "to": bound, "increment": bound},
        "required": ["to"],
        "additionalProperties": False,
    }
    ranged = {"anyOf": [bounds, {"type": "array", "items": bound, "minItems": 2, "maxItems": 3}]}
    return _loop() | {
        "job_concurrency": declared_keys(step_type)["concurrency"],
        "ranges": described(
            "Whole numbers to iterate over; to is exclusive.", {"type": "object", "additionalProperties": ranged}
        ),
    }


def _template(step_type: StepType, configured: Iterable[StepType]) -> dict[str, Schema]:
    configs = {str(item.config): ref(f"config.{item.name}") for item in configured}
    named, version = (described(item.doc, NAME if item.name.endswith("version") else TEXT) for item in step_type.keys)
    return configs | {
        "type": named,
        "sub_type": named,
        "type_version": version,
        "sub_type_version": version,
        "params": {"type": "object"},
    }
