"""What the runtimes are given about the installation they work in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from calve.engine.ports import Clock, Place
from calve.lake import CurrentRights, all_open
from calve.settings import Settings
from calve.steps.surroundings import Surroundings

if TYPE_CHECKING:
    from calve.capture import Captures, DeliveredUpTo
    from calve.delivery import Delivery, Published, Staging
    from calve.lake import Lake


class Deliveries(Protocol):
    """Exactly-once delivery to tables: what Spark steps and capture steps ask of ``calve.delivery``."""

    def stage(self, targets: Sequence[str], delivery: "Delivery", attempt: str) -> "Staging":
        """Give each target a branch to write to."""
        ...

    def publish(self, staging: "Staging") -> "list[Published]":
        """Make what was written the targets' own."""
        ...

    def hold(self, staging: "Staging") -> None:
        """Keep it for the commit of the capture."""
        ...

    def discard(self, staging: "Staging") -> None:
        """Drop the branches."""
        ...

    def delivered(self, capture_id: str) -> bool:
        """Tell whether something of a capture has been published on a target."""
        ...

    def delivered_up_to(self, declared: Sequence[tuple[str, str]], consumer: str) -> "DeliveredUpTo | None":
        """Return the last capture of a consumer that all targets of some streams hold, if they say the same."""
        ...

    def publish_held(self, capture_id: str) -> "list[Published]":
        """Publish what steps left on their branches until the commit of the capture."""
        ...


Declared = Callable[[Place], Sequence[tuple[str, str]]]
"""Gives all targets that the workflow around a step writes exactly once, by stream; none if not all are known."""


def nothing_declared(_: Place) -> Sequence[tuple[str, str]]:
    """Know of no target."""
    return ()


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that a built-in runtime may need."""

    clock: Clock
    surroundings: Surroundings
    settings: Settings
    lake: "Lake"
    """The catalogs of the settings; whoever made the services closes it."""
    captures: "Captures"
    deliveries: Deliveries
    declared: Declared = nothing_declared
    tables: CurrentRights = all_open
