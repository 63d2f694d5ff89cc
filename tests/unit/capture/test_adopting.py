"""Where a checkpoint goes that lies behind what was delivered."""

from dataclasses import replace
from datetime import UTC, datetime

from tests.unit.capture.tables import NAME, Table

from calve.capture import Checkpoint, DeliveredUpTo, StoredCheckpoint
from calve.capture.checkpoints import adoption_of
from calve.capture.source import Source


def _source(*numbers: int) -> Source:
    snapshots = [
        {
            "snapshot-id": number,
            "parent-snapshot-id": number - 1 or None,
            "sequence-number": number,
            "timestamp-ms": number,
            "summary": {"operation": "append", "total-data-files": str(number), "added-data-files": "1"},
        }
        for number in numbers
    ]
    return Table().source(snapshots=snapshots, **{"current-snapshot-id": numbers[-1]})


def _stored(checkpoint: Checkpoint, version: int = 1) -> StoredCheckpoint:
    return StoredCheckpoint("c", NAME, checkpoint, version, datetime(2026, 1, 1, tzinfo=UTC), "")


def _delivered(end: int | None, version: int = 4) -> DeliveredUpTo:
    return DeliveredUpTo("capture", {str(NAME): version}, {str(NAME): end})


def test_it_goes_forward_to_the_end_of_what_was_delivered() -> None:
    """Take the place among its moves that it had when all was on record."""
    source = _source(1, 2, 3)
    found = adoption_of(source, _stored(source.checkpoint(1)), _delivered(3))
    assert found is not None
    assert (found.move.expected_version, found.move.to.snapshot_id, found.version) == (1, 3, 4)


def test_without_a_checkpoint_it_is_set() -> None:
    """A state that knows nothing is behind everything."""
    found = adoption_of(_source(1, 2), None, _delivered(2))
    assert found is not None
    assert (found.move.expected_version, found.move.to.snapshot_id) == (0, 2)


def test_it_never_goes_back() -> None:
    """What lies before the checkpoint, elsewhere, or in another table, is not adopted."""
    source = _source(1, 2, 3)
    assert adoption_of(source, _stored(source.checkpoint(3)), _delivered(2)) is None
    other = replace(source.checkpoint(1), table_uuid="other")
    assert adoption_of(source, _stored(other), _delivered(3)) is None


def test_an_end_that_is_no_longer_kept_is_not_adopted() -> None:
    """Nobody knows what lies there."""
    source = _source(1, 2, 3)
    assert adoption_of(source, _stored(source.checkpoint(1)), _delivered(9)) is None
