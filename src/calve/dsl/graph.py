"""Steps and the edges between them, described inside a ``with`` statement."""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

from calve.definition import did_you_mean
from calve.dsl.location import Location, here
from calve.dsl.values import ParamSource, Reference, refer


@dataclass(frozen=True, slots=True)
class Otherwise:
    """The condition that is true when no other condition of the step is."""


Condition: TypeAlias = str | Otherwise | None
"""An expression; None for an edge without a condition."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge from one step to another, with its condition."""

    source: str
    target: str
    condition: Condition
    location: Location

    def __str__(self) -> str:
        return f"{self.source} >> {self.target}"


@dataclass(slots=True, eq=False)
class Graph:
    """The steps and edges of a workflow or a loop."""

    name: str
    steps: "list[Step]" = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    is_sequential: bool = False
    is_open: bool = False

    def enter(self) -> None:
        """Start the description."""
        if self.is_open or self.steps:
            raise here().refuse(f"{self.name} has already been described", remedy="Use one with statement for it.")
        self.is_open = True
        _OPEN.set((*_OPEN.get(), self))

    def leave(self) -> None:
        """End the description."""
        self.is_open = False
        _OPEN.set(_OPEN.get()[:-1])

    def check_open(self, location: Location) -> None:
        """Refuse edges that are drawn after the end of the description."""
        if not self.is_open:
            remedy = "Draw its edges inside the with statement that describes it."
            raise location.refuse(f"the description of {self.name} has ended", remedy=remedy)

    def conditions_of(self, step_id: str) -> list[str]:
        """Return the conditions on the edges from a step."""
        return [edge.condition for edge in self.edges if edge.source == step_id and isinstance(edge.condition, str)]


_OPEN: ContextVar[tuple[Graph, ...]] = ContextVar("calve_dsl_open", default=())


def active(what: str, location: Location) -> Graph:
    """Return the innermost graph that is being described."""
    graphs = _OPEN.get()
    if not graphs:
        raise location.refuse(f"{what} is outside of every workflow", remedy="Describe it inside `with Workflow(…):`.")
    return graphs[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Step(ParamSource):
    """A step that has been described.

    ``a >> b`` runs ``b`` after ``a``; either side may be a list, or the id of a step in the same graph.
    ``a["name"]`` refers to one of its params, in texts and as a value.
    """

    id: str
    kind: str
    fields: dict[str, Any] = field(repr=False)
    location: Location = field(repr=False)
    graph: Graph = field(repr=False)
    inner: Graph | None = field(repr=False, default=None)

    def __getitem__(self, name: str) -> Reference:
        return Reference(f"{self.id}.{name}", f"params.getFromStep('{self.id}', '{name}')")

    def when(self, condition: str) -> "Ends":
        """Return the step with a condition for the edges that follow.

        Args:
            condition: An expression over the params of the step and the workflow.
        """
        return Ends(self.graph, ((self.id, condition.strip()),))

    def otherwise(self) -> "Ends":
        """Return the step with the condition that none of its other conditions is true."""
        return Ends(self.graph, ((self.id, Otherwise()),))

    def __rshift__(self, targets: "Targets") -> "Ends":
        return Ends(self.graph, ((self.id, None),)) >> targets

    def __rrshift__(self, sources: "str | Sequence[object]") -> "Ends":
        return sources >> Ends(self.graph, ((self.id, None),))


class Loop(Step):
    """A loop; the steps that are described inside its ``with`` are its steps.

    ``loop["name"]`` refers to one of its loop params, for the steps inside.
    """

    __slots__ = ()

    def __enter__(self) -> Self:
        self.graph.check_open(here())
        self._inside.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inside.leave()

    def __getitem__(self, name: str) -> Reference:
        known = [*self.fields["params"]["loop_params"]["value"], "loop_index"]
        if name not in known:
            raise here().refuse(f"{self.id} has no loop param {name}", remedy=did_you_mean(name, known))
        return refer(name)

    @property
    def _inside(self) -> Graph:
        return cast("Graph", self.inner)  # every loop has one

    def sequential(self) -> None:
        """Run the steps inside one after the other, in the order of their description."""
        self._inside.is_sequential = True


@dataclass(frozen=True, slots=True)
class Ends:
    """Steps with the conditions of the edges that follow from them."""

    graph: Graph = field(repr=False)
    steps: "tuple[tuple[str, Condition], ...]"

    def __rshift__(self, targets: "Targets") -> "Ends":
        location = here()
        self.graph.check_open(location)
        ends = _ends(targets, self.graph, location)
        for source, condition in self.steps:
            self.graph.edges += [Edge(source, target, condition, location) for target, _ in ends.steps]
        return ends

    def __rrshift__(self, sources: "str | Sequence[object]") -> "Ends":
        return _ends(sources, self.graph, here()) >> self


Targets: TypeAlias = Step | Ends | str | Sequence[Step | Ends | str]
"""What either side of an edge may be."""


def _ends(given: object, graph: Graph, location: Location) -> Ends:
    """Return one side of an edge; refuse steps of another graph."""
    items = given if isinstance(given, list | tuple) else [given]
    return Ends(graph, tuple(end for item in items for end in _end(item, graph, location)))


def _end(item: object, graph: Graph, location: Location) -> "tuple[tuple[str, Condition], ...]":
    match item:
        case str():
            return ((item, None),)
        case Step():
            end = Ends(item.graph, ((item.id, None),))
        case Ends():
            end = item
        case _:
            raise location.refuse(f"an edge joins steps, not a {item.__class__.__name__}")
    if end.graph is not graph:
        raise location.refuse(
            f"{', '.join(name for name, _ in end.steps)} is in {end.graph.name}, "
            f"and the other side of the edge in {graph.name}",
            remedy="Draw edges between steps of one workflow or one loop; to enter a loop, draw an edge to the loop.",
        )
    return end.steps
