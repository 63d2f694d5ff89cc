"""Position-delete files: read in each format, and not believed."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from tests.fuzz.lake_tables import position_deletes as written

from calve.capture import position_deletes
from calve.errors import LakeCorrupt

ROWS = [("a", 1), ("b", 2**40), ("a", 0), ("a", 70_000), ("b", 3)]
LIMIT = 1 << 20
FORMATS = ["PARQUET", "ORC", "AVRO"]


@pytest.mark.parametrize("form", FORMATS)
def test_positions_are_read_by_file(form: str) -> None:
    """Whatever the format, and the order of the rows."""
    found = position_deletes.read(written(ROWS, form), form.lower(), len(ROWS), LIMIT)
    assert {path: list(positions) for path, positions in found.items()} == {"a": [0, 1, 70_000], "b": [3, 2**40]}


@pytest.mark.parametrize("options", [{"compression": "zstd"}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_all_kinds_of_pages_are_measured(options: dict[str, Any]) -> None:
    """Many rows, in many pages, in several row groups."""
    rows = [("a" * 100, number * 3) for number in range(100_000)]
    raw = written(rows, "PARQUET", row_group_size=40_000, data_page_size=1_000, **options)
    (positions,) = position_deletes.read(raw, "PARQUET", len(rows), 64 * LIMIT).values()
    assert (len(positions), positions.max()) == (100_000, 299_997)


def test_what_is_unpacked_is_limited() -> None:
    """A page that says that it is large is not unpacked, nor are rows that cost nothing to write."""
    raw = written([("a" * 1000, 1)] * 100_000, "PARQUET", use_dictionary=False, compression="zstd")
    assert len(raw) < 200_000
    with pytest.raises(LakeCorrupt, match="its pages have more than 4194304 bytes") as error:
        position_deletes.read(raw, "PARQUET", 100_000, LIMIT)
    assert "lake.max_metadata_bytes" in error.value.remedy
    many = written([("a", 1)] * 500_000, "PARQUET", compression="zstd")
    with pytest.raises(LakeCorrupt, match="it has 500000 rows"):
        position_deletes.read(many, "PARQUET", 500_000, LIMIT)


def test_a_long_path_is_not_written_out_for_every_row() -> None:
    """A dictionary of one megabyte and two hundred thousand rows that name it are two megabytes, and not 200 GB."""
    import pyarrow as pa
    from pyarrow import parquet

    paths = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), pa.array(["a" * (1 << 20)]))
    out = io.BytesIO()
    parquet.write_table(pa.table({"file_path": paths, "pos": pa.array(range(200_000), pa.int64())}), out)
    (positions,) = position_deletes.read(out.getvalue(), "PARQUET", 200_000, 8 * LIMIT).values()
    assert len(positions) == 200_000


@pytest.mark.parametrize("form", FORMATS)
def test_rows_that_the_manifest_does_not_know_are_refused(form: str) -> None:
    """A file that lost or won rows is another file."""
    with pytest.raises(LakeCorrupt, match="it has 5 rows, and its manifest says 4"):
        position_deletes.read(written(ROWS, form), form, 4, LIMIT)


@pytest.mark.parametrize("form", FORMATS)
def test_positions_below_zero_are_refused(form: str) -> None:
    """There is no such row."""
    with pytest.raises(LakeCorrupt):
        position_deletes.read(written([("a", -1)], form), form, 1, LIMIT)


CUTS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "half": lambda raw: raw[: len(raw) // 2],
    "twice": lambda raw: raw[:-1],
    "other bytes": lambda raw: raw[:20] + bytes(20) + raw[40:-20] + bytes(20),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("cut", CUTS)
def test_damaged_files_are_refused(form: str, cut: str) -> None:
    """By an error of calve's, whichever library reads them."""
    with pytest.raises(LakeCorrupt):
        position_deletes.read(CUTS[cut](written(ROWS, form)), form, len(ROWS), LIMIT)


def test_other_columns_are_refused() -> None:
    """Names and types are those of position deletes, and nothing is null."""
    import pyarrow as pa
    from pyarrow import parquet

    columns: list[dict[str, Any]] = [
        {"path": ["a"], "pos": [1]},
        {"file_path": [1], "pos": ["a"]},
        {"file_path": ["a"], "pos": [None]},
        {"file_path": ["a"], "pos": [1.5]},
    ]
    for each in columns:
        out = io.BytesIO()
        parquet.write_table(pa.table(each), out)
        with pytest.raises(LakeCorrupt):
            position_deletes.read(out.getvalue(), "PARQUET", 1, LIMIT)


def test_an_unknown_format_is_named() -> None:
    """Iceberg has three."""
    with pytest.raises(LakeCorrupt, match="CSV"):
        position_deletes.read(b"", "csv", 0, LIMIT)
