"""Writes histories with PyIceberg alone: format v1 and v2, copy-on-write."""

import shutil
import uuid
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from pyiceberg.expressions import AlwaysTrue
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table, Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
)

from calve.capture import Exactness, TableReport
from calve.lake import Lake, SqlCatalog, local_path
from calve.settings import Settings
from calve.testing.replacements import merge_manifests, replace_files
from calve.testing.replicas import Rows, rows_at
from calve.testing.writers import Ability, Record

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.catalog import Catalog
    from pyiceberg.manifest import DataFile

_KINDS: dict[str, PrimitiveType] = {
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "decimal(9,2)": DecimalType(9, 2),
    "decimal(18,2)": DecimalType(18, 2),
}


class PyIcebergWriter:
    """Writes tables of format v1 or v2 with PyIceberg; the port is ``calve.testing.Writer``."""

    def __init__(
        self,
        settings: Settings,
        format_version: int = 2,
        *,
        properties: Mapping[str, str] | None = None,
        expires_like_java: bool = False,
        abilities: Collection[Ability] = tuple(Ability),
    ) -> None:
        """Take the lake, and the properties of new tables."""
        self.settings = settings
        self.table = ""
        self.abilities = abilities
        self._lake = Lake(settings)
        self._expires_like_java = expires_like_java
        self._properties = {"format-version": str(format_version), **(properties or {})}

    def __repr__(self) -> str:
        return f"PyIcebergWriter({self._properties}, expires_like_java={self._expires_like_java})"

    def close(self) -> None:
        """Close the catalog."""
        self._lake.close()

    # The table as a whole.

    def create(self, table: str, columns: Mapping[str, str], days: bool) -> None:  # noqa: FBT001
        """Create an empty table, partitioned by day or not at all, and write to it from now on."""
        fields = [NestedField(n, name, _KINDS[kind]) for n, (name, kind) in enumerate(columns.items(), start=1)]
        by_day = [PartitionField(field.field_id, 1000, IdentityTransform(), "day") for field in fields]
        spec = PartitionSpec(*(field for field, name in zip(by_day, columns, strict=True) if days and name == "day"))
        self.table = table
        self._catalog.create_namespace_if_not_exists(self._identifier[:-1])
        self._catalog.create_table(
            self._identifier, Schema(*fields), partition_spec=spec, properties=dict(self._properties)
        )

    def drop(self) -> None:
        """Drop the table, with its files."""
        location = self._load().location()
        self._catalog.drop_table(self._identifier)
        if folder := local_path(location):
            shutil.rmtree(folder, ignore_errors=True)

    def read(self, change: TableReport) -> tuple[Rows, Rows]:
        """Return exactly the new and the deleted rows that the relations select, without SQL."""
        came, gone, carried = (
            rows_at(self._lake, table) if table else Rows()
            for table in (change.icdc_table, change.deletes_table, change.carried_table)
        )
        match Exactness(change.exactness):
            case Exactness.EXACT:
                return came, gone
            case Exactness.EXCEPT_ALL:
                return came - gone, gone - came - carried
            case Exactness.EXACT_WITH_FILTER:
                raise AssertionError("row lineage needs format v3, which PyIceberg does not write")

    # Rows.

    def append(self, records: Sequence[Record]) -> None:
        """Append rows."""
        table = self._load()
        table.append(_arrow(table, records))

    def upsert(self, records: Sequence[Record]) -> None:
        """Replace the rows of the same ids, and append the others: an overwrite and an append in one commit."""
        self._overwrite(_is_in({record["id"] for record in records}), records)

    def update(self, ids: Collection[int], column: str, value: Any) -> None:
        """Set a column in the rows of some ids, in one snapshot."""

        def changed(record: Record) -> Record:
            return {**record, column: value} if record["id"] in ids else record

        with self._transaction() as (table, transaction):
            tasks = [task for task in table.scan().plan_files() if _ids(table, task) & set(ids)]
            if tasks:
                records = [changed(record) for task in tasks for record in _records(table, task)]
                new = _written(table, records)
                replace_files(table, transaction, [task.file for task in tasks], new, Operation.OVERWRITE)

    def delete(self, ids: Collection[int]) -> None:
        """Delete the rows of some ids; whole files leave in a ``delete``, others are rewritten."""
        with _without_warnings():
            self._load().delete(_is_in(ids))

    def delete_partition(self, day: int) -> None:
        """Delete the rows of a day."""
        with _without_warnings():
            self._load().delete(f"day == {day}")

    def overwrite_partition(self, day: int, records: Sequence[Record]) -> None:
        """Replace the rows of a day."""
        self._overwrite(f"day == {day}", records)

    def _overwrite(self, predicate: str, records: Sequence[Record]) -> None:
        table = self._load()
        with _without_warnings():
            table.overwrite(_arrow(table, records), predicate)

    # Upkeep.

    def compact(self) -> None:
        """Write all rows into as few files as there are partitions, in a ``replace`` snapshot."""
        with self._transaction() as (table, transaction):
            tasks = list(table.scan().plan_files())
            if tasks:
                new = _written(table, [record for task in tasks for record in _records(table, task)])
                replace_files(table, transaction, [task.file for task in tasks], new, Operation.REPLACE)

    def rewrite_manifests(self) -> None:
        """Write the manifests of each spec into one, in a ``replace`` snapshot."""
        with self._transaction() as (table, transaction):
            if table.current_snapshot() is not None:
                merge_manifests(table, transaction)

    def expire(self, snapshot_ids: Sequence[int]) -> None:
        """Expire snapshots, and delete the files that only they had, which PyIceberg itself leaves.

        PyIceberg also makes the children of what it expires forget their parents; Iceberg's Java library does not.
        """
        before = _files(self._load())
        if self._expires_like_java:
            name = self._lake.parse(self.table)
            catalog = self._lake.catalog(name.catalog)
            if not isinstance(catalog, SqlCatalog):
                raise AssertionError("expiry as in Java needs an SQL catalog")
            catalog.commit(name, partial(_without, set(snapshot_ids)))
        else:
            self._load().maintenance.expire_snapshots().by_ids(list(snapshot_ids)).commit()
        table = self._load()
        for path in before - _files(table):
            table.io.delete(path)

    def set_current(self, snapshot_id: int) -> None:
        """Make a snapshot the current one: roll back, or forward again."""
        self._load().manage_snapshots().set_current_snapshot(snapshot_id).commit()

    def tag(self, name: str, snapshot_id: int) -> None:
        """Tag a snapshot."""
        self._load().manage_snapshots().create_tag(snapshot_id, name).commit()

    # Schema, partitioning and format.

    def add_column(self, name: str, kind: str) -> None:
        """Add an optional column."""
        with self._load().update_schema() as update:
            update.add_column(name, _KINDS[kind])

    def drop_column(self, name: str) -> None:
        """Drop a column."""
        with self._load().update_schema() as update:
            update.delete_column(name)

    def rename_column(self, name: str, to: str) -> None:
        """Rename a column."""
        with self._load().update_schema() as update:
            update.rename_column(name, to)

    def promote_column(self, name: str, kind: str) -> None:
        """Widen the type of a column."""
        with self._load().update_schema() as update:
            update.update_column(name, field_type=_KINDS[kind])

    def partition_by(self, days: bool) -> None:  # noqa: FBT001
        """Partition what is written from now on by day, or not at all.

        In format v1, a dropped partition field stays in the spec with a void transform, and PyIceberg then cannot
        write partitions of that column any more. So a v1 table that lost its partitioning stays unpartitioned.
        """
        table = self._load()
        named = next((f.name for f in table.spec().fields if isinstance(f.transform, IdentityTransform)), None)
        if days == (named is not None) or (days and table.spec().fields):
            return
        with table.update_spec() as update:
            if named is None:
                update.add_field("day", IdentityTransform(), f"day_{len(table.specs())}")
            else:
                update.remove_field(named)

    def upgrade(self) -> None:
        """Upgrade from format v1 to v2."""
        with self._transaction() as (table, transaction):
            if table.format_version == 1:
                transaction.upgrade_table_version(2)

    # Private methods.

    @property
    def _catalog(self) -> "Catalog":
        return self._lake.catalog(self._lake.parse(self.table).catalog).pyiceberg()

    @property
    def _identifier(self) -> tuple[str, ...]:
        return self._lake.parse(self.table).identifier

    def _load(self) -> Table:
        return self._catalog.load_table(self._identifier)

    @contextmanager
    def _transaction(self) -> Iterator[tuple[Table, Transaction]]:
        table = self._load()
        with table.transaction() as transaction:
            yield table, transaction


def _is_in(ids: Collection[int]) -> str:
    return f"id in ({', '.join(map(str, ids))})"


def _arrow(table: Table, records: Sequence[Record]) -> "pa.Table":
    import pyarrow as pa

    return pa.Table.from_pylist([dict(record) for record in records], schema=table.schema().as_arrow())


def _written(table: Table, records: Sequence[Record]) -> "list[DataFile]":
    """Write rows into data files that belong to no snapshot yet."""
    from pyiceberg.io.pyarrow import _dataframe_to_data_files

    return list(_dataframe_to_data_files(table.metadata, _arrow(table, records), table.io, uuid.uuid4()))


def _records(table: Table, task: FileScanTask) -> list[dict[str, Any]]:
    """Return the rows of one data file."""
    from pyiceberg.io.pyarrow import ArrowScan

    scan = ArrowScan(table.metadata, table.io, table.schema(), AlwaysTrue())
    found: list[dict[str, Any]] = scan.to_table([task]).to_pylist()
    return found


def _ids(table: Table, task: FileScanTask) -> set[int]:
    return {record["id"] for record in _records(table, task)}


def _files(table: Table) -> set[str]:
    """Return every file that the snapshots of a table reference."""
    found: Counter[str] = Counter()
    for snapshot in table.metadata.snapshots:
        found[snapshot.manifest_list] += 1
        for manifest in snapshot.manifests(table.io):
            found[manifest.manifest_path] += 1
            found.update(e.data_file.file_path for e in manifest.fetch_manifest_entry(table.io, discard_deleted=True))
    return set(found)


def _without(snapshot_ids: set[int], metadata: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without some snapshots; the others keep their parents."""

    def kept(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        return [item for item in items if item["snapshot-id"] not in snapshot_ids]

    return metadata | {key: kept(metadata.get(key, ())) for key in ("snapshots", "snapshot-log")}


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress PyIceberg's warning if there is nothing to delete."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
