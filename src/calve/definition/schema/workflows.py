"""A workflow and the order of its jobs, in YAML and as Maestro's API takes it."""

from calve.definition.model import (
    CONCURRENCY,
    Criticality,
    InternalMode,
    ParamMode,
    ParamType,
    Rule,
)
from calve.definition.schema.jobs import declared_keys, keys_of_all
from calve.definition.schema.shapes import (
    ANYTHING,
    DURATION,
    NAME,
    ONE_OR_MORE,
    TEXT,
    TEXTS,
    TRUTH,
    any_case,
    closed,
    count,
    described,
    ref,
    words,
)
from calve.definition.step_types import STEP_TYPES, Schema

_TRIGGERS = ("time", "signal", "incremental")


def around_workflow() -> Schema:
    """Return the rules for a document with a workflow in it."""
    keys = {
        "Workflow": ref("body"),
        "Trigger": ref("trigger"),
        "Triggers": ref("trigger"),
        "Description": described("What the workflow is for; Markdown.", TEXT),
        "properties": ref("properties"),
        "is_active": described("Whether the pushed version becomes the active one.", TRUTH, default=True),
        "git_info": ref("GitInfo"),
        "extra_info": {"type": "object"},
    }
    spelt = keys | {key.lower(): item for key, item in keys.items()}
    # Maestro's API keeps unknown keys beside a workflow; its YAML does not have them.
    return {
        "properties": spelt,
        "if": {"properties": {key: {"required": ["jobs"]} for key in ("Workflow", "workflow")}},
        "then": {"propertyNames": {"enum": list(spelt)}},
    }


def workflows() -> dict[str, Schema]:
    """Return the forms of a workflow, and the parts they share, by name."""
    return {
        "body": {
            "type": "object",
            "if": {"required": ["steps"], "not": {"required": ["jobs"]}},
            "then": {
                "if": _has_wrapped("step", "subworkflow", "foreach", "while", "template"),
                "then": ref("maestro_workflow"),
                "else": {"if": _has_wrapped("job"), "then": ref("stepped_workflow"), "else": ref("early_workflow")},
            },
            "else": ref("workflow"),
        },
        "workflow": {
            "type": "object",
            "properties": workflow_keys() | {"jobs": ref("jobs"), "dag": ref("dag")},
            "required": ["id", "jobs"],
        },
        "stepped_workflow": {
            "type": "object",
            "properties": workflow_keys() | {"steps": ref("jobs"), "dag": ref("dag")},
            "required": ["id"],
        },
        "early_workflow": {
            "type": "object",
            "properties": workflow_keys() | {"steps": {"type": "array", "items": ref("early_step"), "minItems": 1}},
            "required": ["steps"],
        },
        "properties": {"type": "object", "properties": _properties(), "additionalProperties": False},
        "tags": {
            "type": "array",
            "items": {"anyOf": [TEXT, {"type": "object", "required": ["name"], "properties": {"name": TEXT}}]},
        },
        "run_strategy": {
            "description": "What happens when an instance starts while others run.",
            "anyOf": [
                words(Rule),
                {"type": "integer", "minimum": 1, "maximum": CONCURRENCY},
                {
                    "type": "object",
                    "properties": {"rule": words(Rule), "workflow_concurrency": count(CONCURRENCY)},
                    "required": ["rule"],
                    "additionalProperties": False,
                },
            ],
        },
    }


def workflow_keys() -> dict[str, Schema]:
    """Return the keys of a workflow except its steps."""
    return _properties() | {
        "id": described("The id of the workflow, unique among all workflows.", NAME),
        "name": described("A title for people.", NAME),
        "description": described("What the workflow is for; Markdown.", TEXT),
        "tags": ref("tags"),
        "timeout": described("How long an instance may run: seconds, or a text such as 2 hours.", DURATION),
        "criticality": described("How much depends on it.", words(Criticality)),
        "instance_step_concurrency": described(
            "How many steps of an instance may run at once.", count(CONCURRENCY - 1)
        ),
        "workflow_concurrency": described("How many instances may run at once, if parallel.", count(CONCURRENCY)),
        "is_active": described("Whether the pushed version becomes the active one.", TRUTH, default=True),
        "trigger": ref("trigger"),
        "triggers": ref("trigger"),
        **{f"{kind}_triggers": {"type": "array", "items": ref(f"{kind}_trigger")} for kind in _TRIGGERS},
    }


def _properties() -> dict[str, Schema]:
    disabled = {f"{kind}_trigger_disabled": TRUTH for kind in _TRIGGERS}
    return {
        "owner": described("The owner of the workflow.", {"anyOf": [TEXT, {"type": "object", "required": ["name"]}]}),
        "run_strategy": ref("run_strategy"),
        "step_concurrency": described("How many steps of it may run at once.", count(CONCURRENCY), default=20),
        "alerting": ref("Alerting"),
        "alerting_disabled": TRUTH,
        **disabled,
        "access_control": {"type": "object"},
        "description": TEXT,
        "tags": ref("tags"),
    }


def _has_wrapped(*kinds: str) -> Schema:
    """Return the condition that a workflow has a step in one of these wrappers."""
    wrapped = {"type": "object", "maxProperties": 1, "minProperties": 1, "propertyNames": {"enum": list(kinds)}}
    return {"properties": {"steps": {"contains": wrapped}}}


def ordering() -> dict[str, Schema]:
    """Return the spellings of edges, by name."""
    return {
        "dag": _dag(),
        "chain": described("Jobs that run one after the other: a -> b -> c.", {"type": "string", "pattern": "->"}),
        "transition": _transition(),
    }


def _dag() -> Schema:
    order = "|".join(any_case(word) for word in ("sequential", "parallel"))
    by_job = {"type": "object", "additionalProperties": ref("transition")}
    return {
        "description": "The order of the jobs: sequential, parallel, chains, or a map of jobs.",
        "anyOf": [
            {"enum": ["sequential", "parallel"]},
            {"type": "string", "pattern": rf"^\s*({order})\s*$"},
            ref("chain"),
            {"type": "array", "items": {"anyOf": [TEXT, by_job]}},
            by_job,
        ],
    }


def _transition() -> Schema:
    branches = {
        "type": "object",
        "patternProperties": {
            rf"^\s*{any_case('IF')}\s": ONE_OR_MORE,
            rf"^\s*{any_case('OTHERWISE')}\s*$": ONE_OR_MORE,
        },
        "additionalProperties": False,
    }
    one = {"anyOf": [TEXT, {"type": "null"}, branches]}
    return {
        "description": "What comes next: a job, IF <condition> THEN a job, OTHERWISE a job.",
        "anyOf": [*one["anyOf"], {"type": "array", "items": one}],
    }


def maestro_workflows() -> dict[str, Schema]:
    """Return a workflow as Maestro's API takes it and its parts, by name: steps in wrappers, params in full."""
    params = {"type": "object", "additionalProperties": ref("maestro_param")}
    common = {key: item for key, item in keys_of_all().items() if key not in {"transition", "depends_on", "dependsOn"}}
    common |= {"transition": ref("maestro_transition"), "params": params}
    inner = {"steps": ref("maestro_steps")}
    typed = {"type": ref("type"), "sub_type": TEXT, "sub_type_version": TEXT}
    own_keys = {name: common | declared_keys(item) for name, item in STEP_TYPES.items() if not item.is_leaf}
    kinds = {
        "step": closed(common | typed | {"retry_policy": ref("RetryPolicy"), "targets": TEXTS}, "id", "type"),
        "subworkflow": closed(own_keys["subworkflow"], "id"),
        "foreach": closed(own_keys["foreach"] | inner, "id", "steps"),
        "while": closed(own_keys["while"] | inner, "id", "steps", "condition"),
        "template": closed(own_keys["template"], "id", "sub_type"),
    }
    own = {key: item for key, item in workflow_keys().items() if key not in {"trigger", "triggers"}}
    return {
        "maestro_workflow": closed(own | inner | {"params": params}, "id", "steps"),
        "maestro_steps": {
            "type": "array",
            "minItems": 1,
            "items": closed(kinds) | {"minProperties": 1, "maxProperties": 1},
        },
        "maestro_transition": closed(
            {"predecessors": TEXTS, "successors": {"type": "object", "additionalProperties": TEXT}}
        ),
        "maestro_param": closed(
            {
                "type": words(ParamType),
                "value": ANYTHING,
                "expression": TEXT,
                "mode": words(ParamMode),
                "internal_mode": words(InternalMode),
                "tags": ref("tags"),
                "validator": ANYTHING,
                "meta": {"type": "object"},
            },
            "type",
        )
        | {"not": {"required": ["value", "expression"]}},
    }
