"""Steps and the edges between them, as they are described inside a ``with``."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from calve.dsl.places import Place, here
from calve.dsl.values import Reference, Source


@dataclass(frozen=True, slots=True)
class Otherwise:
    """The condition that holds when no other condition of the step does."""


Condition: TypeAlias = str | Otherwise | None
"""An expression; None where the edge always holds."""


@dataclass(frozen=True, slots=True)
class Edge:
    """One step leads to another under a condition."""

    source: str
    target: str
    condition: Condition
    place: Place

    def __str__(self) -> str:
        return f"{self.source} >> {self.target}"


@dataclass(slots=True, eq=False)
class Graph:
    """What is described between a ``with`` and its end."""

    name: str
    steps: "list[Step]" = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    is_sequential: bool = False
    is_open: bool = False

    def enter(self) -> None:
        """Let steps be described here from now on."""
        if self.is_open or self.steps:
            raise here().refuse(f"{self.name} was described already", remedy="Use one with statement for it.")
        self.is_open = True
        _OPEN.set((*_OPEN.get(), self))

    def leave(self) -> None:
        """Let no more be described here."""
        self.is_open = False
        _OPEN.set(_OPEN.get()[:-1])

    def check_open(self, place: Place) -> None:
        """Refuse what is described after the end of the ``with``."""
        if not self.is_open:
            remedy = "Draw its edges inside the with statement that describes it."
            raise place.refuse(f"the description of {self.name} has ended", remedy=remedy)

    def conditions_of(self, step_id: str) -> list[str]:
        """Return the conditions that were given for the edges from a step."""
        return [edge.condition for edge in self.edges if edge.source == step_id and isinstance(edge.condition, str)]


_OPEN: ContextVar[tuple[Graph, ...]] = ContextVar("calve_dsl_open", default=())


def active(what: str, place: Place) -> Graph:
    """Return the innermost graph that is being described."""
    graphs = _OPEN.get()
    if not graphs:
        raise place.refuse(f"{what} is outside of every workflow", remedy="Describe it inside `with Workflow(…):`.")
    return graphs[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Step(Source):
    """A step that has been described.

    ``a >> b`` lets ``b`` run after ``a``; either side may be a list, or the id of a step in the same graph.
    ``a["name"]`` refers to one of its params, in texts and as a value.
    """

    id: str
    kind: str
    fields: dict[str, Any] = field(repr=False)
    place: Place = field(repr=False)
    graph: Graph = field(repr=False)
    inner: Graph | None = field(repr=False, default=None)

    def __getitem__(self, name: str) -> Reference:
        return Reference(f"{self.id}.{name}", f"params.getFromStep('{self.id}', '{name}')")

    def when(self, condition: str) -> "Ends":
        """Return the step with a condition on the edges that are drawn from it next.

        Args:
            condition: An expression over the params of the step and the workflow.
        """
        return Ends(self.graph, ((self.id, condition.strip()),))

    def otherwise(self) -> "Ends":
        """Return the step with the condition that none of its other conditions holds."""
        return Ends(self.graph, ((self.id, Otherwise()),))

    def __rshift__(self, targets: "Targets") -> "Ends":
        return Ends(self.graph, ((self.id, None),)) >> targets

    def __rrshift__(self, sources: "str | Sequence[object]") -> "Ends":
        return sources >> Ends(self.graph, ((self.id, None),))


@dataclass(frozen=True, slots=True)
class Ends:
    """Steps from which edges are about to be drawn, each with the condition of its edges."""

    graph: Graph = field(repr=False)
    steps: "tuple[tuple[str, Condition], ...]"

    def __rshift__(self, targets: "Targets") -> "Ends":
        place = here()
        self.graph.check_open(place)
        ends = _ends(targets, self.graph, place)
        for source, condition in self.steps:
            self.graph.edges += [Edge(source, target, condition, place) for target, _ in ends.steps]
        return ends

    def __rrshift__(self, sources: "str | Sequence[object]") -> "Ends":
        return _ends(sources, self.graph, here()) >> self


Targets: TypeAlias = Step | Ends | str | Sequence[Step | Ends | str]
"""What may stand on a side of an edge."""


def _ends(given: object, graph: Graph, place: Place) -> Ends:
    """Return what stands on a side of an edge, if it stands in the graph."""
    items = given if isinstance(given, list | tuple) else [given]
    return Ends(graph, tuple(end for item in items for end in _end(item, graph, place)))


def _end(item: object, graph: Graph, place: Place) -> "tuple[tuple[str, Condition], ...]":
    match item:
        case str():
            return ((item, None),)
        case Step():
            end = Ends(item.graph, ((item.id, None),))
        case Ends():
            end = item
        case _:
            raise place.refuse(f"an edge joins steps, not a {item.__class__.__name__}")
    if end.graph is not graph:
        raise place.refuse(
            f"{', '.join(name for name, _ in end.steps)} is in {end.graph.name}, "
            f"and the other side of the edge in {graph.name}",
            remedy="Draw edges between steps of one workflow or one loop; to enter a loop, draw an edge to the loop.",
        )
    return end.steps
