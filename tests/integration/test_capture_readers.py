"""The tables of a capture are plain Iceberg tables: every reader that can read the source reads the same rows."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.integration.tables import KINDS, Rows, Source, canonical

from calve.capture import Operation

pytestmark = pytest.mark.spark

_COLUMNS = (
    "id INT, day DATE, at TIMESTAMP_NTZ, amount DECIMAL(9, 2), price DOUBLE, raw BINARY, ok BOOLEAN, "
    "name STRING, point STRUCT<x: INT, y: STRING>, list ARRAY<INT>"
)
_VALUES = (
    "CAST(id AS INT), DATE '2026-01-01' + CAST(id % 3 AS INT), TIMESTAMP_NTZ '2026-01-01 10:00:00', "
    "CAST(id * 1.5 AS DECIMAL(9, 2)), id / 4, CAST(concat('b', id) AS BINARY), id % 2 = 0, "
    "CASE WHEN id % 4 > 0 THEN concat('n', id) END, named_struct('x', CAST(id AS INT), 'y', 'y'), "
    "array(1, CAST(id AS INT))"
)


def _append(source: Source, first: int, last: int, *more: str) -> None:
    values = ", ".join([_VALUES, *more])
    source.run(f"INSERT INTO {{t}} SELECT {values} FROM range({first}, {last}, 1, 2)")


def _pyiceberg(source: Source, table: str) -> Any:
    return source.lake.catalog("lake").pyiceberg().load_table(table)


def _by_pyiceberg(source: Source, table: str) -> Rows:
    found = _pyiceberg(source, table).scan().to_arrow().to_pylist()
    return Counter(_row(row) for row in found)


def _by_polars(source: Source, table: str) -> Rows:
    import polars as pl

    return Counter(_row(row) for row in pl.scan_iceberg(_pyiceberg(source, table)).collect().to_dicts())


def _row(record: dict[str, Any]) -> tuple[Any, ...]:
    """Return a record as Spark's rows are counted: structs have no names there."""
    values = (tuple(v.values()) if isinstance(v, dict) else v for v in record.values())
    return tuple(canonical(value) for value in values)


@pytest.mark.filterwarnings("ignore:Iceberg scan planning")  # Polars has a faster planner to recommend
@pytest.mark.parametrize("kind", KINDS)
def test_readers_agree(source: Source, kind: str) -> None:
    """Spark, PyIceberg and a third reader read one capture alike, over changes of schema and partitioning."""
    source.create(_COLUMNS, kind, "day")
    _append(source, 0, 8)
    source.run("DELETE FROM {t} WHERE id = 5")
    first = source.advance()
    assert first.icdc_table is not None
    whole = source.rows(first.icdc_table)
    assert whole == source.rows(source.name)
    assert whole == _by_pyiceberg(source, first.icdc_table)

    source.run(
        "ALTER TABLE {t} ADD COLUMN extra STRING",
        "ALTER TABLE {t} RENAME COLUMN name TO title",
        "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT",
        "ALTER TABLE {t} REPLACE PARTITION FIELD day WITH bucket(2, id)",
    )
    _append(source, 20, 24, "'extra'")
    appended = source.advance(operations=frozenset({Operation.APPEND}))
    assert appended.icdc_table is not None
    rows = source.rows(appended.icdc_table)
    assert sum(rows.values()) == 4
    assert rows == _by_pyiceberg(source, appended.icdc_table)
    assert rows == _by_polars(source, appended.icdc_table)

    source.run("UPDATE {t} SET extra = 'new' WHERE id IN (2, 21)", "DELETE FROM {t} WHERE id IN (3, 22)")
    changed = source.advance()
    source.check(changed)
    for name in (changed.icdc_table, changed.deletes_table, changed.carried_table):
        if name is not None:
            assert source.rows(name) == _by_pyiceberg(source, name)


@pytest.mark.parametrize("kind", ["v2 merge-on-read", "v3 merge-on-read"])
def test_inverted_deletion_vectors_are_read_alike(source: Source, kind: str) -> None:
    """Exactly the rows that left, in files that hold others, over two specs and rows deleted before."""
    source.create("id BIGINT, day DATE, v STRING", kind, "day")
    rows = "SELECT id, DATE '2026-01-01' + CAST(id % 2 AS INT), concat('v', id)"
    source.run(f"INSERT INTO {{t}} {rows} FROM range(0, 2000, 1, 1)", "DELETE FROM {t} WHERE id % 100 = 7")
    source.run("ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)")
    source.run(f"INSERT INTO {{t}} {rows} FROM range(2000, 2100, 1, 1)")
    source.advance()
    source.run("DELETE FROM {t} WHERE id % 50 = 7", "UPDATE {t} SET v = 'new' WHERE id IN (0, 1999, 2000)")
    found = source.advance()
    source.check(found)
    assert found.deletes_table == found.deletes_relation
    assert found.deletes_table is not None
    left = source.rows(found.deletes_table)
    assert sum(left.values()) == found.deleted_records == 25
    assert left == _by_pyiceberg(source, found.deletes_table)


def test_files_without_column_ids_are_read_by_name(source: Source, tmp_path: Path) -> None:
    """Parquet files that were merely added to a table have no ids; the name mapping comes along."""
    import pyarrow as pa
    from pyarrow import parquet

    def file(number: int, **columns: Any) -> str:
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(pa.table({name: pa.array(*values) for name, values in columns.items()}), path)
        return str(path)

    first = file(1, id=([1, 2], pa.int64()), name=(["a", None], pa.string()))
    catalog = source.lake.catalog("lake").pyiceberg()
    table = catalog.create_table(source.name, parquet.read_schema(first), properties={"format-version": "2"})
    table.add_files([first])
    source.advance()
    table.add_files([file(2, id=([7, 8], pa.int64()), name=(["x", "y"], pa.string()))])
    found = source.advance(operations=frozenset({Operation.APPEND}), ranges=("id", "name"))
    assert found.icdc_table is not None
    assert source.rows(found.relation) == {(7, "x"): 1, (8, "y"): 1}
    assert source.rows(found.relation) == _by_pyiceberg(source, found.icdc_table)
    told = [(found.ranges[name]["lower"], found.ranges[name]["upper"]) for name in ("id", "name")]
    assert told == [(7, 8), ("x", "y")]
    source.run("DELETE FROM {t} WHERE id IN (2, 7)")
    source.check(source.advance())
    source.check(source.between(source.snapshots[0]))


def test_what_pyiceberg_changes_is_captured_too(source: Source) -> None:
    """Appends, overwrites and deletes of another writer, with its own kinds of summary and manifest."""
    import pyarrow as pa

    rows = pa.table({"id": pa.array(range(6), pa.int64()), "x": pa.array([0.5, None, 1.5, 2.5, 3.5, 4.5])})
    catalog = source.lake.catalog("lake").pyiceberg()
    for version in ("1", "2"):
        name = f"{source.name}_{version}"
        other = Source(source.spark, source.captures, source.lake, name)
        table = catalog.create_table(name, rows.schema, properties={"format-version": version})
        table.append(rows)
        other.check(other.advance())
        start = other.head
        table.append(pa.table({"id": pa.array([9], pa.int64()), "x": pa.array([float("nan")])}))
        appended = other.advance(operations=frozenset({Operation.APPEND}), ranges=("id", "x"))
        other.check(appended)
        assert appended.ranges["x"]["has_nans"]
        table.delete("id in (1, 2)")
        other.check(other.advance())
        table.overwrite(rows.slice(3, 1), overwrite_filter="id >= 3")
        other.check(other.advance())
        other.check(other.between(start))
