"""Histories on which the fuzzer once found a mistake, told step by step."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from calve import settings
from calve.app import open_captures
from calve.capture import Captures, Operation, Wanted
from calve.errors import HistoryExpired, NotAnAncestor
from calve.lake import Lake
from calve.settings import Settings
from calve.testing import PyIcebergWriter

TABLE = "db.t"
EVERYTHING = Wanted(operations=frozenset(Operation) - {Operation.REPLACE})


class Story:
    """A table, its writer, and one consumer."""

    def __init__(self, loaded: Settings, captures: Captures) -> None:
        self.settings, self.captures, self.lake = loaded, captures, Lake(loaded)
        self.writer = PyIcebergWriter(loaded)

    def create(self, version: int = 2, *, expires_like_java: bool = False) -> None:
        """Make the table."""
        self.writer.close()
        self.writer = PyIcebergWriter(self.settings, version, expires_like_java=expires_like_java)
        self.writer.create(TABLE, {"id": "long", "day": "int", "v": "string"}, days=True)

    def append(self, *ids: int) -> int:
        """Append rows; return the snapshot."""
        self.writer.append([{"id": number, "day": number % 2, "v": "a"} for number in ids])
        return self.snapshots()[-1]

    def snapshots(self) -> list[int]:
        """Return all snapshots that are kept, oldest first."""
        metadata = self.lake.catalog("lake").load(self.lake.parse(TABLE)).metadata
        return [snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", ())]

    def deliver(self) -> None:
        """Capture and commit."""
        self.captures.commit(str(self.captures.capture([TABLE], "c", EVERYTHING).capture_id))


@pytest.fixture
def story(tmp_path: Path) -> Iterator[Story]:
    """Give a lake with nothing in it."""
    loaded = settings.load(tmp_path, {})
    with open_captures(loaded) as captures:
        made = Story(loaded, captures)
        yield made
    made.writer.close()
    made.lake.close()


def test_history_since_an_empty_table_is_not_whole_once_its_first_snapshot_is_expired(story: Story) -> None:
    """PyIceberg makes the second snapshot forget its parent, and the rows of the first must not be lost for it."""
    story.create()
    story.deliver()
    first = story.append(1)
    story.append(2)
    story.writer.expire([first])
    with pytest.raises(HistoryExpired):
        story.captures.capture([TABLE], "c", EVERYTHING)


@pytest.mark.parametrize("version", [1, 2])
def test_an_expired_checkpoint_is_not_blamed_on_a_rollback(story: Story, version: int) -> None:
    """Where a compaction follows the checkpoint and has forgotten it, history was expired, and nothing rolled back."""
    story.create(version)
    first = story.append(1)
    story.deliver()
    story.writer.compact()
    story.writer.expire([first])
    with pytest.raises(HistoryExpired):
        story.captures.capture([TABLE], "c", EVERYTHING)


def test_a_tagged_checkpoint_with_a_gap_after_it_is_expired_history(story: Story) -> None:
    """A tag keeps the checkpoint itself, which does not make it another branch."""
    story.create(expires_like_java=True)
    first = story.append(1)
    story.deliver()
    story.writer.tag("kept", first)
    second = story.append(2)
    story.append(3)
    story.writer.expire([second])
    with pytest.raises(HistoryExpired):
        story.captures.capture([TABLE], "c", EVERYTHING)


def test_a_rollback_is_told_apart_although_old_history_is_expired(story: Story) -> None:
    """A checkpoint that is younger than everything left before the head was rolled back."""
    story.create(expires_like_java=True)
    first, second, _ = story.append(1), story.append(2), story.append(3)
    story.deliver()
    story.writer.set_current(second)
    story.writer.expire([first])
    with pytest.raises(NotAnAncestor):
        story.captures.capture([TABLE], "c", EVERYTHING)


def test_rows_whose_files_went_with_the_checkpoint_cannot_be_captured(story: Story) -> None:
    """An update after an expired checkpoint would reference files that expiry has deleted."""
    story.create(expires_like_java=True)
    first = story.append(1, 2)
    story.deliver()
    story.writer.update([1], "v", "b")
    story.writer.expire([first])
    with pytest.raises(HistoryExpired):
        story.captures.capture([TABLE], "c", EVERYTHING)


def test_a_lease_on_a_table_that_was_dropped_is_no_garbage_for_ever(story: Story) -> None:
    """The tags went with the table, so the capture is collected without a problem."""
    story.create()
    story.append(1)
    report = story.captures.capture([TABLE], "c", EVERYTHING, lease=True)
    story.writer.drop()
    story.captures.abandon(str(report.capture_id))
    (collected,) = story.captures.collect_garbage(timedelta(0))
    assert collected.problems == ()
    assert story.captures.collect_garbage(timedelta(0)) == []
