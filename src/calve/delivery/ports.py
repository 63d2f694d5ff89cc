"""What delivery needs from outside: somewhere to remember its branches, and which tables it has delivered to."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from calve.delivery.model import Delivery, Staging, StoredBranch
from calve.lake import TableName


class DeliveryState(Protocol):
    """Keeps what delivery leaves in the lake; every method is one transaction."""

    def stage(self, branch: str, delivery: Delivery, attempt: str, targets: Sequence[TableName], now: datetime) -> None:
        """Record branches that are about to be made."""
        ...

    def hold(self, staging: Staging, now: datetime) -> None:
        """Keep branches to be published later, instead of those that an earlier attempt of the delivery held."""
        ...

    def held(self, capture_id: str) -> list[StoredBranch]:
        """Return the branches that are held for a capture, oldest first."""
        ...

    def branches(self, capture_id: str) -> list[StoredBranch]:
        """Return every branch that was made for a capture, oldest first."""
        ...

    def delivered_uuid(self, stream: str, target: TableName) -> str | None:
        """Return the identity of the table that a stream delivered to last under that name."""
        ...

    def note(self, staging: Staging, target: TableName, uuid: str, now: datetime) -> None:
        """Record that a target has been delivered to: its identity, and that its branch is done with."""
        ...

    def discard(self, branch: str, now: datetime) -> None:
        """Record that nobody will publish what is left of a staging."""
        ...

    def leftovers(self, before: datetime) -> list[StoredBranch]:
        """Return branches that nobody has touched since a time, oldest first; held ones too."""
        ...

    def forget(self, branch: str, target: TableName) -> None:
        """Remove the record of a branch that is gone for good."""
        ...
