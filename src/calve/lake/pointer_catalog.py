"""Catalogs that hold a pointer to the current metadata file of each table: SQL databases, Hive and Glue.

calve reads and writes the metadata files itself, because PyIceberg validates the whole metadata at every step and
cannot commit to format version 3. A commit writes the next file, and swaps the pointer if it still points to the last.
"""

import random
import time
import uuid
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress

from calve.errors import LakeError, LakeUnavailable, SourceBusy
from calve.lake import metadata as raw
from calve.lake.catalogs import Catalog, Decide, LoadedTable
from calve.lake.table_name import TableName

_ATTEMPTS = 8
Edit = Callable[[raw.Metadata], raw.Metadata]


class PointerCatalog(Catalog):
    """A catalog whose tables are pointers to metadata files."""

    @abstractmethod
    def pointer(self, table: TableName) -> str:
        """Return the location of a table's current metadata.

        Raises:
            TableMissing, TableIsView, LakeUnavailable, LakeError: it is not an Iceberg table.
        """

    @abstractmethod
    def swap(self, base: LoadedTable, edited: raw.Metadata, location: str) -> bool:
        """Point a table to ``edited``, which is stored at ``location``, if it still points to ``base``; tell whether.

        Raises:
            SourceBusy: it was not tried, as another writer has locked the table.
            LakeUnavailable: the outcome is unknown.
        """

    def load(self, table: TableName) -> LoadedTable:
        """Return a table's current metadata: one query, one file."""
        return self._read(table, self.pointer(table), self.files)

    def create_tag(self, table: TableName, tag: str, snapshot_id: int, max_age_ms: int) -> None:
        """Tag a snapshot, whatever the table's format version."""
        self.commit(table, lambda metadata: raw.with_tag(metadata, tag, snapshot_id, max_age_ms))

    def drop_tag(self, table: TableName, tag: str) -> bool:
        """Remove a tag."""
        return self.commit(table, lambda metadata: raw.without_tag(metadata, tag))

    def change(self, table: TableName, decide: Decide) -> bool:
        """Change snapshots, branches and properties, whatever the table's format version."""

        def edit(metadata: raw.Metadata) -> raw.Metadata:
            change = decide(metadata)
            return metadata if change is None else raw.changed(metadata, change, self._now_ms())

        return self.commit(table, edit)

    def commit(self, table: TableName, edit: Edit) -> bool:
        """Replace a table's metadata by an edit of it; tell whether the edit changed anything.

        The edit is made again if another writer commits in between.

        Raises:
            SourceBusy: that happened too often.
        """
        for attempt in range(_ATTEMPTS):
            base = self.load(table)
            edited = edit(base.metadata)
            if edited is base.metadata:
                return False
            if self._replace(base, edited):
                return True
            time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - to get out of step, no secret
        raise SourceBusy(f"{table} was changed by other writers {_ATTEMPTS} times in a row.", table=str(table))

    def _replace(self, base: LoadedTable, edited: raw.Metadata) -> bool:
        """Write the next metadata and point the table to it, unless it has been changed meanwhile."""
        old = base.metadata_location
        new = raw.successor_location(base.metadata, old, str(uuid.uuid4()))
        edited = raw.successor(edited, of=base.metadata, at=old, now_ms=self._now_ms())
        # The file first: the pointer must never lead to a file that is not there.
        self.files.write(new, raw.encode(edited))
        try:
            swapped = self.swap(base, edited, new)
        except SourceBusy:
            self.files.delete(new)
            raise
        except LakeUnavailable:
            # The answer may be lost and the commit not, or still to come: the file stays, whatever the table says now.
            with suppress(LakeError):
                if self.has_had(base.name, new):
                    return True
            raise
        if not swapped:  # lost the race, so nothing can point to the file
            self.files.delete(new)
        return swapped

    def has_had(self, table: TableName, location: str) -> bool:
        """Tell whether a metadata file is a table's current one, or was before."""
        found = self.load(table)
        return location == found.metadata_location or any(
            entry.get("metadata-file") == location for entry in found.metadata.get("metadata-log", ())
        )


def taken(table: TableName) -> LakeError:
    """Return the error for a name that is in use."""
    return LakeError(f"{table} already exists.", table=str(table), reason="exists")


def not_iceberg(table: TableName, kind: str) -> LakeError:
    """Return the error for a table of another format."""
    return LakeError(
        f"{table} is a {kind} table, not an Iceberg table.",
        remedy="Migrate it in Spark (CALL system.migrate), or copy its rows into an Iceberg table.",
        table=str(table),
    )
