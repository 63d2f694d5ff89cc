"""The values that delivery speaks in."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from calve.lake import TableName


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is delivered, and by whom; the same for every attempt of it."""

    stream: str
    """Whoever delivers, time and again: ``<workflow id>/<step id>``."""
    capture_id: str | None
    """None: nothing was captured; then ``run`` tells one delivery from the next."""
    run: str
    part: str = ""
    """Tells apart the iterations of a loop that deliver one capture between them."""

    @property
    def property_name(self) -> str:
        """The property of the target that says what has been delivered."""
        return f"calve.delivered.{self.stream}"


@dataclass(frozen=True, slots=True)
class StagedTarget:
    """A target with a branch to write to."""

    name: TableName
    uuid: str
    base_snapshot_id: int | None
    """Where ``main`` was when the branch was made; None: the table was empty."""
    branch_snapshot_id: int | None
    """Where the branch was made: at ``main``, or at an empty snapshot of its own."""
    is_delivered: bool = False
    """An earlier attempt has delivered: what is written to the branch will be thrown away."""


@dataclass(frozen=True, slots=True)
class Staging:
    """Everything that one attempt needs to write, and later to publish."""

    delivery: Delivery
    attempt: str
    branch: str
    """One name for all targets, for ``spark.wap.branch``."""
    targets: tuple[StagedTarget, ...]

    @property
    def is_delivered(self) -> bool:
        """Tell whether there is nothing left to do: no branch was made, and the job need not run."""
        return all(target.is_delivered for target in self.targets)


@dataclass(frozen=True, slots=True)
class Published:
    """What has become of one target."""

    target: TableName
    snapshot_id: int | None
    """The snapshot of ``main`` with the delivered rows, where this attempt or the property knows it."""
    is_repeated: bool = False
    """It had been delivered before."""
    is_reappended: bool = False
    """Somebody else wrote meanwhile, and the new files were appended to theirs."""

    def as_json(self) -> dict[str, Any]:
        """Return which snapshot of which table it is."""
        return {"table": str(self.target), "snapshot_id": self.snapshot_id}


class BranchStatus(StrEnum):
    """What has become of an attempt's branch."""

    STAGED = "staged"
    HELD = "held"
    PUBLISHED = "published"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True)
class StoredBranch:
    """A branch of one target, on record from before it is made until it is gone."""

    staging: str
    """The branch's name."""
    delivery: Delivery
    attempt: str
    target: StagedTarget
    status: BranchStatus
    changed_at: datetime
