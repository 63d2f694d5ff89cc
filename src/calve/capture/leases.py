"""Which snapshots keep the files of a capture from being expired. Pure."""

from calve.capture.changes import TableChange
from calve.capture.model import Operation


def snapshots_to_hold(change: TableChange) -> list[int]:
    """Return the snapshots that a lease must tag: together they hold every file that the capture references.

    The last one holds what is still in the table. Files that a compaction removed inside the range are held by the
    snapshot before it, and the rows that left the table by the one where the range starts.
    """
    if change.to.snapshot_id is None:
        return []
    held = [change.to.snapshot_id]
    before = change.start.snapshot_id if change.start else None
    if change.net and (change.net.removed or change.net.equality_deletes) and before is not None:
        # where the start is gone, the snapshot after it has all of its files that are left
        held.append(before if before in change.source.snapshots else change.steps[0].snapshot_id)
    if change.net is None:
        previous = before
        for step in change.steps:
            if step.operation == Operation.REPLACE and previous in change.source.snapshots and previous is not None:
                held.append(previous)
            previous = step.snapshot_id
    return list(dict.fromkeys(held))
