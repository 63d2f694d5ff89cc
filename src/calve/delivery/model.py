"""Deliveries, their branches and results, and the port to the state database."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from calve.lake import TableName


@dataclass(frozen=True, slots=True)
class Delivery:
    """What is delivered, and by which stream; the same for every attempt."""

    stream: str
    """The step that delivers: ``<workflow id>/<step id>``."""
    capture_id: str | None
    """None: there is no capture, and ``run`` identifies the delivery."""
    run: str
    part: str = ""
    """Identifies the iteration of a loop whose iterations deliver one capture together."""

    @property
    def property_name(self) -> str:
        """The property of the target that holds the delivery record."""
        return f"calve.delivered.{self.stream}"


@dataclass(frozen=True, slots=True)
class StagedTarget:
    """A target with a branch to write to."""

    name: TableName
    uuid: str
    base_snapshot_id: int | None
    """The snapshot of ``main`` when the branch was created; None for an empty table."""
    branch_snapshot_id: int | None
    """The first snapshot of the branch: that of ``main``, or an empty one."""
    is_delivered: bool = False
    """An earlier attempt has delivered: the branch will be dropped."""


@dataclass(frozen=True, slots=True)
class Staging:
    """The branches that one attempt writes to and later publishes."""

    delivery: Delivery
    attempt: str
    branch: str
    """One name for all targets, for ``spark.wap.branch``."""
    targets: tuple[StagedTarget, ...]

    @property
    def is_delivered(self) -> bool:
        """Whether all targets hold the delivery: no branch was created, and the job need not run."""
        return all(target.is_delivered for target in self.targets)


@dataclass(frozen=True, slots=True)
class Published:
    """The result of publishing one target."""

    target: TableName
    snapshot_id: int | None
    """The snapshot of ``main`` with the delivered rows, if known."""
    is_repeated: bool = False
    """It was delivered before."""
    is_reappended: bool = False
    """Others wrote meanwhile, and the new files were appended to theirs."""

    def as_json(self) -> dict[str, Any]:
        """Return which snapshot of which table it is."""
        return {"table": str(self.target), "snapshot_id": self.snapshot_id}


class BranchStatus(StrEnum):
    """The status of an attempt's branch."""

    STAGED = "staged"
    HELD = "held"
    PUBLISHED = "published"
    DISCARDED = "discarded"


@dataclass(frozen=True, slots=True)
class StoredBranch:
    """A branch of one target, recorded from before it is created until it is dropped."""

    staging: str
    """The branch's name."""
    delivery: Delivery
    attempt: str
    target: StagedTarget
    status: BranchStatus
    changed_at: datetime


class DeliveryState(Protocol):
    """Stores the branches of deliveries and the targets of streams; every method is one transaction."""

    def stage(self, branch: str, delivery: Delivery, attempt: str, targets: Sequence[TableName], now: datetime) -> None:
        """Record branches that will be created."""
        ...

    def hold(self, staging: Staging, now: datetime) -> None:
        """Mark branches as held, in place of those that an earlier attempt held."""
        ...

    def held(self, capture_id: str) -> list[StoredBranch]:
        """Return the branches that are held for a capture, oldest first."""
        ...

    def branches(self, capture_id: str) -> list[StoredBranch]:
        """Return every branch of a capture, oldest first."""
        ...

    def delivered_uuid(self, stream: str, target: TableName) -> str | None:
        """Return the uuid of the table that a stream delivered to last under that name."""
        ...

    def note(self, staging: Staging, target: TableName, uuid: str, now: datetime) -> None:
        """Record a delivery to a target: its uuid, and the end of its branch."""
        ...

    def discard(self, branch: str, now: datetime) -> None:
        """Record that the rest of a staging will not be published."""
        ...

    def leftovers(self, before: datetime) -> list[StoredBranch]:
        """Return branches that did not change since a time, oldest first, held ones included."""
        ...

    def forget(self, branch: str, target: TableName) -> None:
        """Delete the record of a branch that was dropped."""
        ...
