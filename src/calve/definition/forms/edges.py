"""Edges as they are written: chains, and branches with conditions."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from calve.definition.document import Node
from calve.definition.forms.shapes import items_of
from calve.definition.problems import Problems

ALWAYS = "true"
"""The condition of an edge that names none."""

_ID = r"[_a-zA-Z][.\-_a-zA-Z0-9]*"
_CHAIN = rf"{_ID}(?:\s*->\s*{_ID})*"
_PLAIN = re.compile(_CHAIN)
_IF_THEN = re.compile(rf"IF\s+(?P<condition>\S.*?)\sTHEN\s+(?P<chain>{_CHAIN})", re.IGNORECASE | re.DOTALL)
_IF = re.compile(r"IF\s+(?P<condition>\S.*)", re.IGNORECASE | re.DOTALL)
_OTHERWISE = re.compile(rf"OTHERWISE\s+(?P<chain>{_CHAIN})", re.IGNORECASE)
_ARROW = re.compile(r"\s*->\s*")
_FORMS = "write a job, IF <condition> THEN <job>, or OTHERWISE <job>"


@dataclass(frozen=True, slots=True)
class Edge:
    """One job comes after another, if the condition holds."""

    source: str
    target: str
    condition: str
    node: Node
    """Where it is written."""


@dataclass(frozen=True, slots=True)
class Always:
    """The jobs come next whatever holds."""

    def condition(self, ifs: Sequence[str]) -> str:  # noqa: ARG002 - the same for each kind of branch
        """Return the condition of the branch, beside those of the ifs."""
        return ALWAYS


@dataclass(frozen=True, slots=True)
class If:
    """The jobs come next if the text holds."""

    text: str

    def condition(self, ifs: Sequence[str]) -> str:  # noqa: ARG002 - the same for each kind of branch
        """Return the condition of the branch, beside those of the ifs."""
        return self.text


@dataclass(frozen=True, slots=True)
class Otherwise:
    """The jobs come next if none of the ifs holds."""

    def condition(self, ifs: Sequence[str]) -> str:
        """Return the condition of the branch, beside those of the ifs."""
        return f"!(({') || ('.join(ifs)}))" if ifs else ALWAYS


@dataclass(frozen=True, slots=True)
class Chain:
    """Jobs that follow one another."""

    jobs: tuple[str, ...]
    node: Node


@dataclass(frozen=True, slots=True)
class Branch:
    """What comes next, and when."""

    when: Always | If | Otherwise
    chains: tuple[Chain, ...]
    node: Node


def chain(text: str) -> tuple[str, ...] | None:
    """Return the jobs of ``a -> b -> c``; None for what is no chain."""
    stripped = text.strip()
    return tuple(_ARROW.split(stripped)) if _PLAIN.fullmatch(stripped) else None


def chained(jobs: Sequence[str], node: Node) -> Iterator[Edge]:
    """Yield the edges between jobs that follow one another."""
    for source, target in pairwise(jobs):
        yield Edge(source, target, ALWAYS, node)


def branched(source: str, branches: Sequence[Branch], problems: Problems) -> Iterator[Edge]:
    """Yield the edges of the branches after a job, and those inside them."""
    ifs = [branch.when.text for branch in branches if isinstance(branch.when, If)]
    for position, branch in enumerate(branches, start=1):
        if isinstance(branch.when, Otherwise) and position < len(branches):
            problems.add(branch.node, "otherwise_not_last", f"OTHERWISE must come last after {source}")
            continue
        for follows in branch.chains:
            yield Edge(source, follows.jobs[0], branch.when.condition(ifs), follows.node)
            yield from chained(follows.jobs, follows.node)


def branches_of(node: Node, problems: Problems) -> Iterator[Branch]:
    """Yield the branches that a text, a list of texts, or a map of IF and OTHERWISE gives."""
    for item in items_of(node):
        match item.value:
            case None:
                continue
            case str() as text if not text.strip():
                continue
            case str() as text:
                branch = _from_text(text, item)
                if branch is None:
                    problems.add(item, "transition_malformed", f"{text!r} is not a transition", hint=_FORMS)
                else:
                    yield branch
            case dict() as entries:
                found = (_from_entry(key, target, problems) for key, target in entries.items())
                yield from (branch for branch in found if branch is not None)
            case _:
                problems.add(item, "transition_malformed", "a transition is a text or a map of IF", hint=_FORMS)


def _from_text(text: str, node: Node) -> Branch | None:
    stripped = text.strip()
    if (jobs := chain(stripped)) is not None:
        return Branch(Always(), (Chain(jobs, node),), node)
    if (match := _IF_THEN.fullmatch(stripped)) is not None:
        return Branch(If(match["condition"].strip()), (_chain(match, node),), node)
    if (match := _OTHERWISE.fullmatch(stripped)) is not None:
        return Branch(Otherwise(), (_chain(match, node),), node)
    return None


def _chain(match: re.Match[str], node: Node) -> Chain:
    return Chain(tuple(_ARROW.split(match["chain"])), node)


def _from_entry(key: str, node: Node, problems: Problems) -> Branch | None:
    """Return the branch of ``IF <condition>: chain`` or ``OTHERWISE: chain``, whose value may list several chains."""
    when = _when(key.strip())
    if when is None:
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
    return Branch(when, tuple(chains), node)


def _when(key: str) -> If | Otherwise | None:
    if key.upper() == "OTHERWISE":
        return Otherwise()
    match = _IF.fullmatch(key)
    return If(match["condition"].strip()) if match else None
