"""Catalogs that are reached through PyIceberg: REST, Hive, Glue and the like."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from calve.errors import (
    FormatVersionUnknown,
    LakeCorrupt,
    LakeError,
    LakeUnavailable,
    NotSupportedByCatalog,
    SourceBusy,
    TableMissing,
)
from calve.lake import metadata as raw
from calve.lake.catalogs import Catalog, Decide, LoadedTable
from calve.lake.files import Files
from calve.lake.metadata_checks import decoding, shown
from calve.lake.table_name import TableName

if TYPE_CHECKING:
    from pydantic import ValidationError as InvalidResponse
    from pyiceberg.table import Table
    from pyiceberg.table.update import TableRequirement, TableUpdate

_ATTEMPTS = 8
_LOADERS = 8
"""How many tables are loaded concurrently: enough to hide the network, few enough for the server."""


class PyIcebergCatalog(Catalog):
    """A catalog accessed through PyIceberg."""

    def load(self, table: TableName) -> LoadedTable:
        """Return a table's current metadata, with the credentials that the catalog provides for it."""
        return self._loaded(table, self._load(table))

    def exists(self, table: TableName) -> bool:
        """Tell whether a table exists."""
        with self._reached():
            return self.pyiceberg().table_exists(table.identifier)

    def locations(self, tables: Sequence[TableName]) -> dict[TableName, str]:
        """Return the location of each table's current metadata: one load each, a few at a time."""
        self.pyiceberg()  # opened once, and not by each thread
        with ThreadPoolExecutor(_LOADERS) as pool:
            found = dict(zip(tables, pool.map(self._location_of, tables), strict=True))
        return {table: location for table, location in found.items() if location is not None}

    def _location_of(self, table: TableName) -> str | None:
        try:
            return self._load(table).metadata_location
        except (TableMissing, FormatVersionUnknown, LakeCorrupt):
            return None

    def register(self, table: TableName, metadata_location: str) -> None:
        """Register a table with existing metadata, and create its namespace if needed."""
        from pyiceberg.exceptions import TableAlreadyExistsError

        with self._reached():
            self.pyiceberg().create_namespace_if_not_exists(table.namespace)
            try:
                self.pyiceberg().register_table(table.identifier, metadata_location)
            except TableAlreadyExistsError as error:
                raise LakeError(f"{table} already exists.", table=str(table), reason="exists") from error

    def drop(self, table: TableName) -> bool:
        """Remove a table from the catalog, keeping all its files."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        with self._reached():
            try:
                self.pyiceberg().drop_table(table.identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return False
            return True

    def create_tag(self, table: TableName, tag: str, snapshot_id: int, max_age_ms: int) -> None:
        """Tag a snapshot, by the catalog's own commit."""
        from pyiceberg.table.refs import SnapshotRefType
        from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID, SetSnapshotRefUpdate

        def commit(known: "Table") -> bool:
            metadata = self._loaded(table, known).metadata
            if raw.with_tag(metadata, tag, snapshot_id, max_age_ms) is metadata:
                return False
            # Hive and Glue: PyIceberg writes the metadata itself, and refuses format v3; ``_takes_updates`` has
            # refused it before.
            if not self._takes_updates(table, metadata):
                known.manage_snapshots().create_tag(snapshot_id, tag, max_age_ms).commit()
                return True
            held = raw.refs(metadata).get(tag, {}).get("snapshot-id")
            update = SetSnapshotRefUpdate(
                **{"ref-name": tag, "snapshot-id": snapshot_id, "max-ref-age-ms": max_age_ms},
                type=SnapshotRefType.TAG,
            )
            # The tag's own old value makes this a compare-and-set: two captures cannot overwrite each other's lease.
            required = (
                AssertTableUUID(uuid=known.metadata.table_uuid),
                AssertRefSnapshotId(ref=tag, **{"snapshot-id": held}),
            )
            self.pyiceberg().commit_table(known, required, (update,))
            return True

        self._commit(table, commit)

    def drop_tag(self, table: TableName, tag: str) -> bool:
        """Remove a tag, by the catalog's own commit."""
        from pyiceberg.table.update import AssertTableUUID, RemoveSnapshotRefUpdate

        def commit(known: "Table") -> bool:
            metadata = self._loaded(table, known).metadata
            if raw.without_tag(metadata, tag) is metadata:
                return False
            if self._takes_updates(table, metadata):
                update = RemoveSnapshotRefUpdate(**{"ref-name": tag})
                required = (AssertTableUUID(uuid=known.metadata.table_uuid),)
                self.pyiceberg().commit_table(known, required, (update,))
            else:
                known.manage_snapshots().remove_tag(tag).commit()
            return True

        return self._commit(table, commit)

    def change(self, table: TableName, decide: Decide) -> bool:
        """Change snapshots, branches and properties; only REST catalogs do that in one commit for us."""
        from pyiceberg.catalog.rest import RestCatalog

        if not isinstance(self.pyiceberg(), RestCatalog):
            raise NotSupportedByCatalog(
                f"{table}: only SQL and REST catalogs can change a branch and a property in one commit; "
                f"{self.name} is neither.",
                remedy="Deliver to a table in an SQL or REST catalog, or remove it from the step's targets.",
                table=str(table),
                catalog=self.name,
            )

        def commit(known: "Table") -> bool:
            metadata = self._loaded(table, known).metadata
            change = decide(metadata)
            if change is None:
                return False
            self.pyiceberg().commit_table(known, _requirements(metadata, change), _updates(metadata, change))
            return True

        return self._commit(table, commit)

    def namespace_location(self, namespace: tuple[str, ...]) -> str | None:
        """Return the ``location`` property of a namespace."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._reached():
            try:
                return self.pyiceberg().load_namespace_properties(namespace).get("location")
            except NoSuchNamespaceError:
                return None

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return the namespaces at the top."""
        with self._reached():
            return [tuple(namespace) for namespace in self.pyiceberg().list_namespaces()]

    def tables(self, namespace: tuple[str, ...]) -> list[str]:
        """Return the names of a namespace's tables."""
        from pyiceberg.exceptions import NoSuchNamespaceError

        with self._reached():
            try:
                return [".".join(identifier) for identifier in self.pyiceberg().list_tables(namespace)]
            except NoSuchNamespaceError:
                return []

    def _load(self, table: TableName) -> "Table":
        from pydantic import ValidationError as InvalidResponse
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, ValidationError

        with self._reached(), decoding(str(table)):
            try:
                return self.pyiceberg().load_table(table.identifier)
            except (NoSuchTableError, NoSuchNamespaceError) as error:
                raise (self._is_view(table) if self._has_view(table) else self._missing(table)) from error
            except (InvalidResponse, ValidationError) as error:
                if isinstance(error, InvalidResponse) and not _is_of_version(error):
                    found = error.errors(include_url=False, include_input=False)[0]
                    where = ".".join(map(str, found["loc"]))
                    raise LakeCorrupt(f"the catalog reports for {shown(where)}: {shown(found['msg'])}") from error
                raise FormatVersionUnknown(
                    f"{table} has metadata that PyIceberg cannot read: {error}",
                    remedy="Upgrade calve.",
                    table=str(table),
                ) from error

    def _has_view(self, table: TableName) -> bool:
        """Tell whether a view of that name exists, if the catalog can tell."""
        try:
            return self.pyiceberg().view_exists(table.identifier)
        except NotImplementedError:  # only REST catalogs tell
            return False

    def _loaded(self, table: TableName, known: "Table") -> LoadedTable:
        return self._read(table, known.metadata_location, Files(known.io.properties, max_bytes=self.files.max_bytes))

    def _takes_updates(self, table: TableName, metadata: raw.Metadata) -> bool:
        """Tell whether the catalog itself writes metadata, so that PyIceberg's limits do not matter."""
        from pyiceberg.catalog.rest import RestCatalog

        if isinstance(self.pyiceberg(), RestCatalog):
            return True
        if metadata["format-version"] >= 3:
            raise NotSupportedByCatalog(
                f"{table} has format version 3: only SQL and REST catalogs can tag such tables.",
                remedy="Capture without a lease, and keep the source's snapshots until it is committed.",
                table=str(table),
                catalog=self.name,
            )
        return False

    def _commit(self, table: TableName, commit: Callable[["Table"], bool]) -> bool:
        from pyiceberg.exceptions import CommitFailedException

        # Any other commit to the table makes this one fail; the pauses add up to 2.6 s at most.
        for attempt in range(_ATTEMPTS):
            known = self._load(table)
            try:
                with self._reached():
                    return commit(known)
            except CommitFailedException:
                time.sleep(random.uniform(0, 0.01 * 2**attempt))  # noqa: S311 - to get out of step, no secret
        raise SourceBusy(f"{table} was changed by other writers {_ATTEMPTS} times in a row.", table=str(table))

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """Turn errors of a catalog that does not respond into one that names it."""
        from pyiceberg.exceptions import RESTError
        from requests.exceptions import RequestException

        try:
            yield
        except (RESTError, RequestException, OSError) as error:
            raise LakeUnavailable(f"The catalog {self.name} cannot be reached: {error}", catalog=self.name) from error


def _is_of_version(error: "InvalidResponse") -> bool:
    """Tell whether metadata cannot be read because of its format version."""
    return any(found["type"] == "union_tag_invalid" for found in error.errors(include_url=False, include_input=False))


def _requirements(metadata: raw.Metadata, change: raw.TableCommit) -> "tuple[TableRequirement, ...]":
    """Require that the table is the same one, and that no branch concerned has moved."""
    from pyiceberg.table.update import AssertRefSnapshotId, AssertTableUUID

    # main in any case: the change was decided from metadata as a whole, and refs are all that REST can compare
    # (decision 0014).
    branches = dict.fromkeys((raw.MAIN_BRANCH, *change.branches, *change.dropped))
    return (
        AssertTableUUID(uuid=metadata["table-uuid"]),
        *(AssertRefSnapshotId(ref=name, **{"snapshot-id": raw.branch_head(metadata, name)}) for name in branches),
    )


def _updates(metadata: raw.Metadata, change: raw.TableCommit) -> "tuple[TableUpdate, ...]":
    from pyiceberg.table.refs import SnapshotRefType
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.table.update import (
        AddSnapshotUpdate,
        RemoveSnapshotRefUpdate,
        SetPropertiesUpdate,
        SetSnapshotRefUpdate,
    )

    updates: list[TableUpdate] = []
    if change.snapshot is not None:
        updates.append(AddSnapshotUpdate(snapshot=Snapshot.model_validate(change.snapshot)))
    known = raw.refs(metadata)
    for name, snapshot_id in change.branches.items():
        kept = {key: value for key, value in known.get(name, {}).items() if key not in {"type", "snapshot-id"}}
        age = {} if change.branch_age_ms is None or name in known else {"max-ref-age-ms": change.branch_age_ms}
        place = {"ref-name": name, "snapshot-id": snapshot_id, **kept, **age}
        updates.append(SetSnapshotRefUpdate(**place, type=SnapshotRefType.BRANCH))
    updates += [RemoveSnapshotRefUpdate(**{"ref-name": name}) for name in change.dropped if name in known]
    if change.properties:
        updates.append(SetPropertiesUpdate(updates=dict(change.properties)))
    return tuple(updates)
