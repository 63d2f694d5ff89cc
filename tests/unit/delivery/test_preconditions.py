"""Who may deliver, case by case."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from calve.capture import Artifacts, Checkpoint, Move, Pending, PendingOf, Status, StoredCapture
from calve.delivery import Delivery
from calve.delivery.preconditions import DeliveryRequest, check_target
from calve.delivery.record import RUNS_KEPT, DeliveryRecord, agreed, decode
from calve.errors import (
    CalveError,
    CaptureClosed,
    CaptureMissing,
    DeliverySuperseded,
    TargetAhead,
    TargetRecreated,
    TargetRolledBack,
)
from calve.lake import TableName, metadata as raw

NOW = datetime(2026, 3, 1, tzinfo=UTC)
TARGET = TableName("lake", ("db",), "target")
A, B = TableName("lake", ("db",), "a"), TableName("lake", ("db",), "b")
DELIVERY = Delivery("w/s", "c", "r")


def _capture(capture_id: str, number: int, consumer: str = "me", **positions: int) -> StoredCapture:
    to = Checkpoint("u", 7, 1, None, 0, 0)
    moves = tuple(Move(TableName("lake", ("db",), table), 0, to, position=place) for table, place in positions.items())
    return StoredCapture(capture_id, consumer, number, None, Status.OPEN, NOW, None, moves, Artifacts())


def _metadata(delivered: DeliveryRecord | None = None, *chain: int, **more: Any) -> raw.Metadata:
    """Return a table whose main is at the end of a chain of snapshots."""
    value = {} if delivered is None else {DELIVERY.property_name: delivered.encode()}
    snapshots = [
        {"snapshot-id": n, "sequence-number": n, "parent-snapshot-id": before}
        for before, n in zip((None, *chain), chain, strict=False)
    ]
    current = chain[-1] if chain else None
    return {"table-uuid": "u", "properties": value, "snapshots": snapshots, "current-snapshot-id": current, **more}


def _after(*captures: StoredCapture, part: str = "", snapshot_id: int = 1) -> DeliveryRecord:
    delivered = DeliveryRecord()
    for capture in captures:
        delivery = replace(DELIVERY, capture_id=capture.capture_id, part=part)
        delivered = delivered.with_delivery(delivery, capture, snapshot_id)
    return delivered


FIRST = _capture("c1", 1, a=0)


@pytest.mark.parametrize(
    ("delivered", "mine", "part", "expected"),
    [
        pytest.param(DeliveryRecord(), FIRST, "", False, id="nothing was delivered yet"),
        pytest.param(_after(FIRST), FIRST, "", True, id="the same again"),
        pytest.param(_after(FIRST), FIRST, "2", False, id="another part of the same"),
        pytest.param(_after(FIRST, part="2"), FIRST, "2", True, id="the same part again"),
        pytest.param(_after(FIRST), _capture("c2", 2, a=1), "", False, id="the next one"),
        pytest.param(_after(FIRST), _capture("c2", 2, a=5), "", False, id="the checkpoint was moved by hand since"),
        pytest.param(_after(FIRST), _capture("c2", 2, b=0), "", False, id="of another source"),
        pytest.param(_after(FIRST), _capture("c9", 1, "you", a=0), "", False, id="of another consumer"),
        pytest.param(
            _after(FIRST, _capture("c9", 1, "you", a=0)), FIRST, "", True, id="the same, after another consumer's"
        ),
        pytest.param(_after(FIRST), _capture("c2", 2, a=0), "", TargetAhead, id="the last one was never committed"),
        pytest.param(_after(FIRST), _capture("c2", 1, a=0), "", TargetAhead, id="of a store that was set back"),
        pytest.param(
            _after(_capture("c2", 2, a=1)), FIRST, "", DeliverySuperseded, id="an older one, after a newer one"
        ),
        pytest.param(
            _after(_capture("c2", 2, a=1)), FIRST, "2", DeliverySuperseded, id="a part of an older one, after a newer"
        ),
        pytest.param(
            _after(FIRST, _capture("c2", 2, b=0)), _capture("c3", 3, a=0), "", TargetAhead, id="one source of two"
        ),
        pytest.param(_after(FIRST), replace(FIRST, status=Status.COMMITTED), "", True, id="the same, committed"),
        pytest.param(
            DeliveryRecord(), replace(FIRST, status=Status.ABANDONED), "", CaptureClosed, id="one that was given up"
        ),
        pytest.param(
            DeliveryRecord(), replace(FIRST, status=Status.WRITING), "", CaptureMissing, id="one that is being written"
        ),
        pytest.param(
            DeliveryRecord(), replace(FIRST, status=Status.COMMITTED), "", False, id="committed, not delivered"
        ),
    ],
)
def test_captures(
    delivered: DeliveryRecord,
    mine: StoredCapture,
    part: str,
    expected: bool | type[CalveError],  # noqa: FBT001
) -> None:
    """Ready, delivered already, or refused."""
    question = DeliveryRequest(replace(DELIVERY, capture_id=mine.capture_id, part=part), mine, TARGET, None)
    if isinstance(expected, bool):
        assert check_target(question, _metadata(delivered)).is_delivered is expected
        return
    with pytest.raises(expected):
        check_target(question, _metadata(delivered))


@pytest.mark.parametrize(
    ("chain", "others", "is_fine"),
    [
        pytest.param((1, 2, 3), (), True, id="main is there"),
        pytest.param((1, 2, 3, 4), (), True, id="main went on"),
        pytest.param((1, 2), (3,), False, id="main went back"),
        pytest.param((1, 2, 4), (3,), False, id="main went back, and on from there"),
        pytest.param((), (3,), False, id="there is no main any more"),
        pytest.param((1, 2), (), True, id="expired, whatever main did"),
        pytest.param((4, 5), (3,), True, id="history is expired in between"),
    ],
)
def test_rollbacks(chain: tuple[int, ...], others: tuple[int, ...], *, is_fine: bool) -> None:
    """What was published last must be in the history of main, as far as anybody can tell."""
    metadata = _metadata(_after(FIRST, snapshot_id=3), *chain)
    metadata["snapshots"] += [{"snapshot-id": n, "sequence-number": n, "parent-snapshot-id": n - 1} for n in others]
    question = DeliveryRequest(DELIVERY, _capture("c2", 2, a=1), TARGET, None)
    if is_fine:
        check_target(question, metadata)
        return
    with pytest.raises(TargetRolledBack):
        check_target(question, metadata)


def test_format_v1_has_no_sequence_numbers() -> None:
    """A chain that ends at the first snapshot is whole; one that ends elsewhere says nothing."""
    snapshots = [{"snapshot-id": 1}, {"snapshot-id": 2, "parent-snapshot-id": 1}, {"snapshot-id": 3}]
    metadata = _metadata(_after(FIRST, snapshot_id=3)) | {"snapshots": snapshots, "current-snapshot-id": 2}
    question = DeliveryRequest(DELIVERY, _capture("c2", 2, a=1), TARGET, None)
    with pytest.raises(TargetRolledBack):
        check_target(question, metadata)
    check_target(question, metadata | {"snapshots": snapshots[1:]})


def test_a_table_of_another_identity_is_another_table() -> None:
    """Unless nobody knows better, or the user says that it is meant."""
    question = DeliveryRequest(DELIVERY, FIRST, TARGET, "other")
    with pytest.raises(TargetRecreated):
        check_target(question, _metadata())
    check_target(replace(question, known_uuid="u"), _metadata())
    check_target(question, _metadata(properties={DELIVERY.property_name: "accept"}))


def test_the_newest_runs_are_remembered() -> None:
    """A hundred of them, each with its parts."""
    delivered = DeliveryRecord()
    runs = [replace(DELIVERY, capture_id=None, run=f"r{n}", part=part) for n in range(150) for part in ("1", "2")]
    for run in runs:
        delivered = delivered.with_delivery(run, None, 1)
    read = decode(delivered.encode(), "p")
    assert read == delivered
    assert [read.has(run, None) for run in runs] == [False] * 2 * (150 - RUNS_KEPT) + [True] * 2 * RUNS_KEPT


def test_a_record_survives_being_written() -> None:
    """Captures, versions, parts and the snapshot come back."""
    delivered = _after(FIRST, _capture("c2", 2, a=1, b=0), part="p", snapshot_id=2**62)
    assert decode(delivered.encode(), "p") == delivered
    assert delivered.consumers["me"].versions == {"lake.db.a": 2, "lake.db.b": 1}


def test_targets_agree_where_all_hold_the_same_capture_whole() -> None:
    """Parts of a loop, a part that a limit took, another capture or none at all: then nobody knows."""
    last = _after(FIRST).consumers["me"]
    assert agreed([last, last]) == last
    assert agreed([]) is None
    assert agreed([last, None]) is None
    assert agreed([last, _after(_capture("c2", 2, a=1)).consumers["me"]]) is None
    assert agreed([_after(FIRST, part="days[1]").consumers["me"]]) is None


def test_a_capture_that_a_limit_cut_is_known_by_its_record() -> None:
    """The snapshot at its end was not delivered whole."""
    move = FIRST.moves[0]
    cut = replace(FIRST, moves=(replace(move, to=replace(move.to, pending=Pending(PendingOf.ADDED, 2))),))
    last = decode(_after(cut).encode(), "p").consumers["me"]
    assert last.is_partial
    assert agreed([last]) is None
    assert not decode(_after(FIRST).encode(), "p").consumers["me"].is_partial
