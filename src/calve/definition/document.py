"""A document as it was written: values that know their line and column, and walks over them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mark:
    """A position in a text; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Node:
    """A value and its position: a scalar, a list of nodes, or a mapping of nodes by key."""

    value: "bool | int | float | str | list[Node] | dict[str, Node] | None"
    mark: Mark
    path: str
    key_mark: Mark | None = None
    """The position of the key of this value."""

    def plain(self) -> Any:
        """Return the plain value, without positions."""
        match self.value:
            case list() as items:
                return [item.plain() for item in items]
            case dict() as entries:
                return {key: item.plain() for key, item in entries.items()}
            case scalar:
                return scalar

    def made(self, value: Any) -> "Node":
        """Return another value at the same position; plain values inside it get this position too."""
        match value:
            case Node():
                return value
            case Mapping():
                placed: Any = {key: self.made(item) for key, item in value.items()}
            case list() | tuple():
                placed = [self.made(item) for item in value]
            case _:
                placed = value
        return Node(placed, self.mark, self.path, self.key_mark)

    def at(self, steps: tuple[str | int, ...]) -> "Node":
        """Return the deepest node on a path of keys and indexes; those that do not exist are skipped."""
        node = self
        for step in steps:
            match node.value, step:
                case dict() as entries, str() if step in entries:
                    node = entries[step]
                case list() as items, int() if step < len(items):
                    node = items[step]
                case _:
                    pass
        return node


NOWHERE = Node(None, Mark(1, 1), "")
"""The position of values that were not read from a text."""


def entry(node: Node | None, *keys: str) -> Node | None:
    """Return the value at a path of keys; None if it does not exist."""
    for key in keys:
        if node is None or not isinstance(node.value, dict):
            return None
        node = node.value.get(key)
    return node


def entries(node: Node | None) -> dict[str, Node]:
    """Return the entries of a mapping; empty for any other value."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def items(node: Node | None) -> list[Node]:
    """Return the items of a list; empty for any other value."""
    return node.value if node is not None and isinstance(node.value, list) else []


def text(node: Node | None) -> str | None:
    """Return a text; None for any other value."""
    return node.value if node is not None and isinstance(node.value, str) else None


def texts(node: Node | None) -> Iterator[str]:
    """Yield every text inside a value, without the keys."""
    match node.value if node is not None else None:
        case str() as found:
            yield found
        case list() as listed:
            for item in listed:
                yield from texts(item)
        case dict() as mapping:
            for item in mapping.values():
                yield from texts(item)
        case _:
            pass


def id_of(step: Node) -> str:
    """Return the id of a step; empty if it has none."""
    return text(entry(step, "id")) or ""


def successors(step: Node) -> dict[str, Node]:
    """Return the steps that a step leads to, each with its condition."""
    return entries(entry(step, "transition", "successors"))


def steps_of(holder: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the kind and the mapping of each step directly in a workflow or loop."""
    for wrapper in items(entry(holder, "steps")):
        yield from entries(wrapper).items()


def all_steps(holder: Node | None) -> Iterator[tuple[str, Node]]:
    """Yield the kind and the mapping of each step, including those inside loops."""
    for kind, step in steps_of(holder):
        yield kind, step
        yield from all_steps(step)
