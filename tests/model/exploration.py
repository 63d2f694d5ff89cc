"""Explores every state that a small model can reach, breadth first, so that a fault comes with a shortest way to it."""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

State = TypeVar("State", bound=Hashable)


class Model(Protocol[State]):
    """A finite graph of states, and what must not be found in it."""

    def start(self) -> State:
        """Return the state in which everything begins."""
        ...

    def steps(self, state: State) -> Iterable[tuple[str, State]]:
        """Return everything that may happen next, and the state that it leads to."""
        ...

    def fault(self, state: State) -> str | None:
        """Return what is wrong with a state."""
        ...

    def fault_between(self, before: State, after: State) -> str | None:
        """Return what is wrong with going from one state to the next."""
        ...

    def is_done(self, state: State) -> bool:
        """Tell whether everything that was to be done is done."""
        ...


class Result(StrEnum):
    """What the exploration of a whole model came to."""

    HOLDS = "holds"
    VIOLATED = "violated"
    STUCK = "stuck"
    """Nothing wrong is ever reached, but from somewhere the end is not reached either."""


@dataclass(frozen=True, slots=True)
class Exploration:
    """The result for a model, and how it was found."""

    result: Result
    states: int
    fault: str = ""
    trace: tuple[str, ...] = ()
    """A shortest way to the fault, or to a state from which there is no way to the end."""


class TooManyStates(Exception):
    """The model has more states than it was said to have."""


def explore(model: Model[State], *, limit: int = 1_000_000) -> Exploration:
    """Return whether nothing wrong can be reached, and the end always can."""
    graph = _Graph(model.start())
    queue = deque([graph.start])
    while queue:
        before = queue.popleft()
        for label, after in model.steps(before):
            is_new = graph.add(before, label, after)
            fault = model.fault_between(before, after) or (model.fault(after) if is_new else None)
            if fault is not None:
                return Exploration(Result.VIOLATED, len(graph), fault, (*graph.way_to(before), label))
            if is_new:
                queue.append(after)
        if len(graph) > limit:
            raise TooManyStates(f"{len(graph)} states, and more to come")
    stuck = next(graph.without_way_to(filter(model.is_done, graph)), None)
    if stuck is not None:
        return Exploration(Result.STUCK, len(graph), "no way to the end", graph.way_to(stuck))
    return Exploration(Result.HOLDS, len(graph))


class _Graph(Generic[State]):
    """The states found so far, in the order of their distance from the start."""

    def __init__(self, start: State) -> None:
        self.start = start
        self._found_by: dict[State, tuple[State, str] | None] = {start: None}
        self._before: dict[State, list[State]] = {start: []}

    def __len__(self) -> int:
        return len(self._found_by)

    def __iter__(self) -> Iterator[State]:
        return iter(self._found_by)

    def add(self, before: State, label: str, after: State) -> bool:
        """Put a step down; tell whether its end was not known yet."""
        if after in self._found_by:
            self._before[after].append(before)
            return False
        self._found_by[after] = (before, label)
        self._before[after] = [before]
        return True

    def way_to(self, state: State) -> tuple[str, ...]:
        """Return what happens on a shortest way from the start."""
        labels = []
        while (found_by := self._found_by[state]) is not None:
            state, label = found_by
            labels.append(label)
        return tuple(reversed(labels))

    def without_way_to(self, ends: Iterable[State]) -> Iterator[State]:
        """Yield the states from which none of the ends can be reached, nearest to the start first."""
        reaching = set(ends)
        queue = deque(reaching)
        while queue:
            for before in self._before[queue.popleft()]:
                if before not in reaching:
                    reaching.add(before)
                    queue.append(before)
        return (state for state in self._found_by if state not in reaching)
