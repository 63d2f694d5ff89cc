"""The delivery record: the table property that lists what one stream delivered to a target. Pure."""

import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calve.capture import StoredCapture
from calve.delivery.model import Delivery
from calve.errors import DeliveryError

ACCEPT = "accept"
"""A user sets the property to this to accept the table as it is."""
# The property is copied into every version of the metadata, so it must stay small. Only a run's own retries ask for
# it.
RUNS_KEPT = 100


@dataclass(frozen=True, slots=True)
class DeliveredCapture:
    """The last capture of one consumer."""

    capture_id: str
    number: int
    versions: Mapping[str, int]
    """The versions of the consumer's checkpoints in each source, once everything delivered is committed."""
    parts: tuple[str, ...]
    ends: Mapping[str, int | None] = field(default_factory=dict)
    """The snapshot up to which each source was captured."""
    is_partial: bool = False
    """Whether a limit left a part of a snapshot for the next capture."""


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """What a stream has delivered to one target."""

    snapshot_id: int | None = None
    """The snapshot that it published last."""
    consumers: Mapping[str, DeliveredCapture] = field(default_factory=dict)
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Deliveries without a capture: the parts of each of the newest runs."""
    is_accepted: bool = False

    def has(self, delivery: Delivery, capture: StoredCapture | None) -> bool:
        """Return whether a delivery is recorded."""
        if capture is None:
            return delivery.part in self.runs.get(delivery.run, ())
        last = self.consumers.get(capture.consumer)
        return last is not None and last.capture_id == capture.capture_id and delivery.part in last.parts

    def with_delivery(self, delivery: Delivery, capture: StoredCapture | None, snapshot_id: int) -> "DeliveryRecord":
        """Return the record after one more delivery."""
        done = replace(self, snapshot_id=snapshot_id, is_accepted=False)
        if capture is None:
            parts = (*self.runs.get(delivery.run, ()), delivery.part)
            # Moved to the end, so that the oldest runs are the ones to go.
            others = {run: done for run, done in self.runs.items() if run != delivery.run}
            return replace(done, runs=dict([*others.items(), (delivery.run, parts)][-RUNS_KEPT:]))
        last = self.consumers.get(capture.consumer)
        is_same = last is not None and last.capture_id == capture.capture_id
        new = DeliveredCapture(
            capture.capture_id,
            capture.number,
            # Sources that this capture does not have keep their versions.
            {**(last.versions if last else {}), **{table: place + 1 for table, place in positions(capture).items()}},
            (*(last.parts if last and is_same else ()), delivery.part),
            {str(move.table): move.to.snapshot_id for move in capture.moves},
            any(move.to.pending is not None for move in capture.moves),
        )
        return replace(done, consumers={**self.consumers, capture.consumer: new})

    def encode(self) -> str:
        """Return the property's value."""
        consumers = {
            name: {
                "capture": last.capture_id,
                "number": last.number,
                "versions": dict(last.versions),
                "parts": list(last.parts),
                "ends": dict(last.ends),
                **({"partial": True} if last.is_partial else {}),
            }
            for name, last in self.consumers.items()
        }
        value = {"snapshot": self.snapshot_id, "captures": consumers, "runs": self.runs}
        return json.dumps({key: part for key, part in value.items() if part}, separators=(",", ":"))


def positions(capture: StoredCapture) -> dict[str, int]:
    """Return the version of the checkpoint in each source when a capture was opened."""
    return {
        str(move.table): move.expected_version if move.position is None else move.position for move in capture.moves
    }


def decode(value: str | None, name: str) -> DeliveryRecord:
    """Decode the property; without it, nothing has been delivered."""
    if value is None:
        return DeliveryRecord()
    if value.strip() == ACCEPT:
        return DeliveryRecord(is_accepted=True)
    try:
        found = json.loads(value)
        return DeliveryRecord(
            snapshot_id=_number(found.get("snapshot")),
            consumers={consumer: _capture(last) for consumer, last in found.get("captures", {}).items()},
            runs={run: _texts(parts) for run, parts in found.get("runs", {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DeliveryError(
            f"The property {name} of the target is not what calve wrote: {value[:200]!r}.",
            remedy=f"Set it to '{ACCEPT}' if everything still to be delivered is newer than what the table contains.",
            property=name,
        ) from error


def _capture(last: Mapping[str, Any]) -> DeliveredCapture:
    (capture_id,) = _texts([last["capture"]])
    return DeliveredCapture(
        capture_id,
        operator.index(last["number"]),
        {table: operator.index(version) for table, version in last["versions"].items()},
        _texts(last["parts"]),
        {table: _number(end) for table, end in last["ends"].items()},
        last.get("partial", False) is True,
    )


def _number(value: Any) -> int | None:
    return None if value is None else operator.index(value)


def _texts(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{values!r} is not a list of texts")
    return tuple(values)


def agreed(lasts: Sequence[DeliveredCapture | None]) -> DeliveredCapture | None:
    """Return the last capture if all targets hold the same one, and all of it; otherwise None."""
    whole = [last for last in lasts if last is not None and last.parts == ("",) and not last.is_partial]
    is_one = len({last.capture_id for last in whole}) == 1
    return whole[0] if is_one and len(whole) == len(lasts) else None
