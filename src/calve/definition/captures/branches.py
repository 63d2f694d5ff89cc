"""Which steps of a graph can run in the same run, according to the conditions of its edges. Pure.

A step runs when every step before it has ended and the condition of at least one edge that leads to it holds. So what
runs follows from the edges that hold after each step.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import TopologicalSorter

from calve.definition.graph import Edges, shortest_path
from calve.expressions import Atom, satisfiable

World = Callable[[str, Atom], bool | None]
"""Tells whether an atom holds in the conditions of the edges of a step; None if that is unknown."""
StepPath = tuple[str, ...]
"""A path: steps that follow one another."""


@dataclass(frozen=True)
class Branches:
    """A graph without cycles."""

    edges: Edges

    @cached_property
    def before(self) -> Mapping[str, frozenset[str]]:
        """For each step all that lead to it, directly or not."""
        sources: dict[str, set[str]] = {step: set() for step in self.edges}
        for step in self.order:
            for target in self.edges[step]:
                sources[target] |= sources[step] | {step}
        return {step: frozenset(found) for step, found in sources.items()}

    @cached_property
    def order(self) -> StepPath:
        """All steps, each after those that lead to it."""
        sorter = TopologicalSorter[str](dict.fromkeys(self.edges, ()))
        for step, targets in self.edges.items():
            for target in targets:
                sorter.add(target, step)
        return tuple(sorter.static_order())

    def path(self, start: str, goal: str) -> StepPath:
        """Return the shortest path from a step to one that comes after it."""
        return shortest_path([start], lambda step: self.edges[step], goal) or ()

    def under(self, world: World) -> "Runs":
        """Return the runs that are possible if these atoms hold."""

        def choices(step: str) -> frozenset[frozenset[str]]:
            return satisfiable(self.edges[step], lambda atom: world(step, atom))

        return Runs(self, {step: choices(step) for step in self.edges})


@dataclass(frozen=True)
class Runs:
    """The possible runs of a graph: after each step one of its choices holds, independently of other steps."""

    graph: Branches
    choices: Mapping[str, frozenset[frozenset[str]]]
    """For each step the sets of successors whose conditions can hold together."""
    _beside: dict[str, frozenset[str]] = field(default_factory=dict)

    def path_around(self, goal: str, avoided: Collection[str]) -> StepPath | None:
        """Return a path on which a run reaches a step without running the avoided ones; None if there is none."""
        within = self.graph.before[goal] | {goal}
        choices = {step: {one & within for one in self.choices[step]} for step in within}
        safe: dict[str, bool] = {}
        for step in reversed(self.graph.order):
            if step in within:
                safe[step] = step not in avoided and any(all(safe[target] for target in one) for one in choices[step])
        roots = [root for root in self._roots if root in within]
        if not all(safe[root] for root in roots):
            return None

        def following(step: str) -> Iterable[str]:
            return sorted({target for one in choices[step] if all(safe[each] for each in one) for target in one})

        return shortest_path(roots, following, goal)

    def beside(self, goal: str) -> frozenset[str]:
        """Return the steps that can run in the same run as a step, including itself; empty if it cannot run."""
        if goal not in self._beside:
            self._beside[goal] = frozenset(self._found_beside(goal))
        return self._beside[goal]

    def _found_beside(self, goal: str) -> set[str]:
        """Walk two paths at once, one of them to the goal.

        The one that is further back moves, so that two paths through one step meet there and agree on what follows it.
        """
        place, leading = self._places, {step for step in self.graph.edges if goal in self._reached[step]}
        found: set[str] = set()
        waiting = [(x, y) for x in self._roots if x in leading for y in self._roots]
        seen = set(waiting)
        while waiting:
            x, y = waiting.pop()
            found.add(y)
            if x == goal:
                found |= self._reached[y]
                continue
            if x == y:
                steps = [(a, b) for one in self.choices[x] for a in one & leading for b in one]
            elif place[x] < place[y]:
                steps = [(a, y) for a in self._following[x] & leading]
            else:
                steps = [(x, b) for b in self._following[y]]
            new = [pair for pair in steps if pair not in seen]
            seen.update(new)
            waiting += new
        return found

    def paths_to_both(self, one: str, other: str) -> tuple[StepPath, StepPath] | None:
        """Return the paths on which one run reaches both of two steps; None if no run reaches both."""
        if other not in self.beside(one):
            return None
        goals, place = (one, other), self._places
        inside = tuple({step for step in self.graph.edges if goal in self._reached[step]} for goal in goals)

        def following(pair: tuple[str, str]) -> Iterable[tuple[str, str]]:
            moving = [side for side in (0, 1) if pair[side] != goals[side]]
            first = min(moving, key=lambda side: place[pair[side]])
            is_shared = moving == [0, 1] and pair[0] == pair[1]
            for holding in sorted(self.choices[pair[first]], key=sorted):
                lefts = holding if is_shared or first == 0 else {pair[0]}
                rights = holding if is_shared or first == 1 else {pair[1]}
                yield from ((x, y) for x in sorted(lefts & inside[0]) for y in sorted(rights & inside[1]))

        roots = [(x, y) for x in self._roots if x in inside[0] for y in self._roots if y in inside[1]]
        found = shortest_path(roots, following, goals) or ()
        return tuple(dict.fromkeys(pair[0] for pair in found)), tuple(dict.fromkeys(pair[1] for pair in found))

    @cached_property
    def _roots(self) -> StepPath:
        """The steps at which a run starts."""
        return tuple(step for step in self.graph.order if not self.graph.before[step])

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {step: number for number, step in enumerate(self.graph.order)}

    @cached_property
    def _following(self) -> Mapping[str, frozenset[str]]:
        return {step: frozenset[str]().union(*choices) for step, choices in self.choices.items()}

    @cached_property
    def _reached(self) -> Mapping[str, frozenset[str]]:
        """For each step, itself and all that can run after it."""
        found: dict[str, frozenset[str]] = {}
        for step in reversed(self.graph.order):
            found[step] = frozenset({step}).union(*(found[target] for target in self._following[step]))
        return found
