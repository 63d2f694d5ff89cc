"""A table that a proof writes, by Spark if there is one and otherwise by PyIceberg, with the rows it must have."""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from calve.app import utc_now
from calve.capture import Exactness, TableReport
from calve.lake import MAIN_BRANCH, Catalog, Metadata, TableName
from calve.texts import quoted

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.table import Table
    from pyspark.sql import SparkSession

Row = tuple[int, int, str]
"""The columns ``id``, ``day``, by which the table is partitioned, and ``note``."""
Rows = Counter[Row]
_DAYS = 3
_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


@dataclass(slots=True)
class ScratchTable:
    """One table of a proof."""

    catalog: Catalog
    name: TableName
    spark: "SparkSession | None" = None
    truth: Rows = field(default_factory=Rows)
    """The rows that were written to it and not deleted."""

    @property
    def identifier(self) -> str:
        """The name for captures and deliveries."""
        return str(self.name)

    def metadata(self) -> Metadata:
        """Return the metadata as the catalog sends it now."""
        return self.catalog.load(self.name).metadata

    def create(self, version: int = 2) -> None:
        """Create the empty table: merge-on-read for Spark, while PyIceberg knows only copy-on-write."""
        properties = {"format-version": str(version)}
        if self.spark is None:
            schema, spec = _schema()
            self.catalog.pyiceberg().create_table(
                self.name.identifier, schema, partition_spec=spec, properties=properties
            )
            return
        properties |= dict.fromkeys(_MODES, "merge-on-read")
        listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        self._sql(
            f"CREATE TABLE {self.name.sql()} (id BIGINT, day INT, note STRING) USING iceberg "
            f"PARTITIONED BY (day) TBLPROPERTIES ({listed})"
        )

    def append(self, ids: Iterable[int], note: str) -> Rows:
        """Append a row for each id, in one snapshot; return them."""
        added = rows(ids, note)
        self.write(added)
        self.truth += added
        return added

    def write(self, added: Rows, branch: str | None = None) -> None:
        """Append rows to ``main`` or a branch, and leave ``truth`` as it is."""
        if self.spark is None:
            table = self.load()
            table.append(_arrow(table, added), branch=branch or MAIN_BRANCH)
            return
        with _writing_to(self.spark, branch):
            values = ", ".join(f"(CAST({i} AS BIGINT), {day}, '{note}')" for i, day, note in added)
            self._sql(f"INSERT INTO {self.name.sql()} VALUES {values}")

    def update(self, ids: Collection[int], note: str) -> None:
        """Replace the note of the rows of some ids."""
        old = self._of(ids)
        new = Rows((i, day, note) for i, day, _ in old.elements())
        if self.spark is None:
            table = self.load()
            with _without_warnings():
                table.overwrite(_arrow(table, new), _is_in(ids))
        else:
            self._sql(f"UPDATE {self.name.sql()} SET note = '{note}' WHERE {_is_in(ids)}")
        self.truth = self.truth - old + new

    def delete(self, ids: Collection[int]) -> None:
        """Delete the rows of some ids."""
        if self.spark is None:
            with _without_warnings():
                self.load().delete(_is_in(ids))
        else:
            self._sql(f"DELETE FROM {self.name.sql()} WHERE {_is_in(ids)}")
        self.truth -= self._of(ids)

    def expire(self) -> str:
        """Expire every snapshot that nothing holds; return who did it."""
        if self.spark is None:
            self.load().maintenance.expire_snapshots().older_than(utc_now() + timedelta(days=1)).commit()
            return "PyIceberg, which deletes no files"
        # Tomorrow, by any clock: snapshots carry the time of who wrote them.
        self._sql(
            f"CALL {quoted(self.name.catalog)}.system.expire_snapshots(table => '{'.'.join(self.name.identifier)}', "
            "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
        )
        return "Spark, with their files"

    def load(self) -> "Table":
        """Return PyIceberg's handle of the table."""
        return self.catalog.pyiceberg().load_table(self.name.identifier)

    def data_files(self) -> list[str]:
        """Return the paths of the data files of ``main``."""
        return [task.file.file_path for task in self.load().scan().plan_files()]

    def rows(self) -> Rows:
        """Return the rows of ``main``, by PyIceberg."""
        return rows_by_pyiceberg(self.catalog, self.name)

    def _of(self, ids: Collection[int]) -> Rows:
        return Rows({row: count for row, count in self.truth.items() if row[0] in ids})

    def _sql(self, statement: str) -> None:
        assert self.spark is not None  # noqa: S101 - the callers have checked
        self.spark.sql(statement).collect()


def rows(ids: Iterable[int], note: str) -> Rows:
    """Return a row for each id."""
    return Rows((i, i % _DAYS, note) for i in ids)


def rows_by_pyiceberg(catalog: Catalog, name: TableName) -> Rows:
    """Return the rows of a table, all of them: a count would be answered from metadata."""
    found = catalog.pyiceberg().load_table(name.identifier).scan().to_arrow()
    return Rows(_row(record) for record in found.to_pylist())


def rows_by_spark(spark: "SparkSession", relation: str | None) -> Rows:
    """Return the rows of a relation."""
    if relation is None:
        return Rows()
    return Rows(_row(record.asDict()) for record in spark.sql(f"SELECT * FROM {relation}").collect())


def changed_rows(table: ScratchTable, change: TableReport, parse: Callable[[str], TableName]) -> tuple[Rows, Rows]:
    """Return the new and the removed rows of a capture: by its relations in Spark, else from its tables."""
    if table.spark is not None:
        return rows_by_spark(table.spark, change.relation), rows_by_spark(table.spark, change.deletes_relation)
    came, gone, carried = (
        rows_by_pyiceberg(table.catalog, parse(found)) if found else Rows()
        for found in (change.icdc_table, change.deletes_table, change.carried_table)
    )
    if change.exactness == Exactness.EXCEPT_ALL:
        return came - gone, gone - came - carried
    return came, gone


def _row(record: dict[str, Any]) -> Row:
    return int(record["id"]), int(record["day"]), str(record["note"])


def _schema() -> "tuple[Any, Any]":
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.transforms import IdentityTransform
    from pyiceberg.types import IntegerType, LongType, NestedField, StringType

    columns = (NestedField(1, "id", LongType()), NestedField(2, "day", IntegerType()))
    schema = Schema(*columns, NestedField(3, "note", StringType()))
    return schema, PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))


def _arrow(table: "Table", added: Rows) -> "pa.Table":
    import pyarrow as pa

    records = [{"id": i, "day": day, "note": note} for i, day, note in added.elements()]
    return pa.Table.from_pylist(records, schema=table.schema().as_arrow())


def _is_in(ids: Collection[int]) -> str:
    """Return a predicate; of ids without a gap one that the statistics of a file can answer, so that it is dropped."""
    first, last = min(ids), max(ids)
    if len(set(ids)) == last - first + 1:
        return f"id >= {first} AND id <= {last}"
    return f"id IN ({', '.join(map(str, sorted(ids)))})"


@contextmanager
def _writing_to(spark: "SparkSession", branch: str | None) -> Iterator[None]:
    """Let a session write to a branch, as the step of a workflow with targets does."""
    if branch is None:
        yield
        return
    spark.conf.set("spark.wap.branch", branch)
    try:
        yield
    finally:
        spark.conf.unset("spark.wap.branch")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Suppress PyIceberg's warnings about how it deletes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
