"""How Hive and Glue name the types of Iceberg's columns."""

import pytest

from calve.lake.hive_types import columns, type_of

_STRUCT = {
    "type": "struct",
    "fields": [{"id": 3, "name": "a", "type": "long"}, {"id": 4, "name": "b", "type": "decimal(9, 2)"}],
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((same, same) for same in ("boolean", "int", "float", "double", "date", "string", "binary", "timestamp")),
        ("long", "bigint"),
        ("timestamptz", "zoned"),
        ("fixed[16]", "binary"),
        *((other, "string") for other in ("uuid", "time", "variant", "timestamptz_ns", "geometry(srid:1)", "new")),
        (_STRUCT, "struct<a:bigint,b:decimal(9,2)>"),
        ({"type": "list", "element": _STRUCT}, "array<struct<a:bigint,b:decimal(9,2)>>"),
        ({"type": "map", "key": "uuid", "value": "timestamptz"}, "map<string,zoned>"),
        ({"type": "of the future"}, "string"),
    ],
)
def test_each_type_has_a_name(kind: object, name: str) -> None:
    """Those that Hive does not know are strings, which no reader of Iceberg looks at."""
    assert type_of(kind, "zoned") == name


def test_the_columns_are_those_of_the_current_schema() -> None:
    """Of old metadata, which has only one, too."""
    old = {"schema": {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int"}]}}
    assert [kind for _, kind in columns(old, "zoned")] == ["int"]
    new = {"schema-id": 7, "type": "struct", "fields": [{"id": 1, "name": "a", "type": "long"}]}
    several = {"schemas": [old["schema"] | {"schema-id": 0}, new], "current-schema-id": 7}
    assert [kind for _, kind in columns(several, "zoned")] == ["bigint"]
