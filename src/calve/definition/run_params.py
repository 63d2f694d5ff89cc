"""Params given to a run: plain values converted, and names that the definition does not know. Pure."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from calve.definition.composites import FindWorkflow, subworkflow_of
from calve.definition.document import NOWHERE, Node, texts
from calve.definition.files import StepFiles, readable
from calve.definition.forms import yaml_params
from calve.definition.model import PARAM, Param, Params, Step, SubworkflowStep, TypedStep, Workflow
from calve.definition.params import references, step_reference
from calve.definition.problems import Problems, nearest
from calve.definition.references import all_expressions, expressions_of
from calve.definition.step_types import file_references
from calve.definition.vocabulary import Vocabulary
from calve.errors import DefinitionInvalid, ExpressionError, ParamError, RequestInvalid
from calve.expressions import complete, parse, reads


def given_params(given: Mapping[str, Any], declared: Params) -> Params:
    """Return plain values as params, of the declared type or else of the type that YAML would infer.

    Raises:
        ParamError: a value does not fit its param, or a name is not valid.
    """
    return dict(_as_param(name, value, declared) for name, value in given.items())


def _as_param(key: str, value: Any, declared: Params) -> tuple[str, Param]:
    """Return one plain value as a param."""
    problems = Problems()
    placed = yaml_params({key: NOWHERE.made(value)}, problems)
    if problems.errors or not placed:
        raise ParamError(f"The param [{key}] cannot be given: {problems.errors[0].message}", param=key)
    ((name, node),) = placed.items()
    written = node.plain()
    if name in declared and written["type"] != declared[name].type:
        written = {"type": declared[name].type, "value": value}
    try:
        return name, PARAM.validate_python(written)
    except ValidationError as error:
        raise ParamError(f"The value {value!r} of the param [{name}] is not a {written['type']}", param=name) from error


_MOST_LISTED = 12


@dataclass(frozen=True, slots=True)
class KnownParams:
    """The params that a workflow or step knows."""

    names: frozenset[str]
    declared: tuple[str, ...] = ()
    """Those that hints suggest first."""
    is_open: bool = False
    """Whether some names are known only at run time, so that no name can be called unknown."""

    def plus(self, other: "KnownParams") -> "KnownParams":
        """Return the params that either knows."""
        return KnownParams(self.names | other.names, self.declared, self.is_open or other.is_open)

    def also(self, names: Iterable[str]) -> "KnownParams":
        """Return these params and more names."""
        return self.plus(KnownParams(frozenset(names)))

    def unknown_among(self, given: Iterable[str]) -> list[str]:
        """Return the names that are not known."""
        return [] if self.is_open else [name for name in given if name not in self.names]

    def hint(self, name: str) -> str:
        """Return a hint for a name that is not known."""
        near = nearest(name, self.declared) or nearest(name, sorted(self.names))
        if near is not None:
            return f"Did you mean {near}?"
        if not self.declared:
            return "It declares no params."
        return f"It declares {', '.join(self.declared)}." if len(self.declared) <= _MOST_LISTED else ""


@dataclass(frozen=True, slots=True)
class UnknownParam:
    """A given param that the workflow or step does not know."""

    owner: str
    """The workflow or step that does not know it."""
    name: str
    hint: str

    def as_json(self) -> dict[str, Any]:
        """Return the warning as JSON."""
        message = f"{self.owner} has no param {self.name}."
        return {"code": "unknown_param", "message": message, "hint": self.hint, "param": self.name}


def unknown_params(owner: str, given: Collection[str], known: Callable[[], KnownParams]) -> list[UnknownParam]:
    """Return the given params that are not known; ``known`` is only called if some were given."""
    if not given:
        return []
    found = known()
    return [UnknownParam(owner, name, found.hint(name)) for name in found.unknown_among(given)]


def refusal(unknown: Collection[UnknownParam]) -> RequestInvalid:
    """Return the error for unknown params; there must be at least one."""
    warnings = [param.as_json() for param in unknown]
    hints = dict.fromkeys(param.hint for param in unknown if param.hint)
    return RequestInvalid(
        " ".join(warning["message"] for warning in warnings), remedy=" ".join(hints), unknown_params=warnings
    )


def check_run_params(
    workflow: Workflow, given: Collection[str], vocabulary: Vocabulary, files: StepFiles | None = None
) -> None:
    """Refuse params that a definition does not know.

    Raises:
        RequestInvalid: a param is not known.
    """
    owner = f"Workflow {workflow.id}"
    unknown = unknown_params(owner, given, lambda: known_to_workflow(workflow, vocabulary, lambda *_: None, files))
    if unknown:
        raise refusal(unknown)


def known_to_workflow(
    workflow: Workflow, vocabulary: Vocabulary, find: FindWorkflow, files: StepFiles | None = None
) -> KnownParams:
    """Return the params that a run of a workflow can be given.

    SQL files may refer to params too. A subworkflow step passes all params of its workflow down, unless it has
    explicit_params: so those that the subworkflow knows count too. If a file cannot be read here, or a run chooses the
    subworkflow, or an expression the name of a param, any name may be correct.
    """
    return _known_to_workflow(workflow, vocabulary, find, files, {workflow.id})


def _known_to_workflow(
    workflow: Workflow, vocabulary: Vocabulary, find: FindWorkflow, files: StepFiles | None, seen: set[str]
) -> KnownParams:
    document = NOWHERE.made({"workflow": workflow.as_json()})
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
    document = NOWHERE.made(step.model_copy(update={"steps": ()}).as_json())
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
    """Return the params that the workflow of a subworkflow step knows."""
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
    except DefinitionInvalid:  # the run will report the error
        return KnownParams(frozenset(), is_open=True)
    document = NOWHERE.made({"params": {name: param.as_json() for name, param in params.items()}})
    return _referred(document, expressions_of(document), ()).also(params)


def _referred(document: Node, expressions: Iterable[Node], steps: Collection[str]) -> KnownParams:
    """Return the names that texts and expressions refer to, without references to params of steps."""
    read = [_read(str(node.value)) for node in expressions]
    names = {name for text in texts(document) for name in references(text) if step_reference(name, steps) is None}
    names.update(name.partition(".")[0] for name in tuple(names))
    is_open = any(found is None for found in read)
    return KnownParams(frozenset(names.union(*(found for found in read if found is not None))), is_open=is_open)


def _read(expression: str) -> frozenset[str] | None:
    try:
        return reads(parse(complete(expression)))
    except ExpressionError:  # the run will report the error
        return None
