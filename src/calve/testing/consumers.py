"""What the fuzzer knows of a consumer: where it stands, and the rows it must have."""

from collections.abc import Callable
from dataclasses import dataclass, field

from calve.capture import CaptureReport, Checkpoint, StoredCapture
from calve.testing.replicas import Rows, applied, projected, shown
from calve.testing.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Change:
    """A capture, and the rows that were read from it."""

    report: CaptureReport
    to: Checkpoint
    came: Rows
    gone: Rows
    leased: bool
    after: Rows
    """What the consumer has once it is committed."""

    @property
    def capture_id(self) -> str:
        """The capture's id."""
        return str(self.report.capture_id)


@dataclass(slots=True)
class Consumer:
    """A consumer that keeps a copy of the table by applying what it captures."""

    name: str
    checkpoint: Checkpoint | None = None
    replica: Rows = field(default_factory=Rows)
    open: Change | None = None
    is_open_stale: bool = False
    """The checkpoint was moved by hand since the capture was opened, which must not commit any more."""

    def check(
        self,
        capture: StoredCapture,
        report: CaptureReport,
        read: tuple[Rows, Rows],
        base: Rows,
        truth: Callable[[int], Rows],
        timeline: Timeline,
        *,
        leased: bool,
    ) -> Change:
        """Check that a capture takes a copy of the table from one snapshot to the next, and return it.

        Raises:
            AssertionError: it does not.
        """
        (move,) = capture.moves
        (change,) = report.tables
        ids = [column_id for column_id, _ in timeline.columns.values()]
        came, gone = read
        after = applied(projected(base, ids), came, gone)
        there = Rows() if move.to.snapshot_id is None else projected(truth(move.to.snapshot_id), ids)
        too_many, missing = after - there, there - after
        where = f"capture {report.capture_id} ({change.exactness}) to {timeline.called(move.to.snapshot_id)}"
        assert not too_many, f"{where} gives rows too many: {shown(too_many)}"
        assert move.to.pending or not missing, f"{where} misses rows: {shown(missing)}"
        assert change.changed or not (came or gone), f"{where} says that nothing changed, but has rows"
        _check_ranges(change.ranges, came + gone, where)
        return Change(report, move.to, came, gone, leased, after)

    def committed(self, change: Change) -> None:
        """Take over what a capture brought."""
        self.checkpoint, self.replica = change.to, change.after
        self.open = None

    def moved(self, checkpoint: Checkpoint | None, replica: Rows) -> None:
        """Stand somewhere else by hand."""
        self.checkpoint, self.replica = checkpoint, replica
        self.is_open_stale = self.open is not None


def _check_ranges(ranges: dict[str, dict[str, object]], rows: Rows, where: str) -> None:
    """Check that no changed row lies outside the range of its id, the column with field id 1."""
    for found in ranges.values():
        lower, upper = found["lower"], found["upper"]
        for row in rows:
            value = dict(row)[1]
            assert not found["empty"], f"{where} says that the range of ids is empty, but has {value}"
            assert lower is None or value >= lower, f"{where}: {value} is below the range of ids, {lower}"
            assert upper is None or value <= upper, f"{where}: {value} is above the range of ids, {upper}"
