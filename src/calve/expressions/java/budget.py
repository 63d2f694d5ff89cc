"""The limits that a long computation checks as it goes."""

from collections.abc import Callable
from typing import Protocol, TypeVar

FoundT = TypeVar("FoundT")


class Budget(Protocol):
    """Raises when a limit is exceeded."""

    def check_room(self, size: int) -> None:
        """Raise if ``size`` bytes would not fit in memory."""
        ...

    def check_search(self, size: int) -> None:
        """Raise if ``size`` characters are too many to search."""
        ...

    def search(self, search: Callable[..., FoundT], text: str, start: int) -> FoundT:
        """Return what ``search(text, start, timeout=…)`` finds in the seconds that are left for all searches."""
        ...
