"""Which manifests each snapshot of a range wrote, from as few manifest lists as possible.

A manifest stays in the lists of later snapshots until it is merged or rewritten, and never changes. So a later list
shows what an earlier snapshot wrote, and that it shows all of it follows from the snapshot's summary, which counts the
files. Where it does not show all, or nothing was counted, the snapshot's own list is read.
"""

from collections.abc import Callable, Collection, Sequence

from calve.capture.manifests import DATA_MANIFEST, ManifestFile
from calve.capture.snapshots import RangeSnapshot, step_of
from calve.capture.source import Source

Count = Callable[[ManifestFile], int | None]
"""Returns how many files of a kind a manifest lists; None if it is not known."""


def added(row: ManifestFile) -> int | None:
    """Return how many data files a manifest lists as added."""
    return row.added_files_count


def deleted(row: ManifestFile) -> int | None:
    """Return how many data files a manifest lists as removed."""
    return row.deleted_files_count


def anything(_: ManifestFile) -> int | None:
    """Say nothing: every snapshot's own list is read, for all the data manifests that it wrote."""
    return None


def own_manifests(source: Source, steps: Sequence[RangeSnapshot], count: Count) -> dict[int, list[ManifestFile]]:
    """Return the data manifests that each snapshot itself wrote and that may list files of one kind.

    Args:
        source: the table.
        steps: the snapshots, each an ancestor of the next; others of the same history may be between them.
        count: ``added``, ``deleted`` or ``anything``.
    """
    left = {step.snapshot_id: _files_of(source, step, count) for step in steps}
    found: dict[int, list[ManifestFile]] = {snapshot_id: [] for snapshot_id, files in left.items() if files == 0}
    at_once = 1
    while missing := [step.snapshot_id for step in reversed(steps) if step.snapshot_id not in found]:
        # The newest one first: its list shows the most. If few are superfluous, several are read at once.
        batch = missing[:at_once]
        source.prepare_lists(batch)
        for snapshot_id in batch:
            found |= _shown(source.manifest_list(snapshot_id), snapshot_id, left, found.keys(), count)
        at_once = min(2 * at_once, source.reads_at_once)
    return found


def _files_of(source: Source, step: RangeSnapshot, count: Count) -> int | None:
    """Return how many files of a kind a snapshot has, by its summary; None if that cannot be relied on."""
    if count is added:
        return step.count("added-data-files") or None  # an append of nothing is looked at
    is_known = count is deleted and adds_up(source, step)
    return step.count("deleted-data-files") if is_known else None


def adds_up(source: Source, step: RangeSnapshot) -> bool:
    """Tell whether a summary's counts make the difference between its total and that of the snapshot before."""
    parent = source.snapshots.get(source.snapshots[step.snapshot_id].get("parent-snapshot-id") or 0)
    before = None if parent is None else step_of(parent).count("total-data-files")
    came, went, total = (step.count(f"{kind}-data-files") for kind in ("added", "deleted", "total"))
    if before is None or came is None or went is None:
        return False
    return before + came - went == total


def _shown(
    rows: Sequence[ManifestFile], own: int, left: dict[int, int | None], known: Collection[int], count: Count
) -> dict[int, list[ManifestFile]]:
    """Return the manifests of a list by the snapshot that wrote them, for the snapshots of which it shows all."""
    written: dict[int, list[ManifestFile]] = {own: []}
    for row in rows:
        writer = row.added_snapshot_id
        if row.content == DATA_MANIFEST and writer in left and writer not in known and count(row) != 0:
            written.setdefault(writer, []).append(row)
    return {writer: some for writer, some in written.items() if writer == own or _total(some, count) == left[writer]}


def _total(rows: Sequence[ManifestFile], count: Count) -> int:
    """Return how many files manifests list; -1 if that is not known."""
    counts = [count(row) for row in rows]
    return -1 if None in counts else sum(number or 0 for number in counts)
