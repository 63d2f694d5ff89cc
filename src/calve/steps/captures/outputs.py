"""The outputs of capture steps: from a capture's report, with ranges as predicates of Spark SQL. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from calve.capture import CaptureReport, Mode, TableReport, filtered
from calve.texts import quoted

Range = Mapping[str, Any]
"""A range as a capture reports it."""
NOTHING = -1
"""Stands for no snapshot, and for an unknown number."""
_COUNTS = ("files", "records", "bytes")
_TEXTS = ("source_table", "icdc_table", "filter", "deletes_table", "exactness")
_SNAPSHOTS = ("from_snapshot_id", "to_snapshot_id")


def outputs_of(report: CaptureReport, aliases: Sequence[str], *, is_mapped: bool) -> dict[str, Any]:
    """Return the outputs of a capture step.

    Args:
        report: the capture.
        aliases: the aliases of its tables, in the report's order.
        is_mapped: whether each table has a map of outputs; a single table has outputs on the step itself too.
    """
    found = {"capture_id": report.capture_id or "", **_of_all(report.tables), **_of_ranges(report.ranges)}
    told = [_of_table(table, Mode(report.mode)) for table in report.tables]
    return found | (told[0] if len(told) == 1 else {}) | (dict(zip(aliases, told, strict=True)) if is_mapped else {})


def _of_all(tables: Sequence[TableReport]) -> dict[str, Any]:
    counts = {name: sum(getattr(table, name) for table in tables) for name in _COUNTS}
    deleted = [table.deleted_records for table in tables]
    return {
        "changed": any(table.changed for table in tables),
        "pending": any(table.pending for table in tables),
        **counts,
        "rows": counts["records"],
        "deleted_records": NOTHING if None in deleted else sum(number or 0 for number in deleted),
    }


def _of_table(table: TableReport, mode: Mode) -> dict[str, Any]:
    return {
        **_of_all([table]),
        **_relations(table, mode),
        **_of_ranges(table.ranges),
        **{name: getattr(table, name) or "" for name in _TEXTS},
        **{name: _number(getattr(table, name)) for name in _SNAPSHOTS},
    }


def _relations(table: TableReport, mode: Mode) -> dict[str, str]:
    """Return the relations to write after FROM; without new or deleted rows, a relation is valid but empty.

    If only the keys of the deleted rows are known, or nothing, the output ``deletes_relation`` is missing, so that a
    step that refers to it fails instead of processing wrong rows.
    """
    if mode is Mode.RANGE:
        return {"relation": "", "deletes_relation": ""}
    nothing = filtered(table.source_table, "false")
    is_unknown = table.deletes_relation is None and (bool(table.delete_keys) or table.deleted_records is None)
    gone = {} if is_unknown else {"deletes_relation": table.deletes_relation or nothing}
    return {"relation": table.relation or nothing, **gone}


def _of_ranges(ranges: Mapping[str, Range]) -> dict[str, str]:
    ends = {
        f"{column.replace('.', '_')}_{side}": _shown(found[side])
        for column, found in ranges.items()
        for side in ("lower", "upper")
    }
    return {"range_predicate": predicate(ranges), **ends}


def _number(value: int | None) -> int:
    return NOTHING if value is None else value


def _shown(value: Any) -> str:
    """Return a bound of a range as text; empty if it is open."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case _:
            return str(value)


_TYPED = {"date": "DATE", "timestamp": "TIMESTAMP_NTZ", "timestamptz": "TIMESTAMP"}


def predicate(ranges: Mapping[str, Range]) -> str:
    """Return a predicate that holds for every changed row; ``true`` if nothing is known about any column."""
    parts = [part for column, found in ranges.items() if (part := _of_column(column, found)) != "true"]
    return " AND ".join(f"({part})" if " OR " in part else part for part in parts) or "true"


def _of_column(column: str, found: Range) -> str:
    name = quoted(*column.split("."))
    within = "" if found["empty"] else _within(name, found)
    if within == "true":
        return within
    parts = [within] if within else []
    if found["has_nulls"]:
        parts.append(f"{name} IS NULL")
    if found["has_nans"]:
        parts.append(f"isnan({name})")
    return " OR ".join(parts) or "false"


def _within(name: str, found: Range) -> str:
    """Return the predicate that a value is in a range; a bound that is unknown or has no literal is open."""
    kind = found.get("type", "")  # earlier versions did not record it
    lower, upper = _literal(kind, found["lower"]), _literal(kind, found["upper"])
    if lower and upper:
        return f"{name} = {lower}" if lower == upper else f"{name} BETWEEN {lower} AND {upper}"
    if lower:
        return f"{name} >= {lower}"
    return f"{name} <= {upper}" if upper else "true"


def _literal(kind: str, value: Any) -> str:
    """Return a value as a literal of its type, so that it is not compared as text; empty if there is no literal.

    Spark has no types for times of day, nanoseconds and uuids.
    """
    if value is None:
        return ""
    match kind:
        case "int" | "long":
            return str(int(value))
        case "boolean":
            return "true" if value else "false"
        case "float" | "double":
            return f"CAST('{float(value)!r}' AS DOUBLE)"
        case "string":
            return _text(value)
        case "date" | "timestamp" | "timestamptz":
            return f"{_TYPED[kind]} '{value}'"
        case "binary":
            return f"X'{value}'"
        case _ if kind.startswith("decimal"):
            return f"CAST('{value}' AS {kind.upper()})"
        case _ if kind.startswith("fixed"):
            return f"X'{value}'"
        case _:
            return ""


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
