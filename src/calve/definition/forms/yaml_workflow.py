"""The body of a workflow in YAML: fields, params, and jobs."""

from calve.definition.document import Node
from calve.definition.forms.jobs import Writer
from calve.definition.forms.keys import same, sort_keys, without_misspelt
from calve.definition.forms.params import params
from calve.definition.forms.parts import Parts
from calve.definition.forms.properties import CONCURRENCY, gathered
from calve.definition.forms.properties import KEYS as PROPERTIES
from calve.definition.forms.shapes import as_text, uppered
from calve.definition.forms.triggers import INCREMENTAL, SIGNAL, TIME, listed, merged, triggers
from calve.definition.forms.typed_params import any_params
from calve.definition.problems import Problems

_AS_THEY_ARE = ("description", "tags", "timeout", "criticality", "instance_step_concurrency")
_LISTS = (TIME, SIGNAL, INCREMENTAL)

KEYS: dict[str, str] = (
    same("id", "name", *_AS_THEY_ARE, *_LISTS, *PROPERTIES, CONCURRENCY, "is_active", "jobs", "dag")
    # The place of a trigger is beside Workflow, but one inside it is not meant as a param.
    | {"steps": "jobs", "trigger": "trigger", "triggers": "trigger"}
)


def written(node: Node, writer: Writer) -> Parts:
    """Return the parts of a definition that a workflow in YAML gives; a key without a meaning is a param."""
    problems = writer.problems
    entries = node.value if isinstance(node.value, dict) else {}
    found = sort_keys(entries, KEYS, problems, spelling=writer.spelling)
    fields = found.fields
    own = params(without_misspelt(found.others, KEYS, problems), problems)
    workflow: dict[str, Node] = {key: as_text(fields[key]) for key in ("id", "name") if key in fields}
    if writer.is_flat and "name" in workflow:
        workflow.setdefault("id", workflow["name"])
    workflow |= {key: fields[key] for key in _AS_THEY_ARE if key in fields}
    workflow |= _triggers(fields, problems)
    if own:
        workflow["params"] = node.made(own)
    if "jobs" in fields:
        workflow["steps"] = writer.steps(fields["jobs"], fields.get("dag"))
    return Parts(
        workflow=uppered(node.made(workflow), "criticality", "tags.*.namespace"),
        properties=gathered(fields, problems),
        is_active=fields.get("is_active"),
    )


def _triggers(fields: dict[str, Node], problems: Problems) -> dict[str, Node]:
    lists = listed(fields, problems, any_params)
    return merged(lists, triggers(fields["trigger"], problems)) if "trigger" in fields else lists
