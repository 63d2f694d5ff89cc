"""A captured change: its rows as Spark, Arrow or Polars data, and its commit, which moves the checkpoint."""

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from calve.capture import CaptureReport, TableReport
from calve.connection.notebook import table
from calve.errors import CalveError, RequestInvalid

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from calve.lake import Lake


class Lakehouse(Protocol):
    """What a change needs from the connection that captured it."""

    @property
    def lake(self) -> "Lake":
        """The catalogs that the settings name."""
        ...

    @property
    def spark(self) -> "SparkSession":
        """A Spark session with these catalogs."""
        ...

    def commit(self, change: "Change | str") -> "Change":
        """Move the checkpoint past a change."""
        ...

    def abandon(self, change: "Change | str") -> "Change":
        """Abandon a change."""
        ...


class Change(AbstractContextManager["Change"]):
    """The change of one or several tables since the consumer's checkpoint, or the plan of a capture.

    As a context manager, it commits the change when the block ends, or abandons it if the block raises an error.
    """

    def __init__(self, report: CaptureReport, connection: Lakehouse) -> None:
        self.report = report
        self._connection = connection

    @property
    def capture_id(self) -> str | None:
        """The id of the capture; None for a plan."""
        return self.report.capture_id

    @property
    def changed(self) -> bool:
        """Whether there is anything to process."""
        return self.report.changed

    @property
    def ranges(self) -> dict[str, dict[str, Any]]:
        """The lowest and the highest value of each column in the change, over all tables."""
        return self.report.ranges

    @property
    def tables(self) -> list[TableReport]:
        """The change of each table."""
        return self.report.tables

    @property
    def relation(self) -> str:
        """The relation for FROM or USING in Spark SQL with exactly the new and changed rows of the only table."""
        return self.relation_of()

    def relation_of(self, source_table: str | None = None) -> str:
        """Return the relation for FROM or USING in Spark SQL with exactly the new and changed rows of a table.

        Args:
            source_table: the table; not needed if only one was captured.

        Raises:
            RequestInvalid: the table is not in this change or must be named, or this is a plan, which has no rows.
        """
        found = self._table(source_table)
        if found.relation is None:
            raise RequestInvalid(
                f"A plan of {found.source_table} has no rows to read.", remedy="Capture the change first: capture(…)."
            )
        return found.relation

    def dataframe(self, spark: "SparkSession | None" = None, source_table: str | None = None) -> "DataFrame":
        """Return exactly the new and changed rows as a Spark DataFrame.

        Args:
            spark: a session with the catalogs; by default, one with the settings of the project.
            source_table: the table; not needed if only one was captured.
        """
        relation = self.relation_of(source_table)
        return (spark or self._connection.spark).sql(f"SELECT * FROM {relation}")  # noqa: S608 - calve wrote it

    def to_arrow(self, source_table: str | None = None) -> "pa.Table":
        """Return exactly the new and changed rows as an Arrow table.

        PyIceberg reads the rows of appended files, without a JVM. Spark reads a change for which reading files is not
        enough, because deletes must be applied or rows must be filtered.
        """
        read = self._read_files(source_table)
        return self.dataframe(source_table=source_table).toArrow() if read is None else read

    def to_polars(self, source_table: str | None = None) -> "pl.DataFrame":
        """Return exactly the new and changed rows as a Polars DataFrame.

        Raises:
            RequestInvalid: Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise RequestInvalid("Polars is not installed.", remedy="Install it: pip install polars.") from error
        frame = pl.from_arrow(self.to_arrow(source_table))
        return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()

    def commit(self) -> Self:
        """Move the checkpoint past this change: it has been processed."""
        self._connection.commit(self)
        return self

    def abandon(self) -> Self:
        """Abandon this change: the next capture starts from the same checkpoint."""
        self._connection.abandon(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.capture_id is None or self.report.status != "open":
            return
        if error is None:
            self.commit()
            return
        try:
            self.abandon()
        except CalveError as another:  # the error of the block is what the user wants to see
            error.add_note(f"The capture {self.capture_id} could not be abandoned: {another}")

    def __repr__(self) -> str:
        tables = ", ".join(f"{one.source_table}: {one.files} files, {one.records} rows" for one in self.tables)
        return f"<Change {self.capture_id or 'planned'} of {self.report.consumer}: {tables}>"

    def _repr_html_(self) -> str:
        columns = ("table", "files", "rows", "bytes", "exactness", "ranges", "relation")
        rows = [
            [one.source_table, one.files, one.records, one.bytes, one.exactness, _ranges(one.ranges), one.relation]
            for one in self.tables
        ]
        return table(columns, rows)

    def _table(self, source_table: str | None) -> TableReport:
        names = [one.source_table for one in self.tables]
        if source_table is None and len(names) == 1:
            return self.tables[0]
        if source_table not in names:
            asked = "Which table?" if source_table is None else f"{source_table} is not in this change."
            raise RequestInvalid(asked, remedy=f"It has {', '.join(names)}.")
        return self.tables[names.index(source_table)]

    def _read_files(self, source_table: str | None) -> "pa.Table | None":
        """Return the rows if they are exactly those of the captured files and PyIceberg can read them; else None."""
        report = self._table(source_table)
        relation = self.relation_of(source_table)
        if relation != report.icdc_table or report.filter is not None or self.report.mode != "table":
            return None
        lake = self._connection.lake
        name = lake.parse(relation)
        try:
            scan = lake.catalog(name.catalog).pyiceberg().load_table(name.identifier).scan()
            return None if any(task.delete_files for task in scan.plan_files()) else scan.to_arrow()
        except (NotImplementedError, ValueError):  # types and encodings that only Spark supports
            return None


def _ranges(ranges: dict[str, dict[str, Any]]) -> str:
    return "; ".join(f"{column} {one['lower']} … {one['upper']}" for column, one in ranges.items())
