"""The early form: ``steps`` that are flat maps, with humps in their keys and ``dependsOn`` for edges."""

from calve.definition.document import Node
from calve.definition.forms.job_keys import WRAPPERS, Kind
from calve.definition.forms.jobs import Wrapped, Writer
from calve.definition.forms.keys import snake
from calve.definition.forms.known_types import StepTypeNames
from calve.definition.forms.parts import Parts
from calve.definition.forms.yaml_workflow import written
from calve.definition.problems import Problems

_KINDS = {name: kind for name, kind in WRAPPERS.items() if kind is not Kind.STEP}


def from_early(node: Node, problems: Problems, types: StepTypeNames) -> Parts:
    """Return the parts of a definition from a workflow with flat ``steps``."""
    return written(node, Writer(problems, types, _unwrapped, spelling=snake, is_flat=True))


def _unwrapped(item: Node, problems: Problems) -> Wrapped | None:
    """Return a flat step as a job; one whose type is a kind of its own says so only by its type."""
    if not isinstance(item.value, dict):
        problems.add(item, "step_malformed", "a step is a map", hint="write - {id: …, type: …}")
        return None
    kind = item.value.get("type")
    name = kind.value.casefold() if kind is not None and isinstance(kind.value, str) else ""
    if name not in _KINDS:
        return Wrapped(Kind.STEP, item, item)
    rest = {key: value for key, value in item.value.items() if key != "type"}
    return Wrapped(_KINDS[name], item, item.made(rest))
