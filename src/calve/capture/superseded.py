"""A capture that was given up, and the newer one that holds the same changes: what happened, and what to do. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from calve.capture.model import Status, StoredCapture
from calve.errors import CaptureMissing

_WORK = re.compile(r"(?P<workflow>[^/]+)/(?P<instance>\d+)/(?P<path>.+)")
_TURN = re.compile(r"\[(\d+)\]")


class CaptureRecords(Protocol):
    """The part of ``CaptureState`` that tells of captures."""

    def capture(self, capture_id: str) -> StoredCapture:
        """Return one capture."""
        ...

    def captures(self, consumer: str | None = None) -> list[StoredCapture]:
        """Return all captures of a consumer, newest first."""
        ...


@dataclass(frozen=True, slots=True)
class Superseded:
    """A capture that was given up."""

    capture_id: str
    work: str | None
    """The request that it was taken for: of a step, its place (workflow/instance/step); None by hand."""
    newer_id: str | None = None
    """The capture that was taken since from the same checkpoint; None where there is none yet."""
    newer_work: str | None = None
    is_committed: bool = False
    """Whether the newer one is."""

    @property
    def message(self) -> str:
        """What happened."""
        if self.newer_id is None:
            return f"capture {self.capture_id} was abandoned, so that it can no longer be delivered or committed."
        by = f", taken by {_shown(self.newer_work)}" if self.newer_work else ""
        end = " and is committed" if self.is_committed else ""
        return (
            f"capture {self.capture_id} was given up for the newer capture {self.newer_id}{by}, "
            f"which holds the same changes{end}."
        )

    def remedy(self, options: str = "") -> str:
        """Say what to do; ``options`` go to a restart of the same instance."""
        newer = ""
        if self.newer_id is not None:
            place = _WORK.fullmatch(self.newer_work or "")
            look = f"calve status {place['workflow']} {place['instance']}" if place else f"calve show {self.newer_id}"
            newer = f"Its rows come with the newer capture: {look}. "
        mine = _WORK.fullmatch(self.work or "")
        if mine is None:
            return f"{newer}Take a new capture."
        path = _TURN.sub(r"/\1", mine["path"])
        return (
            f"{newer}To take a new capture in this instance, and go on with that: "
            f"calve restart {mine['workflow']} {mine['instance']} {options}--step {path}"
        )


def superseded_by(stored: StoredCapture, others: Iterable[StoredCapture]) -> Superseded:
    """Return what took the place of a capture that was given up: the first one since then that counts."""
    counting = [one for one in others if one.number > stored.number and one.status is not Status.ABANDONED]
    newer = min(counting, key=lambda one: one.number, default=None)
    if newer is None:
        return Superseded(stored.capture_id, stored.key)
    is_committed = newer.status is Status.COMMITTED
    return Superseded(stored.capture_id, stored.key, newer.capture_id, newer.key, is_committed)


def find_superseded(records: CaptureRecords, capture_id: str) -> Superseded | None:
    """Tell of a capture whether it was given up, and for which one; None if it was not, or is not known."""
    try:
        stored = records.capture(capture_id)
    except CaptureMissing:
        return None
    if stored.status is not Status.ABANDONED:
        return None
    return superseded_by(stored, records.captures(stored.consumer))


def _shown(work: str) -> str:
    place = _WORK.fullmatch(work)
    return f"{place['workflow']} instance {place['instance']}" if place else work
