"""What was written to a table, told by its snapshots."""

from pathlib import Path

from calve.demo.playback import TableWrites, Written, compared
from calve.lake import Lake
from calve.settings import embedded, load


def test_only_what_is_new_is_counted(tmp_path: Path) -> None:
    """Rows and bytes of the snapshots since the last look."""
    import pyarrow as pa

    lake = Lake(embedded(tmp_path, load(tmp_path, {})))
    catalog = lake.catalog("lake").pyiceberg()
    catalog.create_namespace("db")
    rows = pa.table({"a": [1, 2, 3]})
    table = catalog.create_table("db.t", rows.schema)
    ledger = TableWrites(lake)
    assert ledger.written("db.t") == Written(0, 0)
    table.append(rows)
    table.append(rows)
    first = ledger.written("db.t")
    assert first.rows == 6
    assert first.bytes == sum(file.file.file_size_in_bytes for file in table.refresh().scan().plan_files())
    assert ledger.written("db.t") == Written(0, 0)
    lake.close()


def test_every_table_of_both_pipelines_is_compared() -> None:
    """Four fingerprints, in one query."""
    query = compared()
    for table in ("playback_daily_table", "playback_daily_agg_table"):
        for lane in ("lookback", "incremental"):
            assert f"FROM {lane}.{table}" in query
