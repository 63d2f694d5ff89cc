"""Maestro's YAML, as the talk and the open source write it: ``jobs`` and ``dag``."""

from calve.definition.document import Node
from calve.definition.forms.job_keys import WRAPPERS
from calve.definition.forms.jobs import Wrapped, Writer
from calve.definition.forms.known_types import StepTypeNames
from calve.definition.forms.parts import Parts
from calve.definition.forms.yaml_workflow import written
from calve.definition.problems import Problems, did_you_mean

_SHAPE = "write - job: {id: …, type: …}, or subworkflow, foreach, while or template in place of job"


def from_dsl(node: Node, problems: Problems, types: StepTypeNames) -> Parts:
    """Return the parts of a definition from a workflow with ``jobs``."""
    return written(node, Writer(problems, types, _unwrapped))


def _unwrapped(item: Node, problems: Problems) -> Wrapped | None:
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
