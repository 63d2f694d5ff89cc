"""The form of Maestro's JSON: ``steps`` in one-key wrappers, and params with types."""

from calve.definition.document import Node, entries as entries_of
from calve.definition.forms.jobs import StepTypeNames
from calve.definition.forms.keys import StepKind
from calve.definition.forms.params import typed_params
from calve.definition.forms.triggers import listed, signal_dependencies, signal_outputs
from calve.definition.forms.values import uppered, without_nulls
from calve.definition.forms.yaml_form import PROPERTIES, Parts
from calve.definition.problems import Problems, did_you_mean

_WORKFLOW_WORDS = ("criticality", "tags.*.namespace")
_STEP_WORDS = ("failure_mode", "tags.*.namespace", "retry_policy.backoff.type")
_KINDS = frozenset(StepKind)


def from_maestro(node: Node, problems: Problems, types: StepTypeNames) -> Parts:
    """Return the parts of a definition from a workflow of wrapped steps."""
    return Parts(_workflow(node, entries_of(without_nulls(node)), problems, types))


def from_bare_maestro(node: Node, problems: Problems, types: StepTypeNames) -> Parts:
    """Return the parts of a definition from a document that is such a workflow, with properties among its keys."""
    entries = entries_of(without_nulls(node))
    own = {key: item for key, item in entries.items() if key not in PROPERTIES}
    outside = {key: item for key, item in entries.items() if key in PROPERTIES}
    return Parts(_workflow(node, own, problems, types), outside)


def _workflow(node: Node, given: dict[str, Node], problems: Problems, types: StepTypeNames) -> Node:
    entries = given | listed(given, problems, typed_params)
    if "params" in entries:
        entries["params"] = typed_params(entries["params"], problems)
    if "steps" in entries:
        entries["steps"] = _steps(entries["steps"], problems, types)
    return uppered(node.made(entries), *_WORKFLOW_WORDS)


def is_wrapped(item: Node) -> bool:
    """Tell whether a step has one of the five wrappers."""
    entries = entries_of(item)
    return len(entries) == 1 and next(iter(entries)) in _KINDS


def _steps(node: Node, problems: Problems, types: StepTypeNames) -> Node:
    if not isinstance(node.value, list):
        return node
    found = []
    for item in node.value:
        if is_wrapped(item):
            kind, inner = next(iter(entries_of(item).items()))
            found.append(item.made({kind: _step(StepKind(kind), inner, problems, types)}))
        else:
            _report(item, problems)
    return node.made(found)


def _report(item: Node, problems: Problems) -> None:
    entries = entries_of(item)
    if len(entries) == 1:
        key, node = next(iter(entries.items()))
        hint = "did you mean step?" if key == "job" else did_you_mean(key, StepKind)
        problems.add(node, "step_malformed", f"{key} is not a kind of step", hint=hint, at_key=True)
    else:
        hint = 'write {"step": {"id": …, "type": …}}, or subworkflow, foreach, while or template instead of step'
        problems.add(item, "step_malformed", "a step is a map with one key, its kind", hint=hint)


def _step(kind: StepKind, node: Node, problems: Problems, types: StepTypeNames) -> Node:
    entries = dict(entries_of(without_nulls(node)))
    if not entries:
        return node
    named = entries.get("type")
    if kind is StepKind.STEP and named is not None and isinstance(named.value, str):
        entries["type"] = named.made(types.resolve(named.value) or named.value)
    if "params" in entries:
        entries["params"] = typed_params(entries["params"], problems)
    if "signal_dependencies" in entries:
        entries["signal_dependencies"] = signal_dependencies(entries["signal_dependencies"], problems)
    if "signal_outputs" in entries:
        entries["signal_outputs"] = signal_outputs(entries["signal_outputs"], problems, typed_params)
    if kind.is_loop and "steps" in entries:
        entries["steps"] = _steps(entries["steps"], problems, types)
    if "transition" in entries:
        entries["transition"] = without_nulls(entries["transition"])
    return uppered(node.made(entries), *_STEP_WORDS)
