"""What calve asks of a catalog, whatever its kind."""

import re
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar

from calve.errors import (
    CalveError,
    FormatVersionUnknown,
    NotSupportedByCatalog,
    SettingsInvalid,
    TableIsView,
    TableMissing,
)
from calve.lake import metadata as raw
from calve.lake.files import Files, local_path
from calve.lake.metadata_checks import KNOWN_FORMAT_VERSIONS, MAX_METADATA_BYTES, decoding
from calve.lake.table_name import TableName

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as PyIcebergCatalog


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as its catalog points to it now."""

    name: TableName
    metadata: dict[str, Any]
    """The ``metadata.json``, as it is."""
    metadata_location: str
    files: Files


LOADERS = 8
"""How many tables are loaded concurrently: enough to hide the network, few enough for the server."""
_MOST_KNOWN = 8 << 20
"""How many bytes of metadata files are kept; in memory, they take about eight times as much."""
_READ = re.compile(r"\b(?:FROM|JOIN)\s+([\w.`-]+)", re.IGNORECASE)
"""The tables that the SQL of a view names."""
Decide = Callable[[raw.Metadata], raw.TableCommit | None]
"""Decides from a table's metadata what to change; None: nothing."""


def wall_clock_ms() -> int:
    """Return the time as Iceberg counts it."""
    return time.time_ns() // 1_000_000


MetadataKey = tuple[str, tuple[int, ...]]


def _key(location: str) -> MetadataKey:
    """Return a location, with what changes if a person repairs a local file in place."""
    local = local_path(location)
    try:
        found = None if local is None else local.stat()
    except (OSError, ValueError):  # reading it tells why
        return location, ()
    return location, () if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def _outcome(load: Callable[[], LoadedTable]) -> LoadedTable | CalveError:
    """Return a table, or why it cannot be loaded."""
    try:
        return load()
    except CalveError as error:
        return error


@dataclass(slots=True)
class KnownMetadata:
    """The metadata files read last, by location, which changes with every commit. Threads may share it."""

    most: int = _MOST_KNOWN
    _known: OrderedDict[MetadataKey, tuple[raw.Metadata, int]] = field(default_factory=OrderedDict)
    _total: int = 0
    _lock: Lock = field(default_factory=Lock)

    def get(self, key: MetadataKey) -> raw.Metadata | None:
        """Return metadata, if it is known."""
        with self._lock:
            if key not in self._known:
                return None
            self._known.move_to_end(key)
            return self._known[key][0]

    def put(self, key: MetadataKey, metadata: raw.Metadata, size: int) -> None:
        """Keep metadata of so many bytes, and drop what was used longest ago if there are too many."""
        with self._lock:
            if key in self._known or size > self.most:
                return
            self._known[key] = (metadata, size)
            self._total += size
            while self._total > self.most:
                self._total -= self._known.popitem(last=False)[1][1]


class Catalog(ABC):
    """One catalog of the lake."""

    finds_many_at_once: ClassVar[bool] = False
    """Whether it tells the locations of many tables in one query, and no more than their locations."""

    def __init__(
        self,
        name: str,
        properties: Mapping[str, str],
        *,
        location: str | None = None,
        max_bytes: int = MAX_METADATA_BYTES,
        now_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        """Take PyIceberg's properties, a folder for new tables other than the warehouse, and the limit of files."""
        self.name = name
        self.catalogs: tuple[str, ...] = (name,)
        """All catalogs of the lake, for messages."""
        self.properties = dict(properties)
        self.files = Files(properties, max_bytes=max_bytes)
        self._location = location
        self._now_ms = now_ms
        self._pyiceberg: PyIcebergCatalog | None = None
        self._opening = Lock()
        self._metadata = KnownMetadata()

    @abstractmethod
    def load(self, table: TableName) -> LoadedTable:
        """Return a table's current metadata.

        Raises:
            TableMissing, TableIsView, FormatVersionUnknown, FilesLost, LakeCorrupt.
        """

    @abstractmethod
    def exists(self, table: TableName) -> bool:
        """Tell whether a table exists."""

    @abstractmethod
    def locations(self, tables: Sequence[TableName]) -> dict[TableName, str]:
        """Return the location of each table's current metadata; tables that are missing or unreadable are left out.

        The location changes with every commit, so a table need not be read to see that nothing happened.

        Raises:
            LakeError: the catalog cannot be reached.
        """

    @abstractmethod
    def register(self, table: TableName, metadata_location: str) -> None:
        """Register a table with existing metadata, and create its namespace if needed; atomic.

        Raises:
            LakeError: the name is taken.
        """

    @abstractmethod
    def drop(self, table: TableName) -> bool:
        """Remove a table from the catalog, keeping all its files; tell whether it existed."""

    @abstractmethod
    def create_tag(self, table: TableName, tag: str, snapshot_id: int, max_age_ms: int) -> None:
        """Tag a snapshot; succeeds if the tag is at that snapshot already.

        Raises:
            SnapshotUnknown, SourceBusy, NotSupportedByCatalog.
        """

    @abstractmethod
    def drop_tag(self, table: TableName, tag: str) -> bool:
        """Remove a tag; tell whether it existed."""

    @abstractmethod
    def change(self, table: TableName, decide: Decide) -> bool:
        """Change a table's snapshots, branches and properties in one commit; tell whether there was one.

        ``decide`` is called with the table's metadata, and again if another writer commits in between. If it raises,
        nothing was done. After any other error the outcome is unknown: load the table and look.

        Raises:
            SourceBusy, NotSupportedByCatalog.
        """

    @abstractmethod
    def namespace_location(self, namespace: tuple[str, ...]) -> str | None:
        """Return the ``location`` property of a namespace."""

    @abstractmethod
    def namespaces(self) -> list[tuple[str, ...]]:
        """Return the namespaces that hold tables; catalogs of other kinds tell only of those at the top.

        Raises:
            LakeError: the catalog cannot be reached.
        """

    @abstractmethod
    def tables(self, namespace: tuple[str, ...]) -> list[str]:
        """Return the names of a namespace's tables, or of all tables where that is as cheap."""

    def location_for(self, table: TableName) -> str:
        """Return the folder for a new table.

        Raises:
            SettingsInvalid: neither the settings, the namespace nor the catalog name one.
        """
        levels = "/".join(table.namespace)
        if self._location:
            return f"{self._location.rstrip('/')}/{levels}/{table.name}"
        if location := self.namespace_location(table.namespace):
            return f"{location.rstrip('/')}/{table.name}"
        warehouse = self.properties.get("warehouse", "")
        if "/" in warehouse:  # a REST catalog's warehouse may be a mere name
            return f"{warehouse.rstrip('/')}/{levels}/{table.name}"
        raise SettingsInvalid(
            f"The catalog {self.name} has no location for new tables.",
            remedy="Set location in [capture], a location on the namespace, or warehouse on the catalog.",
            catalog=self.name,
        )

    def view_file(self, view: TableName) -> str:
        """Return the one file that ``register_view`` writes."""
        return f"{self.location_for(view)}/metadata/00000-view.metadata.json"

    def register_view(
        self,
        view: TableName,
        sql: str,  # noqa: ARG002 - used where there are views
        schema: Mapping[str, Any],  # noqa: ARG002
        properties: Mapping[str, str],  # noqa: ARG002
    ) -> None:
        """Create a view in Spark's dialect, with an Iceberg schema; only SQL catalogs can."""
        raise NotSupportedByCatalog(
            f"Views can be created only in SQL catalogs; {self.name} is not one.",
            catalog=self.name,
            view=str(view),
        )

    def drop_view(self, view: TableName) -> bool:
        """Remove a view from the catalog, keeping its file; tell whether it existed."""
        raise NotSupportedByCatalog(
            f"Views are supported only in SQL catalogs; {self.name} is not one.",
            catalog=self.name,
            view=str(view),
        )

    def pyiceberg(self) -> "PyIcebergCatalog":
        """Return PyIceberg's catalog, guarded: it purges no table that does not own its files."""
        # Threads of a server share the catalog: without the lock each of them could open connections of its own.
        with self._opening:
            if self._pyiceberg is None:
                from calve.lake.guarded_catalog import open_guarded

                self._pyiceberg = open_guarded(self.name, self.properties, self.files.max_bytes)
            return self._pyiceberg

    def close(self) -> None:
        """Close connections."""
        if self._pyiceberg is not None:
            self._pyiceberg.close()
            self._pyiceberg = None

    def load_all(self, tables: Sequence[TableName]) -> Iterator[tuple[TableName, LoadedTable | CalveError]]:
        """Yield the current metadata of tables, or the error of those that cannot be loaded, a few at a time."""
        if not self.finds_many_at_once:
            yield from self._load_each(tables)
            return
        try:
            locations = self.locations(tables)
        except CalveError as error:
            yield from ((table, error) for table in tables)
            return
        for table in tables:
            location = locations.get(table)  # None: loading it tells why
            load = partial(self._read, table, location, self.files) if location else partial(self.load, table)
            yield table, _outcome(load)

    def _load_each(self, tables: Sequence[TableName]) -> Iterator[tuple[TableName, LoadedTable | CalveError]]:
        # The first one alone: it opens the connection, which threads would do each for themselves.
        parts = [tables[:1], *(tables[start : start + LOADERS] for start in range(1, len(tables), LOADERS))]
        with ThreadPoolExecutor(LOADERS) as pool:
            for some in parts:  # no more in memory than are loaded at once
                loads = [partial(self.load, table) for table in some]
                found = pool.map(_outcome, loads) if len(loads) > 1 else map(_outcome, loads)
                yield from zip(some, found, strict=True)

    def load_at(self, location: str) -> LoadedTable:
        """Return a table that is in no catalog, by the path of its metadata."""
        return self._read(TableName(self.name, (), location), location, self.files)

    def _read(self, table: TableName, location: str, files: Files) -> LoadedTable:
        key = _key(location)
        metadata = self._metadata.get(key)
        if metadata is None:
            content = files.read(location)
            with decoding(location):
                metadata = raw.decode(content, files.max_bytes)
            self._metadata.put(key, metadata, len(content))
        self._check_version(table, metadata)
        return LoadedTable(table, metadata, location, files)

    def _check_version(self, table: TableName, metadata: raw.Metadata) -> None:
        version = metadata["format-version"]
        if version not in KNOWN_FORMAT_VERSIONS:
            raise FormatVersionUnknown(
                f"{table} has format version {version}, which is not supported: only 1 to 3 are.",
                remedy="Upgrade calve.",
                table=str(table),
                format_version=version,
            )

    def near(self, table: TableName) -> list[str]:
        """Return the names of tables similar to a wrong one, the likeliest first."""
        return get_close_matches(".".join(table.identifier), self.tables(table.namespace), n=3, cutoff=0.6)

    def _missing(self, table: TableName) -> TableMissing:
        names, near = self.tables(table.namespace), self.near(table)
        listed = ", ".join(near or sorted(names)[:5])
        remedy = f"Did you mean {listed}?" if near else f"There are: {listed}." if listed else "The catalog is empty."
        levels = ".".join(table.namespace)
        if len(table.namespace) > 1 and not any(name.startswith(f"{levels}.") for name in names):
            # the first part of such a name is a catalog as a rule, and the lake has none of that name
            return TableMissing(
                f"There is no table {levels}.{table.name}: {table.namespace[0]} is not a catalog, and the catalog "
                f"{self.name} has no namespace {levels}.",
                remedy=f"The settings define these catalogs: {', '.join(self.catalogs)}.",
                table=str(table),
            )
        return TableMissing(f"There is no table {table}.", remedy=remedy, table=str(table))

    def _is_view(self, view: TableName, sql: str = "") -> TableIsView:
        under = ", ".join(dict.fromkeys(_READ.findall(sql)))
        return TableIsView(
            f"{view} is a view, not a table: a view has no snapshots to capture or write to.",
            remedy=f"Capture the tables that it reads{f' ({under})' if under else ''}, or write its rows into a table "
            "and capture that.",
            table=str(view),
        )
