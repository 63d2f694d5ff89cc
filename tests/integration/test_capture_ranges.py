"""Ranges of changed values, against what Spark finds in the rows themselves."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.integration.tables import SOME_KINDS, Source

from calve.capture import CaptureReport, TableReport, Wanted
from calve.errors import RangeColumnMissing

pytestmark = pytest.mark.spark

VERSIONS = ["v1", "v2 merge-on-read", "v3 merge-on-read"]
_TYPES = {
    "i": "INT",
    "l": "BIGINT",
    "f": "FLOAT",
    "d": "DOUBLE",
    "dec": "DECIMAL(9, 2)",
    "big": "DECIMAL(30, 3)",
    "s": "STRING",
    "long": "STRING",
    "b": "BINARY",
    "day": "DATE",
    "ts": "TIMESTAMP",
    "ntz": "TIMESTAMP_NTZ",
    "ok": "BOOLEAN",
}
_VALUES = {
    "i": "CAST({n} * 10 - 15 AS INT)",
    "l": "{n} * 5000000000 - 7000000000",
    "f": "CAST({n} / 3 - 1 AS FLOAT)",
    "d": "CASE WHEN {n} = 1 THEN CAST('NaN' AS DOUBLE) ELSE {n} / 7 - 1 END",
    "dec": "CAST({n} * 1.25 - 2 AS DECIMAL(9, 2))",
    "big": "CAST({n} * 123456789012345678901.125 - 5 AS DECIMAL(30, 3))",
    "s": "concat('s', {n})",
    "long": "concat('a long string that is cut ', {n}, ' and more')",
    "b": "CAST(concat('b', {n}) AS BINARY)",
    "day": "DATE '1969-12-30' + CAST({n} AS INT)",
    "ts": "TIMESTAMP '1969-12-31 23:59:59.5Z' + make_dt_interval({n}, 0, 0, 0.25)",
    "ntz": "TIMESTAMP_NTZ '2026-02-03 04:05:06.789'",
    "ok": "{n} % 2 = 0",
}
_CUT = {"long"}


def _create(source: Source, kind: str, **properties: str) -> None:
    columns = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items())
    source.create(f"{columns}, point STRUCT<x: INT, deep: STRUCT<y: STRING>>, list ARRAY<INT>", kind, **properties)


def _append(source: Source, first: int, last: int) -> None:
    values = ", ".join(value.replace("{n}", "id") for value in _VALUES.values())
    nested = "named_struct('x', CAST(id AS INT), 'deep', named_struct('y', concat('y', id))), array(1)"
    source.run(f"INSERT INTO {{t}} SELECT {values}, {nested} FROM range({first}, {last}, 1, 2)")


def _outside(source: Source, relation: str, column: str, kind: str, told: dict[str, Any]) -> int:
    """Return how many rows break a range's promise, by Spark's own comparison with its literals."""

    def literal(bound: Any) -> str:
        return f"unhex('{bound}')" if kind == "BINARY" else f"CAST('{bound}' AS {kind})"

    value = ".".join(f"`{part}`" for part in column.split("."))
    is_nan = f"isnan({value})" if kind in {"FLOAT", "DOUBLE"} else "false"
    wrong = [f"{value} IS NULL"] if not told["has_nulls"] else []
    wrong += [is_nan] if not told["has_nans"] else []
    wrong += [f"(NOT {is_nan} AND {value} < {literal(told['lower'])})"] if told["lower"] is not None else []
    wrong += [f"(NOT {is_nan} AND {value} > {literal(told['upper'])})"] if told["upper"] is not None else []
    wrong += [f"({value} IS NOT NULL AND NOT {is_nan})"] if told["empty"] else []
    return sum(source.rows(f"{relation} WHERE {' OR '.join(wrong) or 'false'}").values())


def _check(source: Source, table: TableReport) -> None:
    """Check the promise of every range, for the rows that came and those that left."""
    kinds = _TYPES | {"point.x": "INT", "point.deep.y": "STRING"}
    for relation in (table.relation, table.deletes_relation):
        for column, told in table.ranges.items() if relation else ():
            assert _outside(source, str(relation), column, kinds[column], told) == 0, (column, told)


@pytest.mark.parametrize("kind", VERSIONS)
def test_every_type_has_a_range(source: Source, kind: str) -> None:
    """Exact for what was appended; strings longer than writers keep are widened, and say so."""
    _create(source, kind)
    columns = (*_TYPES, "point.x", "point.deep.y")
    _append(source, 0, 3)
    source.advance()
    _append(source, 3, 7)
    found = source.advance(ranges=columns)
    _check(source, found)
    (least, most) = (
        source.run(f"SELECT {', '.join(f'{do}({name})' for name in columns)} FROM {found.relation}")[0]
        for do in ("min", "max")
    )
    for name, low, high in zip(columns, least, most, strict=True):
        told = found.ranges[name]
        assert told["exact"] is (name not in _CUT), name
        assert not any(told[flag] for flag in ("has_nulls", "has_nans", "empty")), name
        if name in {"i", "l", "f", "s", "ok", "point.x", "point.deep.y"}:
            assert (told["lower"], told["upper"]) == (low, high), name
        elif name in {"dec", "big", "day"}:
            assert (told["lower"], told["upper"]) == (str(low), str(high)), name
    assert found.ranges["ntz"]["lower"] == "2026-02-03 04:05:06.789000"
    assert found.ranges["ts"]["lower"].endswith("+00:00")

    # nulls, NaNs, and files of nothing else
    source.run(
        "INSERT INTO {t} (i, d, s) VALUES (NULL, CAST('NaN' AS DOUBLE), NULL)",
        "INSERT INTO {t} (i, d, f) VALUES (5, 2, CAST('NaN' AS FLOAT))",
    )
    found = source.advance(ranges=columns)
    _check(source, found)
    told = found.ranges
    assert (told["i"]["lower"], told["i"]["upper"], told["i"]["has_nulls"]) == (5, 5, True)
    assert (told["d"]["lower"], told["d"]["has_nans"], told["d"]["empty"]) == (2.0, True, False)
    assert (told["s"]["empty"], told["s"]["lower"], told["s"]["has_nulls"]) == (True, None, True)
    assert (told["f"]["empty"], told["f"]["has_nans"], told["f"]["has_nulls"]) == (True, True, True)
    assert told["point.x"]["empty"]


@pytest.mark.parametrize("kind", SOME_KINDS)
def test_old_images_widen_a_range(source: Source, kind: str) -> None:
    """A row that moves to another day is a change on both days, and so is one that is deleted."""
    source.create("id INT, day DATE, v STRING", kind, "day")
    source.run("INSERT INTO {t} SELECT CAST(id AS INT), DATE '2026-01-01' + CAST(id AS INT), 'v' FROM range(0, 20)")
    source.advance()
    source.run("UPDATE {t} SET day = DATE '2026-01-10' WHERE id = 3", "DELETE FROM {t} WHERE id = 15")
    found = source.advance(ranges=("day", "id"))
    source.check(found)
    told = found.ranges["day"]
    assert (told["lower"], told["upper"], told["exact"]) == ("2026-01-04", "2026-01-16", False)
    assert (found.ranges["id"]["lower"], found.ranges["id"]["upper"]) == (3, 15)
    days = [part["values"]["day"] for part in found.partitions]
    assert days == ["2026-01-04", "2026-01-10", "2026-01-16"]


@pytest.mark.parametrize("kind", VERSIONS)
def test_without_statistics_a_range_is_unbounded(source: Source, kind: str) -> None:
    """One file without bounds makes no promise possible; a column beyond the limit has none."""
    source.create("i INT, s STRING, beyond INT", kind, write__metadata__metrics__max_inferred_column_defaults="2")
    source.run("INSERT INTO {t} VALUES (1, 'a', 1)")
    source.advance()
    source.run("INSERT INTO {t} VALUES (2, 'b', 2)")
    source.run("ALTER TABLE {t} SET TBLPROPERTIES ('write.metadata.metrics.column.i' = 'counts')")
    source.run("INSERT INTO {t} VALUES (3, 'c', 3)")
    told = source.advance(ranges=("i", "s", "beyond")).ranges
    for column in ("i", "beyond"):
        assert (told[column]["lower"], told[column]["upper"]) == (None, None)
        assert not any(told[column][flag] for flag in ("exact", "empty"))
    assert (told["s"]["lower"], told["s"]["upper"], told["s"]["exact"]) == ("b", "c", True)


@pytest.mark.parametrize("kind", VERSIONS)
def test_a_column_added_later_is_null_before(source: Source, kind: str) -> None:
    """Files from before the column hold nulls, in merged manifests too, and promoted bounds compare."""
    source.create("id INT", kind)
    source.run("INSERT INTO {t} VALUES (1)")
    source.run("ALTER TABLE {t} ADD COLUMN n INT", "ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT")
    source.run("INSERT INTO {t} VALUES (5000000000, 7)")
    told = source.advance(ranges=("n", "ID")).ranges
    assert (told["n"]["lower"], told["n"]["upper"], told["n"]["has_nulls"]) == (7, 7, True)
    assert (told["ID"]["lower"], told["ID"]["upper"]) == (1, 5000000000)
    source.call("rewrite_manifests")
    merged = source.between(source.snapshots[0], ranges=("n",)).ranges["n"]
    assert merged["has_nulls"] or (merged["lower"], merged["upper"]) == (7, 7)


_PARTITIONED_BY = {
    "flag": ("BOOLEAN", "id % 2 = 0"),
    "small": ("INT", "CAST(-id AS INT)"),
    "exact": ("DECIMAL(9, 2)", "CAST(id * 1.25 - 2 AS DECIMAL(9, 2))"),
    "ratio": ("DOUBLE", "16777217 + id / 3"),
    "raw": ("BINARY", "CAST(concat('b', id) AS BINARY)"),
    "name": ("STRING", "CASE WHEN id = 1 THEN NULL WHEN id = 2 THEN '' ELSE concat('ü=/', id) END"),
    "day": ("DATE", "DATE '1969-12-30' + CAST(id AS INT)"),
    "at": ("TIMESTAMP_NTZ", "TIMESTAMP_NTZ '1969-12-31 22:00:00.5' + make_dt_interval(0, CAST(id AS INT))"),
}


@pytest.mark.parametrize("kind", VERSIONS)
def test_partitions_are_those_that_spark_lists(source: Source, kind: str) -> None:
    """Identity of every type, and every transform, of the partitions that a change touches."""
    columns = ", ".join(f"{name} {told[0]}" for name, told in _PARTITIONED_BY.items())
    source.create(f"id BIGINT, {columns}, moved TIMESTAMP_NTZ", kind, ", ".join(_PARTITIONED_BY))
    values = ", ".join(told[1] for told in _PARTITIONED_BY.values())
    row = f"SELECT id, {values}, TIMESTAMP_NTZ '1969-12-31 22:00:00' + make_dt_interval(0, CAST(id AS INT))"
    source.run(f"INSERT INTO {{t}} {row} FROM range(0, 1)")
    source.advance()
    source.run(f"INSERT INTO {{t}} {row} FROM range(1, 5)")
    found = source.capture()
    json.dumps(found.as_json(), allow_nan=False)
    told = [part["values"] for part in found.tables[0].partitions]
    rows = source.run(f"SELECT {', '.join(_PARTITIONED_BY)} FROM {{t}} WHERE id > 0")
    assert sorted(map(str, told)) == sorted(
        str({name: _spelled(value) for name, value in row.asDict().items()}) for row in rows
    )
    source.commit(found)
    names = ["truncate(2, name)", "truncate(10, small)", "bucket(4, id)", "hours(moved)"]
    source.run(*(f"ALTER TABLE {{t}} DROP PARTITION FIELD {name}" for name in _PARTITIONED_BY))
    source.run(*(f"ALTER TABLE {{t}} ADD PARTITION FIELD {name}" for name in names))
    source.run(f"INSERT INTO {{t}} {row} FROM range(5, 9)")
    told = [part["values"] for part in source.advance().partitions]
    expected = source.run(
        "SELECT partition.name_trunc_2, partition.small_trunc_10, partition.id_bucket_4, partition.moved_hour "
        "FROM {t}.partitions WHERE partition.id_bucket_4 IS NOT NULL"
    )
    shown = [(*tuple(row)[:3], _hour(row[3])) for row in expected]
    assert sorted(tuple(part.values()) for part in told) == sorted(shown)


def _spelled(value: Any) -> Any:
    """Return a value of Spark's as capture spells it."""
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _hour(hours: int) -> str:
    return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hours):%Y-%m-%d-%H}"


def test_tables_share_a_range_and_a_missing_column_is_named(source: Source) -> None:
    """The union over the tables, and an error that lists what there is."""
    source.create("id INT, at DATE, list ARRAY<INT>", "v2 merge-on-read")
    source.run("INSERT INTO {t} VALUES (1, DATE '2026-01-01', array(1))")
    other = Source(source.spark, source.captures, source.lake, f"{source.name}_2")
    other.create("id BIGINT, at DATE", "v3 merge-on-read")
    other.run("INSERT INTO {t} VALUES (9, NULL)")
    report: CaptureReport = source.captures.plan([source.name, other.name], "both", Wanted(ranges=("id", "at")))
    assert (report.ranges["id"]["lower"], report.ranges["id"]["upper"]) == (1, 9)
    assert (report.ranges["at"]["lower"], report.ranges["at"]["has_nulls"]) == ("2026-01-01", True)
    for missing in ("nothing", "list", "list.element"):
        with pytest.raises(RangeColumnMissing, match=missing):
            source.plan(ranges=(missing,))
