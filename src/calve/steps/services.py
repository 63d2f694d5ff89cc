"""The services that built-in runtimes are made with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from calve.engine import Clock, StepAddress
from calve.lake import CurrentRights, all_open
from calve.settings import Settings
from calve.steps.processes import Workspace

if TYPE_CHECKING:
    from calve.capture import Captures, DeliveredUpTo
    from calve.delivery import Delivery, Published, Staging
    from calve.lake import Lake


class Deliveries(Protocol):
    """Exactly-once delivery to tables: the part of ``calve.delivery.Deliveries`` that steps use."""

    def stage(self, targets: Sequence[str], delivery: "Delivery", attempt: str) -> "Staging":
        """Give each target a branch to write to."""
        ...

    def publish(self, staging: "Staging") -> "list[Published]":
        """Publish the branches to ``main``."""
        ...

    def hold(self, staging: "Staging") -> None:
        """Keep the branches until the capture is committed."""
        ...

    def discard(self, staging: "Staging") -> None:
        """Drop the branches."""
        ...

    def delivered(self, capture_id: str) -> bool:
        """Return whether anything of a capture has been published."""
        ...

    def delivered_up_to(self, declared: Sequence[tuple[str, str]], consumer: str) -> "DeliveredUpTo | None":
        """Return the last capture of a consumer that all declared targets contain, if they agree on one."""
        ...

    def publish_held(self, capture_id: str) -> "list[Published]":
        """Publish the branches of a capture that steps keep until the commit."""
        ...


Declared = Callable[[StepAddress], Sequence[tuple[str, str]]]
"""Returns all declared targets of the workflow that a step belongs to, by stream; none if not all are known."""


def nothing_declared(_: StepAddress) -> Sequence[tuple[str, str]]:
    """Return no targets."""
    return ()


@dataclass(frozen=True, slots=True)
class Services:
    """Everything that built-in runtimes need."""

    clock: Clock
    workspace: Workspace
    settings: Settings
    lake: "Lake"
    """The catalogs in the settings; the caller closes it."""
    captures: "Captures"
    deliveries: Deliveries
    declared: Declared = nothing_declared
    tables: CurrentRights = all_open
