"""What triggers need of others: a store that keeps them."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from calve.triggers.model import Kind, Trigger, Wanted


class TriggerState(Protocol):
    """Keeps the triggers of active versions. They are moved on by ``Changes.marks``, with what they start."""

    def unsynced(self, limit: int = 100) -> list[tuple[str, int | None]]:
        """Return workflows whose triggers are not those of their active version, and which that is."""
        ...

    def sync(self, workflow_id: str, version_id: int | None, wanted: Sequence[Wanted], now: int) -> bool:
        """Make the triggers of a workflow those of its active version, in one transaction.

        One whose definition is still the same goes on as it was; a changed one keeps its state and is to begin again;
        new ones are to begin; others are forgotten. All that are to begin are due at once.

        Returns:
            Whether it was done; not if another version is active by now.
        """
        ...

    def due(self, now: int, limit: int = 100, kinds: Iterable[Kind] = Kind) -> list[Trigger]:
        """Return triggers of some kinds that are due, the longest waiting first."""
        ...

    def next_due(self, kinds: Iterable[Kind] = Kind) -> int | None:
        """Return when the next trigger of some kinds is due; None if none is by itself."""
        ...

    def seqs(self, keys: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Return how often triggers were changed, by workflow and trigger; those that are gone are not there."""
        ...

    def trigger(self, workflow_id: str, trigger_id: str) -> Trigger | None:
        """Return a trigger."""
        ...

    def triggers(
        self,
        *,
        workflow_id: str | None = None,
        kind: Kind | None = None,
        after: tuple[str, str] = ("", ""),
        limit: int = 100,
    ) -> list[Trigger]:
        """Return triggers by workflow and id, from the one after ``after``."""
        ...

    def is_unfinished(self, workflow_id: str) -> bool:
        """Tell whether an instance of a workflow is not over."""
        ...

    def make_due(self, keys: Iterable[tuple[str, str]], now: int) -> int:
        """Let triggers be looked at now, whoever is looking at them already; return how many there were."""
        ...
