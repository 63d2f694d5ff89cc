"""What changed in one table since a checkpoint: from the request to the files, counts, ranges and partitions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from calve.capture import appends, snapshots
from calve.capture.appends import CaptureLimits, Taken, regrouped
from calve.capture.manifests import Manifest
from calve.capture.model import (
    Checkpoint,
    Exactness,
    Mode,
    OnGap,
    OnSchemaChange,
    Operation,
    Pending,
    PendingOf,
    SnapshotStep,
)
from calve.capture.partitions import has_one_partition, partitions_of
from calve.capture.ranges import Column, Range, columns_of, ranges_of, unbounded
from calve.capture.snapshot_diff import NetChange, Removed, lineage_upserts, net_change
from calve.capture.snapshots import CONSUMER
from calve.capture.source import Source
from calve.errors import CheckpointExists, HistoryExpired, RequestInvalid, TableEncrypted


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request of a capture."""

    operations: frozenset[Operation] = frozenset({Operation.APPEND})
    mode: Mode = Mode.TABLE
    ranges: tuple[str, ...] = ()
    limits: CaptureLimits = field(default_factory=CaptureLimits)
    start: str | None = None
    """Where to begin without a checkpoint; None: capture the whole table."""
    is_start_initial: bool = False
    """Ignore ``start`` if there is a checkpoint, instead of failing."""
    end: str | None = None
    on_gap: OnGap = OnGap.FAIL
    on_schema_change: OnSchemaChange = OnSchemaChange.EVOLVE

    def as_json(self) -> dict[str, Any]:
        """Return the request as plain JSON."""
        return {
            "operations": sorted(map(str, self.operations)),
            "range_columns": list(self.ranges),
            "max_files": self.limits.max_files,
            "max_bytes": self.limits.max_bytes,
            "from": self.start,
            "to": self.end,
            "on_gap": str(self.on_gap),
            "on_schema_change": str(self.on_schema_change),
        }


@dataclass(frozen=True, slots=True)
class TableChange:
    """The change of one table, found but not written anywhere."""

    source: Source
    start: Checkpoint | None
    to: Checkpoint
    steps: tuple[SnapshotStep, ...]
    data: tuple[Manifest, ...]
    deletes: tuple[Manifest, ...]
    net: NetChange | None
    exactness: Exactness
    files: int
    records: int
    bytes: int
    ranges: dict[str, Range]
    partitions: tuple[dict[str, Any], ...]
    has_more: bool
    deletes_known: bool = True

    @property
    def removed(self) -> tuple[Removed, ...]:
        """The files from which rows were removed."""
        return self.net.removed if self.net else ()

    @property
    def deleted_records(self) -> int:
        """Number of rows in the deletes table."""
        return sum(item.records for item in self.removed)

    @property
    def changed(self) -> bool:
        """Tell whether there is anything to process."""
        return bool(self.files or self.removed or (self.net and self.net.equality_deletes))


def find_change(source: Source, start: Checkpoint | None, wanted: Wanted) -> TableChange:
    """Return what changed in a table after a checkpoint; reads metadata only, and writes nothing."""
    # The manifest lists of an encrypted table have keys that a cloned metadata file cannot pass on (decision 0002).
    if "encryption.key-id" in source.properties:
        raise TableEncrypted(f"{source.name} is encrypted.", table=str(source.name))
    columns = columns_of(source, wanted.ranges)
    end = source.head if wanted.end is None else snapshots.resolve(source, wanted.end)
    if start is not None and wanted.start is not None and not wanted.is_start_initial:
        raise CheckpointExists(
            f"{source.name}: the consumer has a checkpoint already, at snapshot {start.snapshot_id}.",
            remedy="Leave --from out, or move the checkpoint: "
            f"`calve checkpoint set {source.name} --consumer {CONSUMER} --to {quote(wanted.start)} --reason WHY`.",
            table=str(source.name),
        )
    if start is None and wanted.start is not None:
        start = source.checkpoint_as_of(snapshots.resolve(source, wanted.start))
    if start is None:
        return _everything(source, end, wanted, columns)
    if wanted.on_schema_change is OnSchemaChange.FAIL:
        snapshots.check_schema(source, start)
    _check_order(source, start, end)
    try:
        steps = snapshots.steps_between(source, start, end)
        snapshots.check_start_is_kept(source, start, steps)
    except HistoryExpired:
        change = _over_gap(source, start, end, wanted, columns)
        if change is None:
            raise
        return change
    return _since(source, start, end, steps, wanted, columns)


def _check_order(source: Source, start: Checkpoint, end: int | None) -> None:
    before = {snapshot["snapshot-id"] for snapshot in snapshots.ancestors(source, start.snapshot_id)}
    # If the head itself lies before the checkpoint, the table was rolled back: ``steps_between`` reports that.
    if end is not None and end != start.snapshot_id and end in before and end != source.head:
        raise RequestInvalid(
            f"{source.name}: snapshot {end} comes before the checkpoint, {start.snapshot_id}.",
            remedy="Name a later one with --to, or move the checkpoint: "
            f"`calve checkpoint set {source.name} --consumer {CONSUMER} --to {end} --reason WHY`.",
            table=str(source.name),
        )


def _everything(source: Source, end: int | None, wanted: Wanted, columns: Sequence[Column]) -> TableChange:
    """Return all that is in the table, or the oldest part of it."""
    if wanted.limits and end is not None:
        whole = source.checkpoint(end, Pending(PendingOf.LIVE, 0))
        taken = appends.take_oldest(source, whole, (), wanted.limits, metrics=_ids(columns))
    else:
        taken = appends.all_live(source, end, metrics=_ids(columns))
    return _plain(source, None, taken, _live_steps(source, end), columns, _live_size(source, end, taken))


def _ids(columns: Iterable[Column]) -> frozenset[int]:
    return frozenset(column.field_id for column in columns)


def _live_steps(source: Source, end: int | None) -> tuple[SnapshotStep, ...]:
    if end is None:
        return ()
    operation = snapshots.step_of(source.snapshots[end]).operation
    return (SnapshotStep(end, str(operation or "unknown"), True, "first capture: everything in the table"),)


def _live_size(source: Source, end: int | None, taken: Taken) -> int | None:
    """Return the size of all data files, where the snapshot's summary gives it."""
    if end is None or taken.deletes or taken.to.pending is not None:
        return None
    size = source.snapshots[end].get("summary", {}).get("total-files-size")
    return None if size is None else int(size)


def _over_gap(
    source: Source, start: Checkpoint, end: int | None, wanted: Wanted, columns: Sequence[Column]
) -> TableChange | None:
    """Capture across a gap in the history; None if that is impossible, or was not requested."""
    if wanted.on_gap is OnGap.FULL:
        whole = _everything(source, end, wanted, columns)  # from nowhere: it stands for all that came before
        told = tuple(replace(step, reason="history expired: everything in the table") for step in whole.steps)
        return replace(whole, steps=told, deletes_known=False)
    if wanted.on_gap is OnGap.FAIL or end is None or not snapshots.can_go_on_by_sequence_number(source, start):
        return None
    net = lineage_upserts(source, start, end)
    reason = "history expired: new and changed rows by row lineage, deletes are lost"
    steps = (SnapshotStep(end, "unknown", True, reason),)
    return replace(_net(source, start, source.checkpoint(end), net, steps, columns), deletes_known=False)


def _since(
    source: Source,
    start: Checkpoint,
    end: int | None,
    steps: Sequence[snapshots.RangeSnapshot],
    wanted: Wanted,
    columns: Sequence[Column],
) -> TableChange:
    """Return the change over an unbroken range of snapshots."""
    metrics = _ids(columns)
    is_plain = all(step.operation in {Operation.APPEND, Operation.REPLACE} for step in steps)
    if wanted.limits or start.pending is not None:
        taken = appends.take_oldest(source, start, steps, wanted.limits, metrics=metrics)
    elif is_plain:
        taken = appends.all_appended(source, start, steps, metrics=metrics)
    else:
        taken = Taken(source.checkpoint(steps[-1].snapshot_id), tuple(steps), is_net=True)
    snapshots.check_operations(source, taken.steps, wanted.operations)
    told = _told(steps, taken)
    if taken.is_net:
        change = _net(source, start, taken.to, net_change(source, start, taken.steps, metrics=metrics), told, columns)
    else:
        change = _plain(source, start, taken, told, columns, _appended_size(taken, wanted))
    return replace(change, has_more=change.has_more or taken.to.snapshot_id != end)


def _appended_size(taken: Taken, wanted: Wanted) -> int | None:
    appends = [step for step in taken.steps if step.operation is Operation.APPEND]
    sizes = [step.summary.get("added-files-size") for step in appends]
    if wanted.limits or None in sizes or any(not manifest.is_whole for manifest in taken.data):
        return None
    return sum(int(size or 0) for size in sizes)


def _told(steps: Sequence[snapshots.RangeSnapshot], taken: Taken) -> tuple[SnapshotStep, ...]:
    """Return for every snapshot of the range whether it is in the capture, and why."""
    told = []
    for number, step in enumerate(steps):
        operation = str(step.operation or "unknown")
        if number >= len(taken.steps):
            told.append(SnapshotStep(step.snapshot_id, operation, False, "left for the next capture"))
        elif step.operation is Operation.REPLACE:
            told.append(SnapshotStep(step.snapshot_id, operation, False, "compaction: no row changed"))
        elif taken.to.pending is not None and number == len(taken.steps) - 1:
            told.append(SnapshotStep(step.snapshot_id, operation, True, "in part: the rest is pending"))
        else:
            told.append(SnapshotStep(step.snapshot_id, operation, True, "its change is in the capture"))
    return tuple(told)


def _plain(
    source: Source,
    start: Checkpoint | None,
    taken: Taken,
    steps: tuple[SnapshotStep, ...],
    columns: Sequence[Column],
    size: int | None,
) -> TableChange:
    """Return a change that is a sum of whole files; their entries are read only if necessary."""
    data = taken.data
    # Manifest list and summaries usually have all counts: then no manifest is opened, and the cost does not follow
    # the number of files.
    if columns or size is None or not all(_says_enough(source, manifest) for manifest in data):
        data = tuple(manifest.opened(metrics=_ids(columns)) for manifest in data)
    files, records = _counts(data)
    return TableChange(
        source=source,
        start=start,
        to=taken.to,
        steps=steps,
        data=data,
        deletes=taken.deletes,
        net=None,
        exactness=Exactness.EXACT,
        files=files,
        records=records - _hidden(taken.deletes),
        bytes=_size(data) if size is None else size,
        ranges=ranges_of(source, columns, data, exact=not taken.deletes),
        partitions=tuple(partitions_of(source, data)),
        has_more=_has_more(source, taken.to),
    )


def _net(
    source: Source,
    start: Checkpoint,
    to: Checkpoint,
    net: NetChange,
    steps: tuple[SnapshotStep, ...],
    columns: Sequence[Column],
) -> TableChange:
    """Return a change that is the difference of two snapshots."""
    touched = [*net.added, *regrouped((item.manifest, item.entry) for item in net.removed)]
    files, records = _counts(net.added)
    return TableChange(
        source=source,
        start=start,
        to=to,
        steps=steps,
        data=net.added,
        deletes=net.added_deletes,
        net=net,
        exactness=net.exactness,
        files=files,
        records=records - net.hidden_records,
        bytes=_size(net.added),
        # rows deleted by key may have had any value
        ranges={column.path: unbounded(column) for column in columns}
        if net.equality_deletes
        else ranges_of(source, columns, touched, exact=False),
        partitions=tuple(partitions_of(source, touched)),
        has_more=_has_more(source, to),
    )


def _has_more(source: Source, to: Checkpoint) -> bool:
    """Tell whether the table has commits after a checkpoint, or the checkpoint itself has pending files."""
    later = {snapshot.get("parent-snapshot-id") for snapshot in snapshots.ancestors(source, source.head)}
    return to.pending is not None or (to.snapshot_id is not None and to.snapshot_id in later)


def _says_enough(source: Source, manifest: Manifest) -> bool:
    """Tell whether a manifest's row in the list contains everything that a report needs."""
    counted = manifest.file.added_rows_count is not None and manifest.file.existing_rows_count is not None
    return counted and (has_one_partition(manifest) or not source.specs[manifest.file.partition_spec_id])


def _counts(manifests: Iterable[Manifest]) -> tuple[int, int]:
    files = records = 0
    for manifest in manifests:
        if manifest.kept is None:
            row = manifest.file
            files += (row.added_files_count or 0) + (row.existing_files_count or 0)
            records += (row.added_rows_count or 0) + (row.existing_rows_count or 0)
        else:
            files += len(manifest.kept)
            records += sum(entry.record_count for entry in manifest.kept)
    return files, records


def _size(manifests: Iterable[Manifest]) -> int:
    return sum(entry.file_size_in_bytes for manifest in manifests for entry in manifest.entries())


def _hidden(deletes: Iterable[Manifest]) -> int:
    """Return how many rows deletes hide that name a single data file; others must be read to be counted."""
    entries = [entry for manifest in deletes for entry in manifest.entries()]
    return sum(entry.record_count for entry in entries if entry.referenced_data_file is not None)
