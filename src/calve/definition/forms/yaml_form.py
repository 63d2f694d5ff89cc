"""The YAML forms: ``jobs`` and ``dag`` as in Maestro, and the early form with flat ``steps`` and ``dependsOn``."""

from dataclasses import dataclass, field

from calve.definition.document import Node, entries as entries_of
from calve.definition.forms.jobs import JobConverter, StepTypeNames, Wrapped
from calve.definition.forms.keys import WRAPPERS, StepKind, same, snake, sort_keys, without_misspelt
from calve.definition.forms.params import any_params, yaml_params
from calve.definition.forms.triggers import INCREMENTAL, SIGNAL, TIME, listed, merged, triggers
from calve.definition.forms.values import as_text, uppered, without_nulls
from calve.definition.model import Properties, Workflow
from calve.definition.problems import Problems, did_you_mean

PROPERTIES = tuple(name for name in Properties.model_fields if name not in {"access_control", "description", "tags"})
"""The properties that YAML writes among the keys of the workflow."""

CONCURRENCY = "workflow_concurrency"

_WORDS = (
    "run_strategy.rule",
    "alerting.pagerduty_config.severity",
    "alerting.type_configs.*.granularity",
    "tags.*.namespace",
)


def properties(node: Node) -> Node:
    """Return properties with their short forms expanded."""
    entries = dict(entries_of(without_nulls(node)))
    if "run_strategy" in entries:
        entries["run_strategy"] = run_strategy(entries["run_strategy"])
    return uppered(node.made(entries), *_WORDS)


def run_strategy(node: Node) -> Node:
    """Return a run strategy, which may be written as the name of its rule or the number of parallel instances."""
    match node.value:
        case bool():
            return node
        case str():
            return node.made({"rule": node})
        case int():
            return node.made({"rule": "PARALLEL", CONCURRENCY: node})
        case _:
            return node


def gathered(fields: dict[str, Node], problems: Problems) -> dict[str, Node]:
    """Return the properties among the keys of a workflow in YAML."""
    found = {key: fields[key] for key in PROPERTIES if key in fields}
    concurrency = fields.get(CONCURRENCY)
    if concurrency is None:
        return found
    strategy = run_strategy(found["run_strategy"]) if "run_strategy" in found else None
    if strategy is None:
        hint = "write run_strategy: parallel next to it"
        problems.add(concurrency, "concurrency_alone", f"{CONCURRENCY} requires a run_strategy", hint=hint, at_key=True)
    elif not isinstance(strategy.value, dict):
        return found
    elif CONCURRENCY in strategy.value:
        problems.add(concurrency, "said_twice", f"{CONCURRENCY} is already given in run_strategy", at_key=True)
    else:
        found["run_strategy"] = strategy.made({**strategy.value, CONCURRENCY: concurrency})
    return found


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a document: a workflow, and the properties written among its keys."""

    workflow: Node
    properties: dict[str, Node] = field(default_factory=dict)
    is_active: Node | None = None


_LISTS = (TIME, SIGNAL, INCREMENTAL)
_UNCHANGED = tuple(name for name in Workflow.model_fields if name not in {"id", "name", "params", "steps", *_LISTS})

WORKFLOW_KEYS: dict[str, str] = (
    same("id", "name", *_UNCHANGED, *_LISTS, *PROPERTIES, CONCURRENCY, "is_active", "jobs", "dag")
    # A trigger belongs beside Workflow, but one inside it is not a param.
    | {"steps": "jobs", "trigger": "trigger", "triggers": "trigger"}
)


def written(node: Node, writer: JobConverter) -> Parts:
    """Return the parts of a definition from a workflow in YAML; any unknown key is a param."""
    problems = writer.problems
    entries = node.value if isinstance(node.value, dict) else {}
    found = sort_keys(entries, WORKFLOW_KEYS, problems, spelling=writer.spelling)
    fields = found.fields
    own = yaml_params(without_misspelt(found.others, WORKFLOW_KEYS, problems), problems)
    workflow: dict[str, Node] = {key: as_text(fields[key]) for key in ("id", "name") if key in fields}
    if writer.is_flat and "name" in workflow:
        workflow.setdefault("id", workflow["name"])
    workflow |= {key: fields[key] for key in _UNCHANGED if key in fields}
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


_SHAPE = "write - job: {id: …, type: …}, or subworkflow, foreach, while or template instead of job"


def from_dsl(node: Node, problems: Problems, types: StepTypeNames) -> Parts:
    """Return the parts of a definition from a workflow with ``jobs``."""
    return written(node, JobConverter(problems, types, _unwrapped_job))


def _unwrapped_job(item: Node, problems: Problems) -> Wrapped | None:
    match item.value:
        case dict() as entries if len(entries) == 1:
            key, node = next(iter(entries.items()))
            if key in WRAPPERS:
                return Wrapped(WRAPPERS[key], item, node)
            hint = "did you mean job?" if key == "step" else did_you_mean(key, WRAPPERS)
            problems.add(node, "job_malformed", f"{key} is not a kind of job", hint=hint, at_key=True)
        case _:
            problems.add(item, "job_malformed", "a job is a map with one key, its kind", hint=_SHAPE)
    return None


_KINDS = {name: kind for name, kind in WRAPPERS.items() if kind is not StepKind.STEP}


def from_early(node: Node, problems: Problems, types: StepTypeNames) -> Parts:
    """Return the parts of a definition from a workflow with flat ``steps``."""
    return written(node, JobConverter(problems, types, _unwrapped_step, spelling=snake, is_flat=True))


def _unwrapped_step(item: Node, problems: Problems) -> Wrapped | None:
    """Return a flat step as a job; the type of a composite step is its kind."""
    if not isinstance(item.value, dict):
        problems.add(item, "step_malformed", "a step is a map", hint="write - {id: …, type: …}")
        return None
    kind = item.value.get("type")
    name = kind.value.casefold() if kind is not None and isinstance(kind.value, str) else ""
    if name not in _KINDS:
        return Wrapped(StepKind.STEP, item, item)
    rest = {key: value for key, value in item.value.items() if key != "type"}
    return Wrapped(_KINDS[name], item, item.made(rest))
