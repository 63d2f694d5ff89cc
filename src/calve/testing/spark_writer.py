"""Writes histories with Spark SQL: format v1 to v3, copy-on-write and merge-on-read."""

import shutil
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calve.capture import TableReport
from calve.lake import Lake, local_path
from calve.settings import Settings
from calve.testing.replicas import Rows, row_of
from calve.testing.writers import Ability, Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KINDS = {"long": "bigint"}
_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


class SparkWriter:
    """Writes tables with Spark SQL and Iceberg's procedures; the port is ``calve.testing.Writer``."""

    def __init__(
        self,
        spark: "SparkSession",
        settings: Settings,
        format_version: int = 2,
        mode: str = "copy-on-write",
        *,
        abilities: Collection[Ability] = tuple(Ability),
    ) -> None:
        """Take a session on the lake, and the properties of new tables."""
        self.settings = settings
        self.table = ""
        self.abilities = abilities
        self._spark = spark
        self._lake = Lake(settings)
        self._version, self._mode = format_version, mode

    def __repr__(self) -> str:
        return f"SparkWriter(v{self._version}, {self._mode})"

    def close(self) -> None:
        """Close the catalog."""
        self._lake.close()

    # The table as a whole.

    def create(self, table: str, columns: Mapping[str, str], days: bool) -> None:  # noqa: FBT001
        """Create an empty table, partitioned by day or not at all, and write to it from now on."""
        self.table = table
        fields = ", ".join(f"{name} {_KINDS.get(kind, kind)}" for name, kind in columns.items())
        properties = {"format-version": str(self._version), **dict.fromkeys(_MODES, self._mode)}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in properties.items())
        by = "PARTITIONED BY (day)" if days else ""
        self._sql(f"CREATE NAMESPACE IF NOT EXISTS {self._name.rpartition('.')[0]}")
        self._sql(f"CREATE TABLE {self._name} ({fields}) USING iceberg {by} TBLPROPERTIES ({listed})")

    def drop(self) -> None:
        """Drop the table, with its files; those on this machine are simply removed, which is quicker."""
        folder = local_path(self._metadata(self.table)["location"])
        self._sql(f"DROP TABLE {self._name}" + ("" if folder else " PURGE"))
        if folder:
            shutil.rmtree(folder, ignore_errors=True)

    def read(self, change: TableReport) -> tuple[Rows, Rows]:
        """Return exactly the new and the deleted rows, by the relations' SQL."""
        metadata = self._metadata(str(change.icdc_table))
        current = metadata.get("current-schema-id", 0)
        schema = next(schema for schema in metadata["schemas"] if schema["schema-id"] == current)
        ids = {column["name"]: column["id"] for column in schema["fields"]}

        def rows(relation: str | None) -> Rows:
            if relation is None:
                return Rows()
            return Rows(row_of(row.asDict(), ids) for row in self._sql(f"SELECT * FROM {relation}"))

        return rows(change.relation), rows(change.deletes_relation)

    # Rows.

    def append(self, records: Sequence[Record]) -> None:
        """Append rows."""
        self._sql(f"INSERT INTO {self._name} {self._values(records)}")

    def upsert(self, records: Sequence[Record]) -> None:
        """Replace the rows of the same ids, and append the others, in one merge."""
        self._sql(
            f"MERGE INTO {self._name} t USING ({self._values(records)}) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    def update(self, ids: Collection[int], column: str, value: Any) -> None:
        """Set a column in the rows of some ids."""
        kind = dict(self._columns())[column]
        self._sql(f"UPDATE {self._name} SET {column} = {_literal(value, kind)} WHERE id IN ({_list(ids)})")

    def delete(self, ids: Collection[int]) -> None:
        """Delete the rows of some ids."""
        self._sql(f"DELETE FROM {self._name} WHERE id IN ({_list(ids)})")

    def delete_partition(self, day: int) -> None:
        """Delete the rows of a day."""
        self._sql(f"DELETE FROM {self._name} WHERE day = {day}")

    def overwrite_partition(self, day: int, records: Sequence[Record]) -> None:
        """Replace the rows of a day: dynamically if the table is partitioned, else all of them."""
        self._spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        kept = [record for record in records if record["day"] == day]
        self._sql(f"INSERT OVERWRITE {self._name} {self._values(kept)}")

    # Upkeep.

    def compact(self) -> None:
        """Write all rows into new files."""
        self._call("rewrite_data_files", "options => map('rewrite-all', 'true')")

    def rewrite_manifests(self) -> None:
        """Rewrite the manifests."""
        self._call("rewrite_manifests", "use_caching => false")

    def expire(self, snapshot_ids: Sequence[int]) -> None:
        """Expire snapshots, and delete the files that only they had."""
        if not hasattr(self._spark, "_jsparkSession"):
            self._call("expire_snapshots", f"snapshot_ids => array({_list(snapshot_ids)})")
            return
        # The procedure does the same as a Spark job, which takes seconds.
        spark: Any = self._spark
        table = spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, self._name)  # noqa: SLF001
        expiry = table.expireSnapshots()
        for snapshot_id in snapshot_ids:
            expiry = expiry.expireSnapshotId(snapshot_id)
        expiry.commit()

    def set_current(self, snapshot_id: int) -> None:
        """Make a snapshot the current one: roll back, or forward again."""
        self._call("set_current_snapshot", f"snapshot_id => {snapshot_id}")

    def tag(self, name: str, snapshot_id: int) -> None:
        """Tag a snapshot."""
        self._alter(f"CREATE TAG {name} AS OF VERSION {snapshot_id}")

    # Schema, partitioning and format.

    def add_column(self, name: str, kind: str) -> None:
        """Add an optional column."""
        self._alter(f"ADD COLUMN {name} {_KINDS.get(kind, kind)}")

    def drop_column(self, name: str) -> None:
        """Drop a column."""
        self._alter(f"DROP COLUMN {name}")

    def rename_column(self, name: str, to: str) -> None:
        """Rename a column."""
        self._alter(f"RENAME COLUMN {name} TO {to}")

    def promote_column(self, name: str, kind: str) -> None:
        """Widen the type of a column."""
        self._alter(f"ALTER COLUMN {name} TYPE {_KINDS.get(kind, kind)}")

    def partition_by(self, days: bool) -> None:  # noqa: FBT001
        """Partition what is written from now on by day, or by a bucket of the id."""
        metadata = self._metadata(self.table)
        spec = next(s for s in metadata["partition-specs"] if s["spec-id"] == metadata["default-spec-id"])
        has_days = any(field["transform"] == "identity" for field in spec["fields"])
        if days and not has_days:
            self._alter("ADD PARTITION FIELD day")
        elif has_days and not days:
            self._alter("REPLACE PARTITION FIELD day WITH bucket(2, id)")

    def upgrade(self) -> None:
        """Upgrade to the next format version."""
        version = self._metadata(self.table)["format-version"]
        self._alter(f"SET TBLPROPERTIES ('format-version'='{min(version + 1, 3)}')")

    # Private methods.

    @property
    def _name(self) -> str:
        return str(self._lake.parse(self.table))

    def _metadata(self, table: str) -> dict[str, Any]:
        name = self._lake.parse(table)
        return self._lake.catalog(name.catalog).load(name).metadata

    def _sql(self, statement: str) -> list[Any]:
        return self._spark.sql(statement).collect()

    def _alter(self, change: str) -> None:
        self._sql(f"ALTER TABLE {self._name} {change}")

    def _call(self, procedure: str, arguments: str) -> None:
        catalog, _, name = self._name.partition(".")
        self._sql(f"CALL {catalog}.system.{procedure}(table => '{name}', {arguments})")

    def _columns(self) -> list[tuple[str, str]]:
        return [(field.name, field.dataType.simpleString()) for field in self._spark.table(self._name).schema.fields]

    def _values(self, records: Sequence[Record]) -> str:
        """Return rows as a query with the table's columns."""
        columns = self._columns()
        rows = ", ".join(
            f"({', '.join(_literal(record.get(name), kind) for name, kind in columns)})" for record in records
        )
        return f"SELECT * FROM VALUES {rows} AS v({', '.join(name for name, _ in columns)})"


def _literal(value: Any, kind: str) -> str:
    text = "NULL" if value is None else f"'{value}'"
    return f"CAST({text} AS {kind})"


def _list(values: Collection[int]) -> str:
    return ", ".join(map(str, values))
