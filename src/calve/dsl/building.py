"""From a description to a canonical document, each part of it at its line of Python."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from calve.definition.document import Mark, Node
from calve.definition.problems import Problem, Problems, did_you_mean
from calve.dsl.graphs import Edge, Graph, Otherwise, Step
from calve.dsl.places import Described, Place, Unfit
from calve.errors import DefinitionInvalid


@dataclass(slots=True)
class Document:
    """A description as a tree of nodes, and the place of each by its path."""

    problems: Problems
    root: Place
    places: dict[str, Place] = field(default_factory=dict)

    def node(self, value: Any, place: Place, path: str = "") -> Node:
        """Return a value as a node; what is described inside it stands at its own place."""
        if isinstance(value, Described):
            return self.node(value.value, value.place, path)
        mark = Mark(place.line, 1)
        self.places[path] = place
        match value:
            case Mapping():
                inside = {
                    str(key): self._entry(item, place, f"{path}.{key}".lstrip(".")) for key, item in value.items()
                }
                placed: Any = {key: node for key, node in inside.items() if node is not None}
            case list():
                placed = [self.node(item, place, f"{path}[{index}]") for index, item in enumerate(value)]
            case _:
                placed = value
        return Node(placed, mark, path, mark)

    def _entry(self, value: Any, place: Place, path: str) -> Node | None:
        """Return a node, or note why there is none."""
        if isinstance(value, Described) and isinstance(value.value, Unfit):
            return self._entry(value.value, value.place, path)
        if not isinstance(value, Unfit):
            return self.node(value, place, path)
        self.note(place, value.code, value.message, hint=value.hint, path=path)
        return None

    def note(self, place: Place, code: str, message: str, *, path: str, hint: str = "") -> None:
        """Note a problem of something that has no node."""
        self.places[path] = place
        self.problems.add(Node(None, Mark(place.line, 1), path), code, message, hint=hint)

    def error(self, name: str) -> DefinitionInvalid:
        """Return the error that tells all problems at once, each with its line."""
        errors = self.problems.errors
        lines = [self._told(problem) for problem in errors]
        count = f"{name} has {len(lines)} problems:\n  "
        return DefinitionInvalid(
            lines[0] if len(lines) == 1 else count + "\n  ".join(lines),
            remedy=errors[0].hint,
            workflow=name,
            problems=[{**problem.as_json(), "file": self._place(problem).file} for problem in self.problems],
        )

    def _told(self, problem: Problem) -> str:
        path = f" ({problem.path})" if problem.path else ""
        hint = f" – {problem.hint}" if problem.hint else ""
        return f"{self._place(problem)}: {problem.message}{path}{hint}"

    def _place(self, problem: Problem) -> Place:
        return self.places.get(problem.path, self.root)


def steps_of(graph: Graph, document: Document) -> list[Described]:
    """Return the steps of a workflow or loop in a definition's words, with the edges between them."""
    successors: dict[str, dict[str, Described]] = {step.id: {} for step in graph.steps}
    for edge in _edges(graph, document):
        if edge.source not in successors:
            hint = did_you_mean(edge.source, successors)
            message = f"there is no step {edge.source} in {graph.name}"
            document.note(edge.place, "unknown_step", message, path=str(edge), hint=hint)
            continue
        condition = Described(_condition(edge, graph), edge.place)
        first = successors[edge.source].setdefault(edge.target, condition)
        if first.value != condition.value:
            message = f"{edge} is drawn twice: if {first.value}, and if {condition.value}"
            document.note(edge.place, "edge_twice", message, path=str(edge))
    # Of steps with one id the first has the edges; that there are two is told elsewhere.
    return [
        Described({step.kind: _step(step, successors.pop(step.id, {}), document)}, step.place) for step in graph.steps
    ]


def _step(step: Step, successors: dict[str, Described], document: Document) -> dict[str, Any]:
    said = dict(step.fields)
    if successors:
        said["transition"] = {"successors": successors}
    if step.inner is not None:
        said["steps"] = steps_of(step.inner, document)
    return said


def _edges(graph: Graph, document: Document) -> list[Edge]:
    if not graph.is_sequential:
        return graph.edges
    for edge in graph.edges:
        message = f"the steps of {graph.name} are sequential, so no edge is to be drawn"
        document.note(
            edge.place, "edge_unused", message, path=str(edge), hint="leave out either sequential() or the edges"
        )
    pairs = pairwise(graph.steps)
    return [Edge(source.id, target.id, None, source.place) for source, target in pairs]


def _condition(edge: Edge, graph: Graph) -> str:
    match edge.condition:
        case str() as condition:
            return condition
        case Otherwise() if others := graph.conditions_of(edge.source):
            return f"!(({') || ('.join(others)}))"
        case _:
            return "true"
