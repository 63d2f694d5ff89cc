"""The JSON Schema of what users write: editors complete and check definitions with it.

It knows the YAML of the talk (``Workflow`` with ``jobs``), the early form with flat ``steps``, and Maestro's requests.
A key of a workflow or job that means nothing else is a param, so the schema lets it pass: ``calve validate`` sees more.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from pydantic.json_schema import models_json_schema

from calve.definition.model.alerting import Alerting
from calve.definition.model.base import Model
from calve.definition.model.params import InternalMode, ParamMode, ParamType
from calve.definition.model.retries import RetryPolicy
from calve.definition.model.steps import FOREACH_CONCURRENCY, FailureMode
from calve.definition.model.workflow import CONCURRENCY, Criticality, GitInfo, Rule
from calve.definition.step_types import STEP_TYPES, StepType
from calve.definition.step_types.json_schema import IS_PLAIN, Schema, config_schema, needs_schema, value_schema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MODELS: tuple[type[Model], ...] = (RetryPolicy, Alerting, GitInfo)
_TEXT: Schema = {"type": "string"}
_TRUTH: Schema = {"type": "boolean"}
_NAME: Schema = {"type": ["string", "number"]}
_DURATION: Schema = {"type": ["integer", "string"]}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_ONE_OR_MORE: Schema = {"anyOf": [_TEXT, _TEXTS]}
_ANY: Schema = {}


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
        "then": _outer(),
        "else": _ref("body"),
        "$defs": _shared() | _kinds(types, tuple(templates)) | _maestro() | _models(),
    }


def _outer() -> Schema:
    """Return what stands around a workflow."""
    keys = {
        "Workflow": _ref("body"),
        "Trigger": _ref("trigger"),
        "Triggers": _ref("trigger"),
        "Description": _said("What the workflow is for; Markdown.", _TEXT),
        "properties": _ref("properties"),
        "is_active": _said("Whether the pushed version becomes the active one.", _TRUTH, default=True),
        "git_info": _ref("GitInfo"),
        "extra_info": {"type": "object"},
    }
    spelt = keys | {key.lower(): item for key, item in keys.items()}
    # Maestro keeps what it does not know beside a workflow; its YAML has nothing else there.
    return {
        "properties": spelt,
        "if": {"properties": {key: {"required": ["jobs"]} for key in ("Workflow", "workflow")}},
        "then": {"propertyNames": {"enum": list(spelt)}},
    }


def _shared() -> dict[str, Schema]:
    return {
        "body": {
            "type": "object",
            "if": {"required": ["steps"], "not": {"required": ["jobs"]}},
            "then": {
                "if": _has_wrapped("step", "subworkflow", "foreach", "while", "template"),
                "then": _ref("maestro_workflow"),
                "else": {"if": _has_wrapped("job"), "then": _ref("stepped_workflow"), "else": _ref("early_workflow")},
            },
            "else": _ref("workflow"),
        },
        "workflow": {
            "type": "object",
            "properties": _workflow_keys() | {"jobs": _ref("jobs"), "dag": _ref("dag")},
            "required": ["id", "jobs"],
        },
        "stepped_workflow": {
            "type": "object",
            "properties": _workflow_keys() | {"steps": _ref("jobs"), "dag": _ref("dag")},
            "required": ["id"],
        },
        "early_workflow": {
            "type": "object",
            "properties": _workflow_keys() | {"steps": {"type": "array", "items": _ref("early_step"), "minItems": 1}},
            "required": ["steps"],
        },
        "early_step": {"type": "object", "properties": _keys_of_all() | {"type": _ref("type")}, "required": ["type"]},
        "properties": {"type": "object", "properties": _properties(), "additionalProperties": False},
        "tags": {
            "type": "array",
            "items": {"anyOf": [_TEXT, {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}]},
        },
        "run_strategy": {
            "description": "What happens when an instance starts while others run.",
            "anyOf": [
                _words(Rule),
                {"type": "integer", "minimum": 1, "maximum": CONCURRENCY},
                {
                    "type": "object",
                    "properties": {"rule": _words(Rule), "workflow_concurrency": _count(CONCURRENCY)},
                    "required": ["rule"],
                    "additionalProperties": False,
                },
            ],
        },
        "dag": _dag(),
        "chain": _said("Jobs that follow one another: a -> b -> c.", {"type": "string", "pattern": "->"}),
        "transition": _transition(),
        "trigger": _trigger(),
        "signal_dependencies": _said("Signals to wait for before it starts.", _signals()),
        "signal_outputs": _said("Signals to send when it has succeeded.", _signals()),
        "time_trigger": _time_trigger(),
        "signal_trigger": _signal_trigger(),
        "incremental_trigger": _incremental_trigger(),
    }


def _workflow_keys() -> dict[str, Schema]:
    return _properties() | {
        "id": _said("Names the workflow among all others.", _NAME),
        "name": _said("A title for people.", _NAME),
        "description": _said("What the workflow is for; Markdown.", _TEXT),
        "tags": _ref("tags"),
        "timeout": _said("How long an instance may run: seconds, or a text such as 2 hours.", _DURATION),
        "criticality": _said("How much depends on it.", _words(Criticality)),
        "instance_step_concurrency": _said("How many steps of one instance may run at once.", _count(CONCURRENCY - 1)),
        "workflow_concurrency": _said("How many instances may run at once, if parallel.", _count(CONCURRENCY)),
        "is_active": _said("Whether the pushed version becomes the active one.", _TRUTH, default=True),
        "trigger": _ref("trigger"),
        "triggers": _ref("trigger"),
        **{f"{kind}_triggers": {"type": "array", "items": _ref(f"{kind}_trigger")} for kind in _TRIGGERS},
    }


_TRIGGERS = ("time", "signal", "incremental")


def _properties() -> dict[str, Schema]:
    disabled = {f"{kind}_trigger_disabled": _TRUTH for kind in _TRIGGERS}
    return {
        "owner": _said("Who looks after the workflow.", {"anyOf": [_TEXT, {"type": "object", "required": ["name"]}]}),
        "run_strategy": _ref("run_strategy"),
        "step_concurrency": _said("How many steps of the workflow may run at once.", _count(CONCURRENCY), default=20),
        "alerting": _ref("Alerting"),
        "alerting_disabled": _TRUTH,
        **disabled,
        "access_control": {"type": "object"},
        "description": _TEXT,
        "tags": _ref("tags"),
    }


def _keys_of_all() -> dict[str, Schema]:
    """Return the keys that every kind of job has."""
    depends_on = _said("The jobs that must be complete before it.", _ONE_OR_MORE)
    return {
        "id": _said("Names the job within the workflow.", _NAME),
        "name": _said("A title for people.", _NAME),
        "description": _said("What it is for.", _TEXT),
        "failure_mode": _said("What its failure does to the others.", _words(FailureMode)),
        "tags": _ref("tags"),
        "timeout": _said("How long it may run: seconds, or a text such as 2 hours.", _DURATION),
        "transition": _ref("transition"),
        "depends_on": depends_on,
        "dependsOn": depends_on,
        "signal_dependencies": _ref("signal_dependencies"),
        "signal_outputs": _ref("signal_outputs"),
    }


def _kinds(types: Mapping[str, StepType], templates: tuple[str, ...]) -> dict[str, Schema]:
    """Return the jobs of each kind, and the config map of each type."""
    configured = [item for item in types.values() if item.config]
    kinds = {"job": "job", **{item.name: item.name for item in types.values() if not item.is_leaf}}
    usable = [item.name for item in types.values() if item.is_leaf and not item.refused]
    wrapped = {kind: _ref(kind) for kind in kinds}
    return {
        "jobs": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "properties": wrapped, "additionalProperties": False, "minProperties": 1},
        },
        "type": _said("What the job does.", {"anyOf": [{"enum": [*usable, *templates]}, _TEXT]}),
        **{f"config.{item.name}": config_schema(item) for item in configured},
        "job": _job(types),
        "subworkflow": _of_kind(types["subworkflow"], _subworkflow()),
        "foreach": _of_kind(types["foreach"], _foreach(), "id", "jobs"),
        "while": _of_kind(
            types["while"], _loop() | {"condition": _said("Runs while it holds.", _TEXT)}, "id", "jobs", "condition"
        ),
        "template": _of_kind(types["template"], _template(configured), "id"),
    }


def _job(types: Mapping[str, StepType]) -> Schema:
    keys = {
        "type": _ref("type"),
        "type_version": _said("The version of a job template.", _NAME),
        "retry_policy": _ref("RetryPolicy"),
        "targets": _said("The tables it writes, exactly once.", _TEXTS),
        "params": _said("Params of the job, which may also stand beside its other keys.", {"type": "object"}),
    }
    leaves = [item for item in types.values() if item.is_leaf and not item.refused]
    return {
        "type": "object",
        "properties": _keys_of_all() | keys,
        "required": ["id", "type"],
        "allOf": [_if_type(item) for item in leaves if item.config or item.params],
    }


def _if_type(step_type: StepType) -> Schema:
    """Return what holds of jobs of one type, whatever the case of its name."""
    is_type = {"properties": {"type": {"pattern": f"^{_any_case(step_type.name)}$"}}, "required": ["type"]}
    keys = {item.name: value_schema(item) for item in step_type.params}
    needs: Schema = {}
    if step_type.config:
        inside = needs_schema(step_type)
        config = _ref(f"config.{step_type.name}")
        keys[step_type.config] = {"allOf": [config, inside]} if inside else config
        if inside and step_type.name not in _FLAT:
            said = [{"required": [step_type.config]}, {"required": ["params"]}, {"not": IS_PLAIN}]
            needs = {"anyOf": said}
    return {"if": is_type, "then": {"properties": keys, **needs}}


_FLAT = frozenset({"ICDC"})
"""Types whose fields may stand on the job itself."""


def _of_kind(step_type: StepType, keys: dict[str, Schema], *required: str) -> Schema:
    return {
        "type": "object",
        "description": step_type.doc,
        "properties": _keys_of_all() | keys,
        "required": list(required or ("id",)),
    }


def _subworkflow() -> dict[str, Schema]:
    workflow = _said("The workflow to run; the one of the job's own id, if not given.", _NAME)
    version = _said("active, latest, default, or a number.", _NAME, default="active")
    return {
        "workflow_id": workflow,
        "subworkflow_id": workflow,
        "version": version,
        "subworkflow_version": version,
        "sync": _said("Wait until it has ended.", _TRUTH, default=True),
        "explicit_params": _said("Pass down only the job's own params.", _TRUTH, default=False),
        "params": {"type": "object"},
    }


def _loop() -> dict[str, Schema]:
    params = _said("What the loop goes through, by name.", {"type": "object"})
    return {"loop_params": params, "params": params, "jobs": _ref("jobs"), "steps": _ref("jobs"), "dag": _ref("dag")}


def _foreach() -> dict[str, Schema]:
    concurrency = _said("How many iterations may run at once.", _count(FOREACH_CONCURRENCY))
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
        "strict_ordering": _said("Start an iteration only when those before it succeeded.", _TRUTH, default=False),
        "ranges": _said(
            "Whole numbers to go through; to is exclusive.", {"type": "object", "additionalProperties": ranged}
        ),
    }


def _template(configured: Iterable[StepType]) -> dict[str, Schema]:
    named = _said("The workflow template.", _TEXT)
    configs = {str(item.config): _ref(f"config.{item.name}") for item in configured}
    return configs | {
        "type": named,
        "sub_type": named,
        "type_version": _NAME,
        "sub_type_version": _NAME,
        "params": {"type": "object"},
    }


def _dag() -> Schema:
    order = "|".join(_any_case(word) for word in ("sequential", "parallel"))
    by_job = {"type": "object", "additionalProperties": _ref("transition")}
    return {
        "description": "How the jobs follow one another: sequential, parallel, chains, or a map of jobs.",
        "anyOf": [
            {"enum": ["sequential", "parallel"]},
            {"type": "string", "pattern": rf"^\s*({order})\s*$"},
            _ref("chain"),
            {"type": "array", "items": {"anyOf": [_TEXT, by_job]}},
            by_job,
        ],
    }


def _transition() -> Schema:
    branches = {
        "type": "object",
        "patternProperties": {
            rf"^\s*{_any_case('IF')}\s": _ONE_OR_MORE,
            rf"^\s*{_any_case('OTHERWISE')}\s*$": _ONE_OR_MORE,
        },
        "additionalProperties": False,
    }
    one = {"anyOf": [_TEXT, {"type": "null"}, branches]}
    return {
        "description": "What comes next: a job, IF <condition> THEN a job, OTHERWISE a job.",
        "anyOf": [*one["anyOf"], {"type": "array", "items": one}],
    }


def _trigger() -> Schema:
    keys = {
        "cron": _said("Five fields of Unix, six or seven of Quartz, or @daily and its like.", _TEXT),
        "interval": _said("Again after so long: seconds, or a text such as 15 minutes.", _DURATION),
        "timezone": _said("The time zone of cron.", _TEXT, default="UTC"),
        "fuzzy_max_delay": _said("Start up to so much later, at random.", _DURATION),
        "signal": _ref("signal_trigger"),
        "signals": _ref("signal_trigger"),
        "incremental": _ref("incremental_trigger"),
    }
    spelt = keys | {key.capitalize(): item for key, item in keys.items()}
    one = {"anyOf": [_TEXT, {"type": "object", "properties": spelt, "additionalProperties": False, "minProperties": 1}]}
    return {
        "description": "What starts the workflow: time, signals, or a change of its source tables.",
        "anyOf": [*one["anyOf"], {"type": "array", "items": one}],
    }


def _time_trigger() -> Schema:
    keys = {"cron": _TEXT, "expression": _TEXT, "interval": _DURATION, "timezone": _TEXT, "fuzzy_max_delay": _DURATION}
    kind = {"enum": ["CRON", "PREDEFINED", "INTERVAL", "cron", "predefined", "interval"]}
    return {
        "type": "object",
        "properties": {"type": kind, **keys},
        "oneOf": [{"required": [key]} for key in ("cron", "expression", "interval")],
        "additionalProperties": False,
    }


def _signal_trigger() -> Schema:
    return {
        "description": "Starts when all its signals have come, with equal join keys.",
        "anyOf": [_TEXT, _TEXTS, {"type": "object"}],
    }


def _incremental_trigger() -> Schema:
    keys = {
        "source_tables": _said("The tables to watch.", _ONE_OR_MORE),
        "data_operations": {"anyOf": [_TEXT, _TEXTS]},
        "min_files": _count(),
        "min_bytes": _count(),
        "max_delay": _DURATION,
        "debounce": _DURATION,
    }
    full = {"type": "object", "properties": keys, "required": ["source_tables"], "additionalProperties": False}
    return {
        "description": "Starts when its source tables hold changes that are not committed.",
        "anyOf": [_TEXT, _TEXTS, full],
    }


def _signals() -> Schema:
    one = {"anyOf": [_TEXT, {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}]}
    return {"anyOf": [_TEXT, {"type": "array", "items": one}, {"type": "object", "required": ["definitions"]}]}


def _maestro() -> dict[str, Schema]:
    """Return Maestro's requests: steps in wrappers, params in full."""
    params = {"type": "object", "additionalProperties": _ref("maestro_param")}
    common = {key: item for key, item in _keys_of_all().items() if key not in {"transition", "depends_on", "dependsOn"}}
    common |= {"transition": _ref("maestro_transition"), "params": params}
    inner = {"steps": _ref("maestro_steps")}
    typed = {"type": _ref("type"), "sub_type": _TEXT, "sub_type_version": _TEXT}
    foreach = inner | {"concurrency": _count(FOREACH_CONCURRENCY), "strict_ordering": _TRUTH}
    kinds = {
        "step": _closed(common | typed | {"retry_policy": _ref("RetryPolicy"), "targets": _TEXTS}, "id", "type"),
        "subworkflow": _closed(common | {"sync": _TRUTH, "explicit_params": _TRUTH}, "id"),
        "foreach": _closed(common | foreach, "id", "steps"),
        "while": _closed(common | inner | {"condition": _TEXT}, "id", "steps", "condition"),
        "template": _closed(common | {"sub_type": _TEXT, "sub_type_version": _TEXT}, "id", "sub_type"),
    }
    own = {key: item for key, item in _workflow_keys().items() if key not in {"trigger", "triggers"}}
    return {
        "maestro_workflow": _closed(own | inner | {"params": params}, "id", "steps"),
        "maestro_steps": {
            "type": "array",
            "minItems": 1,
            "items": _closed(kinds) | {"minProperties": 1, "maxProperties": 1},
        },
        "maestro_transition": _closed(
            {"predecessors": _TEXTS, "successors": {"type": "object", "additionalProperties": _TEXT}}
        ),
        "maestro_param": _closed(
            {
                "type": _words(ParamType),
                "value": _ANY,
                "expression": _TEXT,
                "mode": _words(ParamMode),
                "internal_mode": _words(InternalMode),
                "tags": _ref("tags"),
                "validator": _ANY,
                "meta": {"type": "object"},
            },
            "type",
        )
        | {"not": {"required": ["value", "expression"]}},
    }


def _has_wrapped(*kinds: str) -> Schema:
    """Return what holds of a workflow that has a step in one of these wrappers."""
    wrapped = {"type": "object", "maxProperties": 1, "minProperties": 1, "propertyNames": {"enum": list(kinds)}}
    return {"properties": {"steps": {"contains": wrapped}}}


def _models() -> dict[str, Schema]:
    """Return the parts that are written as the models have them."""
    _, found = models_json_schema([(model, "validation") for model in _MODELS], ref_template="#/$defs/{model}")
    return dict(found["$defs"])


def _closed(properties: dict[str, Schema], *required: str) -> Schema:
    closed: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**closed, "required": list(required)} if required else closed


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _said(description: str, shape: Schema, **more: Any) -> Schema:
    return {**shape, "description": description, **more}


def _count(most: int | None = None) -> Schema:
    return {"type": "integer", "minimum": 1, **({"maximum": most} if most else {})}


def _words(words: type[StrEnum]) -> Schema:
    """Return the words of a closed set, in upper and lower case."""
    return {"enum": [spelt for word in words for spelt in dict.fromkeys((word.value, word.value.lower()))]}


def _any_case(word: str) -> str:
    """Return a pattern for a word in any case; JSON Schema has no flag for that."""
    return "".join(f"[{letter.lower()}{letter.upper()}]" for letter in word)
