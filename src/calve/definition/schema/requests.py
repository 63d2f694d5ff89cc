"""Maestro's own requests: steps in wrappers, params in full."""

from calve.definition.model.params import InternalMode, ParamMode, ParamType
from calve.definition.model.steps import FOREACH_CONCURRENCY
from calve.definition.schema.jobs import keys_of_all
from calve.definition.schema.shapes import ANYTHING, TEXT, TEXTS, TRUTH, closed, count, ref, words
from calve.definition.schema.workflows import workflow_keys
from calve.definition.step_types.json_schema import Schema


def requests() -> dict[str, Schema]:
    """Return the workflow of Maestro's requests and what is in it, by name."""
    params = {"type": "object", "additionalProperties": ref("maestro_param")}
    common = {key: item for key, item in keys_of_all().items() if key not in {"transition", "depends_on", "dependsOn"}}
    common |= {"transition": ref("maestro_transition"), "params": params}
    inner = {"steps": ref("maestro_steps")}
    typed = {"type": ref("type"), "sub_type": TEXT, "sub_type_version": TEXT}
    foreach = inner | {"concurrency": count(FOREACH_CONCURRENCY), "strict_ordering": TRUTH}
    kinds = {
        "step": closed(common | typed | {"retry_policy": ref("RetryPolicy"), "targets": TEXTS}, "id", "type"),
        "subworkflow": closed(common | {"sync": TRUTH, "explicit_params": TRUTH}, "id"),
        "foreach": closed(common | foreach, "id", "steps"),
        "while": closed(common | inner | {"condition": TEXT}, "id", "steps", "condition"),
        "template": closed(common | {"sub_type": TEXT, "sub_type_version": TEXT}, "id", "sub_type"),
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
