"""Checkpoints that lag behind a delivery, and captures that were superseded. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from calve.capture.model import Adoption, DeliveredUpTo, Move, Status, StoredCapture, StoredCheckpoint
from calve.capture.snapshots import steps_between
from calve.capture.source import Source
from calve.errors import CaptureError, CaptureMissing


def adoption_of(source: Source, stored: StoredCheckpoint | None, delivered: DeliveredUpTo) -> Adoption | None:
    """Return how to move a checkpoint to what the target contains; None if that is not certain to be forward."""
    end = delivered.ends[str(source.name)]
    if end is not None and end not in source.snapshots:
        return None
    try:
        # Only walks the chain of parents: a checkpoint may never be moved to another branch or backwards.
        steps_between(source, stored.checkpoint if stored else source.checkpoint(None), end)
    except CaptureError:
        return None
    move = Move(source.name, stored.version if stored else 0, source.checkpoint_as_of(end))
    return Adoption(move, delivered.versions[str(source.name)])


_WORK = re.compile(r"(?P<workflow>[^/]+)/(?P<instance>\d+)/(?P<path>.+)")
_TURN = re.compile(r"\[(\d+)\]")


@dataclass(frozen=True, slots=True)
class Work:
    """The step of an instance that a capture was taken for."""

    workflow_id: str
    instance_id: int
    step: str
    """Its path."""


def work_of(key: str | None) -> Work | None:
    """Return the step that a request key names; None if it is the key of something else."""
    found = _WORK.fullmatch(key or "")
    return found and Work(found["workflow"], int(found["instance"]), _TURN.sub(r"/\1", found["path"]))


class CaptureRecords(Protocol):
    """The part of ``CaptureState`` that reads captures."""

    def capture(self, capture_id: str) -> StoredCapture:
        """Return one capture."""
        ...

    def captures(self, consumer: str | None = None) -> list[StoredCapture]:
        """Return all captures of a consumer, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class Superseded:
    """A capture that was abandoned."""

    capture_id: str
    work: str | None
    """The request key: for a step, its path (workflow/instance/step); None for a capture taken by hand."""
    newer_id: str | None = None
    """The capture taken since from the same checkpoint; None if there is none yet."""
    newer_work: str | None = None
    is_committed: bool = False
    """Whether the newer one is committed."""

    @property
    def message(self) -> str:
        """What happened."""
        if self.newer_id is None:
            return f"capture {self.capture_id} was abandoned, so that it can no longer be delivered or committed."
        by = f", taken by {_shown(self.newer_work)}" if self.newer_work else ""
        end = " and is committed" if self.is_committed else ""
        return (
            f"capture {self.capture_id} was abandoned for the newer capture {self.newer_id}{by}, "
            f"which contains the same changes{end}."
        )

    def remedy(self, options: str = "") -> str:
        """Return what to do; ``options`` are added to a restart of the same instance."""
        newer = ""
        if self.newer_id is not None:
            place = work_of(self.newer_work)
            look = f"calve status {place.workflow_id} {place.instance_id}" if place else f"calve show {self.newer_id}"
            newer = f"Its rows come with the newer capture: {look}. "
        mine = work_of(self.work)
        if mine is None:
            return f"{newer}Take a new capture."
        return (
            f"{newer}To take a new capture in this instance and continue with it: "
            f"calve restart {mine.workflow_id} {mine.instance_id} {options}--step {mine.step}"
        )


def superseded_by(stored: StoredCapture, others: Iterable[StoredCapture]) -> Superseded:
    """Return what replaced an abandoned capture: the first later one that was not abandoned itself."""
    counting = [one for one in others if one.number > stored.number and one.status is not Status.ABANDONED]
    newer = min(counting, key=lambda one: one.number, default=None)
    if newer is None:
        return Superseded(stored.capture_id, stored.key)
    is_committed = newer.status is Status.COMMITTED
    return Superseded(stored.capture_id, stored.key, newer.capture_id, newer.key, is_committed)


def find_superseded(records: CaptureRecords, capture_id: str) -> Superseded | None:
    """Return what replaced a capture if it was abandoned; None if it was not, or is unknown."""
    try:
        stored = records.capture(capture_id)
    except CaptureMissing:
        return None
    if stored.status is not Status.ABANDONED:
        return None
    return superseded_by(stored, records.captures(stored.consumer))


def _shown(work: str) -> str:
    place = work_of(work)
    return f"{place.workflow_id} instance {place.instance_id}" if place else work
