"""A workflow and what stands around it."""

from calve.definition.model.workflow import CONCURRENCY, Criticality, Rule
from calve.definition.schema.shapes import DURATION, NAME, TEXT, TRUTH, count, ref, said, words
from calve.definition.step_types.json_schema import Schema

_TRIGGERS = ("time", "signal", "incremental")


def around_workflow() -> Schema:
    """Return what stands around a workflow."""
    keys = {
        "Workflow": ref("body"),
        "Trigger": ref("trigger"),
        "Triggers": ref("trigger"),
        "Description": said("What the workflow is for; Markdown.", TEXT),
        "properties": ref("properties"),
        "is_active": said("Whether the pushed version becomes the active one.", TRUTH, default=True),
        "git_info": ref("GitInfo"),
        "extra_info": {"type": "object"},
    }
    spelt = keys | {key.lower(): item for key, item in keys.items()}
    # Maestro keeps what it does not know beside a workflow; its YAML has nothing else there.
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
    """Return the keys of a workflow but for its steps."""
    return _properties() | {
        "id": said("Names the workflow among all others.", NAME),
        "name": said("A title for people.", NAME),
        "description": said("What the workflow is for; Markdown.", TEXT),
        "tags": ref("tags"),
        "timeout": said("How long an instance may run: seconds, or a text such as 2 hours.", DURATION),
        "criticality": said("How much depends on it.", words(Criticality)),
        "instance_step_concurrency": said("How many steps of one instance may run at once.", count(CONCURRENCY - 1)),
        "workflow_concurrency": said("How many instances may run at once, if parallel.", count(CONCURRENCY)),
        "is_active": said("Whether the pushed version becomes the active one.", TRUTH, default=True),
        "trigger": ref("trigger"),
        "triggers": ref("trigger"),
        **{f"{kind}_triggers": {"type": "array", "items": ref(f"{kind}_trigger")} for kind in _TRIGGERS},
    }


def _properties() -> dict[str, Schema]:
    disabled = {f"{kind}_trigger_disabled": TRUTH for kind in _TRIGGERS}
    return {
        "owner": said("Who looks after the workflow.", {"anyOf": [TEXT, {"type": "object", "required": ["name"]}]}),
        "run_strategy": ref("run_strategy"),
        "step_concurrency": said("How many steps of the workflow may run at once.", count(CONCURRENCY), default=20),
        "alerting": ref("Alerting"),
        "alerting_disabled": TRUTH,
        **disabled,
        "access_control": {"type": "object"},
        "description": TEXT,
        "tags": ref("tags"),
    }


def _has_wrapped(*kinds: str) -> Schema:
    """Return what holds of a workflow that has a step in one of these wrappers."""
    wrapped = {"type": "object", "maxProperties": 1, "minProperties": 1, "propertyNames": {"enum": list(kinds)}}
    return {"properties": {"steps": {"contains": wrapped}}}
