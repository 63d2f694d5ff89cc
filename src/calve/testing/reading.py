"""Reads tables with PyIceberg, row by row and by field ids."""

from calve.lake import Lake
from calve.testing.replicas import Rows, row_of


def rows_at(lake: Lake, table: str, snapshot_id: int | None = None) -> Rows:
    """Return the rows of a table, now or at a snapshot."""
    name = lake.parse(table)
    scan = lake.catalog(name.catalog).pyiceberg().load_table(name.identifier).scan(snapshot_id=snapshot_id)
    ids = {field.name: field.field_id for field in scan.projection().fields}
    return Rows(row_of(record, ids) for record in scan.to_arrow().to_pylist())
