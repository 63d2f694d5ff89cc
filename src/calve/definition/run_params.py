"""Which params a run can be given: those that a definition declares, and those that it refers to. Pure."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from calve.definition.document import Mark, Node
from calve.definition.model.steps import Step, SubworkflowStep, TypedStep
from calve.definition.model.workflow import Workflow
from calve.definition.params.interpolation import references, step_reference
from calve.definition.problems import nearest
from calve.definition.scripts import StepFiles, readable
from calve.definition.sources import all_expressions, expressions_of
from calve.definition.step_types import file_references
from calve.definition.subworkflows import FindWorkflow, subworkflow_of
from calve.definition.vocabulary import Vocabulary
from calve.errors import DefinitionInvalid, ExpressionError, RequestInvalid
from calve.expressions import complete, parse, reads

_PLACE = Node(None, Mark(1, 1), "")
_MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class KnownParams:
    """The params that something knows."""

    names: frozenset[str]
    declared: tuple[str, ...] = ()
    """Those that are named first where a name is not known."""
    is_open: bool = False
    """Some names are known to the run only, so that no name can be called wrong."""

    def plus(self, other: "KnownParams") -> "KnownParams":
        """Return the params that one or the other knows."""
        return KnownParams(self.names | other.names, self.declared, self.is_open or other.is_open)

    def also(self, names: Iterable[str]) -> "KnownParams":
        """Return the same with more names."""
        return self.plus(KnownParams(frozenset(names)))

    def unknown_among(self, given: Iterable[str]) -> list[str]:
        """Return those names that are not known."""
        return [] if self.is_open else [name for name in given if name not in self.names]

    def hint(self, name: str) -> str:
        """Return what may have been meant by a name that is not known."""
        near = nearest(name, self.declared) or nearest(name, sorted(self.names))
        if near is not None:
            return f"Did you mean {near}?"
        if not self.declared:
            return "It declares no params."
        return f"It declares {', '.join(self.declared)}." if len(self.declared) <= _MOST_LISTED else ""


@dataclass(frozen=True, slots=True)
class UnknownParam:
    """A param was given that nothing knows."""

    owner: str
    """The workflow or step that does not know it."""
    name: str
    hint: str

    def as_json(self) -> dict[str, Any]:
        """Return what an answer holds as a warning."""
        message = f"{self.owner} has no param {self.name}."
        return {"code": "unknown_param", "message": message, "hint": self.hint, "param": self.name}


def unknown_params(owner: str, given: Collection[str], known: Callable[[], KnownParams]) -> list[UnknownParam]:
    """Return the params that were given and are not known; where none was given, nothing is looked up."""
    if not given:
        return []
    found = known()
    return [UnknownParam(owner, name, found.hint(name)) for name in found.unknown_among(given)]


def refusal(unknown: Collection[UnknownParam]) -> RequestInvalid:
    """Return the error for params that are not known; there must be some."""
    warnings = [param.as_json() for param in unknown]
    hints = dict.fromkeys(param.hint for param in unknown if param.hint)
    return RequestInvalid(
        " ".join(warning["message"] for warning in warnings), remedy=" ".join(hints), unknown_params=warnings
    )


def check_run_params(
    workflow: Workflow, given: Collection[str], vocabulary: Vocabulary, files: StepFiles | None = None
) -> None:
    """Refuse params that nothing in a definition knows, as far as the definition alone tells.

    Raises:
        RequestInvalid: there are such.
    """
    owner = f"Workflow {workflow.id}"
    unknown = unknown_params(owner, given, lambda: known_to_workflow(workflow, vocabulary, lambda *_: None, files))
    if unknown:
        raise refusal(unknown)


def known_to_workflow(
    workflow: Workflow, vocabulary: Vocabulary, find: FindWorkflow, files: StepFiles | None = None
) -> KnownParams:
    """Return the params that a run of a workflow can be given.

    A file of SQL may refer to params too. A subworkflow step passes all params of its workflow down, unless it is
    explicit: so those that the subworkflow knows count too. Where a file cannot be read here, where a run chooses the
    subworkflow, or an expression the name of a param, any name may be right.
    """
    return _known_to_workflow(workflow, vocabulary, find, files, {workflow.id})


def _known_to_workflow(
    workflow: Workflow, vocabulary: Vocabulary, find: FindWorkflow, files: StepFiles | None, seen: set[str]
) -> KnownParams:
    document = _PLACE.made({"workflow": workflow.as_json()})
    known = KnownParams(frozenset({*workflow.params, *vocabulary.defaults.workflow}), tuple(workflow.params))
    known = known.plus(_referred(document, all_expressions(document), [step.id for step in workflow.all_steps()]))
    known = known.also(name for trigger in workflow.signal_triggers for name in trigger.params)
    for step in workflow.all_steps():
        known = known.also(step.params).plus(_of_template(step, workflow, vocabulary))
        known = known.plus(_in_files(step, vocabulary, files))
        if isinstance(step, SubworkflowStep) and not step.explicit_params:
            known = known.plus(_below(step, vocabulary, find, files, seen))
    return known


def known_to_step(step: Step, workflow: Workflow, vocabulary: Vocabulary) -> KnownParams:
    """Return the params of a step that a restart can change or add."""
    kind = step.type if isinstance(step, TypedStep) else step.kind
    document = _PLACE.made(step.model_copy(update={"steps": ()}).as_json())
    config = vocabulary.types.config(kind)
    known = KnownParams(frozenset({*step.params, *vocabulary.defaults.step}), tuple(step.params))
    known = known.plus(_referred(document, expressions_of(document), [each.id for each in workflow.all_steps()]))
    known = known.also(vocabulary.defaults.of_type(kind)).also(() if config is None else (config[0],))
    return known.plus(_of_template(step, workflow, vocabulary))


def _in_files(step: Step, vocabulary: Vocabulary, files: StepFiles | None) -> KnownParams:
    """Return the names that the files of a step refer to."""
    if not isinstance(step, TypedStep):
        return KnownParams(frozenset())
    names = file_references(vocabulary.types.find(step.type), step.params, readable(files))
    return KnownParams(names or frozenset(), is_open=names is None)


def _below(
    step: SubworkflowStep, vocabulary: Vocabulary, find: FindWorkflow, files: StepFiles | None, seen: set[str]
) -> KnownParams:
    """Return the params that the workflow below a step knows."""
    child = subworkflow_of(step)
    if child.workflow_id in seen:
        return KnownParams(frozenset())
    found = find(child.workflow_id, child.version) if child.workflow_id and child.version else None
    if found is None:
        return KnownParams(frozenset(), is_open=True)
    return _known_to_workflow(found, vocabulary, find, files, {*seen, found.id})


def _of_template(step: Step, workflow: Workflow, vocabulary: Vocabulary) -> KnownParams:
    """Return the params of a step's job template: a workflow's param of the same name changes one of them."""
    if not isinstance(step, TypedStep) or step.sub_type is None:
        return KnownParams(frozenset())
    bare = step.model_copy(update={"params": {}})
    try:
        params = vocabulary.templates.step_params(bare, workflow.params, lambda below, own: {**below, **own})
    except DefinitionInvalid:  # the run will say what is wrong with the template
        return KnownParams(frozenset(), is_open=True)
    document = _PLACE.made({"params": {name: param.as_json() for name, param in params.items()}})
    return _referred(document, expressions_of(document), ()).also(params)


def _referred(document: Node, expressions: Iterable[Node], steps: Collection[str]) -> KnownParams:
    """Return the names that texts and expressions refer to, without those of the params of steps."""
    read = [_read(str(node.value)) for node in expressions]
    names = {name for text in _texts(document) for name in references(text) if step_reference(name, steps) is None}
    names.update(name.partition(".")[0] for name in tuple(names))
    is_open = any(found is None for found in read)
    return KnownParams(frozenset(names.union(*(found for found in read if found is not None))), is_open=is_open)


def _read(expression: str) -> frozenset[str] | None:
    try:
        return reads(parse(complete(expression)))
    except ExpressionError:  # the run will say what is wrong with it
        return None


def _texts(node: Node) -> Iterator[str]:
    match node.value:
        case str() as text:
            yield text
        case list() as items:
            for item in items:
                yield from _texts(item)
        case dict() as entries:
            for item in entries.values():
                yield from _texts(item)
        case _:
            pass
