"""What a long computation asks before it goes on."""

from typing import Protocol


class Budget(Protocol):
    """Raises when there is not enough left."""

    def check_room(self, size: int) -> None:
        """Refuse to make something of ``size`` bytes that would not fit."""
        ...

    def tick(self, work: int = 0) -> None:
        """Look at the clock now and then, sooner after much work."""
        ...

    def search(self, steps: int) -> None:
        """Count steps of a search by a regular expression."""
        ...
