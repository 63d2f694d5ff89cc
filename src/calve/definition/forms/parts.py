"""The parts of a definition that its form tells apart."""

from dataclasses import dataclass, field

from calve.definition.document import Node


@dataclass(frozen=True, slots=True)
class Parts:
    """What the body of a document gives: a workflow, and what was written among its keys."""

    workflow: Node
    properties: dict[str, Node] = field(default_factory=dict)
    is_active: Node | None = None
