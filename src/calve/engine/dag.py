"""The graph of a workflow's steps, as the engine walks it."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from calve.definition.model.steps import Step


@dataclass(frozen=True, slots=True)
class Dag:
    """Which steps lead where, each edge with its condition; in the order of the definition."""

    successors: Mapping[str, Mapping[str, str]]
    predecessors: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, steps: Iterable[Step]) -> "Dag":
        """Return the graph of some steps."""
        successors = {step.id: dict(step.transition.successors) for step in steps}
        before: dict[str, list[str]] = {step_id: [] for step_id in successors}
        for step_id, edges in successors.items():
            for target in edges:
                before[target].append(step_id)
        return cls(successors, {step_id: tuple(sources) for step_id, sources in before.items()})

    def with_descendants(self, starts: Iterable[str], *, but: Collection[str] = ()) -> frozenset[str]:
        """Return some steps and all that come after them; the way ends at a step that is left out."""
        return _reached(starts, self.successors, but)

    def with_ancestors(self, ends: Iterable[str]) -> frozenset[str]:
        """Return some steps and all that come before them."""
        return _reached(ends, self.predecessors, ())


def _reached(starts: Iterable[str], ways: Mapping[str, Iterable[str]], but: Collection[str]) -> frozenset[str]:
    found = set(starts)
    waiting = list(found)
    while waiting:
        for target in ways[waiting.pop()]:
            if target not in found and target not in but:
                found.add(target)
                waiting.append(target)
    return frozenset(found)
