"""Source tables for tests of capture: changed by Spark, captured by calve, judged by time travel."""

import math
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, product
from typing import TYPE_CHECKING, Any

from tests.scope import in_ci

from calve.capture import CaptureLimits, CaptureReport, Captures, Operation, TableReport, Wanted
from calve.lake import Lake

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ALL = frozenset({Operation.APPEND, Operation.OVERWRITE, Operation.DELETE})
COW, MOR = "copy-on-write", "merge-on-read"
KINDS: dict[str, tuple[int, str]] = {
    "v1": (1, COW),
    "v2 copy-on-write": (2, COW),
    "v2 merge-on-read": (2, MOR),
    "v3 copy-on-write": (3, COW),
    "v3 merge-on-read": (3, MOR),
}
"""Every way in which a table can record a change: format version, and how rows are deleted."""
SOME_KINDS = in_ci(["v2 copy-on-write", "v3 merge-on-read"], otherwise=list(KINDS))
"""In CI each way to delete rows, each on another format version; ``KINDS_PARTITIONED`` has them all."""
KINDS_PARTITIONED = in_ci(
    list(zip(KINDS, cycle(["day", ""]), strict=False)), otherwise=list(product(KINDS, ["", "day"]))
)
"""All kinds, each partitioned or not: in CI in turn."""

Row = tuple[Any, ...]
Rows = Counter[Row]


def canonical(value: Any) -> Any:
    """Return a value that equals another exactly when the two read the same, and that can be counted."""
    if isinstance(value, dict):
        return ("map", tuple(sorted((canonical(k), canonical(v)) for k, v in value.items())))
    if isinstance(value, list | tuple):
        return tuple(canonical(item) for item in value)
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    return bytes(value) if isinstance(value, bytearray) else value


@dataclass
class Source:
    """One source table and its consumers."""

    spark: "SparkSession"
    captures: Captures
    lake: Lake
    name: str
    _seen: dict[tuple[int, int], Rows] = field(default_factory=dict)
    _count: int = 0

    # Changing the table.

    def run(self, *statements: str) -> list[Any]:
        """Run SQL in which ``{t}`` is the table; return the last statement's rows."""
        found: list[Any] = []
        for statement in statements:
            found = self.spark.sql(statement.replace("{t}", self.name)).collect()
        return found

    def create(self, columns: str, kind: str, by: str = "", **properties: str) -> "Source":
        """Create the table in one of ``KINDS``; ``__`` in the name of a property stands for a dot."""
        version, mode = KINDS[kind]
        given = {"format-version": str(version)} | {f"write.{do}.mode": mode for do in ("delete", "update", "merge")}
        given |= {key.replace("__", ".").replace("_", "-"): value for key, value in properties.items()}
        listed = ", ".join(f"'{key}'='{value}'" for key, value in given.items())
        partitioned = f"PARTITIONED BY ({by})" if by else ""
        self.run(f"CREATE TABLE {{t}} ({columns}) USING iceberg {partitioned} TBLPROPERTIES ({listed})")
        return self

    def call(self, procedure: str, **options: str) -> None:
        """Call one of Iceberg's procedures on the table."""
        given = "".join(f", {name} => {value}" for name, value in options.items())
        self.run(f"CALL lake.system.{procedure}(table => '{{t}}'{given})")

    def compact(self, where: str | None = None) -> None:
        """Rewrite the data files, all or some."""
        options = {"options": "map('rewrite-all', 'true')"} | ({"where": f'"{where}"'} if where else {})
        self.call("rewrite_data_files", **options)

    def java(self) -> Any:
        """Return Iceberg's own handle of the table."""
        jvm: Any = self.spark._jvm
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self.name)

    def expire(self, *snapshots: int) -> None:
        """Expire some snapshots, or all but the current one; files that nothing else needs are deleted."""
        doomed = snapshots or [found for found in self.snapshots if found != self.head]
        expiry = self.java().expireSnapshots()
        for snapshot in doomed:
            expiry = expiry.expireSnapshotId(snapshot)
        expiry.commit()

    def delete_by_key(self, columns: Sequence[str], *keys: Sequence[Any], partition: str = "") -> int:
        """Commit an equality delete, as streaming writers do; return the snapshot.

        Keys are values that Py4J passes on as they are (Python's ``int`` as a Java Integer). A partition is given as
        in paths, ``city=Bern``.
        """
        jvm: Any = self.spark._jvm
        iceberg, table = jvm.org.apache.iceberg, self.java()
        ids = self.spark.sparkContext._gateway.new_array(jvm.int, len(columns))  # type: ignore[union-attr]
        for place, column in enumerate(columns):
            ids[place] = table.schema().findField(column).fieldId()
        selected = table.schema().select(list(columns))
        factory = iceberg.data.GenericAppenderFactory(table, table.schema(), table.spec(), {}, ids, selected)
        path = f"{table.location()}/data/{uuid.uuid4().hex}-keys.parquet"
        output = iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(table.io().newOutputFile(path))
        values = iceberg.DataFiles.data(table.spec(), partition) if partition else None
        writer = factory.newEqDeleteWriter(output, iceberg.FileFormat.PARQUET, values)
        for key in keys:
            record = iceberg.data.GenericRecord.create(selected)
            for column, value in zip(columns, key, strict=True):
                record.setField(column, value)
            writer.write(record)
        writer.close()
        table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()
        return self.head

    # The truth, from Spark alone.

    @property
    def metadata(self) -> dict[str, Any]:
        """The table's current metadata."""
        return self.lake.catalog("lake").load(self.lake.parse(self.name)).metadata

    @property
    def head(self) -> int:
        """The current snapshot."""
        return int(self.metadata["current-snapshot-id"])

    @property
    def snapshots(self) -> list[int]:
        """Every snapshot that is kept, oldest first."""
        return [snapshot["snapshot-id"] for snapshot in self.metadata["snapshots"]]

    def rows(self, relation: str | None) -> Rows:
        """Return what ``FROM`` a relation gives, whole rows, each as often as it is there."""
        if relation is None:
            return Counter()
        return Counter(canonical(row) for row in self.spark.sql(f"SELECT * FROM {relation}").collect())

    def at(self, snapshot: int | None) -> Rows:
        """Return the table's rows at a snapshot, in the columns of now."""
        if snapshot is None:
            return Counter()
        metadata = self.metadata
        key = (snapshot, metadata["current-schema-id"])
        if key not in self._seen:
            then = next(s.get("schema-id") for s in metadata["snapshots"] if s["snapshot-id"] == snapshot)
            version: int | str = snapshot
            if then != metadata["current-schema-id"] and snapshot != metadata["current-snapshot-id"]:
                # Spark reads a snapshot with the schema of then, a branch with that of now
                version = f"'truth_{snapshot}_{key[1]}'"
                self.run(f"ALTER TABLE {{t}} CREATE BRANCH {version.strip(chr(39))} AS OF VERSION {snapshot}")
            relation = (
                self.name if snapshot == metadata["current-snapshot-id"] else f"{self.name} VERSION AS OF {version}"
            )
            self._seen[key] = self.rows(relation)
        return self._seen[key]

    # Capturing.

    def capture(
        self,
        consumer: str = "me",
        *,
        operations: frozenset[Operation] = ALL,
        limits: CaptureLimits | None = None,
        lease: bool = False,
        **wanted: Any,
    ) -> CaptureReport:
        """Capture what the consumer has not seen, all operations included."""
        request = Wanted(operations=operations, limits=limits or CaptureLimits(), **wanted)
        return self.captures.capture([self.name], self._consumer(consumer), request, lease=lease)

    def plan(
        self,
        consumer: str = "me",
        *,
        operations: frozenset[Operation] = ALL,
        limits: CaptureLimits | None = None,
        **wanted: Any,
    ) -> TableReport:
        """Return what the next capture would contain."""
        request = Wanted(operations=operations, limits=limits or CaptureLimits(), **wanted)
        return self.captures.plan([self.name], self._consumer(consumer), request).tables[0]

    def commit(self, report: CaptureReport) -> TableReport:
        """Commit a capture and return its one table."""
        assert report.capture_id is not None
        self.captures.commit(report.capture_id)
        return report.tables[0]

    def advance(self, consumer: str = "me", **wanted: Any) -> TableReport:
        """Capture and commit."""
        return self.commit(self.capture(consumer, **wanted))

    def between(self, start: int, end: int | None = None, **wanted: Any) -> TableReport:
        """Capture from one snapshot to another, for a consumer of its own."""
        self._count += 1
        end_of = None if end is None else str(end)
        return self.capture(f"between {self._count}", start=str(start), end=end_of, **wanted).tables[0]

    def in_parts(
        self, consumer: str = "me", *, limits: CaptureLimits, most: int = 50, **wanted: Any
    ) -> Iterator[TableReport]:
        """Capture in parts until nothing is left; each is committed once the caller has looked at it."""
        for _ in range(most):
            report = self.capture(consumer, limits=limits, **wanted)
            yield report.tables[0]
            self.commit(report)
            if not report.tables[0].pending:
                return
        raise AssertionError(f"still pending after {most} parts")

    def _consumer(self, consumer: str) -> str:
        return f"{self.name} {consumer}"

    # Judging.

    def check(self, report: TableReport, *, minimal: bool = True) -> None:
        """Compare a capture's rows with the table's two ends.

        What left and what came turn one end into the other; ``minimal``: and no row did both.
        """
        before, after = self.at(report.from_snapshot_id), self.at(report.to_snapshot_id)
        came, left = self.rows(report.relation), self.rows(report.deletes_relation)
        assert not left - before, "rows left that were not there"
        assert before - left + came == after
        if minimal:
            assert came == after - before
            assert left == before - after


def quick_session(spark: "SparkSession") -> "SparkSession":
    """Return a new session for tables of a few rows, which do not repay compiling; there is a namespace ``db``."""
    quick = spark.newSession()
    quick.conf.set("spark.sql.codegen.wholeStage", "false")
    quick.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    quick.conf.set("spark.sql.adaptive.enabled", "false")
    quick.conf.set("spark.sql.shuffle.partitions", "1")
    quick.sql("CREATE NAMESPACE IF NOT EXISTS db")
    return quick


@contextmanager
def options(spark: "SparkSession", **values: str) -> Iterator[None]:
    """Set options of Spark for a while; ``__`` in a name stands for a dot, ``_`` for a hyphen."""
    names = {name.replace("__", ".").replace("_", "-"): value for name, value in values.items()}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            spark.conf.unset(name)


def union(parts: Sequence[Rows]) -> Rows:
    """Return all rows of some parts, each as often as it is in them together."""
    return sum(parts, start=Counter())
