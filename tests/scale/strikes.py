"""What a kill has struck: the place where a pipeline was at that moment. Pure."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum


class Place(StrEnum):
    """A part of the way of a change."""

    CAPTURE = "capture"
    WRITE = "write"
    PUBLISH = "publish"
    COMMIT = "commit"
    IDLE = "idle"


_STEPS = {"capture": Place.CAPTURE, "write": Place.WRITE, "commit": Place.COMMIT}
_PUBLISHES = frozenset({"delivery.ready", "delivery.written", "delivery.published"})
"""The failpoints between which a target's ``main`` moves and the move is recorded."""


def place_of(step: str | None, points: Iterable[str]) -> Place:
    """Return where a worker is.

    Args:
        step: the step that it executes, if any.
        points: the failpoints that it has passed, oldest first; those of the store tell nothing of the way.
    """
    if step is None:
        return Place.IDLE
    passed = [point for point in points if not point.startswith("store.")]
    if step == "write" and passed and passed[-1] in _PUBLISHES:
        return Place.PUBLISH
    return _STEPS[step]


def struck_by(kind: str, places: Iterable[Place]) -> frozenset[Place]:
    """Return what the death of a part strikes, given where the workers were that it could strike.

    Schedulers and servers have no part in a step, and Spark only in what a step writes.
    """
    match kind:
        case "scheduler" | "server":
            return frozenset({Place.IDLE})
        case "spark":
            return frozenset({Place.WRITE} & set(places)) or frozenset({Place.IDLE})
        case _:
            return frozenset(places)


@dataclass(slots=True)
class Tally:
    """Counts kills by what was killed and what that struck."""

    each: int
    """How often each place has to be struck."""
    struck: Counter[tuple[str, Place]] = field(default_factory=Counter)

    def count(self, victim: str, places: Iterable[Place]) -> None:
        """Record one kill; a part that all workers share strikes what each of them does."""
        self.struck.update((victim, place) for place in places)

    def by_place(self, place: Place) -> int:
        """Return how often a place was struck."""
        return sum(count for (_, found), count in self.struck.items() if found is place)

    @property
    def wanted(self) -> Place | None:
        """The place that lacks the most strikes; None if there are enough everywhere."""
        place = min(Place, key=self.by_place)
        return place if self.by_place(place) < self.each else None

    def report(self) -> str:
        """Return a table: what was killed by what it struck."""
        victims = sorted({victim for victim, _ in self.struck})
        head = f"{'':12}" + "".join(f"{place:>9}" for place in Place)
        rows = [f"{victim:12}" + "".join(f"{self.struck[victim, place]:9}" for place in Place) for victim in victims]
        total = f"{'all':12}" + "".join(f"{self.by_place(place):9}" for place in Place)
        return "\n".join([head, *rows, total])
