"""The graph of a workflow's steps, as the engine walks it."""

from collections.abc import Iterable, Mapping
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

    def with_descendants(self, starts: Iterable[str]) -> frozenset[str]:
        """Return some steps and all that come after them."""
        found = set(starts)
        waiting = list(found)
        while waiting:
            for target in self.successors[waiting.pop()]:
                if target not in found:
                    found.add(target)
                    waiting.append(target)
        return frozenset(found)
