"""Expand templates: replace ``template`` steps by the steps of their templates. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calve.definition.document import Node, all_steps, entries, entry, id_of, items, successors, text
from calve.definition.model import InternalMode, ParamMode, ParamType, Rule
from calve.definition.params import references
from calve.definition.problems import Problems, did_you_mean
from calve.definition.templates.model import DEFAULT_VERSION, TemplateDefinition
from calve.definition.templates.registry import VERSION_PARAM, JobTemplates
from calve.errors import DefinitionInvalid

_CAPTURE_STEP = "capture_step"
_ID_FIELDS = frozenset({"id", "predecessors", _CAPTURE_STEP})
"""Keys whose value is the id of a step."""


def prefixed(prefix: str, step_id: str) -> str:
    """Return the id of a template's step in the workflow."""
    return f"{prefix}_{step_id}"


def renamed(value: Any, ids: Iterable[str], prefix: str) -> Any:
    """Return plain JSON with the ids of steps prefixed, also in edges and in references.

    References to a step are ``${step.param}``, ``step__param`` and ``getFromStep('step', …)``.
    """
    names = "|".join(re.escape(step_id) for step_id in sorted(ids, key=len, reverse=True))
    pattern = re.compile(
        rf"(?P<before>\$\{{|(?<![\w.$-])(?=(?:{names})__)|getFrom\w+\(\s*['\"])(?P<id>{names})(?=\.|__|['\"])"
    )
    return _Renamer(frozenset(ids), prefix, pattern).of(value)


class _Renamer:
    def __init__(self, ids: frozenset[str], prefix: str, pattern: re.Pattern[str]) -> None:
        self._ids = ids
        self._prefix = prefix
        self._pattern = pattern

    def of(self, value: Any, key: str = "") -> Any:
        match value:
            case str() if key in _ID_FIELDS and value in self._ids:
                return prefixed(self._prefix, value)
            case str():
                return self._pattern.sub(lambda found: found["before"] + prefixed(self._prefix, found["id"]), value)
            case list():
                return [self.of(item, key) for item in value]
            case dict() if key == "successors":
                return {self._id(name): self.of(item) for name, item in value.items()}
            case dict():
                # The text of a param is under "value", so its name is one level up.
                is_named = key == _CAPTURE_STEP
                return {name: self.of(item, key if is_named else name) for name, item in value.items()}
            case _:
                return value

    def _id(self, name: str) -> str:
        return prefixed(self._prefix, name) if name in self._ids else name


_EXPRESSIONS = frozenset({"expression", "condition", "successors"})
_WORD = re.compile(r"[A-Za-z_]\w*")


def bound(name: str, declared: Mapping[str, Node], step: Node, problems: Problems) -> dict[str, Node]:
    """Return the params of a template with the values of a step, and those that the step adds."""
    given = entries(entry(step, "params"))
    found: dict[str, Node] = {}
    for key, param in declared.items():
        own = given.get(key)
        mode = text(entry(param, "internal_mode"))
        has_value = bool({"value", "expression"} & entries(param).keys())
        if own is not None and mode == InternalMode.RESERVED:
            message = f"the template {name} sets {key} itself"
            problems.add(own, "reserved_param", message, hint="remove it", at_key=True)
        elif own is None and not has_value:
            if mode != InternalMode.OPTIONAL:
                problems.add(step, "missing_field", f"the template {name} requires {key}")
            continue
        found[key] = _plain(above(param, own) if own is not None else param, mode)
    return found | {key: param for key, param in given.items() if key not in declared}


def above(below: Node, own: Node) -> Node:
    """Return a param that overrides another: maps are merged key by key, anything else is replaced."""
    first, second = _as_map(below), _as_map(own)
    if first is None or second is None:
        return own
    merged = {key: above(first[key], item) if key in first else item for key, item in second.items()}
    return own.made({**entries(below), **entries(own), "type": ParamType.MAP.value, "value": {**first, **merged}})


def with_params(step: Node, params: Mapping[str, Node]) -> tuple[Node, frozenset[str]]:
    """Return a step with the template's params that it refers to added below its own, and their names.

    A param of the same name counts as a reference, unless it is constant.
    """
    own = entries(entry(step, "params"))
    shared = {key for key, item in own.items() if text(entry(item, "mode")) != ParamMode.CONSTANT}
    outside = {key: item for key, item in entries(step).items() if key not in {"params", "steps"}}
    names = {*shared, *_named(step.made(outside)), *_named(step.made(dict(own)))} & params.keys()
    waiting = list(names)
    while waiting:
        more = _named(params[waiting.pop()]) & params.keys() - names
        names |= more
        waiting += more
    below = {key: param for key, param in params.items() if key in names and key not in own}
    # The step's own come last: what they refer to is evaluated by then, and wins over the workflow's params.
    merged = {key: above(params[key], item) if key in shared & params.keys() else item for key, item in own.items()}
    found = {**below, **merged}
    written = {**entries(step), **({"params": found} if found else {})}
    return step.made(written), frozenset(names)


def _plain(param: Node, mode: str | None) -> Node:
    """Return a param without its internal mode, which only templates have; RESERVED becomes CONSTANT."""
    parts = {key: item for key, item in entries(param).items() if key != "internal_mode"}
    if (inside := _as_map(param)) is not None and text(parts.get("type")) == ParamType.MAP:
        parts["value"] = param.made({key: _plain(item, None) for key, item in inside.items()})
    return param.made({**parts, **({"mode": ParamMode.CONSTANT.value} if mode == InternalMode.RESERVED else {})})


def _as_map(param: Node) -> dict[str, Node] | None:
    """Return the params inside a literal map; None for any other param."""
    value = entry(param, "value")
    match text(entry(param, "type")):
        case ParamType.MAP if value is not None or "expression" not in entries(param):
            return dict(entries(value))
        case ParamType.STRING_MAP if value is not None:
            return {key: item.made({"type": "STRING", "value": item}) for key, item in entries(value).items()}
        case _:
            return None


def _named(node: Node) -> set[str]:
    """Return every name that texts inside a value refer to."""
    return set(_names(node, is_expression=False))


def _names(node: Node, *, is_expression: bool) -> Iterator[str]:
    match node.value:
        case str() as words if is_expression:
            yield from _WORD.findall(words)
        case str() as words:
            yield from references(words)
        case list() as items:
            for item in items:
                yield from _names(item, is_expression=False)
        case dict() as parts:
            for key, item in parts.items():
                yield from _names(item, is_expression=is_expression or key in _EXPRESSIONS)
        case _:
            pass


_SPREAD = ("failure_mode", "tags", "timeout")
"""Fields of a template step that its steps inherit unless they have their own."""


def expand(document: Node, templates: JobTemplates, problems: Problems) -> Node:
    """Return a canonical document without template steps; report those that cannot be expanded.

    The ids of a template's steps begin with the id of the step that names it. Edges to that step lead to the
    template's first steps, and its last steps lead to what came after. Each step gets the params that it refers to.
    """
    workflow = entry(document, "workflow")
    if not any(kind == "template" for kind, _ in all_steps(workflow)):
        return document
    version = text(entry(workflow, "params", VERSION_PARAM, "value"))
    expansion = _Expansion(templates, problems, version)
    shaped = expansion.holder(workflow or document, ())
    return _strategic(document.made({**entries(document), "workflow": shaped}), expansion.used, problems)


def _strategic(document: Node, used: Sequence[TemplateDefinition], problems: Problems) -> Node:
    """Return the document with the run strategy of a template, if it has none itself."""
    wanted = next((item for item in used if item.run_strategy), None)
    if wanted is None or wanted.run_strategy is None:
        return document
    properties = entry(document, "properties")
    given = entry(properties, "run_strategy")
    if given is None:
        written = {**entries(properties), "run_strategy": {"rule": wanted.run_strategy.value}}
        return document.made({**entries(document), "properties": (properties or document).made(written)})
    if text(entry(given, "rule")) == Rule.PARALLEL:
        message = f"the template {wanted.job_type} does not support instances that run in parallel"
        problems.warn(given, "run_strategy_unfit", message, hint=f"write run_strategy: {wanted.run_strategy.lower()}")
    return document


@dataclass(frozen=True, slots=True)
class _Piece:
    """The steps that replace a template step, and the ids of the first and last of them."""

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
                    pieces[id_of(step)] = piece
                    yield from self._flat(piece.steps, (*chain, name), pieces)
                else:
                    yield wrapper.made({kind: self.holder(step, chain)})

    def _piece(self, step: Node, chain: tuple[str, ...]) -> _Piece | None:
        """Return the steps that replace a template step; None if there is an error, which is reported."""
        step_id, name = text(entry(step, "id")), text(entry(step, "sub_type"))
        if step_id is None or name is None:
            return None  # the model reports what is missing
        version = text(entry(step, "sub_type_version")) or self.version or DEFAULT_VERSION
        template = self.templates.find(name, version)
        place = entry(step, "sub_type") or step
        if template is None or not template.is_workflow:
            self._report_unknown(place, name, version)
            return None
        if name in chain:
            shown = " -> ".join((*chain, name))
            self.problems.add(place, "template_cycle", f"a template contains itself: {shown}")
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
        ids = [id_of(inner) for _, inner in all_steps(step.made({"steps": written}))]
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
    """Return a wrapped step with params, also in the steps inside it."""
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
    """Return the steps of a template connected to the steps around the template step."""
    inner = [next(iter(entries(wrapper).items())) for wrapper in steps]
    targets = {target for _, item in inner for target in successors(item)}
    outer = entries(step)
    found, first, last = [], [], []
    for kind, item in inner:
        parts = dict(entries(item))
        parts |= {key: outer[key] for key in _SPREAD if key in outer and key not in parts}
        step_id = text(parts["id"]) or ""
        if step_id not in targets:
            first.append(step_id)
            parts = _with_listed(parts, "signal_dependencies", outer)
        if not successors(item):
            last.append(step_id)
            parts = _with_listed(parts, "signal_outputs", outer)
            if after := successors(step):
                parts["transition"] = step.made({"successors": after})
        found.append(step.made({kind: parts}))
    return _Piece(tuple(found), tuple(first), tuple(last))


def _with_listed(parts: dict[str, Node], key: str, outer: Mapping[str, Node]) -> dict[str, Node]:
    more = items(outer.get(key))
    return {**parts, key: outer[key].made([*items(parts.get(key)), *more])} if more else parts


def _rewired(wrapper: Node, pieces: Mapping[str, _Piece]) -> Node:
    """Return a step whose edges lead to the first steps of templates instead of the template steps."""
    ((kind, step),) = entries(wrapper).items()
    transition = entry(step, "transition")
    if transition is None:
        return wrapper
    parts = dict(entries(transition))
    if "successors" in parts:
        ends = {end: item for target, item in successors(step).items() for end in _ends(target, pieces, "first")}
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
