"""A document as it was written: values, each with its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a text; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Node:
    """A value and where it stands: a scalar, a list of nodes, or a mapping of nodes by key."""

    value: "bool | int | float | str | list[Node] | dict[str, Node] | None"
    mark: Mark
    path: str
    key_mark: Mark | None = None
    """Where the key stands that leads to this value."""

    def plain(self) -> Any:
        """Return the value without places."""
        match self.value:
            case list() as items:
                return [item.plain() for item in items]
            case dict() as entries:
                return {key: item.plain() for key, item in entries.items()}
            case scalar:
                return scalar

    def made(self, value: Any) -> "Node":
        """Return another value that stands at the same place; plain values inside it are placed here too."""
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
        """Return the deepest node that the steps lead to; steps that lead nowhere are left out."""
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
