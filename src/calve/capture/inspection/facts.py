"""What each commit did to which partitions; read from manifests only once, because a snapshot never changes."""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from calve.capture.inspection.periods import Partition, PartitionOf
from calve.capture.manifests import DATA, DATA_MANIFEST, DELETED, ManifestEntry, ManifestFile
from calve.capture.model import Operation
from calve.capture.snapshots import RangeSnapshot
from calve.capture.source import Source
from calve.errors import LakeError
from calve.lake import LoadedTable, decoding

SECONDS = 5.0
"""How many seconds one request may read what is not cached yet; the next one continues."""
_MOST_CELLS = 400_000
"""The maximum number of cells in the cache, of about 250 bytes each."""


class Cell(NamedTuple):
    """What one commit did to one partition."""

    partition: Partition
    files: int
    """Added, removed, and delete files."""
    rows: int
    """Of the data files that it added."""
    bytes: int


Cells = tuple[Cell, ...]
Key = tuple[str, int | None]
"""The uuid of a table, and the column whose bounds define the times; None: the partitions do."""


@dataclass(slots=True)
class FactsCache:
    """A cache of the cells of commits, for the tables that were requested last; threads may share it."""

    most: int = _MOST_CELLS
    _tables: OrderedDict[Key, dict[int, Cells]] = field(default_factory=OrderedDict)
    _sizes: Counter[Key] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def known(self, key: Key) -> dict[int, Cells]:
        """Return what is cached for a table, by snapshot, without later additions."""
        with self._lock:
            if key in self._tables:
                self._tables.move_to_end(key)
            return dict(self._tables.get(key, {}))

    def put(self, key: Key, found: dict[int, Cells]) -> None:
        """Add what was found; if the cache is too large, drop the tables that were requested longest ago."""
        with self._lock:
            table = self._tables.setdefault(key, {})
            self._tables.move_to_end(key)
            table |= found
            self._sizes[key] = sum(1 + len(cells) for cells in table.values())
            while self._sizes.total() > self.most and len(self._tables) > 1:
                oldest, _ = self._tables.popitem(last=False)
                del self._sizes[oldest]


@dataclass(frozen=True, slots=True)
class FactsReader:
    """Reads the cells of commits that are not known yet, newest first, for a bounded time.

    The manifest list of one snapshot shows most earlier appends: their files are still there, each with the snapshot
    that added it. If compaction or deletes have removed some of them, fewer are found than the summary of the commit
    counts, and the commit's own list is read. So a table without rewrites requires one list, however long its history
    is.
    """

    loaded: LoadedTable
    partition_of: PartitionOf
    metrics: frozenset[int] = frozenset()
    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic

    def read(self, commits: Sequence[RangeSnapshot], known: dict[int, Cells]) -> dict[int, Cells]:
        """Return the cells of commits, newest first, that are not known yet, as far as the time allows."""
        until = self.clock() + self.seconds
        unknown = [step for step in commits if step.snapshot_id not in known]
        found: dict[int, Cells] = {step.snapshot_id: () for step in unknown if _is_empty(step)}
        left = {step.snapshot_id: step for step in unknown if step.snapshot_id not in found}
        files: dict[str, list[_File]] = {}
        for step in unknown:
            if step.snapshot_id not in left:
                continue
            if files and self.clock() > until:
                break
            for snapshot_id, cells in self._list(step, left, files, until).items():
                found[snapshot_id] = cells
                del left[snapshot_id]
        return found

    def _list(
        self, step: RangeSnapshot, left: dict[int, RangeSnapshot], files: dict[str, list["_File"]], until: float
    ) -> dict[int, Cells]:
        """Return the cells of a commit, and of earlier appends that its manifest list shows completely."""
        source = Source(self.loaded)  # a new one for each: it caches the lists that it has read
        try:
            rows = source.manifest_list(step.snapshot_id)
        except LakeError:  # lost, or written inline by a very old writer: others can still be read
            return {step.snapshot_id: ()}
        tally = _Tally(step.snapshot_id, left)
        for row in rows:
            if row.added_snapshot_id == step.snapshot_id:
                tally.add(self._files(source, row, files))
        for row in _others(rows, step, left):
            if self.clock() > until:
                break
            tally.add(self._files(source, row, files))
        return tally.complete()

    def _files(self, source: Source, row: ManifestFile, files: dict[str, list["_File"]]) -> list["_File"]:
        """Return the files that a manifest lists; it is read once, even if many lists name it."""
        if row.manifest_path not in files:
            (manifest,) = source.read([row])
            entries = manifest.entries(metrics=self.metrics)
            with decoding(row.manifest_path):
                files[row.manifest_path] = [self._file(entry, row.partition_spec_id) for entry in entries]
        return files[row.manifest_path]

    def _file(self, entry: ManifestEntry, spec_id: int) -> "_File":
        is_removed = entry.status == DELETED
        is_new = entry.content == DATA and not is_removed
        return _File(
            entry.snapshot_id,
            self.partition_of(entry, spec_id),
            entry.record_count if is_new else 0,
            entry.file_size_in_bytes if is_new else 0,
            is_new,
            is_removed,
        )


class _File(NamedTuple):
    """One file that a manifest lists."""

    snapshot_id: int
    """The snapshot that added or removed it."""
    partition: Partition
    rows: int
    bytes: int
    is_new: bool
    is_removed: bool


def _is_empty(step: RangeSnapshot) -> bool:
    return step.operation is Operation.APPEND and step.count("added-data-files") == 0


def _others(
    rows: Sequence[ManifestFile], step: RangeSnapshot, left: dict[int, RangeSnapshot]
) -> Iterator[ManifestFile]:
    """Yield the manifests that may list files of other appends: first their own, then merged ones."""
    if step.operation is not Operation.APPEND:
        return
    data = [row for row in rows if row.content == DATA_MANIFEST and row.added_snapshot_id != step.snapshot_id]
    yield from (row for row in data if row.added_snapshot_id in left)
    yield from (row for row in data if row.added_snapshot_id not in left and row.existing_files_count != 0)


class _Tally:
    """Counts the files of commits by partition."""

    def __init__(self, own: int, left: dict[int, RangeSnapshot]) -> None:
        self._own = own
        self._left = left
        self._added: Counter[int] = Counter()
        self._cells: dict[int, dict[Partition, list[int]]] = {own: {}}

    def add(self, files: Iterable[_File]) -> None:
        """Count files: any of the commit itself, and those that other appends added."""
        for file in files:
            if file.snapshot_id == self._own or self._is_appended(file):
                cell = self._cells.setdefault(file.snapshot_id, {}).setdefault(file.partition, [0, 0, 0])
                cell[0] += 1
                cell[1] += file.rows
                cell[2] += file.bytes
                self._added[file.snapshot_id] += file.is_new

    def _is_appended(self, file: _File) -> bool:
        step = None if file.is_removed else self._left.get(file.snapshot_id)
        return step is not None and step.operation is Operation.APPEND

    def complete(self) -> dict[int, Cells]:
        """Return the cells of the commits whose files were all found."""
        return {
            snapshot_id: tuple(Cell(partition, *counts) for partition, counts in cells.items())
            for snapshot_id, cells in self._cells.items()
            if snapshot_id == self._own or self._left[snapshot_id].count("added-data-files") == self._added[snapshot_id]
        }
