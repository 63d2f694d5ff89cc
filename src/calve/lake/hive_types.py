"""The columns of Iceberg tables, as Hive and Glue list them. Pure.

Only other programs read the list: Iceberg's own readers take the schema from the metadata.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_SAME = frozenset({"boolean", "int", "float", "double", "date", "string", "binary"})
_NAMES = {"long": "bigint", "time": "string", "uuid": "string", "timestamp": "timestamp"}
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


def columns(metadata: Mapping[str, Any], zoned: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield the columns of the current schema with their types; ``zoned`` is the type of times with a zone."""
    current = metadata.get("current-schema-id", 0)
    schemas = metadata.get("schemas") or [metadata["schema"]]
    schema = next(each for each in schemas if each.get("schema-id", 0) == current)
    for field in schema["fields"]:
        yield field, type_of(field["type"], zoned)


def type_of(kind: Any, zoned: str) -> str:
    """Return Hive's name of an Iceberg type; ``string`` for those that Hive does not know."""
    if isinstance(kind, str):
        return _primitive(kind, zoned)
    match kind["type"]:
        case "struct":
            fields = (f"{field['name']}:{type_of(field['type'], zoned)}" for field in kind["fields"])
            return f"struct<{','.join(fields)}>"
        case "list":
            return f"array<{type_of(kind['element'], zoned)}>"
        case "map":
            return f"map<{type_of(kind['key'], zoned)},{type_of(kind['value'], zoned)}>"
        case _:
            return "string"


def _primitive(kind: str, zoned: str) -> str:
    if kind in _SAME:
        return kind
    if match := _DECIMAL.fullmatch(kind):
        return f"decimal({match[1]},{match[2]})"
    if kind == "timestamptz":
        return zoned
    return "binary" if kind.startswith("fixed") else _NAMES.get(kind, "string")
