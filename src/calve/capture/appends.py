"""The files of a change that consists of appends only, whole or in part, oldest first."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, replace

from calve.capture.delete_scopes import METRICS, DeleteScope
from calve.capture.manifests import (
    ADDED,
    DATA_MANIFEST,
    DELETE_MANIFEST,
    DELETED,
    NO_METRICS,
    Manifest,
    ManifestEntry,
    ManifestFile,
)
from calve.capture.model import Checkpoint, Operation, Pending, PendingOf
from calve.capture.own_manifests import added, adds_up, own_manifests
from calve.capture.snapshots import RangeSnapshot
from calve.capture.source import Source

Placed = tuple[Manifest, ManifestEntry]
"""An entry, and the manifest that contains it."""


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """How much of a change to capture at most; at least one file is always captured."""

    max_files: int | None = None
    max_bytes: int | None = None

    def __bool__(self) -> bool:
        return self.max_files is not None or self.max_bytes is not None


@dataclass(frozen=True, slots=True)
class Taken:
    """The end of a capture, and its files."""

    to: Checkpoint
    steps: tuple[RangeSnapshot, ...]
    data: tuple[Manifest, ...] = ()
    deletes: tuple[Manifest, ...] = ()
    """Delete files that hide rows of ``data``."""
    is_net: bool = False
    """Whether the steps contain more than appends: then the change is the difference of the two ends, not ``data``."""


# Without limits: read as little as possible.


def all_appended(
    source: Source, start: Checkpoint, steps: Sequence[RangeSnapshot], *, metrics: frozenset[int]
) -> Taken:
    """Take every file that the appends among ``steps`` added, even if it was compacted since."""
    to = source.checkpoint(steps[-1].snapshot_id) if steps else start
    appends = {step.snapshot_id: step for step in steps if step.operation is Operation.APPEND}
    if not appends:
        return Taken(to, tuple(steps))
    return Taken(to, tuple(steps), tuple(_appended(source, steps, appends, metrics=metrics)))


def _appended(
    source: Source, steps: Sequence[RangeSnapshot], appends: Mapping[int, RangeSnapshot], *, metrics: frozenset[int]
) -> list[Manifest]:
    """Return the files that the appends among ``steps`` added.

    The last snapshot's manifest list is one file for the whole range; the summaries tell of which appends it still has
    every file. The others are asked for what they wrote.
    """
    in_range = {step.snapshot_id for step in steps}
    data = _cut_to(source, source.manifest_list(steps[-1].snapshot_id), in_range, set(appends), metrics=metrics)
    there = _by_snapshot(data)
    rest = [step for step in appends.values() if not _is_whole(source, step, there[step.snapshot_id])]
    if not rest:
        return data
    left = {step.snapshot_id for step in rest}
    own = own_manifests(source, rest, added)
    rows = [row for step in rest for row in own[step.snapshot_id]]
    kept = [manifest for manifest in (_without(manifest, left) for manifest in data) if _count(manifest)]
    return kept + _cut_to(source, rows, in_range, left, metrics=metrics, only_added=True)


def _is_whole(source: Source, step: RangeSnapshot, files: int) -> bool:
    """Tell whether so many files are all that an append added."""
    return step.count("added-data-files") == files and (files > 0 or adds_up(source, step))


def _by_snapshot(data: Iterable[Manifest]) -> Counter[int]:
    """Return how many files of each snapshot manifests contain."""
    found: Counter[int] = Counter()
    for manifest in data:
        if manifest.kept is None:
            found[manifest.file.added_snapshot_id] += _count(manifest)
        else:
            found.update(entry.snapshot_id for entry in manifest.kept)
    return found


def _without(manifest: Manifest, snapshots: AbstractSet[int]) -> Manifest:
    """Return a manifest without the files of some snapshots."""
    if manifest.kept is None:
        return manifest.keeping(()) if manifest.file.added_snapshot_id in snapshots else manifest
    return manifest.keeping(entry for entry in manifest.kept if entry.snapshot_id not in snapshots)


def all_live(source: Source, snapshot_id: int | None, *, metrics: frozenset[int]) -> Taken:
    """Take everything that is in the table at a snapshot."""
    to = source.checkpoint(snapshot_id)
    if snapshot_id is None:
        return Taken(to, ())
    data: list[Manifest] = []
    deletes: list[Manifest] = []
    for manifest in source.read(row for row in source.manifest_list(snapshot_id) if _has_live(row)):
        # A manifest without DELETED entries is copied byte by byte; only the others have to be decoded (decision
        # 0002).
        is_whole = manifest.file.deleted_files_count == 0
        kept = manifest if is_whole else manifest.keeping(live(manifest.entries(metrics=metrics)))
        (data if manifest.file.content == DATA_MANIFEST else deletes).append(kept)
    return Taken(to, (), tuple(data), tuple(deletes))


def _cut_to(
    source: Source,
    rows: Iterable[ManifestFile],
    written_in: set[int],
    appends: set[int],
    *,
    metrics: frozenset[int],
    only_added: bool = False,
) -> list[Manifest]:
    """Return the data manifests that were written in the range, cut down to the files that its appends added."""
    cut = []
    for manifest in source.read(r for r in rows if r.content == DATA_MANIFEST and r.added_snapshot_id in written_in):
        row = manifest.file
        if row.existing_files_count == 0 and row.deleted_files_count == 0:
            if row.added_snapshot_id in appends:
                cut.append(manifest)
            continue
        # Go by the snapshot that added each entry, not by its status: Iceberg merges manifests, so a file of the
        # range may be an EXISTING entry beside older ones.
        kept = [
            entry
            for entry in manifest.entries(metrics=metrics)
            if entry.snapshot_id in appends and (entry.status == ADDED if only_added else entry.status != DELETED)
        ]
        if kept:
            cut.append(manifest.keeping(kept))
    return cut


def _count(manifest: Manifest) -> int:
    return len(manifest.kept) if manifest.kept is not None else manifest.file.added_files_count or 0


def _has_live(row: ManifestFile) -> bool:
    return row.added_files_count != 0 or row.existing_files_count != 0


def live(entries: Iterable[ManifestEntry]) -> list[ManifestEntry]:
    """Return the entries of files that are in the table."""
    return [entry for entry in entries if entry.status != DELETED]


# In part: file by file, in an order that never changes.


def take_oldest(
    source: Source, start: Checkpoint, steps: Sequence[RangeSnapshot], limits: CaptureLimits, *, metrics: frozenset[int]
) -> Taken:
    """Take what is pending of the checkpoint, then snapshot by snapshot, until the limits are reached.

    Appends are cut between files. Any other snapshot is taken whole, and not together with a part of one, because its
    change is only known for a range that starts and ends between snapshots.
    """
    budget = _Budget(limits)
    to, is_net = start, False
    files: list[Placed] = []
    done: list[RangeSnapshot] = []
    for chunk in _chunks(source, start, steps, budget, metrics=metrics):
        # Pending files are part of an append; a net change needs a range that starts at a whole snapshot.
        if chunk.is_net and start.pending is not None:
            break
        is_net |= chunk.is_net
        taken = budget.take_whole(chunk.count, chunk.bytes) if is_net else budget.take(chunk.sizes)
        if chunk.count and not taken:
            break
        files += chunk.files[:taken]
        done += [chunk.step] if chunk.step else []
        to = chunk.after(source, start, taken)
        if to.pending is not None:
            break
    data = regrouped(files)
    deletes: tuple[Manifest, ...] = ()
    if start.pending is not None and start.pending.of is PendingOf.LIVE and start.snapshot_id is not None:
        deletes = deletes_for(source, start.snapshot_id, data)
    return Taken(to, tuple(done), tuple(data), deletes, is_net=any(step.operation not in _PLAIN for step in done))


_PLAIN = (Operation.APPEND, Operation.REPLACE)


@dataclass(slots=True)
class _Budget:
    """Counts the files and bytes that were taken, against the limits."""

    limits: CaptureLimits
    files: int = 0
    bytes: int = 0

    def take(self, sizes: Sequence[int]) -> int:
        """Take files until one does not fit; return how many were taken."""
        return next((n for n, size in enumerate(sizes) if not self._spend(1, size)), len(sizes))

    def fits(self, count: int, size: int) -> bool:
        """Tell whether files can be taken as a whole."""
        return not self._is_over(self.files + count, self.bytes + size)

    def take_whole(self, count: int, size: int) -> int:
        """Take all of ``count`` files, or none; return how many were taken."""
        return count if self._spend(count, size) else 0

    def _spend(self, count: int, size: int) -> bool:
        files, total = self.files + count, self.bytes + size
        # Without this exception a file larger than max_bytes would block its consumer for ever.
        if self.files and self._is_over(files, total):
            return False
        self.files, self.bytes = files, total
        return True

    def _is_over(self, files: int, total: int) -> bool:
        most_files, most_bytes = self.limits.max_files, self.limits.max_bytes
        return (most_files is not None and files > most_files) or (most_bytes is not None and total > most_bytes)


@dataclass(frozen=True, slots=True)
class _Chunk:
    """What one snapshot adds to a capture."""

    step: RangeSnapshot | None
    """None for what is pending of the checkpoint."""
    files: Sequence[Placed] = ()
    told: tuple[int, int] | None = None
    """The files and bytes that a snapshot other than an append added, according to its summary."""

    @property
    def is_net(self) -> bool:
        """Tell whether the snapshot is taken as a whole or not at all."""
        return self.told is not None

    @property
    def sizes(self) -> Sequence[int]:
        """The sizes of the files that can be taken one by one."""
        return _sizes(self.files)

    @property
    def count(self) -> int:
        """Number of files."""
        return self.told[0] if self.told else len(self.files)

    @property
    def bytes(self) -> int:
        """Size of the files in bytes."""
        return self.told[1] if self.told else sum(self.sizes)

    def after(self, source: Source, start: Checkpoint, taken: int) -> Checkpoint:
        """Return the checkpoint to commit once ``taken`` of the files are captured."""
        rest = taken < self.count
        if self.step is not None:
            return source.checkpoint(self.step.snapshot_id, Pending(PendingOf.ADDED, taken) if rest else None)
        pending = start.pending
        return replace(start, pending=replace(pending, taken=pending.taken + taken) if pending and rest else None)


def _chunks(
    source: Source, start: Checkpoint, steps: Sequence[RangeSnapshot], budget: _Budget, *, metrics: frozenset[int]
) -> Iterator[_Chunk]:
    if start.pending is not None:
        files = pending_files(source, start, metrics=metrics)
        yield _Chunk(None, files)
    known = _added_within(source, steps, budget, metrics=metrics)
    for step in steps:
        match step.operation:
            case Operation.APPEND:
                files = known.get(step.snapshot_id, [])
                # A part is counted in the order of the snapshot's own list, which is not always that of a later one.
                if step.snapshot_id not in known or not budget.fits(len(files), sum(_sizes(files))):
                    files = _added_by(source, step.snapshot_id, metrics=metrics)
                yield _Chunk(step, files)
            case Operation.REPLACE:
                yield _Chunk(step)
            case _:
                # The summary is exact enough for a limit, and saves opening the manifests of a snapshot that may not
                # be taken.
                size = int(step.summary.get("added-files-size", 0))
                yield _Chunk(step, told=(step.count("added-data-files") or 0, size))


def _added_within(
    source: Source, steps: Sequence[RangeSnapshot], budget: _Budget, *, metrics: frozenset[int]
) -> dict[int, list[Placed]]:
    """Return the files of the appends that fit into the rest of a budget as a whole, by their summaries."""
    within: list[RangeSnapshot] = []
    files, size = 0, 0
    for step in steps:
        if step.operation is not Operation.REPLACE:
            files += step.count("added-data-files") or 0
            size += step.count("added-files-size") or 0
        if not budget.fits(files, size) or step.count("added-data-files") is None:
            break
        within.append(step)
    appends = {step.snapshot_id: step for step in within if step.operation is Operation.APPEND}
    found: dict[int, list[Placed]] = {snapshot_id: [] for snapshot_id in appends}
    for manifest in _appended(source, within, appends, metrics=metrics) if len(appends) > 1 else ():
        for entry in manifest.entries(metrics=metrics):
            if entry.snapshot_id in found:
                found[entry.snapshot_id].append((manifest, entry))
    return found if len(appends) > 1 else {}


def _sizes(files: Iterable[Placed]) -> list[int]:
    return [entry.file_size_in_bytes for _, entry in files]


def pending_files(source: Source, checkpoint: Checkpoint, *, metrics: frozenset[int] = NO_METRICS) -> list[Placed]:
    """Return the files of a checkpoint's snapshot that have not been captured yet."""
    if checkpoint.pending is None or checkpoint.snapshot_id is None:
        return []
    order = _added_by if checkpoint.pending.of is PendingOf.ADDED else _live_at
    return order(source, checkpoint.snapshot_id, metrics=metrics)[checkpoint.pending.taken :]


def _added_by(source: Source, snapshot_id: int, *, metrics: frozenset[int]) -> list[Placed]:
    """Return the data files that a snapshot added, in the order of its own manifest list, which never changes."""
    rows = [r for r in source.manifest_list(snapshot_id) if r.added_snapshot_id == snapshot_id]
    return [
        (manifest, entry)
        for manifest in source.read(r for r in rows if r.content == DATA_MANIFEST)
        for entry in manifest.entries(metrics=metrics)
        if entry.status == ADDED and entry.snapshot_id == snapshot_id
    ]


def _live_at(source: Source, snapshot_id: int, *, metrics: frozenset[int]) -> list[Placed]:
    """Return all data files at a snapshot, oldest first; its manifest list never changes, so neither does the order."""
    rows = [r for r in source.manifest_list(snapshot_id) if r.content == DATA_MANIFEST and _has_live(r)]
    placed = [(m, entry) for m in source.read(rows) for entry in live(m.entries(metrics=metrics))]
    return sorted(placed, key=lambda pair: pair[1].sequence_number)  # stable: the list's order within one number


def regrouped(placed: Iterable[Placed]) -> list[Manifest]:
    """Return the manifests of some entries, each reduced to these entries."""
    groups: dict[str, tuple[Manifest, list[ManifestEntry]]] = {}
    for manifest, entry in placed:
        groups.setdefault(manifest.file.manifest_path, (manifest, []))[1].append(entry)
    return [manifest.keeping(entries) for manifest, entries in groups.values()]


def deletes_for(source: Source, snapshot_id: int, data: Iterable[Manifest]) -> tuple[Manifest, ...]:
    """Return the delete files live at a snapshot that can hide rows of some data files; a superset is harmless."""
    placed = [(manifest, entry) for manifest in data for entry in manifest.entries()]
    rows = delete_rows(source, snapshot_id, 0)
    if not placed or not rows:
        return ()
    scope = DeleteScope(source, placed)
    found = []
    for manifest in source.read(row for row in rows if scope.may_list(row)):
        spec_id = manifest.file.partition_spec_id
        kept = [entry for entry in live(manifest.entries(metrics=METRICS)) if scope.may_concern(spec_id, entry)]
        if kept:
            found.append(manifest.keeping(kept))
    return tuple(found)


def delete_rows(source: Source, snapshot_id: int, since: int) -> list[ManifestFile]:
    """Return the delete manifests of a snapshot that may hold delete files of a sequence number or later."""
    return [
        row
        for row in source.manifest_list(snapshot_id)
        # A manifest carries the sequence number of the commit that wrote it: none of its entries can have a larger
        # one.
        if row.content == DELETE_MANIFEST and _has_live(row) and row.sequence_number >= since
    ]
