"""Hive catalogs: the pointer to a table's metadata is a parameter of the table in the metastore."""

import getpass
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from typing import Any

from calve.errors import LakeError, SourceBusy, TableMissing
from calve.lake import hive_types, metadata as raw
from calve.lake.catalogs import LoadedTable
from calve.lake.metastore import Metastore
from calve.lake.pointer_catalog import PointerCatalog, not_iceberg, taken
from calve.lake.table_name import TableName

_POINTER, _PREVIOUS, _TYPE = "metadata_location", "previous_metadata_location", "table_type"
_TABLE, _VIEW = "iceberg", "iceberg-view"
_ZONED = "timestamp with local time zone"
_TOTALS = {"numFiles": "total-data-files", "numRows": "total-records", "totalSize": "total-files-size"}
_MODIFIED = "The table has been modified"
_LOCKED = "engine.hive.lock-enabled"
_PAUSES = [min(0.05 * 1.5**number, 1.0) for number in range(60)]
"""How long to wait between questions for a lock: less than a minute in all."""
_NAMES = 1_000
"""How many tables one question names."""


class HiveCatalog(PointerCatalog):
    """A catalog in a Hive metastore."""

    finds_many_at_once = True

    @cached_property
    def _metastore(self) -> Metastore:
        return Metastore(self.name, self.properties)

    def pointer(self, table: TableName) -> str:
        """Return the location of a table's current metadata: one request."""
        with self._metastore.client() as client:
            found = _found(client, table)
        if found is None:
            raise self._missing(table)
        if found.tableType == "VIRTUAL_VIEW" or _kind(found) == _VIEW:
            raise self._is_view(table, found.viewOriginalText or "")
        if (location := _location(found)) is None:
            raise not_iceberg(table, "Hive")
        return location

    def exists(self, table: TableName) -> bool:
        """Tell whether an Iceberg table exists."""
        with self._metastore.client() as client:
            found = _found(client, table)
        return found is not None and _location(found) is not None

    def locations(self, tables: Sequence[TableName]) -> dict[TableName, str]:
        """Return the location of each table's current metadata: one request for a thousand tables of a database."""
        found: dict[TableName, str] = {}
        with self._metastore.client() as client:
            for database in {table.namespace[0] for table in tables if len(table.namespace) == 1}:
                wanted = {table.name.lower(): table for table in tables if table.namespace == (database,)}
                for each in _tables(client, database, list(wanted)):
                    if (location := _location(each)) is not None:
                        found[wanted[each.tableName]] = location
        return found

    def register(self, table: TableName, metadata_location: str) -> None:
        """Register a table with existing metadata, and create its database if needed."""
        from hive_metastore.ttypes import AlreadyExistsException

        metadata = self._read(table, metadata_location, self.files).metadata
        with self._metastore.client() as client:
            self._create_database(client, _database(table))
            try:
                client.create_table(_external(table, metadata, metadata_location))
            except AlreadyExistsException as error:
                raise taken(table) from error

    def drop(self, table: TableName) -> bool:
        """Remove a table from the metastore, keeping all its files."""
        from hive_metastore.ttypes import NoSuchObjectException

        with self._metastore.client() as client:
            if _found(client, table) is None:
                return False
            try:
                client.drop_table(_database(table), table.name, deleteData=False)
            except NoSuchObjectException:  # dropped meanwhile
                return False
            return True

    def swap(self, base: LoadedTable, edited: raw.Metadata, location: str) -> bool:
        """Compare and set the parameter, under Hive's lock as Iceberg's other writers do."""
        is_locked = str(base.metadata.get("properties", {}).get(_LOCKED, "true")).lower() != "false"
        with self._metastore.client() as client, self._locked(client, base.name) if is_locked else nullcontext():
            found = _found(client, base.name)
            if found is None or _location(found) != base.metadata_location:
                return False
            found.parameters |= _parameters(base, edited, location, found.parameters)
            context = {"DO_NOT_UPDATE_STATS": "true"}
            if not is_locked:
                # The metastore compares, since 2.3.10 and 4.0; not under the lock, as not every database of one can.
                context |= {"expected_parameter_key": _POINTER, "expected_parameter_value": base.metadata_location}
            return self._altered(client, base, found, context)

    def _altered(self, client: Any, base: LoadedTable, changed: Any, context: dict[str, str]) -> bool:
        from hive_metastore.ttypes import EnvironmentContext, MetaException

        database, name = base.name.identifier
        try:
            client.alter_table_with_environment_context(database, name, changed, EnvironmentContext(properties=context))
        except MetaException as error:
            if _MODIFIED not in str(error.message):
                raise
            # The metastore repeats what its database refused: it may have collided with its own first attempt.
            return self.has_had(base.name, changed.parameters[_POINTER])
        return True

    def namespace_location(self, namespace: tuple[str, ...]) -> str | None:
        """Return the location of a database."""
        from hive_metastore.ttypes import NoSuchObjectException

        if len(namespace) != 1:
            return None
        with self._metastore.client() as client:
            try:
                return str(client.get_database(namespace[0]).locationUri)
            except NoSuchObjectException:
                return None

    def namespaces(self) -> list[tuple[str, ...]]:
        """Return the databases."""
        with self._metastore.client() as client:
            return [(name,) for name in client.get_all_databases()]

    def tables(self, namespace: tuple[str, ...]) -> list[str]:
        """Return the names of a database's Iceberg tables."""
        if len(namespace) != 1:
            return []
        with self._metastore.client() as client:
            found = _tables(client, namespace[0], client.get_all_tables(namespace[0]))
            return [f"{namespace[0]}.{each.tableName}" for each in found if _location(each) is not None]

    @contextmanager
    def _locked(self, client: Any, table: TableName) -> Iterator[None]:
        """Hold Hive's lock of a table.

        Raises:
            SourceBusy: another writer held it for a minute.
        """
        lock = client.lock(_lock_of(table))
        try:
            _await(client, lock, table)
            with self._metastore.errors():  # contextlib cannot pass on errors of Thrift, which are immutable
                yield
        finally:
            self._unlock(client, lock.lockid)

    def _unlock(self, client: Any, lock: int) -> None:
        """Release a lock, on another connection if this one was cut."""
        from hive_metastore.ttypes import UnlockRequest
        from thrift.Thrift import TException

        try:
            client.unlock(UnlockRequest(lockid=lock))
        except (TException, OSError):
            # What was committed under it stands, and a lock that is left ends by itself (hive.txn.timeout).
            with suppress(TException, LakeError), self._metastore.client() as other:
                other.unlock(UnlockRequest(lockid=lock))

    def _create_database(self, client: Any, name: str) -> None:
        from hive_metastore.ttypes import AlreadyExistsException, Database, NoSuchObjectException

        try:
            client.get_database(name)
        except NoSuchObjectException:
            warehouse = self.properties.get("warehouse", "")
            # Otherwise new tables would lie where the metastore's own settings say.
            location = f"{warehouse.rstrip('/')}/{name}" if "/" in warehouse else None
            with suppress(AlreadyExistsException):
                client.create_database(Database(name=name, locationUri=location, parameters={}))


def _database(table: TableName) -> str:
    if len(table.namespace) != 1:
        raise TableMissing(
            f"There can be no table {table}: the databases of a Hive metastore have no levels.",
            remedy="Write database.table or catalog.database.table.",
            table=str(table),
        )
    return table.namespace[0]


def _found(client: Any, table: TableName) -> Any:
    """Return a table, a view, or None."""
    from hive_metastore.ttypes import GetTableRequest, NoSuchObjectException

    if len(table.namespace) != 1:
        return None
    database, name = table.identifier
    request = GetTableRequest(dbName=database, tblName=name)
    try:
        return _asked(lambda: client.get_table_req(request).table, lambda: client.get_table(database, name))
    except NoSuchObjectException:
        return None


def _tables(client: Any, database: str, names: list[str]) -> Iterator[Any]:
    from hive_metastore.ttypes import GetTablesRequest, UnknownDBException

    with suppress(UnknownDBException):
        for start in range(0, len(names), _NAMES):
            part = names[start : start + _NAMES]
            request = GetTablesRequest(dbName=database, tblNames=part)
            yield from _asked(
                lambda: client.get_table_objects_by_name_req(request).tables,  # noqa: B023 - called at once
                lambda: client.get_table_objects_by_name(database, part),  # noqa: B023
            )


def _asked(newer: Callable[[], Any], older: Callable[[], Any]) -> Any:
    """Ask in the way that Hive 4 knows, else in that of Hive before 2.3: each has methods that the other lacks."""
    from thrift.Thrift import TApplicationException

    try:
        return newer()
    except TApplicationException as error:
        if error.type != TApplicationException.UNKNOWN_METHOD:
            raise
        return older()


def _kind(found: Any) -> str:
    return str((found.parameters or {}).get(_TYPE, "")).lower()


def _location(found: Any) -> str | None:
    """Return the pointer of an Iceberg table; None of anything else."""
    return found.parameters.get(_POINTER) if _kind(found) == _TABLE else None


def _external(table: TableName, metadata: raw.Metadata, location: str) -> Any:
    """Return a table for the metastore, which deletes no files when it is dropped."""
    from hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

    now = int(time.time())
    columns = [
        FieldSchema(field["name"], kind, field.get("doc")) for field, kind in hive_types.columns(metadata, _ZONED)
    ]
    descriptor = StorageDescriptor(
        columns,
        metadata["location"],
        "org.apache.hadoop.mapred.FileInputFormat",
        "org.apache.hadoop.mapred.FileOutputFormat",
        serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"),
    )
    own = {"EXTERNAL": "TRUE", _TYPE: "ICEBERG", _POINTER: location, "uuid": metadata["table-uuid"]}
    return Table(
        dbName=_database(table),
        tableName=table.name,
        owner=_user(),
        createTime=now,
        lastAccessTime=now,
        sd=descriptor,
        partitionKeys=[],
        tableType="EXTERNAL_TABLE",
        parameters={**metadata.get("properties", {}), **own},
    )


def _parameters(base: LoadedTable, edited: raw.Metadata, location: str, known: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters to set: the pointer, changed properties, and what other writers keep of a snapshot."""
    before, after = base.metadata.get("properties", {}), edited.get("properties", {})
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    kept = {key: value for key, value in _of_snapshot(edited).items() if key in known}
    return {**changed, **kept, _POINTER: location, _PREVIOUS: base.metadata_location}


def _of_snapshot(metadata: raw.Metadata) -> dict[str, str]:
    snapshot = raw.snapshots_by_id(metadata).get(metadata.get("current-snapshot-id") or -1, {})
    summary = snapshot.get("summary", {})
    totals = {key: str(summary[name]) for key, name in _TOTALS.items() if name in summary}
    if not snapshot:
        return totals
    return totals | {
        "current-snapshot-id": str(snapshot["snapshot-id"]),
        "current-snapshot-timestamp-ms": str(snapshot["timestamp-ms"]),
        "current-snapshot-summary": json.dumps(summary),
        "snapshot-count": str(len(metadata["snapshots"])),
    }


def _lock_of(table: TableName) -> Any:
    from hive_metastore.ttypes import LockComponent, LockLevel, LockRequest, LockType

    database, name = table.identifier
    part = LockComponent(type=LockType.EXCLUSIVE, level=LockLevel.TABLE, dbname=database, tablename=name)
    return LockRequest(component=[part], user=_user(), hostname=socket.gethostname(), agentInfo="calve")


def _await(client: Any, lock: Any, table: TableName) -> None:
    from hive_metastore.ttypes import CheckLockRequest, LockState

    pauses = iter(_PAUSES)
    while lock.state == LockState.WAITING and (pause := next(pauses, None)) is not None:
        time.sleep(pause)
        lock = client.check_lock(CheckLockRequest(lockid=lock.lockid))
    if lock.state != LockState.ACQUIRED:
        raise SourceBusy(
            f"{table} is locked by another writer.",
            remedy="Try again. SHOW LOCKS in Hive names the writer; the lock of one that was killed ends after "
            "hive.txn.timeout, 5 minutes by default.",
            table=str(table),
        )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "calve"
