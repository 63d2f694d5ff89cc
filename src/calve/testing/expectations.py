"""What a capture must do, given the table's history: which errors are correct, and its base rows. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from calve.capture import Checkpoint, OnGap, Operation, Wanted
from calve.errors import CalveError, ChangeUnsupported, FilesLost, HistoryExpired
from calve.testing.replicas import Rows
from calve.testing.timeline import Timeline

Errors = tuple[type[CalveError], ...]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a capture must do."""

    must: Errors = ()
    """It must raise one of these; empty: it may succeed."""
    may: Errors = ()
    """It may raise one of these instead."""
    base: Rows | None = None
    """The consumer's rows before; None: those from earlier captures."""
    has_deletes: bool = True
    """Whether it also reports deleted rows."""

    @property
    def errors(self) -> Errors:
        """All correct errors."""
        return self.must + self.may


def expected(
    timeline: Timeline, checkpoint: Checkpoint | None, wanted: Wanted, truth: Callable[[int], Rows]
) -> Expected:
    """Return what a capture of a table must do; ``truth`` returns the rows at a snapshot."""
    end = timeline.head if wanted.end is None else int(wanted.end)
    if checkpoint is not None:
        found = _after(timeline, checkpoint.table_uuid, checkpoint.snapshot_id, end, wanted, checkpoint)
    elif wanted.start is not None:
        start = int(wanted.start)
        found = replace(_after(timeline, timeline.uuid, start, end, wanted, None), base=truth(start))
    else:
        return Expected(base=Rows())
    if HistoryExpired not in found.must:
        return found
    others = tuple(error for error in found.must if error is not HistoryExpired)
    if wanted.on_gap is OnGap.FULL:
        return Expected(may=others, base=Rows())
    if wanted.on_gap is OnGap.UPSERTS and not others and _has_lineage(timeline, checkpoint):
        return Expected(has_deletes=False)
    return found


def _has_lineage(timeline: Timeline, checkpoint: Checkpoint | None) -> bool:
    is_whole = checkpoint is not None and checkpoint.next_row_id is not None and checkpoint.pending is None
    return is_whole and timeline.version > 2


def _after(
    timeline: Timeline, uuid: str, start: int | None, end: int | None, wanted: Wanted, checkpoint: Checkpoint | None
) -> Expected:
    way = timeline.way(uuid, start, end)
    is_pending = checkpoint is not None and checkpoint.pending is not None
    is_start_gone = uuid == timeline.uuid and start is not None and start not in timeline.links
    if is_start_gone and is_pending:  # the rest of the pending start is unreadable
        return Expected(must=(HistoryExpired, *way.errors))
    if way.errors:
        return Expected(must=way.errors) if way.is_sure else Expected(may=(*way.errors, ChangeUnsupported))
    done = {timeline.operations[step] for step in way.steps}
    strangers = done - wanted.operations - {Operation.REPLACE}
    if is_start_gone and done & {Operation.OVERWRITE, Operation.DELETE}:  # it depends on whether files left the table
        return Expected(may=(HistoryExpired, FilesLost, ChangeUnsupported))
    if strangers and (wanted.limits or is_pending):
        return Expected(may=(ChangeUnsupported,))  # it depends on how far the limits let the capture go
    return Expected(must=(ChangeUnsupported,) if strangers else ())
