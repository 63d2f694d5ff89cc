"""Spark SQL for exactly the rows that changed: what goes after FROM or USING. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from calve.errors import ChangeUnsupported
from calve.lake import TableName, quoted

LINEAGE = "_last_updated_sequence_number"


def columns(schema: Mapping[str, Any]) -> str:
    """Return the columns of a schema, quoted."""
    return ", ".join(quoted(field["name"]) for field in schema["fields"])


def changed_since(sequence_number: int) -> str:
    """Return the predicate for rows that came or changed after a sequence number."""
    return f"{LINEAGE} > {sequence_number}"


def filtered(table: str, predicate: str) -> str:
    """Return the rows of a table for which a predicate holds."""
    return f"(SELECT * FROM {table} WHERE {predicate})"


def difference(schema: Mapping[str, Any], minuend: str, subtrahends: Sequence[str], source: TableName) -> str:
    """Return the rows of one table that are not in others, each as often as it is too many."""
    comparable, restored = _comparable(schema, source)
    others = " UNION ALL ".join(f"SELECT {comparable} FROM {table}" for table in subtrahends)
    return f"(SELECT {restored} FROM (SELECT {comparable} FROM {minuend} EXCEPT ALL ({others})))"


def left_by_row_id(schema: Mapping[str, Any], removed: str, carried: Sequence[str], sequence_number: int) -> str:
    """Return the removed rows that no file of ``carried`` holds unchanged."""
    held = " UNION ALL ".join(
        f"SELECT _row_id AS calve_held FROM {table} WHERE {LINEAGE} <= {sequence_number}" for table in carried
    )
    return (
        f"(SELECT {columns(schema)} FROM (SELECT *, _row_id AS calve_row FROM {removed}) "
        f"LEFT ANTI JOIN ({held}) ON calve_row = calve_held)"
    )


def left_by_keys(schema: Mapping[str, Any], start: str, removed: str | None, keys: Mapping[str, Sequence[str]]) -> str:
    """Return the rows of the start that match a key of any table of keys, and the other removed rows."""
    names = columns(schema)

    def equal(named: Sequence[str]) -> str:
        return " AND ".join(f"t.{quoted(name)} <=> k.{quoted(name)}" for name in named)

    matches = " OR ".join(f"EXISTS (SELECT 1 FROM {table} k WHERE {equal(named)})" for table, named in keys.items())
    parts = [f"SELECT {names} FROM {start} t WHERE {matches}"]
    if removed is not None:
        parts.append(f"SELECT {names} FROM {removed} t WHERE NOT ({matches})")
    return f"({' UNION ALL '.join(parts)})"


def _comparable(schema: Mapping[str, Any], source: TableName) -> tuple[str, str]:
    """Return the columns in a form that sets can compare, and back: Spark cannot compare maps, so they turn arrays."""
    there, back = [], []
    for field in schema["fields"]:
        name, kind = quoted(field["name"]), field["type"]
        if (
            isinstance(kind, dict)
            and kind["type"] == "map"
            and not _has_map(kind["key"])
            and not _has_map(kind["value"])
        ):
            there.append(f"array_sort(map_entries({name})) AS {name}")
            back.append(f"map_from_entries({name}) AS {name}")
        elif _has_map(kind):
            raise ChangeUnsupported(
                f"{source}: {field['name']} holds a map or a variant inside another value, and rows with it cannot be "
                "compared, which an exact change needs here.",
                remedy="Write the table merge-on-read, or upgrade it to format v3.",
                table=str(source),
                column=field["name"],
            )
        else:
            there.append(name)
            back.append(name)
    return ", ".join(there), ", ".join(back)


def _has_map(kind: Any) -> bool:
    if isinstance(kind, str):
        return kind.startswith(("variant", "geometry", "geography"))
    match kind["type"]:
        case "map":
            return True
        case "list":
            return _has_map(kind["element"])
        case _:
            return any(_has_map(field["type"]) for field in kind["fields"])
