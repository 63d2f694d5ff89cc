"""What retention needs of others: a store that tells what it keeps, and forgets it."""

from collections.abc import Sequence
from typing import Protocol

from calve.retention.model import Key, Kind, Page


class RetentionState(Protocol):
    """Keeps what would grow for ever."""

    def old(self, kind: Kind, before: int, after: Key, limit: int, followers: Sequence[str]) -> Page:
        """Return what is older than a time, at most so much, from the place after ``after``; none is the beginning.

        Args:
            kind: of which kind.
            before: the time.
            after: the place.
            limit: how many rows are looked at.
            followers: who still has to see events before they go.
        """
        ...

    def forget(self, kind: Kind, keys: Sequence[Key], now: int) -> int:
        """Forget some of a kind, a bounded number of rows at a time; return how many there were."""
        ...

    def position(self, name: str, first: int | None = None) -> int:
        """Return how far somebody has come; who is new begins at ``first``."""
        ...

    def move(self, name: str, before: int, after: int) -> None:
        """Move somebody on.

        Raises:
            Conflict: he is no longer where he was.
        """
        ...
