"""What belongs to a workflow whatever its version: owner, run strategy, alerting."""

from calve.definition.document import Node
from calve.definition.forms.shapes import entries_of, uppered, without_nulls
from calve.definition.problems import Problems

KEYS = (
    "owner",
    "run_strategy",
    "step_concurrency",
    "alerting",
    "alerting_disabled",
    "signal_trigger_disabled",
    "time_trigger_disabled",
    "incremental_trigger_disabled",
)
"""The keys that the YAML forms write among those of the workflow."""

CONCURRENCY = "workflow_concurrency"

_WORDS = (
    "run_strategy.rule",
    "alerting.pagerduty_config.severity",
    "alerting.type_configs.*.granularity",
    "tags.*.namespace",
)


def properties(node: Node) -> Node:
    """Return properties with their short spellings written out."""
    entries = dict(entries_of(without_nulls(node)))
    if "run_strategy" in entries:
        entries["run_strategy"] = run_strategy(entries["run_strategy"])
    return uppered(node.made(entries), *_WORDS)


def run_strategy(node: Node) -> Node:
    """Return a rule, which may be given by its word alone, or by how many instances may run at once."""
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
    """Return the properties among the fields of a workflow in YAML."""
    found = {key: fields[key] for key in KEYS if key in fields}
    concurrency = fields.get(CONCURRENCY)
    if concurrency is None:
        return found
    strategy = run_strategy(found["run_strategy"]) if "run_strategy" in found else None
    if strategy is None:
        hint = "write run_strategy: parallel beside it"
        problems.add(concurrency, "concurrency_alone", f"{CONCURRENCY} needs a run_strategy", hint=hint, at_key=True)
    elif not isinstance(strategy.value, dict):
        return found
    elif CONCURRENCY in strategy.value:
        problems.add(concurrency, "said_twice", f"run_strategy says {CONCURRENCY} already", at_key=True)
    else:
        found["run_strategy"] = strategy.made({**strategy.value, CONCURRENCY: concurrency})
    return found
