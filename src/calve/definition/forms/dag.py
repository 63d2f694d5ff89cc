"""The edges between jobs: ``dag``, their own ``transition``, and ``depends_on``."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from calve.definition.document import Node
from calve.definition.forms.values import items_of
from calve.definition.graph import draw_dead_end
from calve.definition.problems import Problems, did_you_mean

ALWAYS = "true"
"""The condition of an edge that has none."""

_ID = r"[_a-zA-Z][.\-_a-zA-Z0-9]*"
_CHAIN = rf"{_ID}(?:\s*->\s*{_ID})*"
_PLAIN = re.compile(_CHAIN)
_IF_THEN = re.compile(rf"IF\s+(?P<condition>\S.*?)\sTHEN\s+(?P<chain>{_CHAIN})", re.IGNORECASE | re.DOTALL)
_IF = re.compile(r"IF\s+(?P<condition>\S.*)", re.IGNORECASE | re.DOTALL)
_OTHERWISE = re.compile(rf"OTHERWISE\s+(?P<chain>{_CHAIN})", re.IGNORECASE)
_ARROW = re.compile(r"\s*->\s*")
_BRANCH_FORMS = "write a job, IF <condition> THEN <job>, or OTHERWISE <job>"


@dataclass(frozen=True, slots=True)
class Edge:
    """One job comes after another, if the condition holds."""

    source: str
    target: str
    condition: str
    node: Node
    """Where it is written."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Jobs that follow one another."""

    jobs: tuple[str, ...]
    node: Node


@dataclass(frozen=True, slots=True)
class Branch:
    """What comes next, and when."""

    condition: str | None
    """The text of an IF, ``true`` if there is none; None for OTHERWISE."""
    chains: tuple[Chain, ...]
    node: Node
    is_if: bool = True


def chain(text: str) -> tuple[str, ...] | None:
    """Return the jobs of ``a -> b -> c``; None if it is not a chain."""
    stripped = text.strip()
    return tuple(_ARROW.split(stripped)) if _PLAIN.fullmatch(stripped) else None


def chained(jobs: Sequence[str], node: Node) -> Iterator[Edge]:
    """Yield the edges between jobs that follow one another."""
    for source, target in pairwise(jobs):
        yield Edge(source, target, ALWAYS, node)


def branched(source: str, branches: Sequence[Branch], problems: Problems) -> Iterator[Edge]:
    """Yield the edges of the branches after a job, and those inside them."""
    ifs = [branch.condition for branch in branches if branch.is_if and branch.condition is not None]
    otherwise = f"!(({') || ('.join(ifs)}))" if ifs else ALWAYS
    for position, branch in enumerate(branches, start=1):
        if branch.condition is None and position < len(branches):
            problems.add(branch.node, "otherwise_not_last", f"OTHERWISE must come last after {source}")
            continue
        for follows in branch.chains:
            yield Edge(source, follows.jobs[0], branch.condition or otherwise, follows.node)
            yield from chained(follows.jobs, follows.node)


def branches_of(node: Node, problems: Problems) -> Iterator[Branch]:
    """Yield the branches in a text, a list of texts, or a map of IF and OTHERWISE."""
    for item in items_of(node):
        match item.value:
            case None:
                continue
            case str() as text if not text.strip():
                continue
            case str() as text:
                branch = _from_text(text, item)
                if branch is None:
                    problems.add(item, "transition_malformed", f"{text!r} is not a transition", hint=_BRANCH_FORMS)
                else:
                    yield branch
            case dict() as entries:
                found = (_from_entry(key, target, problems) for key, target in entries.items())
                yield from (branch for branch in found if branch is not None)
            case _:
                problems.add(item, "transition_malformed", "a transition is a text or a map of IF", hint=_BRANCH_FORMS)


def _from_text(text: str, node: Node) -> Branch | None:
    stripped = text.strip()
    if (jobs := chain(stripped)) is not None:
        return Branch(ALWAYS, (Chain(jobs, node),), node, is_if=False)
    if (match := _IF_THEN.fullmatch(stripped)) is not None:
        return Branch(match["condition"].strip(), (_chain(match, node),), node)
    if (match := _OTHERWISE.fullmatch(stripped)) is not None:
        return Branch(None, (_chain(match, node),), node)
    return None


def _chain(match: re.Match[str], node: Node) -> Chain:
    return Chain(tuple(_ARROW.split(match["chain"])), node)


def _from_entry(key: str, node: Node, problems: Problems) -> Branch | None:
    """Return the branch of ``IF <condition>: chain`` or ``OTHERWISE: chain``, whose value may list several chains."""
    match = _IF.fullmatch(key.strip())
    if match is None and key.strip().upper() != "OTHERWISE":
        hint = "the keys here are IF <condition> and OTHERWISE"
        problems.add(node, "transition_malformed", f"{key!r} is not a condition", hint=hint, at_key=True)
        return None
    chains = []
    for item in items_of(node):
        jobs = chain(item.value) if isinstance(item.value, str) else None
        if jobs is None:
            problems.add(
                item, "chain_malformed", f"what follows {key} is not a chain of jobs", hint="write a -> b -> c"
            )
        else:
            chains.append(Chain(jobs, item))
    return Branch(match["condition"].strip() if match else None, tuple(chains), node)


SEQUENTIAL = "sequential"
PARALLEL = "parallel"
_FORMS = "write sequential, parallel, chains like a -> b, or a map of jobs to what comes next"


@dataclass(frozen=True, slots=True)
class Wired:
    """The edges that a job defines itself."""

    id: str
    node: Node
    transition: Node | None = None
    depends_on: Node | None = None


def transitions(jobs: Sequence[Wired], dag: Node | None, problems: Problems) -> dict[str, Node]:
    """Return the transition of each job that has successors."""
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
            problems.add(dag, "dag_unknown", f"{word!r} is not a dag", hint=hint)
        case str() | list() | dict():
            yield from _listed(dag, {job.id for job in jobs}, problems)
        case _:
            problems.add(dag, "dag_unknown", "a dag is a word, a list or a map", hint=_FORMS)


def _listed(dag: Node, ids: set[str], problems: Problems) -> Iterator[Edge]:
    """Yield the edges of chains and maps; several entries of one job are joined."""
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
            problems.add(item, "dependency_malformed", f"depends_on of {job.id} must list the ids of jobs")


def _report_unknown(edges: Sequence[Edge], ids: set[str], problems: Problems) -> None:
    """Report each job that does not exist, once for each place that names it."""
    places = {(job, edge.node.mark): edge for edge in edges for job in (edge.source, edge.target) if job not in ids}
    for (job, _), edge in places.items():
        _no_such_job(job, edge.node, ids, problems, drawing=draw_dead_end(edge.source, edge.target, ids))


def _no_such_job(
    job: str, node: Node, ids: set[str], problems: Problems, *, drawing: str = "", at_key: bool = False
) -> None:
    message, hint = f"there is no job {job} here", did_you_mean(job, sorted(ids))
    problems.add(node, "unknown_step", message, hint=hint, drawing=drawing, at_key=at_key)


def _warn_of_unused(common: Sequence[Edge], own: Sequence[Edge], problems: Problems) -> None:
    """Warn about edges of the dag that a job's own transition replaces."""
    said = {(edge.source, edge.target, edge.condition) for edge in own}
    for edge in common:
        if (edge.source, edge.target, edge.condition) not in said:
            problems.warn(
                edge.node,
                "edge_unused",
                f"{edge.source} has its own transition, so {edge.source} -> {edge.target} is ignored",
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
