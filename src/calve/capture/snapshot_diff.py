"""The files of a change with updates and deletes: the difference of the table's two ends.

``added`` are the data files that were added in the range and still exist, with the delete files that hide rows of them.
``removed`` are the removed rows: data files of the start that no longer exist, as a whole, and for those that do, the
rows deleted in the range, each file with an inverted deletion vector that hides all other rows. No data file is opened.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyroaring import BitMap64

from calve.capture import deletion_vectors, position_deletes
from calve.capture.appends import Placed, delete_rows, deletes_for, live, regrouped
from calve.capture.delete_scopes import METRICS, DeleteScope, Partitions
from calve.capture.file_search import find_files
from calve.capture.manifests import (
    DATA_MANIFEST,
    DELETE_MANIFEST,
    DELETED,
    EQUALITY_DELETES,
    POSITION_DELETES,
    Manifest,
    ManifestEntry,
    ManifestFile,
)
from calve.capture.model import Checkpoint, Exactness, Operation
from calve.capture.own_manifests import anything, deleted, own_manifests
from calve.capture.snapshots import RangeSnapshot
from calve.capture.source import Source
from calve.errors import LakeCorrupt
from calve.lake import decoding, too_large

_OF_A_VECTOR = 8
"""How many times smaller than other metadata a deletion vector must be, because all of its positions are expanded."""
LAST_UPDATED = 2147483539
"""The field id of ``_last_updated_sequence_number``; files with carried-over rows have bounds for it."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A data file from which rows were removed, and the positions to hide so that only these rows are read."""

    manifest: Manifest
    entry: ManifestEntry
    hidden: BitMap64

    @property
    def records(self) -> int:
        """The number of removed rows."""
        return self.entry.record_count - len(self.hidden)


@dataclass(frozen=True, slots=True)
class NetChange:
    """The difference between two snapshots."""

    exactness: Exactness
    added: tuple[Manifest, ...]
    added_deletes: tuple[Manifest, ...]
    carried: tuple[Manifest, ...]
    """Files added in the range without any changed row: not in ``added``, but needed to find the removed rows."""
    carried_deletes: tuple[Manifest, ...]
    removed: tuple[Removed, ...]
    removed_deletes: tuple[Manifest, ...]
    """Equality deletes from before the range, which hide rows of ``removed``."""
    equality_deletes: tuple[Placed, ...]
    row_ids_hold: bool
    """Whether rows can be followed by ``_row_id`` over the range."""
    hidden_records: int = 0
    """The number of rows of ``added`` that were deleted again, counting position deletes only."""


def net_change(
    source: Source, start: Checkpoint, steps: Sequence[RangeSnapshot], *, metrics: frozenset[int]
) -> NetChange:
    """Return the difference between a checkpoint without a pending part and the last of the steps after it."""
    end = steps[-1].snapshot_id
    exactness = _exactness(source, start, steps)
    added = _added(
        source,
        {step.snapshot_id for step in steps},
        end,
        metrics=metrics | {LAST_UPDATED} if exactness is Exactness.EXACT_WITH_FILTER else metrics,
    )
    kept, carried = [], []
    for manifest in added:
        old = []
        if exactness is Exactness.EXACT_WITH_FILTER:
            old = [entry for entry in manifest.entries() if _holds_only_old_rows(entry, start.sequence_number)]
        if old:
            carried.append(manifest.keeping(old))
        if len(old) < len(manifest.entries()):
            dropped = {entry.file_path for entry in old}
            kept.append(manifest.keeping(e for e in manifest.entries() if e.file_path not in dropped))
    came = {entry.file_path for manifest in added for entry in manifest.entries()}
    new = _new_deletes(source, start, end)
    new_positions = [placed for placed in new if placed[1].content == POSITION_DELETES]
    by_file = _positions_by_file(source, new_positions)
    deleted = _positions(by_file)
    # Deletes in files that were added in the range hide rows that were never visible at either end.
    stayed = {path: positions for path, positions in deleted.items() if path not in came}
    where = Partitions(
        source, _partitions_of(placed for placed, found in by_file if not stayed.keys().isdisjoint(found))
    )
    removed, before = _removed(source, start, steps, stayed, where, metrics=metrics)
    return NetChange(
        exactness=exactness,
        added=tuple(kept),
        added_deletes=deletes_for(source, end, kept),
        carried=tuple(carried),
        carried_deletes=deletes_for(source, end, carried),
        removed=tuple(removed),
        removed_deletes=before if removed else (),
        equality_deletes=tuple(placed for placed in new if placed[1].content == EQUALITY_DELETES),
        # If ids cannot be trusted, removed rows are found by comparing whole rows (see relations).
        row_ids_hold=not any(_loses_row_ids(step) for step in steps)
        and all(item.entry.first_row_id is not None for item in removed),
        hidden_records=sum(len(deleted.get(e.file_path, ())) for manifest in kept for e in manifest.entries()),
    )


def lineage_upserts(source: Source, start: Checkpoint, end: int) -> NetChange:
    """Return the new and changed rows since a checkpoint by row lineage alone, without history; deletes are lost."""
    rows = [
        r for r in source.manifest_list(end) if r.content == DATA_MANIFEST and r.sequence_number > start.sequence_number
    ]
    data = []
    for manifest in source.read(rows):
        kept = [
            entry
            for entry in live(manifest.entries(metrics=frozenset({LAST_UPDATED})))
            if entry.sequence_number > start.sequence_number and not _holds_only_old_rows(entry, start.sequence_number)
        ]
        if kept:
            data.append(manifest.keeping(kept))
    added, deletes = tuple(data), deletes_for(source, end, data)
    return NetChange(Exactness.EXACT_WITH_FILTER, added, deletes, (), (), (), (), (), row_ids_hold=True)


def _exactness(source: Source, start: Checkpoint, steps: Sequence[RangeSnapshot]) -> Exactness:
    """Return how changed rows are distinguished from rows that were only copied into new files."""
    if not any(step.may_carry_rows() for step in steps):
        return Exactness.EXACT
    has_lineage = source.format_version > 2 and start.next_row_id is not None and all(s.has_row_ids for s in steps)
    return Exactness.EXACT_WITH_FILTER if has_lineage else Exactness.EXCEPT_ALL


def _holds_only_old_rows(entry: ManifestEntry, sequence_number: int) -> bool:
    """Tell whether every row of a file was last updated at or before a sequence number."""
    upper = (entry.upper_bounds or {}).get(LAST_UPDATED)
    nulls = (entry.null_value_counts or {}).get(LAST_UPDATED)
    values = (entry.value_counts or {}).get(LAST_UPDATED)
    # A null means that the row inherits the file's own sequence number, which lies in the range.
    if upper is None or nulls != 0 or values != entry.record_count:
        return False
    return int.from_bytes(upper, "little", signed=True) <= sequence_number


def _loses_row_ids(step: RangeSnapshot) -> bool:
    """Tell whether a snapshot rewrote manifests only: Iceberg 1.11.0 gives every row a new id then (#16699)."""
    return step.operation is Operation.REPLACE and not step.count("added-data-files")


def _added(source: Source, in_range: set[int], end: int, *, metrics: frozenset[int]) -> list[Manifest]:
    """Return the data files that were added in the range and exist at its end."""
    found = []
    rows = source.manifest_list(end)
    for manifest in source.read(r for r in rows if r.content == DATA_MANIFEST and r.added_snapshot_id in in_range):
        kept = [entry for entry in live(manifest.entries(metrics=metrics)) if entry.snapshot_id in in_range]
        if kept:
            found.append(manifest.keeping(kept))
    return found


def _removed(
    source: Source,
    start: Checkpoint,
    steps: Sequence[RangeSnapshot],
    after: Mapping[str, BitMap64],
    where: Partitions,
    *,
    metrics: frozenset[int],
) -> tuple[list[Removed], tuple[Manifest, ...]]:
    """Return the removed rows, and the earlier equality deletes that hide some rows of the same files.

    ``after`` are the positions deleted in the range, in files that were there before it; ``where`` are their
    partitions.
    """
    gone, passing = _gone_files(source, start, steps, metrics=metrics)
    rows = _older_rows(source, steps)
    touched = find_files(source, rows, after.keys() - gone.keys() - passing, where, metrics=metrics)
    old: tuple[Manifest, ...] = ()
    before: dict[str, BitMap64] = {}
    if gone or touched:
        placed = _deletes_at(source, start, steps[0].snapshot_id, [*gone.values(), *touched.values()])
        before = _positions(
            _positions_by_file(source, [pair for pair in placed if pair[1].content == POSITION_DELETES])
        )
        old = tuple(regrouped(pair for pair in placed if pair[1].content == EQUALITY_DELETES))
    nothing = BitMap64()
    for path, (_, entry) in [*gone.items(), *touched.items()]:
        # Before any vector is inverted: a position beyond the end would turn into rows that the file does not have.
        _check_rows(entry, after.get(path, nothing) | before.get(path, nothing))
    removed = [Removed(m, entry, before.get(path, nothing)) for path, (m, entry) in gone.items()]
    for path, (manifest, entry) in touched.items():
        newly = after[path] - before.get(path, nothing)
        if newly:
            removed.append(Removed(manifest, entry, deletion_vectors.complement(newly, entry.record_count)))
    return [item for item in removed if item.records], old


def _gone_files(
    source: Source, start: Checkpoint, steps: Sequence[RangeSnapshot], *, metrics: frozenset[int]
) -> tuple[dict[str, Placed], set[str]]:
    """Return the data files that existed at the start and were removed in the range, by path.

    And the paths of those that were both added and removed in the range, to which deletes may still refer.
    """
    found: dict[str, Placed] = {}
    came: set[str] = set()
    passing: set[str] = set()
    # Format v1 does not number files: every file that came in the range must be known to tell which were there before.
    own = own_manifests(source, steps, anything if start.sequence_number == 0 else deleted)
    for step in steps:
        for manifest in source.read(own[step.snapshot_id]):
            for entry in manifest.entries(metrics=metrics):
                if entry.snapshot_id != step.snapshot_id:
                    continue
                if entry.status != DELETED:
                    came.add(entry.file_path)
                elif _was_there(entry, start, came):
                    found.setdefault(entry.file_path, (manifest, entry))
                else:
                    passing.add(entry.file_path)
    return found, passing


def _was_there(entry: ManifestEntry, start: Checkpoint, came: set[str]) -> bool:
    if start.sequence_number == 0:  # format v1, then at least: files of the range may have no number either
        return entry.file_path not in came
    return entry.file_sequence_number <= start.sequence_number


def _new_deletes(source: Source, start: Checkpoint, end: int) -> list[Placed]:
    """Return the delete files that were added after the start and are live at the end."""
    return [
        (manifest, entry)
        for manifest in source.read(delete_rows(source, end, start.sequence_number + 1))
        for entry in live(manifest.entries())
        if entry.sequence_number > start.sequence_number
    ]


def _deletes_at(source: Source, start: Checkpoint, first: int, data: Sequence[Placed]) -> list[Placed]:
    """Return the delete files that hid rows of some data files at the start.

    They are read from the first snapshot after it, because the start itself may have expired: the older deletes that
    this snapshot kept, and those that it removed.
    """
    rows = [r for r in source.manifest_list(first) if r.content == DELETE_MANIFEST]
    if not rows:
        return []
    scope = DeleteScope(source, data)
    return [
        (manifest, entry)
        for manifest in source.read(row for row in rows if scope.may_list(row))
        for entry in manifest.entries(metrics=METRICS)
        if entry.sequence_number <= start.sequence_number
        and (entry.status != DELETED or entry.snapshot_id == first)
        and scope.may_concern(manifest.file.partition_spec_id, entry)
    ]


def _older_rows(source: Source, steps: Sequence[RangeSnapshot]) -> list[ManifestFile]:
    """Return the data manifests of the end that can list files from before the range."""
    in_range = {step.snapshot_id for step in steps}
    return [
        row
        for row in source.manifest_list(steps[-1].snapshot_id)
        if row.content == DATA_MANIFEST and not (row.added_snapshot_id in in_range and row.existing_files_count == 0)
    ]


def _partitions_of(deletes: Iterable[Placed]) -> Iterator[tuple[int, Iterable[Any]]]:
    """Yield the partition of each delete file: that of the data files whose rows it hides."""
    for manifest, entry in deletes:
        yield manifest.file.partition_spec_id, entry.partition.values()


def _positions_by_file(source: Source, deletes: Iterable[Placed]) -> list[tuple[Placed, Mapping[str, BitMap64]]]:
    """Return each of some delete files with the deleted positions of each data file."""
    return [(placed, _positions_in(source, placed[1])) for placed in deletes]


def _positions(by_file: Iterable[tuple[Placed, Mapping[str, BitMap64]]]) -> dict[str, BitMap64]:
    """Return the deleted positions of each data file."""
    found: dict[str, BitMap64] = {}
    for _, hidden in by_file:
        for path, positions in hidden.items():
            found[path] = found[path] | positions if path in found else positions
    return found


def _positions_in(source: Source, entry: ManifestEntry) -> Mapping[str, BitMap64]:
    """Read a deletion vector, or a v2 position-delete file: the only kind of data file that a capture opens."""
    path, offset, size = entry.file_path, entry.content_offset, entry.content_size_in_bytes
    if offset is not None and size is not None and entry.referenced_data_file is not None:
        if size > source.files.max_bytes // _OF_A_VECTOR:
            raise too_large(f"a deletion vector has {size} bytes", offset).in_file(path)
        raw = source.files.read_range(path, offset, size)
        with decoding(path):
            positions = deletion_vectors.decode(raw)
            if len(positions) != entry.record_count:
                raise LakeCorrupt(
                    f"a deletion vector has {len(positions)} positions, and its manifest says {entry.record_count}",
                    offset=offset,
                )
        return {entry.referenced_data_file: positions}
    content = source.files.read(path, times=position_deletes.TIMES)
    with decoding(path):
        return position_deletes.read(content, entry.file_format, entry.record_count, source.files.max_bytes)


def _check_rows(entry: ManifestEntry, positions: BitMap64) -> None:
    """Check that deleted positions exist in a file.

    Raises:
        LakeCorrupt: they are not.
    """
    rows = entry.record_count
    if rows > deletion_vectors.MOST_ROWS or (positions and positions.max() >= rows):
        last = positions.max() if positions else None
        raise LakeCorrupt(f"row {last} of it was deleted, and it has {rows}", path=entry.file_path)
