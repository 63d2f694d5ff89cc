"""The canonical document of a workflow described in Python; each part has its line of Python as position."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from calve.definition import Mark, Node, Problem, Problems, did_you_mean
from calve.dsl.graph import Edge, Graph, Otherwise, Step
from calve.dsl.location import Described, Location, Unsupported
from calve.errors import DefinitionInvalid


@dataclass(slots=True)
class Document:
    """A description as a tree of nodes, and the location of each by its path."""

    problems: Problems
    root: Location
    locations: dict[str, Location] = field(default_factory=dict)

    def node(self, value: Any, location: Location, path: str = "") -> Node:
        """Return a value as a node; parts of it that have their own location keep it."""
        if isinstance(value, Described):
            return self.node(value.value, value.location, path)
        mark = Mark(location.line, 1)
        self.locations[path] = location
        match value:
            case Mapping():
                inside = {
                    str(key): self._entry(item, location, f"{path}.{key}".lstrip(".")) for key, item in value.items()
                }
                built: Any = {key: node for key, node in inside.items() if node is not None}
            case list():
                built = [self.node(item, location, f"{path}[{index}]") for index, item in enumerate(value)]
            case _:
                built = value
        return Node(built, mark, path, mark)

    def _entry(self, value: Any, location: Location, path: str) -> Node | None:
        """Return a node, or report why there is none."""
        if isinstance(value, Described) and isinstance(value.value, Unsupported):
            return self._entry(value.value, value.location, path)
        if not isinstance(value, Unsupported):
            return self.node(value, location, path)
        self.report(location, value.code, value.message, hint=value.hint, path=path)
        return None

    def report(self, location: Location, code: str, message: str, *, path: str, hint: str = "") -> None:
        """Report a problem with a part that has no node."""
        self.locations[path] = location
        self.problems.add(Node(None, Mark(location.line, 1), path), code, message, hint=hint)

    def error(self, name: str) -> DefinitionInvalid:
        """Return an error with all problems, each with its line."""
        errors = self.problems.errors
        lines = [self._line(problem) for problem in errors]
        count = f"{name} has {len(lines)} problems:\n  "
        return DefinitionInvalid(
            lines[0] if len(lines) == 1 else count + "\n  ".join(lines),
            remedy=errors[0].hint,
            workflow=name,
            problems=[{**problem.as_json(), "file": self._location(problem).file} for problem in self.problems],
        )

    def _line(self, problem: Problem) -> str:
        path = f" ({problem.path})" if problem.path else ""
        hint = f" – {problem.hint}" if problem.hint else ""
        return f"{self._location(problem)}: {problem.message}{path}{hint}"

    def _location(self, problem: Problem) -> Location:
        return self.locations.get(problem.path, self.root)


def steps_of(graph: Graph, document: Document) -> list[Described]:
    """Return the steps of a workflow or loop as a definition spells them, with the edges between them."""
    successors: dict[str, dict[str, Described]] = {step.id: {} for step in graph.steps}
    for edge in _edges(graph, document):
        if edge.source not in successors:
            hint = did_you_mean(edge.source, successors)
            message = f"there is no step {edge.source} in {graph.name}"
            document.report(edge.location, "unknown_step", message, path=str(edge), hint=hint)
            continue
        condition = Described(_condition(edge, graph), edge.location)
        first = successors[edge.source].setdefault(edge.target, condition)
        if first.value != condition.value:
            message = f"{edge} is drawn twice: if {first.value}, and if {condition.value}"
            document.report(edge.location, "edge_twice", message, path=str(edge))
    # Of several steps with the same id the first gets the edges; another check reports the duplicate.
    return [
        Described({step.kind: _step(step, successors.pop(step.id, {}), document)}, step.location)
        for step in graph.steps
    ]


def _step(step: Step, successors: dict[str, Described], document: Document) -> dict[str, Any]:
    fields = dict(step.fields)
    if successors:
        fields["transition"] = {"successors": successors}
    if step.inner is not None:
        fields["steps"] = steps_of(step.inner, document)
    return fields


def _edges(graph: Graph, document: Document) -> list[Edge]:
    if not graph.is_sequential:
        return graph.edges
    for edge in graph.edges:
        message = f"the steps of {graph.name} are sequential, so they cannot have edges"
        document.report(
            edge.location, "edge_unused", message, path=str(edge), hint="remove either sequential() or the edges"
        )
    pairs = pairwise(graph.steps)
    return [Edge(source.id, target.id, None, source.location) for source, target in pairs]


def _condition(edge: Edge, graph: Graph) -> str:
    match edge.condition:
        case str() as condition:
            return condition
        case Otherwise() if others := graph.conditions_of(edge.source):
            return f"!(({') || ('.join(others)}))"
        case _:
            return "true"
