"""The interface that the fuzzer requires of writers of tables."""

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from calve.capture import TableReport
from calve.settings import Settings
from calve.testing.replicas import Rows

Record = Mapping[str, Any]
"""A row by column names, as a writer gets it."""

PROMOTIONS = {"int": "long", "float": "double", "decimal(9,2)": "decimal(18,2)"}
"""The types that a column's type may be promoted to."""

TYPES = ("int", "long", "float", "double", "string", "decimal(9,2)", "decimal(18,2)")
"""The types of columns, by Iceberg's names."""


class Ability(StrEnum):
    """What a writer can do; each is a method of ``Writer``."""

    APPEND = "append"
    UPSERT = "upsert"
    UPDATE = "update"
    DELETE = "delete"
    DELETE_PARTITION = "delete_partition"
    OVERWRITE_PARTITION = "overwrite_partition"
    COMPACT = "compact"
    REWRITE_MANIFESTS = "rewrite_manifests"
    ADD_COLUMN = "add_column"
    DROP_COLUMN = "drop_column"
    RENAME_COLUMN = "rename_column"
    PROMOTE_COLUMN = "promote_column"
    PARTITION_BY = "partition_by"
    UPGRADE = "upgrade"
    SET_CURRENT = "set_current"
    EXPIRE = "expire"
    TAG = "tag"


class Writer(Protocol):
    """Writes the history of one table at a time, and reads captures of it.

    To fuzz your own pipeline, subclass ``PyIcebergWriter`` or ``SparkWriter`` and override the methods for what your
    pipeline does; remove from ``abilities`` what it never does. Every row has a column ``id``, which is never dropped,
    and ``day``, by which the table may be partitioned.
    """

    settings: Settings
    """The lake."""
    table: str
    """The table being written, ``namespace.table``."""
    abilities: Collection[Ability]

    def create(self, table: str, columns: Mapping[str, str], days: bool) -> None:  # noqa: FBT001
        """Create an empty table, partitioned by day or not at all, and write to it from now on."""
        ...

    def drop(self) -> None:
        """Drop the table, with its files."""
        ...

    def read(self, change: TableReport) -> tuple[Rows, Rows]:
        """Return exactly the new and the deleted rows, by the relations of a capture."""
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Append rows."""
        ...

    def upsert(self, records: Sequence[Record]) -> None:
        """Replace the rows of the same ids, and append the others."""
        ...

    def update(self, ids: Collection[int], column: str, value: Any) -> None:
        """Set a column in the rows of some ids."""
        ...

    def delete(self, ids: Collection[int]) -> None:
        """Delete the rows of some ids."""
        ...

    def delete_partition(self, day: int) -> None:
        """Delete the rows of a day."""
        ...

    def overwrite_partition(self, day: int, records: Sequence[Record]) -> None:
        """Replace the rows of a day."""
        ...

    def compact(self) -> None:
        """Write all rows into new files, in a ``replace`` snapshot."""
        ...

    def rewrite_manifests(self) -> None:
        """Rewrite the manifests, in a ``replace`` snapshot."""
        ...

    def add_column(self, name: str, kind: str) -> None:
        """Add an optional column."""
        ...

    def drop_column(self, name: str) -> None:
        """Drop a column."""
        ...

    def rename_column(self, name: str, to: str) -> None:
        """Rename a column."""
        ...

    def promote_column(self, name: str, kind: str) -> None:
        """Widen the type of a column."""
        ...

    def partition_by(self, days: bool) -> None:  # noqa: FBT001
        """Partition what is written from now on by day, or not at all."""
        ...

    def upgrade(self) -> None:
        """Upgrade to the next format version that the writer supports, if there is one."""
        ...

    def set_current(self, snapshot_id: int) -> None:
        """Make a snapshot the current one: roll back, or forward again."""
        ...

    def expire(self, snapshot_ids: Sequence[int]) -> None:
        """Expire snapshots, and delete the files that only they had."""
        ...

    def tag(self, name: str, snapshot_id: int) -> None:
        """Tag a snapshot."""
        ...
