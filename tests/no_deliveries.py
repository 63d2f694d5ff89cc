"""Deliveries for tests in which nothing is delivered."""

from collections.abc import Sequence

from calve.capture import DeliveredUpTo
from calve.delivery import Delivery, Published, Staging
from calve.steps import fatal


class NoDeliveries:
    """Deliveries of an installation in which no step writes exactly once."""

    def stage(self, targets: Sequence[str], delivery: Delivery, attempt: str) -> Staging:  # noqa: ARG002 - as below
        """Refuse to deliver."""
        raise fatal("Nothing here delivers to targets.")

    def publish(self, staging: Staging) -> list[Published]:  # noqa: ARG002 - as below
        """Publish nothing: nothing is staged."""
        return []

    def hold(self, staging: Staging) -> None:
        """Hold nothing: nothing is staged."""

    def discard(self, staging: Staging) -> None:
        """Discard nothing: nothing is staged."""

    def delivered(self, capture_id: str) -> bool:  # noqa: ARG002 - the port's signature
        """Tell that nothing has been published."""
        return False

    def delivered_up_to(self, declared: Sequence[tuple[str, str]], consumer: str) -> DeliveredUpTo | None:  # noqa: ARG002
        """Tell that nothing has been delivered."""
        return None

    def publish_held(self, capture_id: str) -> list[Published]:  # noqa: ARG002 - the same
        """Publish nothing: nothing is held."""
        return []
