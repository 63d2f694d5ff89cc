"""How jobs follow one another: ``dag``, their own ``transition``, and ``depends_on``."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calve.definition.document import Node
from calve.definition.drawing import draw_dead_end
from calve.definition.forms.edges import ALWAYS, Edge, branched, branches_of, chain, chained
from calve.definition.forms.shapes import items_of
from calve.definition.problems import Problems, did_you_mean

SEQUENTIAL = "sequential"
PARALLEL = "parallel"
_FORMS = "write sequential, parallel, chains like a -> b, or a map of jobs to what comes next"


@dataclass(frozen=True, slots=True)
class Wired:
    """What a job says itself of its place among the others."""

    id: str
    node: Node
    transition: Node | None = None
    depends_on: Node | None = None


def transitions(jobs: Sequence[Wired], dag: Node | None, problems: Problems) -> dict[str, Node]:
    """Return the transition of each job that something follows."""
    ids = {job.id for job in jobs}
    own: list[Edge] = []
    wired: set[str] = set()
    for job in jobs:
        if job.transition is not None and (branches := list(branches_of(job.transition, problems))):
            own += branched(job.id, branches, problems)
            wired.add(job.id)
    common = list(_dag_edges(jobs, dag, problems)) if dag is not None else []
    _warn_of_unused([edge for edge in common if edge.source in wired], own, problems)
    used = [*own, *(edge for edge in common if edge.source not in wired)]
    used += [edge for job in jobs if job.depends_on is not None for edge in _dependencies(job, problems)]
    known = [edge for edge in used if edge.source in ids and edge.target in ids]
    _report_unknown(used, ids, problems)
    return _successors(known, problems)


def _dag_edges(jobs: Sequence[Wired], dag: Node, problems: Problems) -> Iterator[Edge]:
    match dag.value:
        case str() as word if word.strip().casefold() == SEQUENTIAL:
            yield from chained([job.id for job in jobs], dag)
        case str() as word if word.strip().casefold() == PARALLEL:
            return
        case str() as word if "->" not in word:
            hint = did_you_mean(word, (SEQUENTIAL, PARALLEL))
            problems.add(dag, "dag_unknown", f"{word!r} is not an order of jobs", hint=hint)
        case str() | list() | dict():
            yield from _listed(dag, {job.id for job in jobs}, problems)
        case _:
            problems.add(dag, "dag_unknown", "a dag is a word, a list or a map", hint=_FORMS)


def _listed(dag: Node, ids: set[str], problems: Problems) -> Iterator[Edge]:
    """Yield the edges of chains and maps; what is said of one job in several places is said together."""
    said: dict[str, list[Node]] = {}
    for item in items_of(dag):
        match item.value:
            case str() as text if (jobs := chain(text)) is not None:
                if len(jobs) == 1 and jobs[0] not in ids:
                    _no_such_job(jobs[0], item, ids, problems)
                yield from chained(jobs, item)
            case dict() as entries:
                for job, spec in entries.items():
                    said.setdefault(job.strip(), []).append(spec)
            case _:
                problems.add(item, "chain_malformed", "this is not a chain of jobs", hint=_FORMS)
    for job, specs in said.items():
        if job not in ids:
            _no_such_job(job, specs[0], ids, problems, at_key=True)
            continue
        branches = [branch for spec in specs for branch in branches_of(spec, problems)]
        yield from branched(job, branches, problems)


def _dependencies(job: Wired, problems: Problems) -> Iterator[Edge]:
    for item in items_of(job.depends_on or job.node):
        if isinstance(item.value, str):
            yield Edge(item.value.strip(), job.id, ALWAYS, item)
        else:
            problems.add(item, "dependency_malformed", f"{job.id} depends on jobs, each given by its id")


def _report_unknown(edges: Sequence[Edge], ids: set[str], problems: Problems) -> None:
    """Report each job that is not there, once for each place that names it."""
    places = {(job, edge.node.mark): edge for edge in edges for job in (edge.source, edge.target) if job not in ids}
    for (job, _), edge in places.items():
        _no_such_job(job, edge.node, ids, problems, drawing=draw_dead_end(edge.source, edge.target, ids))


def _no_such_job(
    job: str, node: Node, ids: set[str], problems: Problems, *, drawing: str = "", at_key: bool = False
) -> None:
    message, hint = f"there is no job {job} here", did_you_mean(job, sorted(ids))
    problems.add(node, "unknown_step", message, hint=hint, drawing=drawing, at_key=at_key)


def _warn_of_unused(common: Sequence[Edge], own: Sequence[Edge], problems: Problems) -> None:
    """Warn of edges of the dag that give way to what their job says itself."""
    said = {(edge.source, edge.target, edge.condition) for edge in own}
    for edge in common:
        if (edge.source, edge.target, edge.condition) not in said:
            problems.warn(
                edge.node,
                "edge_unused",
                f"{edge.source} has a transition of its own, so {edge.source} -> {edge.target} does not count",
            )


def _successors(edges: Sequence[Edge], problems: Problems) -> dict[str, Node]:
    found: dict[str, dict[str, Edge]] = {}
    for edge in edges:
        first = found.setdefault(edge.source, {}).setdefault(edge.target, edge)
        if first.condition != edge.condition:
            problems.add(
                edge.node,
                "edge_twice",
                f"{edge.source} -> {edge.target} is given twice: if {first.condition}, and if {edge.condition}",
                hint="write it once, with the conditions joined by ||",
            )
    return {source: _transition(list(targets.values())) for source, targets in found.items()}


def _transition(edges: Sequence[Edge]) -> Node:
    successors = {edge.target: edge.node.made(edge.condition) for edge in edges}
    return edges[0].node.made({"successors": successors})
