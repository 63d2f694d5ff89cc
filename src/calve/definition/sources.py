"""Where expressions stand in a canonical document, and what its steps refer to."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from calve.definition.document import Node
from calve.definition.model.names import SEPARATOR
from calve.definition.model.params import ParamType
from calve.definition.params import references, step_reference
from calve.definition.step_types.reading import Given, given
from calve.definition.walking import all_steps, entries, entry, items, text
from calve.expressions import ParamCall, calls, complete, inputs, parse

BESIDE = ""
"""Stands for what a step says outside of its params."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A name as it is written, such as ``day`` or ``step.param``; or a param of a step that an expression asks for."""

    name: str | None
    """None where only the run tells which param it is."""
    step: str | None = None


def references_of(step: Node) -> dict[str, frozenset[Reference]]:
    """Return what each param of a step refers to, and ``BESIDE`` them what else of it does, but for its edges."""
    found = {name: frozenset(references_in(given(node))) for name, node in entries(entry(step, "params")).items()}
    texts = (name for item in items(entry(step, "targets")) for name in references(text(item) or ""))
    beside = {*map(Reference, texts), *_of_expression(text(entry(step, "condition")) or "")}
    for dependency in items(entry(step, "signal_dependencies")):
        for match in entries(entry(dependency, "match_params")).values():
            beside |= _of_all(match)
    for output in items(entry(step, "signal_outputs")):
        beside |= _of_all(entry(output, "params"))
    return {**found, BESIDE: frozenset(beside)}


def named_step(name: str, steps: Collection[str]) -> tuple[str, str]:
    """Return the step and the param that ``step.param`` or ``step__param`` means; empty where it means none."""
    dotted = step_reference(name, steps)
    if dotted is None and SEPARATOR in name:
        for step_id in sorted(steps, key=len, reverse=True):
            if name.startswith(f"{step_id}{SEPARATOR}"):
                return step_id, name[len(step_id) + len(SEPARATOR) :]
    return dotted or ("", "")


def _of_all(params: Node | None) -> set[Reference]:
    return {reference for node in entries(params).values() for reference in references_in(given(node))}


def references_in(param: Given) -> Iterator[Reference]:
    """Yield what a param refers to, and what its members do if it is a map."""
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
    """Yield every text that is an expression: of params, edges, loops and triggers."""
    workflow = entry(document, "workflow")
    yield from _of_params(entry(workflow, "params"))
    for _, step in all_steps(workflow):
        yield from expressions_of(step)
    for trigger in items(entry(workflow, "signal_triggers")):
        yield from _of_params(entry(trigger, "params"))
        yield from _texts(entry(trigger, "condition"), entry(trigger, "dedup_expr"))


def expressions_of(step: Node) -> Iterator[Node]:
    """Yield the expressions of one step, without those of steps inside it."""
    yield from _of_params(entry(step, "params"))
    yield from _texts(*entries(entry(step, "transition", "successors")).values(), entry(step, "condition"))
    for dependency in items(entry(step, "signal_dependencies")):
        for match in entries(entry(dependency, "match_params")).values():
            yield from _of_params(match)
    for output in items(entry(step, "signal_outputs")):
        yield from _of_params(entry(output, "params"))


def _of_params(params: Node | None) -> Iterator[Node]:
    for param in entries(params).values():
        yield from _texts(entry(param, "expression"))
        if text(entry(param, "type")) == "MAP":
            yield from _of_params(entry(param, "value"))


def _texts(*nodes: Node | None) -> Iterator[Node]:
    yield from (node for node in nodes if node is not None and text(node))
