"""The SQL that reads exactly the rows that changed."""

from typing import Any

import pytest
from tests.unit.capture.tables import NAME

from calve.capture import relations
from calve.errors import ChangeUnsupported


def _schema(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"fields": [{"id": n, "name": name, "type": kind} for n, (name, kind) in enumerate(fields)]}


MAP = {"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "int"}
PLAIN = _schema(("id", "long"), ("odd `name`", "string"))


def test_names_are_quoted() -> None:
    """Whatever a column is called."""
    assert relations.columns(PLAIN) == "`id`, `odd ``name```"


def test_a_difference_is_taken_as_often_as_rows_are_too_many() -> None:
    """All columns, from every table that holds rows to take away."""
    sql = relations.difference(PLAIN, "icdc.u", ["icdc.d", "icdc.c"], NAME)
    names = "`id`, `odd ``name```"
    assert sql == (
        f"(SELECT {names} FROM (SELECT {names} FROM icdc.u EXCEPT ALL "
        f"(SELECT {names} FROM icdc.d UNION ALL SELECT {names} FROM icdc.c)))"
    )


def test_maps_are_compared_as_sorted_entries() -> None:
    """Spark compares no maps; the order of a map's entries is no difference."""
    sql = relations.difference(_schema(("m", MAP)), "u", ["d"], NAME)
    assert "map_from_entries(`m`) AS `m`" in sql
    assert sql.count("array_sort(map_entries(`m`)) AS `m`") == 2


@pytest.mark.parametrize(
    "kind",
    [
        "variant",
        "geometry(srid:4326)",
        {"type": "struct", "fields": [{"id": 5, "name": "v", "type": "variant"}]},
        {"type": "list", "element-id": 5, "element": "geography(srid:4326)"},
        {**MAP, "value": "variant"},
    ],
)
def test_what_cannot_be_compared_is_refused(kind: Any) -> None:
    """By the name of the column, and with the way out."""
    with pytest.raises(ChangeUnsupported, match="deep") as told:
        relations.difference(_schema(("id", "long"), ("deep", kind)), "u", ["d"], NAME)
    assert told.value.context["column"] == "deep"
    assert "merge-on-read" in told.value.remedy
    assert "Upgrade the table to format v3" in told.value.remedy


@pytest.mark.parametrize(
    ("kind", "there", "back"),
    [
        (
            {
                "type": "struct",
                "fields": [{"id": 5, "name": "a `b`", "type": MAP}, {"id": 6, "name": "n", "type": "int"}],
            },
            "IF(`c` IS NULL, NULL, struct(array_sort(map_entries(`c`.`a ``b```)) AS `a ``b```, `c`.`n` AS `n`))",
            "IF(`c` IS NULL, NULL, struct(map_from_entries(`c`.`a ``b```) AS `a ``b```, `c`.`n` AS `n`))",
        ),
        (
            {"type": "list", "element-id": 5, "element": MAP},
            "transform(`c`, e0 -> array_sort(map_entries(e0)))",
            "transform(`c`, e0 -> map_from_entries(e0))",
        ),
        (
            {
                "type": "list",
                "element-id": 5,
                "element": {"type": "struct", "fields": [{"id": 6, "name": "m", "type": MAP}]},
            },
            "transform(`c`, e0 -> IF(e0 IS NULL, NULL, struct(array_sort(map_entries(e0.`m`)) AS `m`)))",
            "transform(`c`, e0 -> IF(e0 IS NULL, NULL, struct(map_from_entries(e0.`m`) AS `m`)))",
        ),
        (
            {**MAP, "value": MAP},
            "array_sort(transform(map_entries(`c`), e0 -> struct(e0.key, array_sort(map_entries(e0.value)) AS value)))",
            "map_from_entries(transform(`c`, e0 -> struct(e0.key, map_from_entries(e0.value) AS value)))",
        ),
    ],
)
def test_maps_inside_other_values_are_compared_as_entries_too(kind: Any, there: str, back: str) -> None:
    """At any depth; what is null stays null."""
    sql = relations.difference(_schema(("c", kind)), "u", ["d"], NAME)
    assert f"(SELECT {back} AS `c` FROM (SELECT {there} AS `c` FROM u EXCEPT ALL" in sql


def test_lists_and_structs_are_compared_as_they_are() -> None:
    """Spark can, as long as no map is inside."""
    kind = {"type": "struct", "fields": [{"id": 5, "name": "l", "type": {"type": "list", "element": "int"}}]}
    assert "map_entries" not in relations.difference(_schema(("s", kind)), "u", ["d"], NAME)


def test_rows_that_left_are_those_no_file_carries() -> None:
    """By row id, among rows that were not changed."""
    sql = relations.left_by_row_id(PLAIN, "d", ["u", "c"], 7)
    assert sql.count("_last_updated_sequence_number <= 7") == 2
    assert "LEFT ANTI JOIN" in sql
    assert relations.filtered("u", relations.changed_since(7)) == (
        "(SELECT * FROM u WHERE _last_updated_sequence_number > 7)"
    )


def test_keys_match_nulls_too() -> None:
    """Iceberg deletes a null by a null key."""
    sql = relations.left_by_keys(PLAIN, "(start)", "d", {"keys": ["id"], "more": ["id", "odd `name`"]})
    assert sql.count("t.`id` <=> k.`id`") == 4
    assert "FROM (start) t WHERE EXISTS" in sql
    assert "FROM d t WHERE NOT (EXISTS" in sql
