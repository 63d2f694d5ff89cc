"""The history of a table's main branch, and a cache of tables' metadata by its location."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from calve.capture.lag import Backlog
from calve.capture.snapshots import RangeSnapshot, ancestors, step_of
from calve.capture.source import Source
from calve.lake import Lake, LoadedTable, TableName

OURS = "calve."
"""The prefix of the snapshot properties in which calve records who wrote a snapshot."""
ATTEMPT = f"{OURS}attempt"
"""The property with the key of the attempt that wrote a snapshot."""
_MOST_SNAPSHOTS = 20_000
"""The maximum number of snapshots in the cached metadata, of about 3 KB each."""


class TableHistory:
    """A table at one moment, and its commits."""

    def __init__(self, loaded: LoadedTable) -> None:
        self.loaded = loaded
        self.source = Source(loaded)

    @property
    def name(self) -> TableName:
        """The table's name."""
        return self.loaded.name

    @cached_property
    def backlog(self) -> Backlog:
        """What came after each snapshot."""
        return Backlog(Source(self.loaded))  # a new one: it caches the manifest lists that it reads

    @cached_property
    def commits(self) -> tuple[RangeSnapshot, ...]:
        """The snapshots of the main branch that have not expired, newest first."""
        return tuple(step_of(snapshot) for snapshot in ancestors(self.source, self.source.head))

    @cached_property
    def refs(self) -> dict[int, list[str]]:
        """The names of branches and tags, by snapshot."""
        found: dict[int, list[str]] = {}
        main = {} if self.source.head is None else {"main": {"snapshot-id": self.source.head}}
        for name, ref in sorted((main | self.loaded.metadata.get("refs", {})).items()):
            found.setdefault(ref["snapshot-id"], []).append(name)
        return found


def written_by(summary: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a snapshot about the step that wrote it, by their names without ``calve.``."""
    return {key.removeprefix(OURS): value for key, value in summary.items() if key.startswith(OURS)}


@dataclass(slots=True)
class MetadataCache:
    """A cache of tables by the location of their metadata, which changes with every commit; threads may share it."""

    most: int = _MOST_SNAPSHOTS
    _tables: OrderedDict[tuple[str, str], TableHistory] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _looked: dict[TableName, float] = field(default_factory=dict)

    def looked_at(self, name: TableName) -> float:
        """Return when a table was last requested from the catalog, whether or not it existed; 0 if never."""
        return self._looked.get(name, 0.0)

    def known(self, name: TableName) -> TableHistory | None:
        """Return a table as it was when it was last requested from the catalog, if it is cached."""
        with self._lock:
            return next((one for key, one in self._tables.items() if key[0] == str(name)), None)

    def load(self, lake: Lake, name: TableName) -> TableHistory:
        """Return the current state of a table.

        Raises:
            TableMissing, LakeError: it cannot be read.
        """
        self._looked[name] = time.monotonic()
        known = self.known(name)
        catalog = lake.catalog(name.catalog)
        if known is not None and catalog.locations([name]).get(name) == known.loaded.metadata_location:
            with self._lock, suppress(KeyError):  # another thread may have dropped it
                self._tables.move_to_end((str(name), known.loaded.metadata_location))
            return known
        found = TableHistory(catalog.load(name))
        self._put((str(name), found.loaded.metadata_location), found)
        return found

    def _put(self, key: tuple[str, str], found: TableHistory) -> None:
        with self._lock:
            for old in [one for one in self._tables if one[0] == key[0]]:
                del self._tables[old]  # the table has moved on
            self._tables[key] = found
            while len(self._tables) > 1 and sum(map(_weight, self._tables.values())) > self.most:
                self._tables.popitem(last=False)


def _weight(table: TableHistory) -> int:
    """Return the size of a table in snapshots, with some for its schemas and properties."""
    snapshots: list[Any] = table.loaded.metadata.get("snapshots", [])
    return 10 + len(snapshots)


@dataclass(slots=True)
class Intervals:
    """How often tables have commits, as of the newest commit in a sample; threads may share it."""

    _known: dict[TableName, tuple[int | None, int | None]] = field(default_factory=dict)

    def of(
        self, table: TableName, current_at: int | None, find: Callable[[TableName], int | None] | None
    ) -> int | None:
        """Return the usual time between two commits of a table.

        Args:
            table: its name.
            current_at: the time of its newest commit: the result is valid until the next one.
            find: computes it; without it, the last known value is returned.
        """
        seen_at, interval = self._known.get(table, (None, None))
        if find is None or (table in self._known and seen_at == current_at):
            return interval
        interval = find(table)
        self._known[table] = (current_at, interval)
        return interval
