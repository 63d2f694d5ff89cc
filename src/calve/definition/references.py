"""The expressions of a canonical document, and what its steps refer to."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from calve.definition.document import Node, all_steps, entries, entry, items, text
from calve.definition.model import SEPARATOR, ParamType
from calve.definition.params import references, step_reference
from calve.definition.step_types import Given, given
from calve.expressions import ParamCall, calls, complete, inputs, parse

BESIDE = ""
"""Stands for the rest of the step, in place of the name of a param."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A name as written, such as ``day`` or ``step.param``; or a param of a step that an expression reads."""

    name: str | None
    """None if it is known only at run time."""
    step: str | None = None


def references_of(step: Node) -> dict[str, frozenset[Reference]]:
    """Return what each param of a step refers to, and under ``BESIDE`` what the rest of it does, without edges."""
    found = {name: frozenset(references_in(given(node))) for name, node in entries(entry(step, "params")).items()}
    texts = (name for item in items(entry(step, "targets")) for name in references(text(item) or ""))
    beside = {*map(Reference, texts), *_of_expression(text(entry(step, "condition")) or "")}
    signals = (node for params in _signal_params(step) for node in entries(params).values())
    beside.update(reference for node in signals for reference in references_in(given(node)))
    return {**found, BESIDE: frozenset(beside)}


def _signal_params(step: Node) -> Iterator[Node | None]:
    """Yield the maps of params of the signals that a step waits for or sends."""
    for dependency in items(entry(step, "signal_dependencies")):
        yield from entries(entry(dependency, "match_params")).values()
    for output in items(entry(step, "signal_outputs")):
        yield entry(output, "params")


def named_step(name: str, steps: Collection[str]) -> tuple[str, str]:
    """Return the step and the param in ``step.param`` or ``step__param``; empty if it names no step."""
    dotted = step_reference(name, steps)
    if dotted is None and SEPARATOR in name:
        for step_id in sorted(steps, key=len, reverse=True):
            if name.startswith(f"{step_id}{SEPARATOR}"):
                return step_id, name[len(step_id) + len(SEPARATOR) :]
    return dotted or ("", "")


def references_in(param: Given) -> Iterator[Reference]:
    """Yield what a param refers to, including the members of a map."""
    yield from _of_expression(text(entry(param.node, "expression")) or "")
    match param.type:
        case ParamType.MAP:
            for member in param.inside().values():
                yield from references_in(member)
        case ParamType.STRING_MAP:
            for key, item in entries(param.value).items():
                yield from map(Reference, references(f"{key} {text(item) or ''}"))
        case _:
            texts = [text(item) for item in items(param.value)] or [text(param.value)]
            for found in filter(None, texts):
                yield from map(Reference, references(found))


def _of_expression(source: str) -> Iterator[Reference]:
    if not source:
        return
    program = parse(complete(source))
    yield from map(Reference, inputs(program))
    for call in calls(program):
        match call:
            case ParamCall("get", (name,)):
                yield Reference(name)
            case ParamCall("getFromStep", (str(step), name)):
                yield Reference(name, step)
            case ParamCall("getFromForeach", (_, str(step), name)):
                yield Reference(name, step)
            case _:
                pass


def all_expressions(document: Node) -> Iterator[Node]:
    """Yield every expression: of params, edges, loops and triggers."""
    workflow = entry(document, "workflow")
    yield from _of_params(entry(workflow, "params"))
    for _, step in all_steps(workflow):
        yield from expressions_of(step)
    for trigger in items(entry(workflow, "signal_triggers")):
        yield from _of_params(entry(trigger, "params"))
        yield from _texts(entry(trigger, "condition"), entry(trigger, "dedup_expr"))


def expressions_of(step: Node) -> Iterator[Node]:
    """Yield the expressions of one step, without those of the steps inside it."""
    yield from _of_params(entry(step, "params"))
    yield from _texts(*entries(entry(step, "transition", "successors")).values(), entry(step, "condition"))
    for params in _signal_params(step):
        yield from _of_params(params)


def _of_params(params: Node | None) -> Iterator[Node]:
    for param in entries(params).values():
        yield from _texts(entry(param, "expression"))
        if text(entry(param, "type")) == "MAP":
            yield from _of_params(entry(param, "value"))


def _texts(*nodes: Node | None) -> Iterator[Node]:
    yield from (node for node in nodes if node is not None and text(node))
