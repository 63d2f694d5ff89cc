"""Walks over a canonical document whose parts may still be wrong."""

from collections.abc import Iterator

from calve.definition.document import Node


def entry(node: Node | None, *keys: str) -> Node | None:
    """Return what the keys lead to, or nothing where the way ends."""
    for key in keys:
        if node is None or not isinstance(node.value, dict):
            return None
        node = node.value.get(key)
    return node


def entries(node: Node | None) -> dict[str, Node]:
    """Return a mapping's entries; none, where it is no mapping."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def items(node: Node | None) -> list[Node]:
    """Return a list's items; none, where it is no list."""
    return node.value if node is not None and isinstance(node.value, list) else []


def text(node: Node | None) -> str | None:
    """Return a text; nothing, where it is none."""
    return node.value if node is not None and isinstance(node.value, str) else None


def steps_of(holder: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the kind and the mapping of each step that stands directly in a workflow or loop."""
    for wrapper in items(entry(holder, "steps")):
        yield from entries(wrapper).items()


def all_steps(holder: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the kind and the mapping of each step, those inside loops after the loop."""
    for kind, step in steps_of(holder):
        yield kind, step
        yield from all_steps(step)
