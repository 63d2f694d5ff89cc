"""Where expressions stand in a canonical document."""

from collections.abc import Iterator

from calve.definition.document import Node
from calve.definition.walking import all_steps, entries, entry, items, text


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
