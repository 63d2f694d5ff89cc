"""The preconditions of a delivery to a target, checked against its metadata. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from calve.capture import Status, StoredCapture, Superseded, superseded_by
from calve.delivery.model import Delivery
from calve.delivery.record import ACCEPT, DeliveredCapture, DeliveryRecord, decode, positions
from calve.errors import (
    CaptureClosed,
    CaptureMissing,
    DeliverySuperseded,
    TargetAhead,
    TargetRecreated,
    TargetRolledBack,
)
from calve.lake import Metadata, TableName, ancestors, branch_head, snapshots_by_id


@dataclass(frozen=True, slots=True)
class DeliveryRequest:
    """A delivery to one target, with what the state database knows about it."""

    delivery: Delivery
    capture: StoredCapture | None
    target: TableName
    known_uuid: str | None
    """The uuid of the table that the stream delivered to last."""
    superseded: Superseded | None = None
    """What replaced the capture, if it was abandoned."""


@dataclass(frozen=True, slots=True)
class TargetState:
    """Whether a target holds the delivery already."""

    is_delivered: bool
    delivered: DeliveryRecord
    """The target's delivery record."""


def check_target(question: DeliveryRequest, metadata: Metadata) -> TargetState:
    """Return whether a target holds a delivery already, or may receive it.

    Raises:
        TargetRecreated, TargetRolledBack, TargetAhead, DeliverySuperseded: it may not receive it.
        CaptureClosed, CaptureMissing: the capture was abandoned, or is still being written.
    """
    delivered = delivered_by(question.delivery, metadata)
    if not delivered.is_accepted:
        _check_identity(question, metadata)
    # Before ``check_open``: a retry after the capture was committed has to find its delivery, not an error.
    if delivered.has(question.delivery, question.capture):
        _check_history(question, delivered, metadata)
        return TargetState(is_delivered=True, delivered=delivered)
    check_open(question.capture, question.superseded)
    _check_history(question, delivered, metadata)
    if question.capture is not None and (last := delivered.consumers.get(question.capture.consumer)):
        _check_order(question, question.capture, last)
    return TargetState(is_delivered=False, delivered=delivered)


def delivered_by(delivery: Delivery, metadata: Metadata) -> DeliveryRecord:
    """Return a target's delivery record of the stream."""
    name = delivery.property_name
    return decode(metadata.get("properties", {}).get(name), name)


def check_open(capture: StoredCapture | None, superseded: Superseded | None = None) -> None:
    """Refuse a capture that was abandoned, or is still being written."""
    if capture is not None and capture.status is Status.ABANDONED:
        found = superseded or superseded_by(capture, ())
        raise CaptureClosed(
            f"{found.message[0].upper()}{found.message[1:]} It must not be delivered.",
            remedy=found.remedy(),
            capture_id=capture.capture_id,
        )
    if capture is not None and capture.status is Status.WRITING:
        raise CaptureMissing(f"Capture {capture.capture_id} is still being written.", capture_id=capture.capture_id)


def _check_identity(question: DeliveryRequest, metadata: Metadata) -> None:
    if question.known_uuid not in {None, metadata["table-uuid"]}:
        raise TargetRecreated(
            f"{question.target} was dropped and created again since {question.delivery.stream} last delivered to it.",
            remedy=_accept(question, "repair the checkpoint of the source if the target must be filled again, then"),
            target=str(question.target),
            expected=question.known_uuid,
            actual=metadata["table-uuid"],
        )


def _check_history(question: DeliveryRequest, delivered: DeliveryRecord, metadata: Metadata) -> None:
    """Refuse a target that was rolled back; if its history expired, a rollback cannot be detected."""
    if is_rolled_back(delivered, metadata):
        raise TargetRolledBack(
            f"{question.target} was rolled back: snapshot {delivered.snapshot_id}, which "
            f"{question.delivery.stream} published last, is not in the history of main.",
            remedy=_accept(
                question,
                "roll it forward again; or, if you meant to roll back, repair the checkpoint of the source and",
            ),
            target=str(question.target),
            snapshot_id=delivered.snapshot_id,
        )


def is_rolled_back(delivered: DeliveryRecord, metadata: Metadata) -> bool:
    """Return whether the snapshot that was published last is certainly not in the history of main."""
    published = snapshots_by_id(metadata).get(delivered.snapshot_id or 0)
    if published is None:
        # Expired, or published by a version that kept no id: nothing can be proved, and refusing would block the
        # target.
        return False
    oldest = None
    for snapshot in ancestors(metadata, branch_head(metadata)):
        if snapshot["snapshot-id"] == delivered.snapshot_id:
            return False
        oldest = snapshot
    return oldest is None or _is_older(oldest, published)


def _is_older(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether a snapshot is certainly older than another; format v1 has no numbers, only a first snapshot."""
    mine, theirs = one.get("sequence-number", 0), other.get("sequence-number", 0)
    return mine < theirs or (theirs == 0 and one.get("parent-snapshot-id") is None)


def _check_order(question: DeliveryRequest, mine: StoredCapture, last: DeliveredCapture) -> None:
    """Refuse a capture that starts before the end of the last one that was delivered."""
    if last.capture_id == mine.capture_id:
        return
    here = positions(mine)
    # Positions, not snapshot ids: they order captures even after the checkpoint was reset or the source rolled back.
    late = [table for table, version in last.versions.items() if table in here and here[table] < version]
    if not late:
        return
    context = {"target": str(question.target), "capture_id": mine.capture_id, "delivered": last.capture_id}
    if last.number > mine.number:
        raise DeliverySuperseded(
            f"{question.target} holds capture {last.capture_id} already, which is later than {mine.capture_id}.",
            remedy=f"The target contains its rows. To discard the older capture: calve abandon {mine.capture_id}"
            if mine.status is Status.OPEN
            else None,
            **context,
        )
    raise TargetAhead(
        f"{question.target} is ahead of the checkpoint of {mine.consumer}: capture {last.capture_id} was delivered, "
        f"but never committed, and {mine.capture_id} holds the same change of {', '.join(late)} again.",
        remedy=_accept(question, f"{_move_on(mine, last)}; or, if the target does not contain it,"),
        **context,
    )


def _move_on(mine: StoredCapture, last: DeliveredCapture) -> str:
    """Return how to move the checkpoint to what the target holds."""
    moves = [
        f"`calve checkpoint set {table} --consumer {quote(mine.consumer)} --to {snapshot_id} --reason delivered`"
        for table, snapshot_id in last.ends.items()
    ]
    return (
        f"`calve abandon {mine.capture_id}`, then `calve commit {last.capture_id}`, "
        f"or, if that was abandoned, {' and '.join(moves)}"
    )


def _accept(question: DeliveryRequest, first: str) -> str:
    name = question.delivery.property_name
    return (
        f"{first[0].upper()}{first[1:]} ALTER TABLE {question.target} SET TBLPROPERTIES ('{name}'='{ACCEPT}'), "
        "which accepts the next delivery as it is."
    )
