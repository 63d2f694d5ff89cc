"""What a capture leaves behind: a table, nothing, a path, or a view."""

from pathlib import Path

import pytest
from tests.integration.tables import SOME_KINDS, Source, canonical

from calve.capture import CaptureLimits, Mode, OnGap, Operation
from calve.errors import RequestInvalid

pytestmark = pytest.mark.spark

VERSIONS = ["v1", "v2 merge-on-read", "v3 merge-on-read"]
APPENDS = frozenset({Operation.APPEND})


def _create(source: Source, kind: str) -> None:
    source.create("id BIGINT, `odd name` STRING", kind)
    source.run("INSERT INTO {t} VALUES (1, 'a'), (2, 'b')")


def _tables(source: Source) -> set[str]:
    """Return the tables that were made for captures of the source."""
    names = source.lake.catalog("lake").tables(("icdc",))
    return {name for name in names if name.startswith(f"icdc.{source.name.split('.')[1]}_")}


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_range_makes_nothing(source: Source, kind: str) -> None:
    """Counts and ranges, a checkpoint to commit, and no table."""
    _create(source, kind)
    source.advance(mode=Mode.RANGE)
    source.run("INSERT INTO {t} VALUES (7, 'c')")
    found = source.capture(mode=Mode.RANGE, ranges=("id", "odd name"))
    table = found.tables[0]
    assert (table.icdc_table, table.relation, table.records) == (None, None, 1)
    assert (found.ranges["id"]["lower"], found.ranges["odd name"]["upper"]) == (7, "c")
    assert _tables(source) == set()
    source.commit(found)
    assert not source.plan().changed


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_path_is_read_without_a_catalog(source: Source, kind: str) -> None:
    """Spark and PyIceberg read the metadata file; no catalog knows of it."""
    from pyiceberg.table import StaticTable

    _create(source, kind)
    source.advance(mode=Mode.PATH)
    source.run("INSERT INTO {t} VALUES (7, 'c'), (8, 'd')")
    report = source.capture(mode=Mode.PATH, operations=APPENDS)
    path = report.tables[0].icdc_table
    assert path == report.tables[0].metadata_location
    assert path is not None
    assert Path(path).exists()
    assert _tables(source) == set()
    by_spark = source.spark.read.format("iceberg").load(path).collect()
    assert sorted(canonical(row) for row in by_spark) == [(7, "c"), (8, "d")]
    by_pyiceberg = StaticTable.from_metadata(path).scan().to_arrow().to_pylist()
    assert sorted(tuple(row.values()) for row in by_pyiceberg) == [(7, "c"), (8, "d")]
    source.commit(report)


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_a_path_tells_how_to_read_changes(source: Source, kind: str) -> None:
    """Where the files hold more than the change, the predicate is told; the rows that left have a path too."""
    _create(source, kind)
    source.advance()
    source.run("UPDATE {t} SET `odd name` = 'changed' WHERE id = 1", "DELETE FROM {t} WHERE id = 2")
    table = source.capture(mode=Mode.PATH).tables[0]
    assert table.icdc_table is not None
    assert table.deletes_table is not None
    came, left = (source.spark.read.format("iceberg").load(path) for path in (table.icdc_table, table.deletes_table))
    match table.exactness:
        case "exact-with-filter":
            came = came.where(str(table.filter))
        case "except-all":
            came, left = came.exceptAll(left), left.exceptAll(came)
    assert sorted(canonical(row) for row in came.collect()) == [(1, "changed")]
    assert sorted(canonical(row) for row in left.collect()) == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_view_shows_appends_and_references_no_file(source: Source, kind: str) -> None:
    """First everything, then what was appended, compacted or not, then nothing."""
    _create(source, kind)
    source.check(source.advance(mode=Mode.VIEW))
    source.run("INSERT INTO {t} VALUES (7, 'c'), (8, 'd')")
    source.compact()
    source.run("INSERT INTO {t} VALUES (9, 'e')", "ALTER TABLE {t} RENAME COLUMN `odd name` TO w")
    report = source.capture(mode=Mode.VIEW)
    source.check(report.tables[0])
    assert report.tables[0].metadata_location is None or Path(report.tables[0].metadata_location).exists()
    assert source.captures.files(str(report.capture_id)) == {}
    source.commit(report)
    nothing = source.advance(mode=Mode.VIEW)
    assert (nothing.changed, source.rows(nothing.relation)) == (False, {})


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_view_refuses_what_it_would_show_wrongly(source: Source, kind: str) -> None:
    """Updates, deletes and parts of a snapshot are beyond it; nothing is recorded then."""
    _create(source, kind)
    source.advance()
    source.run("INSERT INTO {t} SELECT id, 'x' FROM range(10, 14, 1, 2)")
    with pytest.raises(RequestInvalid, match="append"):
        source.capture(mode=Mode.VIEW, limits=CaptureLimits(max_files=1))
    source.run("UPDATE {t} SET `odd name` = 'changed' WHERE id = 1")
    with pytest.raises(RequestInvalid, match="append"):
        source.capture(mode=Mode.VIEW)
    source.check(source.advance())


def test_a_view_over_a_gap_shows_everything(source: Source) -> None:
    """Asked for everything where history is gone, a view does not name a snapshot that is gone too."""
    _create(source, "v2 merge-on-read")
    source.advance()
    source.run("INSERT INTO {t} VALUES (7, 'c')", "INSERT INTO {t} VALUES (8, 'd')")
    source.expire()
    found = source.capture(mode=Mode.VIEW, on_gap=OnGap.FULL)
    assert source.rows(found.tables[0].relation) == source.at(source.head)
