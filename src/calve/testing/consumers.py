"""The fuzzer's model of a consumer: its checkpoint, and the rows it must have."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calve.capture import CaptureReport, Checkpoint
from calve.testing.replicas import Rows, applied, shown


@dataclass(frozen=True, slots=True)
class CheckedCapture:
    """A capture, and the rows that were read from it."""

    report: CaptureReport
    to: Checkpoint
    came: Rows
    gone: Rows
    leased: bool
    after: Rows
    """The consumer's rows after the commit."""

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
    open: CheckedCapture | None = None
    is_open_stale: bool = False
    """The checkpoint was moved by hand after the capture was opened, so it must not be committed."""

    def opened(self, change: CheckedCapture) -> None:
        """Record an open capture."""
        self.open, self.is_open_stale = change, False

    def committed(self, change: CheckedCapture) -> None:
        """Apply a committed capture."""
        self.checkpoint, self.replica, self.open = change.to, change.after, None

    def moved(self, checkpoint: Checkpoint | None, replica: Rows) -> None:
        """Record a move of the checkpoint by hand."""
        self.checkpoint, self.replica = checkpoint, replica
        self.is_open_stale = self.open is not None


def checked_change(
    report: CaptureReport,
    to: Checkpoint,
    read: tuple[Rows, Rows],
    *,
    base: Rows,
    truth: Rows,
    leased: bool,
    has_deletes: bool = True,
) -> CheckedCapture:
    """Check that a capture turns a replica of the table into the true rows, and return it as a ``CheckedCapture``.

    Raises:
        AssertionError: the rows differ.
    """
    (table,) = report.tables
    came, gone = read
    if not has_deletes:  # only rows of the table are allowed, and all that the base lacks
        base = (truth - came) & base
    after = applied(base, came, gone)
    too_many, missing = after - truth, truth - after
    demand(not too_many, f"the capture ({table.exactness}) returns too many rows: {shown(too_many)}")
    demand(to.pending or not missing, f"the capture ({table.exactness}) misses rows: {shown(missing)}")
    demand(table.changed or not (came or gone), "the capture says that nothing changed, but has rows")
    for name, found in table.ranges.items():
        _check_range(name, found, came + gone)
    return CheckedCapture(report, to, came, gone, leased, after)


def _check_range(name: str, found: Mapping[str, Any], rows: Rows) -> None:
    """Check that no changed row has an id, the column with field id 1, outside the range."""
    for row in rows:
        value = dict(row)[1]
        is_inside = (found["lower"] is None or found["lower"] <= value) and (
            found["upper"] is None or value <= found["upper"]
        )
        demand(is_inside and not found["empty"], f"{name} {value} is outside of the range {found}")


def demand(condition: object, otherwise: str) -> None:
    """Raise an ``AssertionError`` with a message unless the condition is true."""
    if not condition:
        raise AssertionError(otherwise)
