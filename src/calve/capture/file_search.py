"""Where some data files are listed: the likely manifests first, and only the blocks with their paths are decoded."""

from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile

from calve.capture.delete_scopes import Partitions
from calve.capture.manifests import DELETED, Manifest, ManifestEntry, ManifestFile
from calve.capture.source import Source

_FEW = 4
"""How many paths are each looked for in a block; more are looked for together."""
_ALIKE = 8
"""How many bytes paths must have in common for that."""


def find_files(
    source: Source, rows: Sequence[ManifestFile], paths: Collection[str], where: Partitions, *, metrics: frozenset[int]
) -> dict[str, tuple[Manifest, ManifestEntry]]:
    """Return where some data files are listed; stops as soon as all are found.

    Args:
        source: the table.
        rows: the manifests that can list them.
        paths: of the files.
        where: their partitions, as their deletes tell: where the files are not found there, all manifests are read.
        metrics: the columns whose statistics are read.
    """
    found: dict[str, tuple[Manifest, ManifestEntry]] = {}
    for row in _batches(source, rows, where):
        missing = [path for path in paths if path not in found]
        if not missing:
            break
        is_wanted = PathSearch(missing)
        for manifest in source.read(row):
            for entry in manifest.entries_in(is_wanted, metrics=metrics):
                if entry.status != DELETED and entry.file_path in is_wanted:
                    found[entry.file_path] = (manifest, entry)
    return found


def _batches(source: Source, rows: Sequence[ManifestFile], where: Partitions) -> Iterator[Sequence[ManifestFile]]:
    """Yield manifests, those that list the partitions first, as many at once as are read at once."""
    likely = [row for row in rows if where.may_list(row)]
    known = {row.manifest_path for row in likely}
    others = [row for row in rows if row.manifest_path not in known]
    for some in (likely, others):
        for start in range(0, len(some), source.reads_at_once):
            yield some[start : start + source.reads_at_once]


class PathSearch:
    """Tells by its bytes whether a block of a manifest can list one of some files: a search is cheaper than reading."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._encoded = {path.encode(errors="surrogatepass") for path in self._paths}
        ends = min(self._encoded, default=b""), max(self._encoded, default=b"")
        self._start = bytes(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*ends, strict=False)))
        self._sizes = sorted({len(path) for path in self._encoded})

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def __call__(self, block: bytes) -> bool:
        """Tell whether the block contains one of the paths."""
        if len(self._encoded) <= _FEW:
            return any(path in block for path in self._encoded)
        if len(self._start) < _ALIKE:
            return True
        # Paths of one table begin alike, so one search finds the places where any of them may be.
        at = block.find(self._start)
        while at >= 0:
            if any(block[at : at + size] in self._encoded for size in self._sizes):
                return True
            at = block.find(self._start, at + 1)
        return False
