"""Put the steps of workflow templates in the place of the ``template`` steps that name them. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calve.definition.document import Node
from calve.definition.model.workflow import Rule
from calve.definition.problems import Problems, did_you_mean
from calve.definition.templates.binding import bound, with_params
from calve.definition.templates.model import DEFAULT_VERSION, TemplateDefinition
from calve.definition.templates.registry import VERSION_PARAM, JobTemplates
from calve.definition.templates.renaming import renamed
from calve.definition.walking import all_steps, entries, entry, items, text
from calve.errors import DefinitionInvalid

_SPREAD = ("failure_mode", "tags", "timeout")
"""What a template step says goes to each step that does not say so itself."""


def expand(document: Node, templates: JobTemplates, problems: Problems) -> Node:
    """Return a canonical document in which no step is a template, or note why one cannot be expanded.

    The ids of a template's steps begin with the id of the step that names it. What led to that step leads to the
    template's first steps, and its last steps lead to what came after. Each step gets the params that it names.
    """
    workflow = entry(document, "workflow")
    if not any(kind == "template" for kind, _ in all_steps(workflow)):
        return document
    version = text(entry(workflow, "params", VERSION_PARAM, "value"))
    expansion = _Expansion(templates, problems, version)
    shaped = expansion.holder(workflow or document, ())
    return _strategic(document.made({**entries(document), "workflow": shaped}), expansion.used, problems)


def _strategic(document: Node, used: Sequence[TemplateDefinition], problems: Problems) -> Node:
    """Return the document with the run strategy that a template asks for, if it has none."""
    wanted = next((item for item in used if item.run_strategy), None)
    if wanted is None or wanted.run_strategy is None:
        return document
    properties = entry(document, "properties")
    given = entry(properties, "run_strategy")
    if given is None:
        written = {**entries(properties), "run_strategy": {"rule": wanted.run_strategy.value}}
        return document.made({**entries(document), "properties": (properties or document).made(written)})
    if text(entry(given, "rule")) == Rule.PARALLEL:
        message = f"the template {wanted.job_type} is not made for instances that run in parallel"
        problems.warn(given, "run_strategy_unfit", message, hint=f"write run_strategy: {wanted.run_strategy.lower()}")
    return document


@dataclass(frozen=True, slots=True)
class _Piece:
    """The steps that a template step stands for, and the ids of those at its ends."""

    steps: tuple[Node, ...]
    first: tuple[str, ...]
    last: tuple[str, ...]


@dataclass(slots=True)
class _Expansion:
    templates: JobTemplates
    problems: Problems
    version: str | None
    used: list[TemplateDefinition] = field(default_factory=list)

    def holder(self, holder: Node, chain: tuple[str, ...]) -> Node:
        """Return a workflow or a loop with its templates expanded."""
        pieces: dict[str, _Piece] = {}
        steps = entry(holder, "steps")
        found = list(self._flat(items(steps), chain, pieces))
        if steps is None:
            return holder
        return holder.made({**entries(holder), "steps": steps.made([_rewired(item, pieces) for item in found])})

    def _flat(self, steps: Sequence[Node], chain: tuple[str, ...], pieces: dict[str, _Piece]) -> Iterator[Node]:
        for wrapper in steps:
            for kind, step in entries(wrapper).items():
                piece = self._piece(step, chain) if kind == "template" else None
                if piece is not None:
                    name = text(entry(step, "sub_type")) or ""
                    pieces[text(entry(step, "id")) or ""] = piece
                    yield from self._flat(piece.steps, (*chain, name), pieces)
                else:
                    yield wrapper.made({kind: self.holder(step, chain)})

    def _piece(self, step: Node, chain: tuple[str, ...]) -> _Piece | None:
        """Return what a template step stands for; None where that cannot be told, which is noted."""
        step_id, name = text(entry(step, "id")), text(entry(step, "sub_type"))
        if step_id is None or name is None:
            return None  # the model says what is missing
        version = text(entry(step, "sub_type_version")) or self.version or DEFAULT_VERSION
        template = self.templates.find(name, version)
        place = entry(step, "sub_type") or step
        if template is None or not template.is_workflow:
            self._report_unknown(place, name, version)
            return None
        if name in chain:
            shown = " -> ".join((*chain, name))
            self.problems.add(place, "template_cycle", f"a template stands inside itself: {shown}")
            return None
        try:
            declared = self.templates.params(name, version)
        except DefinitionInvalid as error:
            self.problems.add(place, error.code, error.message, hint=error.remedy)
            return None
        self.used.append(template)
        return self._filled(step, step_id, template, {key: param.as_json() for key, param in declared.items()})

    def _filled(self, step: Node, step_id: str, template: TemplateDefinition, declared: dict[str, Any]) -> _Piece:
        written = template.as_json()["steps"]
        ids = [text(entry(inner, "id")) or "" for _, inner in all_steps(step.made({"steps": written}))]
        placed = step.made(renamed({"params": declared, "steps": written}, ids, step_id))
        params = bound(template.job_type, entries(entry(placed, "params")), step, self.problems)
        used: set[str] = set()
        steps = [_with_all(item, params, used) for item in items(entry(placed, "steps"))]
        for name in params.keys() - used - declared.keys():
            message = f"nothing in the template {template.job_type} uses {name}"
            hint = did_you_mean(name, declared)
            self.problems.warn(params[name], "unused_param", message, hint=hint)
        return _joined(step, steps)

    def _report_unknown(self, place: Node, name: str, version: str) -> None:
        if self.templates.step_type(name, version):
            message, hint = f"{name} is a template of a single job", f"write - job: {{type: {name}, …}}"
        elif versions := self.templates.versions(name):
            message, hint = f"there is no version {version} of the template {name}", did_you_mean(version, versions)
        else:
            message = f"there is no template {name}"
            hint = did_you_mean(name, self.templates.workflow_names())
        self.problems.add(place, "unknown_template", message, hint=hint)


def _with_all(wrapper: Node, params: Mapping[str, Node], used: set[str]) -> Node:
    """Return a wrapped step with params, those inside it too."""
    found = {}
    for kind, step in entries(wrapper).items():
        filled, names = with_params(step, params)
        used |= names
        steps = entry(filled, "steps")
        if steps is not None:
            inner = [_with_all(item, params, used) for item in items(steps)]
            filled = filled.made({**entries(filled), "steps": steps.made(inner)})
        found[kind] = filled
    return wrapper.made(found)


def _joined(step: Node, steps: Sequence[Node]) -> _Piece:
    """Return the steps of a template tied to what stands around the step that names it."""
    inner = [next(iter(entries(wrapper).items())) for wrapper in steps]
    targets = {target for _, item in inner for target in _successors(item)}
    outer = entries(step)
    found, first, last = [], [], []
    for kind, item in inner:
        parts = dict(entries(item))
        parts |= {key: outer[key] for key in _SPREAD if key in outer and key not in parts}
        step_id = text(parts["id"]) or ""
        if step_id not in targets:
            first.append(step_id)
            parts = _with_listed(parts, "signal_dependencies", outer)
        if not _successors(item):
            last.append(step_id)
            parts = _with_listed(parts, "signal_outputs", outer)
            if successors := _successors(step):
                parts["transition"] = step.made({"successors": successors})
        found.append(step.made({kind: parts}))
    return _Piece(tuple(found), tuple(first), tuple(last))


def _with_listed(parts: dict[str, Node], key: str, outer: Mapping[str, Node]) -> dict[str, Node]:
    more = items(outer.get(key))
    return {**parts, key: outer[key].made([*items(parts.get(key)), *more])} if more else parts


def _successors(step: Node) -> Mapping[str, Node]:
    return entries(entry(step, "transition", "successors"))


def _rewired(wrapper: Node, pieces: Mapping[str, _Piece]) -> Node:
    """Return a step that leads to the first steps of templates rather than to the templates."""
    ((kind, step),) = entries(wrapper).items()
    transition = entry(step, "transition")
    if transition is None:
        return wrapper
    parts = dict(entries(transition))
    if "successors" in parts:
        ends = {end: item for target, item in _successors(step).items() for end in _ends(target, pieces, "first")}
        parts["successors"] = parts["successors"].made(ends)
    if "predecessors" in parts:
        before = [end for item in items(parts["predecessors"]) for end in _ends(text(item) or "", pieces, "last")]
        parts["predecessors"] = parts["predecessors"].made(before)
    return wrapper.made({kind: step.made({**entries(step), "transition": transition.made(parts)})})


def _ends(step_id: str, pieces: Mapping[str, _Piece], side: str) -> Iterator[str]:
    if step_id not in pieces:
        yield step_id
        return
    for end in getattr(pieces[step_id], side):
        yield from _ends(end, pieces, side)
