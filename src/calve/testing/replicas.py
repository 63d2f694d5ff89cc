"""Replicas of a table that captures keep up to date: what a capture must do to them."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar

from calve.capture import TableReport
from calve.lake import Lake

R = TypeVar("R", bound=Hashable)

Row = tuple[tuple[int, Any], ...]
"""A row by field ids, without its nulls: neither a renamed nor an added column changes it."""

Rows = Counter[Row]
"""Rows, and how often each occurs."""


def apply_change(replica: Counter[R], change: TableReport, read: Callable[[str], Iterable[R]]) -> Counter[R]:
    """Return a replica after one table's change, for tests of your own pipeline against the truth.

    >>> read = lambda relation: spark.sql(f"SELECT * FROM {relation}").collect()
    >>> replica = apply_change(replica, captures.capture(["db.orders"], "me").tables[0], read)  # doctest: +SKIP
    >>> assert replica == Counter(read("db.orders"))  # doctest: +SKIP

    Args:
        replica: the rows that the consumer has; empty before the first capture.
        change: what was captured, in mode ``table``.
        read: returns the rows of a relation, which can be written after ``FROM``.

    Raises:
        AssertionError: the change deletes rows that the replica does not have.
    """
    came = Counter(read(change.relation)) if change.relation else Counter[R]()
    gone = Counter(read(change.deletes_relation)) if change.deletes_relation else Counter[R]()
    return applied(replica, came, gone)


def applied(replica: Counter[R], came: Counter[R], gone: Counter[R]) -> Counter[R]:
    """Return a replica without the deleted rows, plus the new ones.

    Raises:
        AssertionError: the replica does not have a deleted row.
    """
    strangers = gone - replica
    if strangers:
        raise AssertionError(f"the change removes rows that the replica does not have: {shown(strangers)}")
    return replica - gone + came


def row_of(record: Mapping[str, Any], ids: Mapping[str, int]) -> Row:
    """Return a record with field ids instead of column names; leave out columns without an id."""
    return tuple(
        sorted((ids[name], _hashable(value)) for name, value in record.items() if name in ids and value is not None)
    )


def projected(rows: Rows, ids: Iterable[int]) -> Rows:
    """Return rows with only some columns."""
    kept = frozenset(ids)
    found = Rows()
    for row, count in rows.items():
        found[tuple(cell for cell in row if cell[0] in kept)] += count
    return found


def shown(rows: Counter[R], most: int = 5) -> str:
    """Format the first rows for a message."""
    some = [f"{row!r} x {count}" for row, count in list(rows.items())[:most]]
    return "; ".join(some) + (f"; and {len(rows) - most} more" if len(rows) > most else "")


def _hashable(value: Any) -> Hashable:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, Mapping):
        return tuple(sorted((key, _hashable(item)) for key, item in value.items()))
    found: Hashable = value
    return found


def rows_at(lake: Lake, table: str, snapshot_id: int | None = None) -> Rows:
    """Return the rows of a table, now or at a snapshot."""
    name = lake.parse(table)
    scan = lake.catalog(name.catalog).pyiceberg().load_table(name.identifier).scan(snapshot_id=snapshot_id)
    ids = {field.name: field.field_id for field in scan.projection().fields}
    return Rows(row_of(record, ids) for record in scan.to_arrow().to_pylist())
