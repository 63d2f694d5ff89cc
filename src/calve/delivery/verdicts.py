"""May this be delivered to that table, now? Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from calve.capture import Status, StoredCapture, Superseded, superseded_by
from calve.delivery.model import Delivery
from calve.delivery.records import ACCEPT, Delivered, DeliveredCapture, decode, places
from calve.errors import (
    CaptureClosed,
    CaptureMissing,
    DeliverySuperseded,
    TargetAhead,
    TargetRecreated,
    TargetRolledBack,
)
from calve.lake import TableName
from calve.lake import metadata as raw


@dataclass(frozen=True, slots=True)
class Question:
    """What is to be delivered to which table, as far as the state database knows."""

    delivery: Delivery
    capture: StoredCapture | None
    target: TableName
    known_uuid: str | None
    """The identity of the table that the stream delivered to last."""
    superseded: Superseded | None = None
    """What took the place of the capture, if it was given up."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Yes, or it is there already; a no is an error."""

    is_delivered: bool
    delivered: Delivered
    """What the target says."""


def judge(question: Question, metadata: raw.Metadata) -> Verdict:
    """Tell by a target's metadata whether it may be delivered to, or has been.

    Raises:
        TargetRecreated, TargetRolledBack, TargetAhead, DeliverySuperseded: it may not.
        CaptureClosed, CaptureMissing: the capture was abandoned, or is not there yet.
    """
    delivered = delivered_by(question.delivery, metadata)
    if not delivered.is_accepted:
        _check_identity(question, metadata)
    if delivered.has(question.delivery, question.capture):
        _check_history(question, delivered, metadata)
        return Verdict(is_delivered=True, delivered=delivered)
    check_open(question.capture, question.superseded)
    _check_history(question, delivered, metadata)
    if question.capture is not None and (last := delivered.consumers.get(question.capture.consumer)):
        _check_order(question, question.capture, last)
    return Verdict(is_delivered=False, delivered=delivered)


def delivered_by(delivery: Delivery, metadata: raw.Metadata) -> Delivered:
    """Return what a target says about the stream of a delivery."""
    name = delivery.property_name
    return decode(metadata.get("properties", {}).get(name), name)


def check_open(capture: StoredCapture | None, superseded: Superseded | None = None) -> None:
    """Refuse to deliver a capture that was given up, or is still being made."""
    if capture is not None and capture.status is Status.ABANDONED:
        found = superseded or superseded_by(capture, ())
        raise CaptureClosed(
            f"{found.message[0].upper()}{found.message[1:]} It must not be delivered.",
            remedy=found.remedy(),
            capture_id=capture.capture_id,
        )
    if capture is not None and capture.status is Status.WRITING:
        raise CaptureMissing(f"Capture {capture.capture_id} is still being written.", capture_id=capture.capture_id)


def _check_identity(question: Question, metadata: raw.Metadata) -> None:
    if question.known_uuid not in {None, metadata["table-uuid"]}:
        raise TargetRecreated(
            f"{question.target} was dropped and created again since {question.delivery.stream} last delivered to it.",
            remedy=_accept(question, "mend the checkpoint of the source if it has to be filled again, then"),
            target=str(question.target),
            expected=question.known_uuid,
            actual=metadata["table-uuid"],
        )


def _check_history(question: Question, delivered: Delivered, metadata: raw.Metadata) -> None:
    """Find out a rollback; where history is expired in between, nobody can tell, and it counts as none."""
    if is_rolled_back(delivered, metadata):
        raise TargetRolledBack(
            f"{question.target} was rolled back: snapshot {delivered.snapshot_id}, which "
            f"{question.delivery.stream} published last, is not in the history of main.",
            remedy=_accept(
                question, "roll it forward again; or, if it is meant, mend the checkpoint of the source and"
            ),
            target=str(question.target),
            snapshot_id=delivered.snapshot_id,
        )


def is_rolled_back(delivered: Delivered, metadata: raw.Metadata) -> bool:
    """Tell whether what was published last is surely not in the history of main any more."""
    published = raw.snapshots(metadata).get(delivered.snapshot_id or 0)
    if published is None:
        return False
    oldest = None
    for snapshot in raw.lineage(metadata, raw.head(metadata)):
        if snapshot["snapshot-id"] == delivered.snapshot_id:
            return False
        oldest = snapshot
    return oldest is None or _is_older(oldest, published)


def _is_older(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether a snapshot is surely older than another; format v1 does not number them, but knows the first one."""
    mine, theirs = one.get("sequence-number", 0), other.get("sequence-number", 0)
    return mine < theirs or (theirs == 0 and one.get("parent-snapshot-id") is None)


def _check_order(question: Question, mine: StoredCapture, last: DeliveredCapture) -> None:
    """Let a capture in only if it was taken where the last one ends, or later."""
    if last.capture_id == mine.capture_id:
        return
    here = places(mine)
    late = [table for table, version in last.versions.items() if table in here and here[table] < version]
    if not late:
        return
    context = {"target": str(question.target), "capture_id": mine.capture_id, "delivered": last.capture_id}
    if last.number > mine.number:
        raise DeliverySuperseded(
            f"{question.target} holds capture {last.capture_id} already, which is later than {mine.capture_id}.",
            remedy=f"Its rows are there. To give the older capture up: calve abandon {mine.capture_id}"
            if mine.status is Status.OPEN
            else None,
            **context,
        )
    raise TargetAhead(
        f"{question.target} is ahead of the checkpoint of {mine.consumer}: capture {last.capture_id} was delivered, "
        f"but never committed, and {mine.capture_id} holds the same change of {', '.join(late)} again.",
        remedy=_accept(question, f"{_move_on(mine, last)}; or, if the target does not hold it,"),
        **context,
    )


def _move_on(mine: StoredCapture, last: DeliveredCapture) -> str:
    """Say how the checkpoint gets to where the target is."""
    moves = [
        f"`calve checkpoint set {table} --consumer {quote(mine.consumer)} --to {snapshot_id} --reason delivered`"
        for table, snapshot_id in last.ends.items()
    ]
    return (
        f"`calve abandon {mine.capture_id}`, then `calve commit {last.capture_id}`, "
        f"or, if that was abandoned, {' and '.join(moves)}"
    )


def _accept(question: Question, first: str) -> str:
    name = question.delivery.property_name
    return (
        f"{first[0].upper()}{first[1:]} ALTER TABLE {question.target} SET TBLPROPERTIES ('{name}'='{ACCEPT}'), "
        "which lets the next delivery in as it is."
    )
