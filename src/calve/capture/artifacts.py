"""The artifacts of a capture in the lake: recorded before they are created, and removed according to the record."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from calve.capture.changes import TableChange
from calve.capture.icdc import NewTable
from calve.capture.model import Artifacts, Operation
from calve.capture.source import for_each_path
from calve.errors import CalveError, NotSupportedByCatalog, TableMissing
from calve.failpoints import reach
from calve.lake import Files, Lake, TableName

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTag:
    """A lease: the name of a tag, and the snapshot that it protects."""

    table: TableName
    name: str
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class NewView:
    """A view to create."""

    name: TableName
    path: str
    sql: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NewArtifacts:
    """All artifacts of one capture, before any of them exists."""

    tags: Sequence[LeaseTag] = ()
    tables: Sequence[NewTable] = ()
    views: Sequence[NewView] = ()
    is_registered: bool = True
    """False: the tables are found by path only."""

    def artifacts(self) -> Artifacts:
        """Return what must be recorded before it is created."""
        names = [*(table.name for table in self.tables), *(view.name for view in self.views)]
        return Artifacts(
            files=(
                *((table.name.catalog, path) for table in self.tables for path in table.files),
                *((view.name.catalog, view.path) for view in self.views),
            ),
            tables=tuple(names) if self.is_registered else (),
            tags=tuple((tag.table, tag.name) for tag in self.tags),
        )


def make(lake: Lake, work: NewArtifacts, *, tag_age_ms: int) -> None:
    """Create everything: leases first, so that expiry cannot remove files that the tables reference."""
    for tag in work.tags:
        lake.catalog(tag.table.catalog).create_tag(tag.table, tag.name, tag.snapshot_id, tag_age_ms)
        reach("capture.tagged")
    for view in work.views:
        # gc.enabled=false on everything that a capture creates: Spark refuses to purge the files of the source.
        lake.catalog(view.name.catalog).register_view(view.name, view.sql, view.schema, {"gc.enabled": "false"})
        reach("capture.registered")
    for table in work.tables:
        files = lake.catalog(table.name.catalog).files
        for_each_path(partial(_write, files, table.files), list(table.files))
        reach("capture.written")
    # Registered last: a reader never finds a table whose files are still being written.
    for table in work.tables if work.is_registered else ():
        lake.catalog(table.name.catalog).register(table.name, table.metadata_location)
        reach("capture.registered")


def _write(files: Files, contents: Mapping[str, bytes], path: str) -> None:
    files.write(path, contents[path])


@dataclass(slots=True)
class Removal:
    """What was removed of a capture's artifacts, and what could not be."""

    tables: list[str] = field(default_factory=list)
    files: int = 0
    tags: int = 0
    problems: list[str] = field(default_factory=list)


def remove(lake: Lake, artifacts: Artifacts) -> Removal:
    """Remove a capture's artifacts: tables are dropped, never purged, and only recorded files are deleted."""
    removal = Removal()
    # The reverse order of ``make``: a table that a reader can still find must not lose its files.
    for name in artifacts.tables:
        if _tried(removal, partial(_drop, lake, name)):
            removal.tables.append(str(name))
    reach("gc.dropped")
    remove_tags(lake, artifacts, removal)
    for catalog in dict.fromkeys(catalog for catalog, _ in artifacts.files):
        paths = [path for owner, path in artifacts.files if owner == catalog]
        removal.files += sum(for_each_path(partial(_delete, removal, lake.catalog(catalog).files), paths))
    reach("gc.deleted")
    return removal


def _delete(removal: Removal, files: Files, path: str) -> bool:
    return _tried(removal, partial(files.delete, path))


def remove_tags(lake: Lake, artifacts: Artifacts, removal: Removal | None = None) -> None:
    """Drop the leases of a capture; ``gc`` tries again if that fails, and tags expire in any case."""
    removal = removal or Removal()
    for table, tag in artifacts.tags:
        removal.tags += _tried(removal, partial(_drop_tag, lake, table, tag))


def _drop_tag(lake: Lake, table: TableName, tag: str) -> bool:
    try:
        return lake.catalog(table.catalog).drop_tag(table, tag)
    except TableMissing:  # dropped since, with its tags
        return False


def _drop(lake: Lake, name: TableName) -> bool:
    catalog = lake.catalog(name.catalog)
    # The record has names only. Trying the view first is cheap, and both calls accept a name that is gone.
    try:
        dropped = catalog.drop_view(name)
    except NotSupportedByCatalog:
        dropped = False
    return catalog.drop(name) or dropped


def _tried(removal: Removal, action: Callable[[], bool]) -> bool:
    try:
        return action()
    except CalveError as error:
        removal.problems.append(error.message)
        logger.warning("an artifact was left behind: %s", error.message)
        return False


def snapshots_to_hold(change: TableChange) -> list[int]:
    """Return the snapshots that a lease must tag: together they contain every file that the capture references.

    The last one contains what is still in the table. The snapshot before a compaction contains the files that the
    compaction removed, and the snapshot at the start of the range contains the removed rows.
    """
    if change.to.snapshot_id is None:
        return []
    held = [change.to.snapshot_id]
    before = change.start.snapshot_id if change.start else None
    if change.net and (change.net.removed or change.net.equality_deletes) and before is not None:
        # if the start has expired, the snapshot after it has all of its remaining files
        held.append(before if before in change.source.snapshots else change.steps[0].snapshot_id)
    if change.net is None:
        previous = before
        for step in change.steps:
            if step.operation == Operation.REPLACE and previous in change.source.snapshots and previous is not None:
                held.append(previous)
            previous = step.snapshot_id
    return list(dict.fromkeys(held))
